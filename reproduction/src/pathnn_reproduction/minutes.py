"""How many minutes the tables take, by the seconds in results files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pathnn_reproduction.experiments import TARGETS, get_experiment
from pathnn_reproduction.results import Results, Row
from pathnn_reproduction.runner import similar
from pathnn_reproduction.spec import RunSpec, slots
from pathnn_reproduction.tables import NOT_MEASURED, markdown_table

GROUPS = {"pathnn": "PathNN", "pathnn+": "PathNN+ and controls"}
"""Names of groups of runs by the model; all others are baselines."""

HEAD = ("target", "data", "models", "runs", "minutes on a GPU", "minutes on a CPU")


def minutes_table(results: Path) -> str:
    """Return the minutes of every table as Markdown, one run at a time."""
    lines = []
    for target in TARGETS:
        rows = Results.open(results / f"{target}.jsonl").rows
        groups: dict[tuple[str, str], list[RunSpec]] = defaultdict(list)
        for spec in get_experiment(target).specs:
            models = "" if spec.config is None else GROUPS.get(spec.config.model, "baselines")
            groups[spec.dataset if models else "all", models].append(spec)
        for group, specs in groups.items():
            minutes = [minutes_text(specs, [row for row in rows if on_cpu(row) == cpu]) for cpu in (False, True)]
            lines.append([target, *group, f"{slots(specs):,}", *minutes])
    theory = results / "theory.json"
    seconds = json.loads(theory.read_text())["seconds"] if theory.exists() else None
    lines.append(["theory", "all", "", "", "—", NOT_MEASURED if seconds is None else _text(seconds)])
    return markdown_table(HEAD, lines)


def on_cpu(row: Row) -> bool:
    """Return whether a row was computed on a CPU: "cpu", or a processor with its number of cores.

    >>> on_cpu({"device": "x86_64, 2 cores"}), on_cpu({"device": "NVIDIA H200"})
    (True, False)
    """
    return row["device"] == "cpu" or "core" in row["device"]


def minutes_text(specs: Sequence[RunSpec], rows: Sequence[Row]) -> str:
    """Return the minutes of all runs by the mean seconds of similar rows, and how much of the table they are."""
    entries: dict[tuple[tuple[str, object], ...], list[RunSpec]] = defaultdict(list)
    for spec in specs:
        entries[similar(spec)].append(spec)
    known: dict[tuple[object, ...], list[float]] = defaultdict(list)
    columns = {tuple(name for name, _ in names) for names in entries}
    for row in rows:
        for names in columns if "seconds" in row else ():
            known[tuple((name, row.get(name)) for name in names)].append(row["seconds"])
    measured = {names: known[names] for names in entries if names in known}
    if not measured:
        return NOT_MEASURED
    seconds = sum(fmean(found) * slots(entries[names]) for names, found in measured.items())
    part = "" if len(measured) == len(entries) else f", {len(measured)} of {len(entries)} rows"
    return f"{_text(seconds)}{part}"


def _text(seconds: float) -> str:
    return f"{seconds / 60:,.0f}" if seconds >= 30 else "less than 1"
