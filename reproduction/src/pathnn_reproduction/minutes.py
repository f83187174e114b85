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
            minutes = [  # a CPU is "cpu", or the name of a processor with its number of cores
                minutes_text(specs, [row for row in rows if (row["device"] == "cpu" or "core" in row["device"]) == cpu])
                for cpu in (False, True)
            ]
            lines.append([target, *group, f"{slots(specs):,}", *minutes])
    theory = results / "theory.json"
    minutes = _text(json.loads(theory.read_text())["seconds"]) if theory.exists() else NOT_MEASURED
    head = ("target", "data", "models", "runs", "minutes on a GPU", "minutes on a CPU")
    return markdown_table(head, [*lines, ["theory", "all", "", "", "—", minutes]])


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
