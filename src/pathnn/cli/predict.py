"""`pathnn predict`: CSV in, CSV out."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, result_only, say
from pathnn.cli.options import Data, Json, Smiles
from pathnn.cli.trained import Device, Run, load_runs, pick_device

if TYPE_CHECKING:
    from pathnn.data import Task
    from pathnn.data.errors import BadRow
    from pathnn.training import Ensemble

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="The .csv to write; by default standard output.",
                 show_default=False),
]  # fmt: skip
Strict = Annotated[bool, typer.Option("--strict", help="Refuse a file with rows that cannot be read.")]

Table = tuple[list[str], list[list[Any]]]

ERROR = "error"
"""The column that says why a row cannot be read. It is always there, so that the columns do not depend on the data."""


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

    Every row keeps its place. The last column, error, says why a row cannot be read; its prediction is then empty. The
    exit code is 0 all the same, unless with --strict. Of several networks (train --seeds) the mean is given, and its
    standard deviation over them.
    """
    path = Path(data).expanduser()
    if out is not None and out.exists() and path.exists() and out.samefile(path):
        raise typer.BadParameter("it is the file to read: give another name.", param_hint="--out")
    with result_only(json):
        from pathnn.cli.console import progress
        from pathnn.inference import ensemble_columns
        from pathnn.training import predict_each

        trained = load_runs(run)
        with progress(f"predicting for {data}"):
            task, bad = _read(trained, data, smiles or trained.config.smiles, strict=strict)
            if task is not None:
                predicted = ensemble_columns(predict_each(trained, task, device=pick_device(device)), trained.signature)
            else:
                predicted = _no_predictions(trained)
        header, rows = add_columns(input_table(data, task, bad), bad, predicted)
        if out is not None:
            write_csv(out, header, rows)
    if bad:
        note(f"{len(bad):,} of {len(rows):,} rows cannot be read and have no prediction, the first is {bad[0]}")
    _say(header, rows, predicted, out, as_json=json)


def _read(trained: Ensemble, data: str, smiles: str | None, *, strict: bool) -> tuple[Task | None, tuple[BadRow, ...]]:
    """The rows that can be read, None if there are none, and those that cannot."""
    from pathnn.data import BadRowsError, load_data

    signature = trained.signature
    options: dict[str, Any] = {"features": signature.molecule_features, "vocabulary": signature.vocabulary}
    try:
        task = load_data(data, smiles=smiles, targets=[], skip_invalid=True, **options)
        bad, total = task.skipped, len(task.graphs) + len(task.skipped)
    except BadRowsError as error:
        task, bad, total = None, error.rows, len(error.rows)
    if strict and bad:
        raise BadRowsError(data, bad, total, "leave out --strict")
    return task, bad


def _no_predictions(trained: Ensemble) -> dict[str, list[Any]]:
    """The columns of predictions for no graph."""
    import torch

    from pathnn.inference import ensemble_columns

    one = torch.zeros(len(trained.members), 1, trained.signature.out_channels)
    return {name: [] for name in ensemble_columns(one, trained.signature)}


def input_table(data: str, task: Task | None, bad: tuple[BadRow, ...]) -> Table:
    """The columns of a CSV as they are; of other data the graphs' numbers, and names where they have some."""
    from pathnn.data.load import find_data
    from pathnn.data.readers.table import read_csv

    if find_data(data).kind == "table":
        table = read_csv(Path(data).expanduser())
        width = len(table.columns)
        return list(table.columns), [[*row, *[""] * (width - len(row))][:width] for row in table.rows]
    rows = range(1, 1 + len(bad) + (0 if task is None else len(task.graphs)))
    if task is None or task.graphs.names is None:
        return ["graph"], [[row - 1] for row in rows]
    names = dict(zip(task.rows(), task.graphs.names, strict=True))
    return ["graph", "name"], [[row - 1, names.get(row, "")] for row in rows]


def add_columns(table: Table, bad: tuple[BadRow, ...], predicted: dict[str, list[Any]]) -> Table:
    """The table with the predicted columns, which are empty in bad rows, and with what is wrong with those.

    >>> from pathnn.data.errors import BadRow
    >>> add_columns((["smiles"], [["CO"], ["C("]]), (BadRow(2, "no molecule"),), {"prediction": [1.5]})
    (['smiles', 'prediction', 'error'], [['CO', 1.5, ''], ['C(', '', 'no molecule']])
    """
    from pathnn.inference.predictor import free_name

    header, rows = table
    reasons = {one.row: one.reason for one in bad}
    values = iter(zip(*predicted.values(), strict=True))
    empty = [""] * len(predicted)
    new = [free_name(name, header) for name in (*predicted, ERROR)]
    return header + new, [
        [*row, *(empty if i in reasons else next(values)), reasons.get(i, "")] for i, row in enumerate(rows, start=1)
    ]


def write_csv(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a CSV as a whole or not at all."""
    from pathnn.files import atomic_write

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
        *columns, errors = ([row[i] for row in rows] for i in range(len(header) - len(predicted) - 1, len(header)))
        print_json(
            {
                "rows": len(rows),
                "bad_rows": sum(map(bool, errors)),
                "out": out,
                "predictions": {name: _nulls(column) for name, column in zip(predicted, columns, strict=True)},
                "errors": _nulls(errors),
            }
        )
    elif out is not None:
        say(f"wrote {len(rows)} rows to {out}")
    else:
        sys.stdout.write(csv_text(header, rows))


def _nulls(column: list[Any]) -> list[Any]:
    """A column for JSON, in which empty cells are null."""
    return [None if value == "" else value for value in column]
