"""Read molecules in several processes, while this one does other work.

The processes are started as programs of their own, not by `multiprocessing`: they import neither torch nor the user's
script, which would otherwise have to be protected by `if __name__ == "__main__"`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import IO, cast

import numpy as np

from pathnn.data.errors import DataError
from pathnn.data.readers.clean import Clean
from pathnn.data.readers.molecules import MoleculeFeatures, Molecules, Problems, read_molecules

MANY = 2_000
"""So many molecules are worth starting processes."""

PIECE = 500
"""How many molecules a process reads at once."""

MOST_PROCESSES = 16

TYPES = (np.uint8, np.uint8, np.int32, np.int32, np.int32, np.int32)
"""The types of the arrays of `Molecules`."""


def reader_processes(molecules: int) -> int:
    """Return how many processes should read so many molecules; 0: none but this one.

    >>> reader_processes(1_000)
    0
    """
    available = getattr(os, "sched_getaffinity", None)  # not on every system
    cores = len(available(0)) if available else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES) if molecules > MANY and cores > 1 and sys.executable else 0


class MoleculePool:
    """Processes that read molecules as `read_molecules` does, in the order of the SMILES.

    With 0 processes, molecules are read in this process, when they are asked for.

    ```python
    with MoleculePool("cip", 2) as pool:
        wait = pool.read(["CO", "C("])
        (molecules,), problems = wait()
    ```
    """

    def __init__(self, features: MoleculeFeatures, processes: int, clean: Clean | None = None) -> None:
        self._read = partial(read_molecules, features=features, clean=clean)
        self.processes = [_start(features, clean) for _ in range(processes)]
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for process in self.processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(processes) if processes else None

    def read(self, texts: Sequence[str | None]) -> Callable[[], tuple[list[Molecules], Problems]]:
        """Begin to read molecules; the returned function waits for them, and returns them in pieces."""
        pieces = [texts[i : i + PIECE] for i in range(0, len(texts), PIECE)]
        if self._threads is None:
            found: list[Callable[[], tuple[Molecules, Problems]]] = [partial(self._read, piece) for piece in pieces]
        else:
            found = [self._threads.submit(self._ask, piece).result for piece in pieces]
        return partial(_wait, found)

    def _ask(self, texts: Sequence[str | None]) -> tuple[Molecules, Problems]:
        process = self._idle.get()
        try:
            return _exchange(process, texts)
        except (OSError, ValueError) as error:
            raise DataError(
                f"a process that reads molecules has failed ({error}; exit code {process.poll()}): the memory may be "
                "full. Call again with fewer molecules at a time."
            ) from error
        finally:
            self._idle.put(process)

    def __enter__(self) -> MoleculePool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None:
            if kind is not None:
                for process in self.processes:
                    process.kill()
            self._threads.shutdown(cancel_futures=True)
        for process in self.processes:
            with suppress(OSError):  # it has ended, with a request unread
                cast(IO[bytes], process.stdin).close()
            process.wait()
            cast(IO[bytes], process.stdout).close()


def _wait(found: list[Callable[[], tuple[Molecules, Problems]]]) -> tuple[list[Molecules], Problems]:
    pieces = [wait() for wait in found]
    problems = {PIECE * i + at: reason for i, (_, some) in enumerate(pieces) for at, reason in some.items()}
    return [molecules for molecules, _ in pieces], problems


def _start(features: MoleculeFeatures, clean: Clean | None) -> subprocess.Popen[bytes]:
    """Start a process that answers on its standard output, and finds the packages that this one finds."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "pathnn.data.readers.molecule_pool", json.dumps([features, clean])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


def _exchange(process: subprocess.Popen[bytes], texts: Sequence[str | None]) -> tuple[Molecules, Problems]:
    """Send SMILES as a line of JSON; the answer is a line of JSON and the bytes of arrays."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(texts).encode() + b"\n")
    process.stdin.flush()
    head = json.loads(process.stdout.readline())
    arrays = []
    for shape, kind in zip(head["shapes"], TYPES, strict=True):
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        arrays.append(np.frombuffer(process.stdout.read(size), dtype=kind).reshape(shape))
    return Molecules(*arrays), {int(at): reason for at, reason in head["problems"].items()}


def serve(features: MoleculeFeatures, clean: Clean | None) -> None:
    """Answer the requests of `_exchange` until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what libraries print is no answer
        for line in sys.stdin.buffer:
            molecules, problems = read_molecules(json.loads(line), features, clean)
            arrays = molecules.arrays()
            head = {"shapes": [array.shape for array in arrays], "problems": problems}
            answers.write(json.dumps(head).encode() + b"\n")
            for array in arrays:
                answers.write(array.tobytes())
            answers.flush()


if __name__ == "__main__":
    serve(*json.loads(sys.argv[1]))
