"""`pathnn predict`: CSV in, CSV out."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import print_json, result_only, say
from pathnn.cli.not_read import note_not_read
from pathnn.cli.options import Data, Json, SkipInvalid, Smiles
from pathnn.cli.trained import Device, Run, load_runs, pick_device

if TYPE_CHECKING:
    from pathnn.data import Task

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="The .csv to write; by default standard output.",
                 show_default=False),
]  # fmt: skip

Table = tuple[list[str], list[list[Any]]]


def predict_command(
    run: Run,
    data: Data,
    out: Out = None,
    smiles: Smiles = None,
    skip_invalid: SkipInvalid = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Predict for new data: its columns, row by row, with the predictions added.

    Rows that cannot be read keep their place and stay empty with --skip-invalid. Of several networks (train --seeds)
    the mean is given, and its standard deviation over them.
    """
    path = Path(data).expanduser()
    if out is not None and out.exists() and path.exists() and out.samefile(path):
        raise typer.BadParameter("it is the file to read: give another name.", param_hint="--out")
    with result_only(json):
        from pathnn.cli.progress import progress
        from pathnn.data import load_data
        from pathnn.engine import ensemble_columns, infer_each

        trained = load_runs(run)
        column = smiles or trained.config.smiles
        with progress(f"predicting for {data}"):
            facts = trained.facts
            options: dict[str, Any] = {"features": facts.molecule_features, "vocabulary": facts.vocabulary}
            task = load_data(data, smiles=column, targets=[], skip_invalid=skip_invalid, **options)
            predicted = ensemble_columns(infer_each(trained, task, device=pick_device(device)), trained.facts)
        header, rows = add_columns(input_table(data, task), task, predicted)
        if out is not None:
            write_csv(out, header, rows)
    note_not_read(task)
    _say(header, rows, predicted, out, as_json=json)


def input_table(data: str, task: Task) -> Table:
    """The columns of a CSV as they are; of other data the graphs' numbers, and names where they have some."""
    from pathnn.data.own import file_kind
    from pathnn.data.smiles import read_csv

    if file_kind(Path(data)) == ".csv":
        table = read_csv(Path(data).expanduser())
        width = len(table.columns)
        return list(table.columns), [[*row, *[""] * (width - len(row))][:width] for row in table.rows]
    names = task.graphs.names
    if names is None:
        return ["graph"], [[i] for i in range(len(task.graphs))]
    return ["graph", "name"], [[i, name] for i, name in enumerate(names)]


def add_columns(table: Table, task: Task, predicted: dict[str, list[Any]]) -> Table:
    """The table with the predicted columns; rows that were left out stay empty there."""
    header, rows = table
    left_out = {bad.row for bad in task.skipped} if len(rows) > len(task.graphs) else set()
    values = iter(zip(*predicted.values(), strict=True))
    empty = [""] * len(predicted)
    from pathnn.engine.ensemble import free_name

    new = [free_name(name, header) for name in predicted]
    return header + new, [[*row, *(empty if i in left_out else next(values))] for i, row in enumerate(rows, start=1)]


def write_csv(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a CSV as a whole or not at all."""
    from pathnn.data.files import atomic_write

    if path.is_dir():
        raise ValueError(f"{path} is a folder: expected the name of a .csv file.")
    with atomic_write(path) as file:
        file.write(csv_text(header, rows).encode())


def csv_text(header: list[str], rows: list[list[Any]]) -> str:
    """A table as CSV.

    >>> csv_text(["a"], [[1], ["b,c"]])
    'a\\n1\\n"b,c"\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _say(
    header: list[str], rows: list[list[Any]], predicted: dict[str, Any], out: Path | None, *, as_json: bool
) -> None:
    if as_json:
        places = {name: len(header) - len(predicted) + i for i, name in enumerate(predicted)}
        columns = {name: [None if row[i] == "" else row[i] for row in rows] for name, i in places.items()}
        print_json({"rows": len(rows), "out": out, "predictions": columns})
    elif out is not None:
        say(f"wrote {len(rows)} rows to {out}")
    else:
        sys.stdout.write(csv_text(header, rows))
