"""`pathnn predict`: CSV in, CSV out."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, progress, result_only, say
from pathnn.cli.options import Data, Device, Json, Run, Smiles, pick_device

if TYPE_CHECKING:
    from pathnn.inference.predictor import PredictionTable

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="The .csv to write; by default standard output.",
                 show_default=False),
]  # fmt: skip
Strict = Annotated[bool, typer.Option("--strict", help="Refuse a file with rows that cannot be read.")]


def predict_command(
    run: Run,
    data: Data,
    out: Out = None,
    smiles: Smiles = None,
    strict: Strict = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Predict for new data: its columns, row by row, with the predictions added.

    Every row keeps its place. If a row cannot be read, its prediction is empty, the last column, error, says why, and
    the exit code is still 0 (see --strict). For several networks (train --seeds), the predictions are the mean of all
    networks, with their standard deviation.
    """
    path = Path(data).expanduser()
    if out is not None and out.exists() and path.exists() and out.samefile(path):
        raise typer.BadParameter("it is the file to read: give another name.", param_hint="--out")
    with result_only(json):
        from pathnn.inference.predictor import load_runs, predict_table

        trained = load_runs(run)
        with progress(f"predicting for {data}"):
            table = predict_table(trained, data, smiles=smiles, strict=strict, device=pick_device(device))
        if out is not None:
            write_csv(out, table.header, table.rows)
    bad = table.bad
    if bad:
        note(f"{len(bad):,} of {len(table.rows):,} rows cannot be read and have no prediction, the first is {bad[0]}")
    if json:
        _print_json(table, out)
    elif out is not None:
        say(f"wrote {len(table.rows)} rows to {out}")
    else:
        sys.stdout.write(csv_text(table.header, table.rows))


def write_csv(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a CSV as a whole or not at all."""
    from pathnn.files import atomic_write

    if path.is_dir():
        raise ValueError(f"{path} is a folder: expected the name of a .csv file.")
    with atomic_write(path) as file:
        file.write(csv_text(header, rows).encode())


def csv_text(header: list[str], rows: list[list[Any]]) -> str:
    """Return a table as CSV.

    >>> csv_text(["a"], [[1], ["b,c"]])
    'a\\n1\\n"b,c"\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _print_json(table: PredictionTable, out: Path | None) -> None:
    new = len(table.predicted) + 1
    *columns, errors = ([row[i] if row[i] != "" else None for row in table.rows] for i in range(-new, 0))
    print_json(
        {
            "rows": len(table.rows),
            "bad_rows": sum(map(bool, errors)),
            "out": out,
            "predictions": dict(zip(table.predicted, columns, strict=True)),
            "errors": errors,
        }
    )
