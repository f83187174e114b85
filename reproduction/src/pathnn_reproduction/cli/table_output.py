"""What the tables of accuracies print: the paper's rows with ours, and where the runs stand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnn.cli.console import note, print_json, print_table, say

if TYPE_CHECKING:
    from pathnn_reproduction.cells import Compared
    from pathnn_reproduction.experiment import Experiment
    from pathnn_reproduction.ledger import Ledger
    from pathnn_reproduction.planned import RunSpec
    from pathnn_reproduction.runner import Progress


def tell_files(target: str, written: list[Path], *, as_json: bool) -> None:
    """Say which files were written."""
    if as_json:
        print_json({"target": target, "written": written})
        return
    for path in written:
        say(f"wrote {path}")


def tell_progress(
    experiment: Experiment, runs: list[RunSpec], ledger: Ledger, progress: Progress, *, as_json: bool
) -> None:
    """Print the tables of the datasets of `runs` (as JSON: all tables), what failed, and what is left."""
    from pathnn_reproduction.cells import compare, plain_cell
    from pathnn_reproduction.published import TABLES

    cells = compare(experiment, ledger)
    for run, error in progress.failed:
        note(f"failed: {run.name}: {error}")
    if as_json:
        rows = [plain_cell(c, maximize=TABLES[data].maximize) for data, part in cells.items() for c in part]
        print_json({**summary(experiment, ledger, progress), "cells": rows})
        return
    chosen = {run.dataset for run in runs}
    for data, part in cells.items():
        if data in chosen:
            print_cells(data, part)
    why = f" ({progress.reason})" if progress.reason else ""
    under_way = f", {len(progress.stopped)} of them under way" if progress.stopped else ""
    say(
        f"{progress.done} of {progress.total} runs done, {len(progress.finished)} now, {len(progress.failed)} failed, "
        f"{progress.left} left{under_way}{why}; {ledger.path}"
    )


def summary(experiment: Experiment, ledger: Ledger, progress: Progress) -> dict[str, Any]:
    """Where things stand, as plain values."""
    return {
        "target": experiment.name,
        "total": progress.total,
        "done": progress.done,
        "ran": [run.name for run in progress.finished],
        "failed": [{"run": run.name, "error": error} for run, error in progress.failed],
        "under_way": [run.name for run in progress.stopped],
        "left": progress.left,
        "stopped": progress.reason or None,
        "seconds": time.monotonic() - progress.started,
        "results": ledger.path,
    }


def print_cells(data: str, cells: list[Compared]) -> None:
    """The table of one dataset."""
    from pathnn_reproduction.published import TABLES
    from pathnn_reproduction.table_text import row_label, row_texts

    table = TABLES[data]
    print_table(
        ("model", "paper", "ours", "n", "seconds", "difference"),
        [(row_label(cell), *row_texts(cell, table)) for cell in cells],
        title=f"{table.title}: {table.metric}",
    )
