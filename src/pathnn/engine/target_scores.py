"""The score of each of several targets."""

from __future__ import annotations

from torch import Tensor

from pathnn.data.task import Task


def target_scores(out: Tensor, y: Tensor, task: Task) -> tuple[float, ...]:
    """The metric of each target by itself, over the graphs for which it is known; none for one target or for classes.

    `out` is in the targets' unit. NaN is not defined: nothing is known, or nothing is yes. The mean of the others is
    the metric of the task.
    """
    from pathnn.data.metrics import score_targets

    if task.score is None or task.out_channels < 2:
        return ()
    return tuple((score_targets(task.score, out, y.to(out.device)) * task.scale).tolist())
