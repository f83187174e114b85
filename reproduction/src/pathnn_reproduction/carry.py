"""Carrying runs from one machine to another: what is under way and the best models, as one tar file."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pathnn.files import atomic_write
from pathnn.training import RunFolder
from pathnn_reproduction.results import Results
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import best_line

UNDER_WAY = ("config.yaml", "metrics.jsonl", "last.ckpt")
"""What a run resumes from; the state holds the best weights, so that the model file is made again from it."""

OVER = ("config.yaml", "model.safetensors", "result.json")
"""What is wanted of the best run of a cell, and of one that is over and was not noted down."""


class CarryError(ValueError):
    """A packed file that does not exist or is not one of ours."""


def pack_runs(
    experiment: Experiment, results_file: Results, work: Path, file: Path, *, part_mib: float | None = None
) -> int:
    """Pack the runs that the results file does not have and the best one of every cell; returns how many runs that are.

    With `part_mib` the file is cut into `FILE.000`, `FILE.001`, … of at most so many MiB.
    """
    content, count = io.BytesIO(), 0
    with tarfile.open(fileobj=content, mode="w") as tar:
        for folder, names in _worth_carrying(experiment, results_file, work):
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
    try:
        with tarfile.open(fileobj=content, mode="r:") as tar:
            new = [member for member in _ours(file, tar) if not (work / member.name).parent.is_dir()]
            return _put(tar, new, work)
    except tarfile.TarError as error:
        raise CarryError(f"{file} is damaged, or was not written by --pack: {error}.") from error


def _put(tar: tarfile.TarFile, members: list[tarfile.TarInfo], work: Path) -> int:
    """Extract the folders of some runs; each is there as a whole or not at all."""
    work.mkdir(parents=True, exist_ok=True)
    folders = {Path(member.name).parent for member in members}
    with TemporaryDirectory(dir=work, prefix=".unpack-") as room:
        for member in members:
            content = tar.extractfile(member)
            assert content is not None, "plain files alone are among them"
            place = Path(room) / member.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.read())
        for folder in folders:
            (work / folder).parent.mkdir(parents=True, exist_ok=True)
            (Path(room) / folder).rename(work / folder)
    return len(folders)


def _ours(file: Path, tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """The files in it, if they are all of `pack_runs`; anything else is not to land among the runs."""
    members = [member for member in tar.getmembers() if not member.isdir()]
    for member in members:
        parts = Path(member.name).parts
        inside = len(parts) == 3 and ".." not in parts and not Path(member.name).is_absolute()
        if not (member.isfile() and inside and parts[-1] in {*UNDER_WAY, *OVER}):
            raise CarryError(
                f"{file} was not written by --pack: it holds {member.name!r}, expected TARGET/RUN/{UNDER_WAY[0]} and "
                "the like. Nothing was unpacked."
            )
    return members


def _worth_carrying(
    experiment: Experiment, results_file: Results, work: Path
) -> Iterator[tuple[RunFolder, tuple[str, ...]]]:
    cells: dict[tuple[object, ...], list[RunSpec]] = {}
    for run in experiment.runs:
        cells.setdefault(run.cell, []).append(run)
        folder = RunFolder(work / experiment.name / run.folder)
        if results_file.find(run) is None and folder.result.exists():
            yield folder, OVER
        elif results_file.find(run) is None and folder.state.exists():
            yield folder, UNDER_WAY
    for runs in cells.values():
        best = best_line(experiment, runs, results_file)
        if best is not None:
            folder = RunFolder(work / experiment.name / best[0].folder)
            if folder.model.exists():
                yield folder, OVER


def _write(content: bytes, file: Path, part_mib: float | None) -> None:
    size = len(content) if part_mib is None else int(part_mib * 2**20)
    if len(content) > 1000 * size:
        raise CarryError(
            f"{file}: {len(content) / 2**20:.0f} MiB would be more than 1000 parts of {part_mib} MiB. Use larger parts."
        )
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    names = [file] if part_mib is None else [file.with_name(f"{file.name}.{i:03d}") for i in range(len(pieces))]
    for name, piece in zip(names, pieces, strict=True):
        with atomic_write(name) as out:
            out.write(piece)
    for old in [file, *file.parent.glob(f"{file.name}.[0-9][0-9][0-9]")]:  # what an earlier pack has left
        if old not in names:
            old.unlink(missing_ok=True)
