"""Execute runs in processes on this machine, or as tasks of a Ray cluster."""

from __future__ import annotations

import math
import signal
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, Protocol

from pathnn_reproduction.spec import RunSpec
from pathnn_reproduction.worker import Outcome, Settings, execute, share_cores, start_worker


class Pool(Protocol):
    """Executes up to `size` runs at a time."""

    size: int

    def submit(self, spec: RunSpec) -> Future[Outcome]:
        """Start a run; the caller never has more than `size` unfinished ones."""
        ...

    def release(self) -> None:
        """Release the memory that idle processes hold; called when no run is unfinished."""

    def close(self) -> None:
        """End all processes, also in the middle of a run."""


class LocalPool:
    """Processes on this machine, which share its cores and its GPU.

    Each is an executor of its own, so a process that dies breaks no other. A process keeps its data for the next run.
    """

    def __init__(self, settings: Settings) -> None:
        self.size, self.settings = settings.jobs, settings
        self._executors: dict[int, ProcessPoolExecutor] = {}
        self._last: dict[int, Future[Outcome]] = {}

    def submit(self, spec: RunSpec) -> Future[Outcome]:
        """Start a run in an idle process; a process that died or lost its GPU is replaced."""
        slot = next(i for i in range(self.size) if i not in self._last or self._last[i].done())
        last = self._last.get(slot)
        if last is not None and (last.exception() is not None or last.result().lost):
            self._end(slot)
        if slot not in self._executors:
            spawn = get_context("spawn")  # CUDA does not survive a fork
            self._executors[slot] = ProcessPoolExecutor(1, spawn, start_worker, (self.size,))
        try:
            self._last[slot] = self._executors[slot].submit(execute, spec, self.settings)
        except BrokenProcessPool:  # the process was killed while it had nothing to do
            self._end(slot)
            return self.submit(spec)
        return self._last[slot]

    def release(self) -> None:
        """End all processes; new ones take their places."""
        self.close()

    def close(self) -> None:
        """Kill all processes."""
        for slot in list(self._executors):
            self._end(slot)

    def _end(self, slot: int) -> None:
        executor = self._executors.pop(slot)
        self._last.pop(slot, None)
        for process in list((executor._processes or {}).values()):
            process.kill()
        executor.shutdown(cancel_futures=True)


class RayPool:
    """Tasks of a Ray cluster, each with one core and, with `--device cuda`, a share of a GPU.

    `address` is "local" for a Ray of its own on this machine, "auto" for the cluster that this machine belongs to, or
    `ray://HOST:PORT`. Ray repeats a task twice if its process dies; the run resumes if the folder of the runs is on a
    disk that all machines share, and starts again otherwise.
    """

    def __init__(self, settings: Settings, address: str) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ValueError(
                "--ray needs Ray, which is not installed: pip install 'pathnn-reproduction[ray]'."
            ) from error
        self.size, self.settings, self._ray = settings.jobs, settings, ray
        self._own = not ray.is_initialized()
        if self._own:
            cores = settings.jobs if address == "local" else None
            before = signal.getsignal(signal.SIGTERM)
            quiet = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
            ray.init(address=address, num_cpus=cores, **quiet)
            signal.signal(signal.SIGTERM, before)  # Ray's handler would end the process before runs end their epoch
        gpus = 0.0
        if settings.device == "cuda":
            runs_per_gpu = math.ceil(settings.jobs / max(ray.cluster_resources().get("GPU", 1), 1))
            gpus = 1 / runs_per_gpu
        task: Any = ray.remote(execute_on_ray)
        self._task = task.options(num_cpus=1, num_gpus=gpus, max_retries=2)

    def submit(self, spec: RunSpec) -> Future[Outcome]:
        """Start a run wherever Ray has room."""
        future: Future[Outcome] = self._task.remote(spec, self.settings).future()
        return future

    def release(self) -> None:
        """Do nothing: Ray ends the process of a task that used a GPU."""

    def close(self) -> None:
        """End Ray if it was started here."""
        if self._own:
            self._ray.shutdown()


def execute_on_ray(spec: RunSpec, settings: Settings) -> Outcome:
    """Do a run as a Ray task."""
    share_cores(settings.jobs)
    return execute(spec, settings)
