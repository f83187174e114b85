"""Do missing runs on a GPU machine that is available for minutes, and carry unfinished runs from one to the next.

    python tools/gpu_minutes.py run 9 zinc:ap tu:nci1,gin --jobs 6 --runs .device/runs.tar.xz --out OUT
    python tools/gpu_minutes.py pack results/.runs runs.tar.xz --part-mib 15
    python tools/gpu_minutes.py unpack runs.tar.xz results/.runs

`run` does what is missing of each TARGET[:ONLY], one after the other, for so many minutes. Runs that were not finished
the last time are resumed from the file `--runs` (or its parts). OUT gets `TARGET.jsonl` and the unfinished runs as
`runs.tar.xz.000`, ...: keep 30 seconds for packing. Nothing has to be installed: the code of this checkout is used.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]

UNFINISHED = ("config.yaml", "metrics.jsonl", "last.ckpt")
"""The files that a run is resumed from; the checkpoint has the best weights."""

FINISHED = ("config.yaml", "model.safetensors", "result.json")
"""The files of a finished run that `pathnn reproduce TARGET --export` needs."""


class PackError(ValueError):
    """A packed file that is missing, damaged or not ours."""


def pack(work: Path, file: Path, *, models: bool = False, part_mib: float | None = None) -> int:
    """Pack the unfinished runs below `work`, with `models` also the finished ones; return how many.

    With `part_mib`, the file is cut into `FILE.000`, `FILE.001`, ... of at most that size.
    """
    content, count = io.BytesIO(), 0
    with tarfile.open(fileobj=content, mode="w:xz", preset=1) as tar:
        for folder, names in _runs(work, models=models):
            for name in names:
                if (folder / name).is_file():
                    tar.add(folder / name, arcname=f"{folder.parent.name}/{folder.name}/{name}")
            count += 1
    _write(content.getvalue(), file, part_mib)
    return count


def _runs(work: Path, *, models: bool) -> Iterator[tuple[Path, tuple[str, ...]]]:
    for folder in sorted(path for path in work.glob("*/*") if path.is_dir()):
        if (folder / "last.ckpt").exists() and not (folder / "result.json").exists():
            yield folder, UNFINISHED
        elif models and (folder / "result.json").exists():
            yield folder, FINISHED


def _write(content: bytes, file: Path, part_mib: float | None) -> None:
    size = len(content) if part_mib is None else int(part_mib * 2**20)
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    names = [file] if part_mib is None else [Path(f"{file}.{i:03d}") for i in range(len(pieces))]
    file.parent.mkdir(parents=True, exist_ok=True)
    for old in _parts(file):
        old.unlink()
    for name, piece in zip(names, pieces, strict=True):
        name.write_bytes(piece)


def _parts(file: Path) -> list[Path]:
    return [file] if file.is_file() else sorted(file.parent.glob(f"{file.name}.[0-9][0-9][0-9]"))


def unpack(file: Path, work: Path) -> int:
    """Put packed runs below `work`, and return how many; a run that is there already stays as it is."""
    parts = _parts(file)
    if not parts:
        raise PackError(f"{file} does not exist: expected a file that pack wrote, or its parts {file.name}.000, ...")
    try:
        with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts)), mode="r:xz") as tar:
            members = [member for member in tar.getmembers() if not member.isdir()]
            _check(file, members)
            new = [member for member in members if not (work / member.name).parent.is_dir()]
            work.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=work) as room:  # a folder appears as a whole
                tar.extractall(room, members=new, filter="data")
                folders = sorted({PurePosixPath(member.name).parent for member in new})
                for folder in folders:
                    (work / folder).parent.mkdir(parents=True, exist_ok=True)
                    (Path(room) / folder).rename(work / folder)
            return len(folders)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise PackError(f"{file} cannot be unpacked: {error}.") from error


def _check(file: Path, members: Sequence[tarfile.TarInfo]) -> None:
    """Raise `PackError` unless all members are files that `pack` writes."""
    for member in members:
        parts = PurePosixPath(member.name).parts
        ours = len(parts) == 3 and not {"..", "/", "."} & set(parts) and parts[-1] in {*UNFINISHED, *FINISHED}
        if not (ours and member.isfile()):
            raise PackError(f"{file} was not written by pack: it contains {member.name!r}. Nothing was unpacked.")


def run(minutes: float, targets: Sequence[str], *, jobs: int, out: Path, runs: Path, scratch: Path) -> int:
    """Do missing runs of each target for `minutes` in all; return the largest exit code."""
    end, worst = time.monotonic() + 60 * minutes, 0
    results, work = scratch / "results", scratch / "work"
    results.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    if _parts(runs):
        print(f"resuming {unpack(runs, work)} runs", flush=True)
    environment = _environment(scratch)
    for target, _, only in (text.partition(":") for text in targets):
        start = ROOT / "results" / f"{target}.jsonl"
        if start.exists() and not (results / start.name).exists():
            shutil.copy(start, results)
        left = max(0.0, (end - time.monotonic()) / 60)
        command = [sys.executable, "-m", "pathnn_reproduction", "reproduce", target, "--jobs", str(jobs)]
        command += ["--time-limit", f"{left:.3f}", "--results", str(results), "--work", str(work)]
        command += ["--only", only] if only else []
        worst = max(worst, subprocess.run(command, env=environment, check=False).returncode)
        if (results / start.name).exists():  # before packing: unfinished runs can be repeated
            shutil.copy(results / start.name, out)
    print(f"packed {pack(work, out / 'runs.tar.xz', part_mib=15)} unfinished runs into {out}", flush=True)
    return worst


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment of the runs; start NVIDIA's MPS if it is installed, so that processes share the GPU."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "reproduction" / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    if shutil.which("nvidia-cuda-mps-control") and "CUDA_MPS_PIPE_DIRECTORY" not in environment:
        environment |= dict.fromkeys(("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"), str(scratch / "mps"))
        (scratch / "mps").mkdir(parents=True, exist_ok=True)
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=False)
    return environment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="do missing runs for some minutes")
    running.add_argument("minutes", type=float)
    running.add_argument("targets", nargs="+", metavar="TARGET[:ONLY]")
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--out", type=Path, required=True, help="where results and unfinished runs go")
    running.add_argument("--runs", type=Path, default=Path(".device/runs.tar.xz"), help="unfinished runs to resume")
    running.add_argument("--scratch", type=Path, default=Path("/tmp/pathnn-minutes"), help="kept between calls")
    packing = commands.add_parser("pack", help="pack unfinished runs")
    packing.add_argument("work", type=Path, help="the folder of the run folders, such as results/.runs")
    packing.add_argument("file", type=Path)
    packing.add_argument("--models", action="store_true", help="also finished runs, with their models")
    packing.add_argument("--part-mib", type=float, help="cut the file into parts of this size")
    unpacking = commands.add_parser("unpack", help="put packed runs into a folder")
    unpacking.add_argument("file", type=Path)
    unpacking.add_argument("work", type=Path)
    o = parser.parse_args(arguments)
    try:
        if o.command == "run":
            return run(o.minutes, o.targets, jobs=o.jobs, out=o.out, runs=o.runs, scratch=o.scratch)
        if o.command == "pack":
            print(f"packed {pack(o.work, o.file, models=o.models, part_mib=o.part_mib)} runs into {o.file}")
        else:
            print(f"unpacked {unpack(o.file, o.work)} runs into {o.work}")
    except PackError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
