"""`pathnn predict`: CSV in, CSV out."""

from __future__ import annotations

import ctypes
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, progress, result_only, say
from pathnn.cli.options import Data, Device, Json, Run, Smiles, check_output, pick_device

if TYPE_CHECKING:
    from pathnn.inference.stream import PredictionTable

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="The .csv or .csv.gz to write; by default standard output."),
]  # fmt: skip
Strict = Annotated[bool, typer.Option("--strict", help="Refuse a file with rows that cannot be read.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the prediction of a file that was stopped.")]
Part = Annotated[
    str | None,
    typer.Option("--part", metavar="I/N", help="Predict the I-th of N parts of a file, which are of equal size."),
]  # fmt: skip
Interval = Annotated[
    float | None,
    typer.Option("--interval", min=0.0, max=1.0, metavar="LEVEL",
                 help="Add intervals, or sets of classes, that hold this share of the targets, such as 0.9."),
]  # fmt: skip


def predict_command(
    run: Run,
    data: Data,
    out: Out = None,
    smiles: Smiles = None,
    strict: Strict = False,
    resume: Resume = False,
    part: Part = None,
    interval: Interval = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Predict for new data: its columns, row by row, with the predictions added.

    Every row keeps its place. If a row cannot be read, its prediction is empty, the last column, error, says why, and
    the exit code is still 0 (see --strict). For several networks (train --seeds), the predictions are the mean of all
    networks, with their standard deviation. The column similarity is that to the nearest training molecule, 0 to 1.
    --interval needs a run that was trained with --folds or --calibration.
    """
    share = _part(part)
    check_output(out, data)
    _free_memory(one_heap=True)
    if resume and (out is None or json):
        raise typer.BadParameter("only a file that --out names can be resumed, without --json.", param_hint="--resume")
    with result_only(json):
        from pathnn.files import atomic_write, check_ending, csv_text
        from pathnn.inference import stream
        from pathnn.inference.predictor import Predictor

        if out is not None:
            check_ending(out, ".csv", ".csv.gz")
        predictor, table = Predictor(run, pick_device(device), interval=interval), stream.is_table(data)
        if not table and (resume or part is not None):
            raise ValueError(f"--resume and --part are for tables: {data} is none.")
        done, kept = stream.Written(), []
        with progress(f"predicting for {data}", total_rows(data, share) if table else None, unit="molecules") as step:

            def report(chunk: PredictionTable) -> None:
                nonlocal done
                if json:
                    kept.append(chunk)
                elif out is None:
                    sys.stdout.write(csv_text(chunk.rows if done.chunks else [chunk.header, *chunk.rows]))
                done = done.add(chunk)
                step(len(chunk.rows))
                _free_memory()

            options: dict[str, Any] = {"smiles": smiles, "strict": strict, "part": share}
            if not table:
                report(whole := stream.predict_table(predictor, data, strict=strict))
                if out is not None:
                    with atomic_write(out) as file:
                        file.write(stream.csv_bytes([whole.header, *whole.rows], out))
            elif out is not None:
                done = stream.predict_file(predictor, data, out, resume=resume, report=report, **options)
            else:
                for chunk in stream.predict_rows(predictor, data, **options):
                    report(chunk)
    if table and not predictor.more_columns:
        note(f"no column similarity: {run} does not have the training molecules, which a run folder of a table has")
    if predictor.calibration is not None and interval is not None:
        for name, (known, least) in predictor.calibration.too_few(interval).items():
            numbers = predictor.calibration.signature.target == "regression"
            what = "intervals are infinite" if numbers else "sets have all classes"
            note(f"{name}: {what}, since a level of {interval} needs at least {least:,} calibration molecules with a "
                 f"known target, and {run} has {known:,}")  # fmt: skip
    if done.bad:
        note(f"{done.bad:,} of {done.rows:,} rows cannot be read and have no prediction, the first is {done.first_bad}")
    if json:
        _print_json(kept, out)
    elif out is not None:
        say(f"wrote {done.rows} rows to {out}")


def _free_memory(*, one_heap: bool = False) -> None:
    """Give free memory back to the system; with `one_heap`, let threads share a heap from now on. Only with glibc."""
    m_arena_max = -8
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(m_arena_max, 1) if one_heap else libc.malloc_trim(0)


def _part(text: str | None) -> tuple[int, int]:
    """Return the number of a part and the number of all parts."""
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", "1/1" if text is None else text)
    part, parts = map(int, found.groups()) if found else (0, 0)
    if 1 <= part <= parts:
        return part, parts
    raise typer.BadParameter(f"got {text!r}: expected a part and the number of parts, 3/100.", param_hint="--part")


def total_rows(data: str, part: tuple[int, int]) -> int | None:
    """Return how many rows will be predicted, for a bar on a terminal; None if it is not known before."""
    from pathnn.inference.stream import count_rows, part_rows

    if data == "-" or not sys.stderr.isatty():
        return None
    return count_rows(data) if part == (1, 1) else len(part_rows(data, part))


def _print_json(chunks: list[PredictionTable], out: Path | None) -> None:
    names, rows = chunks[0].predicted, [row for chunk in chunks for row in chunk.rows]
    *columns, errors = ([row[i] if row[i] != "" else None for row in rows] for i in range(-len(names) - 1, 0))
    counts = {"rows": len(rows), "bad_rows": sum(map(bool, errors)), "out": out}
    print_json({**counts, "predictions": dict(zip(names, columns, strict=True)), "errors": errors})
