"""Worker processes on this machine: each does one run at a time, or some that are trained together, and says how it
goes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Literal, Protocol

import torch

from pathnn.training.loop import Epoch
from pathnn.training.together import TogetherError
from pathnn_reproduction.execute import Executor
from pathnn_reproduction.groups import release_memory
from pathnn_reproduction.results import Line
from pathnn_reproduction.settings import Settings, use_cores
from pathnn_reproduction.spec import RunSpec

GPU_LOST = ("CUDA error", "Triton Error [CUDA]", "cuDNN error")
"""What an error says after which nothing more can be computed on the GPU in that process."""

NO_MEMORY = ("out of memory", "ALLOC_FAILED")
"""What such an error says where the GPU's memory was short."""

SAY_EVERY = 1.0
"""Seconds between two messages of one worker about its epochs."""


@dataclass(frozen=True)
class Event:
    """What a worker says: an epoch is over, or a run is (done, failed, stopped to go on later, or given back, because
    it has to be done apart from the others); `place` is which of the runs that it was given.

    A run that failed with its process, or with that process' hold on the GPU (`fatal`), leaves a worker that can do
    nothing more. One that failed for want of the GPU's memory (`memory`) may have all of it when the others are over.
    """

    worker: int
    kind: Literal["epoch", "done", "failed", "stopped", "apart"]
    place: int = 0
    epoch: int = 0
    line: Line | None = None
    error: str = ""
    fatal: bool = False
    memory: bool = False
    run: RunSpec | None = None


class Pool(Protocol):
    """Workers that runs are given to, wherever they are: one run at a time, or up to `together` of the same
    `together_key`."""

    size: int
    together: int

    def start(self, worker: int, runs: Sequence[RunSpec]) -> None:
        """Give an idle worker a run, or some."""

    def busy(self) -> int:
        """How many workers have something to do."""
        ...

    def events(self, timeout: float) -> list[Event]:
        """What workers have said; waits at most `timeout` seconds for the first word."""
        ...

    def rest(self, keep: int) -> None:
        """Let idle workers but `keep` give back what they hold, such as data on the GPU."""

    def stop(self) -> None:
        """Ask all workers to stop after the epoch that they are in."""

    def close(self) -> None:
        """End all workers, idle or not."""


class LocalPool:
    """`size` processes on this machine, which share its cores and its GPU.

    A process that dies (killed, out of memory) fails its runs, and another takes its place.
    """

    def __init__(self, settings: Settings) -> None:
        self.size, self.together, self.settings = settings.jobs, settings.together, settings
        self._context = get_context("spawn")  # CUDA does not survive a fork
        # No `Event`, which has a lock: a process killed while it holds it would leave all others, and us, waiting.
        self._stop: Any = self._context.RawValue("b", 0)
        self._workers: dict[int, tuple[SpawnProcess, Connection]] = {}
        self._busy: dict[int, set[int]] = {}  # by worker, which of its runs are not over

    def start(self, worker: int, runs: Sequence[RunSpec]) -> None:
        """Give an idle worker a run, or some; its process is started when it gets its first."""
        if worker in self._workers and not self._workers[worker][0].is_alive():
            self._workers.pop(worker)[1].close()  # killed while it had nothing to do
        if worker not in self._workers:
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=work, args=(theirs, self.settings, self._stop), daemon=True)
            process.start()
            theirs.close()
            self._workers[worker] = (process, ours)
        self._busy[worker] = set(range(len(runs)))
        with suppress(BrokenPipeError, ConnectionResetError):  # it has just died: `events` will say so
            self._workers[worker][1].send(list(runs))

    def busy(self) -> int:
        """How many processes have something to do."""
        return len(self._busy)

    def events(self, timeout: float) -> list[Event]:
        """What workers have said since the last time."""
        busy = {self._workers[number][1]: number for number in self._busy}
        found = []
        for connection in wait(list(busy), timeout):
            assert isinstance(connection, Connection)
            found += self._read(busy[connection], connection)
        return found

    def _read(self, worker: int, connection: Connection) -> list[Event]:
        try:
            kind, values = connection.recv()
            event = Event(worker, kind, **values)
        except (EOFError, OSError):
            process = self._workers[worker][0]
            process.join(5)
            event = Event(worker, "failed", error=f"its process died (exit code {process.exitcode}).", fatal=True)
        if event.fatal:
            process, connection = self._workers.pop(worker)
            connection.close()
            process.kill()
            process.join()
            return [replace(event, place=place) for place in sorted(self._busy.pop(worker))]
        if event.kind != "epoch":
            self._busy[worker].discard(event.place)
            if not self._busy[worker]:
                del self._busy[worker]
        return [event]

    def rest(self, keep: int) -> None:
        """End idle processes but `keep`; others take their places when there is something to do."""
        for number in [number for number in self._workers if number not in self._busy and number != keep]:
            self._end(*self._workers.pop(number))

    def stop(self) -> None:
        """Ask all workers to stop after the epoch that they are in."""
        self._stop.value = 1

    def close(self) -> None:
        """End all processes."""
        for _, connection in self._workers.values():
            connection.close()
        for number, (process, connection) in self._workers.items():
            if number in self._busy:
                process.kill()
            self._end(process, connection)
        self._workers.clear()

    @staticmethod
    def _end(process: SpawnProcess, connection: Connection) -> None:
        connection.close()  # an idle worker ends by itself
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()


def work(connection: Connection, settings: Settings, stop: Any) -> None:
    """The life of a worker process: a run, what came of it, the next run, until the other end is closed."""
    for wish in (signal.SIGINT, signal.SIGTERM):  # these reach all processes; the parent decides what they mean
        signal.signal(wish, signal.SIG_IGN)
    use_cores(settings.jobs)
    execute = Executor(settings)
    # A parent that is gone is no error of ours.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            for message in outcomes(execute, connection.recv(), lambda: bool(stop.value), connection.send):
                connection.send(message)


Message = tuple[str, dict[str, Any]]
"""What a worker says: the kind of an `Event`, and its values."""


def outcomes(
    execute: Executor,
    runs: Sequence[RunSpec],
    stop: Callable[[], bool],
    say: Callable[[Message], None] = lambda message: None,
) -> Iterator[Message]:
    """What comes of some runs, as messages, when it comes; `say` is told about epochs in between."""
    said = [time.monotonic()] * len(runs)

    def report(place: int, epoch: Epoch) -> None:
        if time.monotonic() - said[place] >= SAY_EVERY:
            said[place] = time.monotonic()
            say(("epoch", {"place": place, "epoch": epoch.epoch}))

    if len(runs) == 1:
        message = attempt(lambda: execute(runs[0], report=lambda epoch, _: report(0, epoch), stop=stop))
        release_memory()  # now that nothing is held by an error
        yield message
        return
    left = set(range(len(runs)))
    results = execute.together(runs, report=report, stop=stop)
    while left:
        kind, values = attempt(lambda: next(results))
        if kind != "done":  # all that are left end alike
            yield from ((kind, {**values, "place": place}) for place in sorted(left))
            return
        place, line = values["line"]
        left.remove(place)
        if isinstance(line, TogetherError):
            yield "apart", {"place": place}
        else:
            yield "done" if isinstance(line, dict) else "failed", {"place": place, **_ending(line)}


def _ending(line: Line | Exception) -> dict[str, Any]:
    return {"line": line} if isinstance(line, dict) else _failure(line)


def attempt(do: Callable[[], Any]) -> Message:
    """A result, a stop or an error as a message; losing the parent is no outcome."""
    from pathnn.training import RunStoppedError

    try:
        return "done", {"line": do()}
    except RunStoppedError:
        return "stopped", {}
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        return "failed", _failure(error)


def _failure(error: Exception) -> dict[str, Any]:
    text = " ".join(str(error).split())
    fatal = any(sign in text for sign in GPU_LOST)
    memory = isinstance(error, torch.OutOfMemoryError) or (fatal and any(sign in text for sign in NO_MEMORY))
    return {"error": f"{type(error).__name__}: {text[:500]}", "fatal": fatal, "memory": memory}
