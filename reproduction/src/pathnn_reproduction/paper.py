"""Read the numbers that the paper prints (`paper.toml`): accuracies, path counts, running times, parameters."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RowKey = tuple[str, str | None, int | None]
"""A row of a table: model ("pathnn", a baseline of ours, or the name of another method), collection, k."""

PATHNNS = ("pathnn", "pathnn-released")
"""PathNN as in the text, and as in the authors' code where it differs from the text."""


@dataclass(frozen=True)
class Score:
    """A printed number; without one, `note` says why: "OOM", "NA" (not available) or "-" (not applicable)."""

    mean: float | None = None
    std: float | None = None
    note: str = ""

    @classmethod
    def parse(cls, text: str) -> Score:
        """Read a number as printed.

        >>> Score.parse("82.0 ± 1.6"), Score.parse("OOM").note
        (Score(mean=82.0, std=1.6, note=''), 'OOM')
        """
        if not text[0].isdigit():
            return cls(note=text)
        mean, _, std = text.partition(" ± ")
        return cls(float(mean), float(std) if std else None)


@dataclass(frozen=True)
class PaperTable:
    """The numbers that the paper prints for one dataset."""

    target: str  # the experiment that repeats it
    dataset: str
    title: str
    label: str  # of the table in the paper's source
    metric: str
    maximize: bool  # whether larger is better
    decimals: int  # as printed
    rows: dict[RowKey, Score]  # PathNN's at the end
    protocol: str  # how a number is obtained


@dataclass(frozen=True)
class PaperTime:
    """Seconds on an NVIDIA Tesla T4; `None` where the paper prints a dash."""

    preprocessing: float | None
    epoch: float
    inference: float


def _row_key(text: str) -> RowKey:
    if not text.startswith("pathnn "):
        return text, None, None
    model, collection, k = text.split()
    return model, collection, int(k)


def _table(dataset: str, values: dict[str, Any]) -> PaperTable:
    rows = {_row_key(name): Score.parse(text) for name, text in values["rows"].items()}
    if values.pop("released", False):
        rows |= {("pathnn-released", c, k): score for (model, c, k), score in rows.items() if model == "pathnn"}
    return PaperTable(**{**values, "rows": rows}, dataset=dataset)


_PRINTED = tomllib.loads((Path(__file__).parent / "paper.toml").read_text("utf-8"))

TABLES = {dataset: _table(dataset, values) for dataset, values in _PRINTED["tables"].items()}
"""The accuracy tables, by dataset."""


def _times() -> dict[tuple[str, str, str | None, int], PaperTime]:
    found = {}
    for dataset, rows in _PRINTED["times"].items():
        for row, text in rows.items():
            model, *collection, k = row.split()
            paths, epoch, inference = text.split(" / ")
            time = PaperTime(None if paths == "-" else float(paths), float(epoch), float(inference))
            found[dataset, model, collection[0] if collection else None, int(k)] = time
    return found


TIMES = _times()
"""Running times, by dataset, model, collection, and K or the number of layers."""

COUNTS: dict[str, dict[str, Any]] = _PRINTED["counts"]
"""By dataset, `decimals` and `means`: the mean number of paths per graph, by collection and length ("ap 2")."""

PARAMETERS: dict[str, dict[str, int]] = _PRINTED["parameters"]
"""Numbers of parameters, by dataset and collection."""


def maximizes(dataset: str) -> bool:
    """Return whether a larger score is better on a dataset of the paper.

    >>> maximizes("peptides-func"), maximizes("peptides-struct")
    (True, False)
    """
    return TABLES[dataset].maximize
