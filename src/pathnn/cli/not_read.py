"""What of a user's data was not used, said beside the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathnn.cli.console import note, number_text

if TYPE_CHECKING:
    from torch import Tensor

    from pathnn.data.task import Task


def note_not_read(task: Task, index: Tensor | None = None) -> None:
    """Say how many rows were left out, and how many targets (of the graphs `index`) are not known."""
    from pathnn.data.targets import known_share

    if task.skipped:
        rows = number_text(len(task.skipped), "row")
        note(f"left out {rows} that cannot be read, the first is {task.skipped[0]}")
    y = task.graphs.y
    if task.partly_known and y is not None:
        unknown = 100 * (1 - known_share(y if index is None else y[index]))
        note(f"{unknown:.3g} % of the targets are not known: loss and {task.metric_name} are over the others")
