"""The same workers on a Ray cluster: one actor per job, wherever Ray puts it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pathnn_reproduction.execute import Executor
from pathnn_reproduction.pool import Event, Message, outcomes
from pathnn_reproduction.settings import Settings, use_cores
from pathnn_reproduction.spec import RunSpec


class RayPool:
    """`size` actors of a Ray cluster. Each asks for one core, and where the device is a GPU for its share of one.

    `address` is "local" for a Ray of its own on this machine, "auto" for the cluster this machine belongs to, or
    `ray://HOST:PORT`. Runs that were begun go on only if the folder of the runs is on a disk that all machines share;
    otherwise they begin anew there. An actor that dies, or loses its GPU, fails its run, and another takes its place.
    """

    def __init__(self, settings: Settings, address: str) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ValueError(
                "--ray needs Ray, which is not installed: pip install 'pathnn-reproduction[ray]'."
            ) from error
        self.size, self.together, self.settings, self._ray = settings.jobs, settings.together, settings, ray
        self._own = not ray.is_initialized()
        if self._own:
            cores = settings.jobs if address == "local" else None
            with _own_sigterm():
                ray.init(
                    address=address, num_cpus=cores, include_dashboard=False, log_to_driver=False,
                    configure_logging=False,
                )  # fmt: skip
        actor: Any = ray.remote(_Actor)
        gpus = 1 / settings.jobs if settings.device == "cuda" else 0
        # Two calls at a time: one does the run, the other may ask it to stop.
        self._kind = actor.options(num_cpus=1, num_gpus=gpus, max_concurrency=2)
        self._actors = [self._kind.remote(settings) for _ in range(settings.jobs)]
        self._pending: dict[Any, tuple[int, int]] = {}  # which worker, and how many runs it has

    def start(self, worker: int, runs: Sequence[RunSpec]) -> None:
        """Give an idle actor a run, or some."""
        self._pending[self._actors[worker].execute.remote(list(runs))] = worker, len(runs)

    def busy(self) -> int:
        """How many actors have something to do."""
        return len(self._pending)

    def events(self, timeout: float) -> list[Event]:
        """The runs that have ended since the last time."""
        ready, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        found = []
        for reference in ready:
            worker, number = self._pending.pop(reference)
            try:
                events = [Event(worker, kind, **values) for kind, values in self._ray.get(reference)]
            except self._ray.exceptions.RayError as error:
                text = " ".join(str(error).split())[:300]
                lost = Event(worker, "failed", error=f"Ray: {text}", fatal=True)
                events = [replace(lost, place=place) for place in range(number)]
            if any(event.fatal for event in events):
                self._renew(worker)
            found += events
        return found

    def rest(self, keep: int) -> None:
        """Make idle actors but `keep` anew."""
        busy = {worker for worker, _ in self._pending.values()}
        for worker in (number for number in range(self.size) if number not in busy and number != keep):
            self._renew(worker)

    def _renew(self, worker: int) -> None:
        self._ray.kill(self._actors[worker])
        self._actors[worker] = self._kind.remote(self.settings)

    def stop(self) -> None:
        """Ask all actors to stop after the epoch that they are in."""
        for actor in self._actors:
            actor.stop.remote()

    def close(self) -> None:
        """End the actors, and Ray itself if it was started here."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._own:
            self._ray.shutdown()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep what SIGTERM means to the caller: Ray would end the process with it, and not let runs end their epoch."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is not before:  # only the main thread can have changed it, and so can we
            signal.signal(signal.SIGTERM, before)


class _Actor:
    def __init__(self, settings: Settings) -> None:
        use_cores(settings.jobs)
        self._execute, self._stop = Executor(settings), threading.Event()

    def execute(self, runs: list[RunSpec]) -> list[Message]:
        return list(outcomes(self._execute, runs, self._stop.is_set))

    def stop(self) -> None:
        self._stop.set()
