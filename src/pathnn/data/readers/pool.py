"""Read molecules, and compute their descriptors, in this process or in several.

`MoleculePool` starts processes as programs of their own, not by `multiprocessing`, which would import the user's
script. They import no torch, so that they start fast.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from pathnn.data.errors import DataError
from pathnn.data.readers.descriptors import Array, Descriptors
from pathnn.data.readers.molecules import (
    Clean,
    MoleculeFeatures,
    Molecules,
    Problems,
    clean_smiles,
    read_molecules,
)

MANY = 2_000  # so many molecules are worth starting processes
PIECE = 500  # how many molecules a process reads at once
MOST_PROCESSES = 16


def reader_processes(molecules: int) -> int:
    """Return how many processes should read so many molecules; 0: none but this one."""
    available = getattr(os, "sched_getaffinity", None)  # not on every system
    cores = len(available(0)) if available else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES) if molecules > MANY and cores > 1 and sys.executable else 0


class MoleculesRead(NamedTuple):
    """The molecules of SMILES in pieces, why others cannot be read, and the descriptors of the molecules, if any."""

    molecules: list[Molecules]
    problems: Problems
    descriptors: Array | None = None


class MoleculeReader(NamedTuple):
    """The options for reading molecules: their features, cleaning and descriptors."""

    features: MoleculeFeatures = "cip"
    clean: Clean | None = None
    descriptors: Descriptors | None = None

    def read(self, texts: Sequence[str | None]) -> MoleculesRead:
        """Read molecules as `read_molecules` does, and compute their descriptors, except columns of a table."""
        molecules, problems = read_molecules(texts, self.features, self.clean)
        if self.descriptors is None or self.descriptors.kind == "columns":
            return MoleculesRead([molecules], problems)
        smiles = [clean_smiles(text, self.clean) or "" for i, text in enumerate(texts) if i not in problems]
        return MoleculesRead([molecules], problems, self.descriptors.of_molecules(smiles))


class MoleculePool:
    """Processes that read molecules, in the order of the SMILES; with 0 processes, this one reads them when asked."""

    def __init__(self, reader: MoleculeReader, processes: int) -> None:
        self.reader = reader
        if processes:
            reader.read([])  # raises what would end each process: no rdkit, or an unknown descriptor
        self.processes = [_start(reader) for _ in range(processes)]
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for process in self.processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(max(processes, 1))

    def read(self, texts: Sequence[str | None]) -> Callable[[], MoleculesRead]:
        """Begin to read molecules; the returned function waits for them."""
        pieces = [texts[i : i + PIECE] for i in range(0, len(texts), PIECE)]
        waits: list[Callable[[], MoleculesRead]] = [
            self._threads.submit(self._ask, piece).result if self.processes else partial(self.reader.read, piece)
            for piece in pieces
        ]

        def wait() -> MoleculesRead:
            found = [wait_for() for wait_for in waits]
            problems = {PIECE * i + at: reason for i, one in enumerate(found) for at, reason in one.problems.items()}
            described = [one.descriptors for one in found if one.descriptors is not None]
            molecules = [molecules for one in found for molecules in one.molecules]
            return MoleculesRead(molecules, problems, np.concatenate(described) if described else None)

        return wait

    def _ask(self, texts: Sequence[str | None]) -> MoleculesRead:
        """Send SMILES to a process that waits for some, and return its answer."""
        process = self._idle.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump(texts, process.stdin)
            process.stdin.flush()
            molecules, problems, descriptors = pickle.load(process.stdout)
            return MoleculesRead([Molecules(*molecules)], problems, descriptors)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            raise DataError(
                f"a process that reads molecules has failed ({error}; exit code {process.poll()}): the memory may be "
                "full. Call again with fewer molecules at a time."
            ) from error
        finally:
            self._idle.put(process)

    def __enter__(self) -> MoleculePool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for process in self.processes if kind is not None else ():
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self.processes:
            with suppress(OSError), process:  # close its pipes and wait; it may have ended with a request unread
                pass


def _start(reader: MoleculeReader) -> subprocess.Popen[bytes]:
    """Start a process that answers on its standard output, and finds the packages that this one finds."""
    paths = os.pathsep.join(path for path in sys.path if path)
    described = None if reader.descriptors is None else asdict(reader.descriptors)
    options = json.dumps([reader.features, reader.clean, described])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "pathnn.data.readers.pool", options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


def serve(reader: MoleculeReader) -> None:
    """Answer the requests of `MoleculePool` until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    with os.fdopen(os.dup(1), "wb") as answers, suppress(EOFError):
        os.dup2(2, 1)  # what libraries print is no answer
        while True:
            (molecules,), problems, descriptors = reader.read(pickle.load(sys.stdin.buffer))
            pickle.dump((tuple(molecules), problems, descriptors), answers, protocol=5)
            answers.flush()


if __name__ == "__main__":
    features, clean, described = json.loads(sys.argv[1])
    serve(MoleculeReader(features, clean, Descriptors.from_dict(described)))
