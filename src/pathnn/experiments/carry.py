"""Carrying runs from one machine to another: what is under way and the best models, as one tar file."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from pathnn.engine import RunFolder
from pathnn.experiments.cells import best_line
from pathnn.experiments.experiment import Experiment
from pathnn.experiments.ledger import Ledger
from pathnn.experiments.planned import PlannedRun

UNDER_WAY = ("config.yaml", "metrics.jsonl", "last.ckpt")
"""What a run goes on from; the state holds the best weights, so that the model file is made again from it."""

OVER = ("config.yaml", "model.safetensors", "result.json")
"""What is wanted of the best run of a cell, and of one that is over and was not noted down."""


class CarryError(ValueError):
    """A packed file that does not exist or is not one of ours."""


def pack_runs(experiment: Experiment, ledger: Ledger, work: Path, file: Path, *, part_mib: float | None = None) -> int:
    """Pack the runs that the ledger does not have and the best one of every cell; returns how many runs that are.

    With `part_mib` the file is cut into `FILE.000`, `FILE.001`, … of at most so many MiB.
    """
    content, count = io.BytesIO(), 0
    with tarfile.open(fileobj=content, mode="w") as tar:
        for folder, names in _worth_carrying(experiment, ledger, work):
            for name in names:
                if (folder.path / name).exists():
                    tar.add(folder.path / name, arcname=f"{experiment.name}/{folder.path.name}/{name}")
            count += 1
    _write(content.getvalue(), file, part_mib)
    return count


def unpack_runs(file: Path, work: Path) -> int:
    """Put packed runs into the folder `work`; returns how many. A run that is there already is left alone."""
    if file.is_dir():
        raise CarryError(f"{file} is a folder: expected a file that --pack wrote.")
    parts = [file] if file.exists() else sorted(file.parent.glob(f"{file.name}.[0-9][0-9][0-9]"))
    if not parts:
        raise CarryError(f"{file} does not exist: expected a file that --pack wrote, or its parts {file.name}.000, …")
    content = io.BytesIO(b"".join(part.read_bytes() for part in parts))
    there = {path for path in work.glob("*/*") if path.is_dir()}
    came: set[Path] = set()
    try:
        with tarfile.open(fileobj=content, mode="r:") as tar:
            for member in _ours(file, tar):
                folder = (work / member.name).parent
                if folder not in there:
                    tar.extract(member, work, filter="data")
                    came.add(folder)
    except tarfile.TarError as error:
        raise CarryError(f"{file} is damaged, or was not written by --pack: {error}.") from error
    return len(came)


def _ours(file: Path, tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """The files in it, if they are all of `pack_runs`; anything else is not to land among the runs."""
    members = [member for member in tar.getmembers() if not member.isdir()]
    for member in members:
        parts = Path(member.name).parts
        if not (member.isfile() and len(parts) == 3 and parts[-1] in {*UNDER_WAY, *OVER}):
            raise CarryError(
                f"{file} was not written by --pack: it holds {member.name!r}, expected TARGET/RUN/{UNDER_WAY[0]} and "
                "the like. Nothing was unpacked."
            )
    return members


def _worth_carrying(experiment: Experiment, ledger: Ledger, work: Path) -> Iterator[tuple[RunFolder, tuple[str, ...]]]:
    cells: dict[tuple[object, ...], list[PlannedRun]] = {}
    for run in experiment.runs:
        cells.setdefault(run.cell, []).append(run)
        folder = RunFolder(work / experiment.name / run.folder)
        if ledger.find(run) is None and folder.result.exists():
            yield folder, OVER
        elif ledger.find(run) is None and folder.state.exists():
            yield folder, UNDER_WAY
    for runs in cells.values():
        best = best_line(experiment, runs, ledger)
        if best is not None:
            folder = RunFolder(work / experiment.name / best[0].folder)
            if folder.model.exists():
                yield folder, OVER


def _write(content: bytes, file: Path, part_mib: float | None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if part_mib is None:
        _clear(file)
        file.write_bytes(content)
        return
    size = int(part_mib * 2**20)
    if len(content) > 1000 * size:
        raise CarryError(
            f"{file}: {len(content) / 2**20:.0f} MiB would be more than 1000 parts of {part_mib} MiB. Use larger parts."
        )
    _clear(file)
    for i in range(0, len(content), size):
        file.with_name(f"{file.name}.{i // size:03d}").write_bytes(content[i : i + size])


def _clear(file: Path) -> None:
    """Remove what an earlier pack has left under this name."""
    for old in [file, *file.parent.glob(f"{file.name}.[0-9][0-9][0-9]")]:
        old.unlink(missing_ok=True)
