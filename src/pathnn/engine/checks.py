"""What a task must have before anything is computed: numbers that are finite, answers that can be learned."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.data.task import Split, Task
from pathnn.engine.errors import NotFiniteError, RunError


def check_finite(task: Task) -> None:
    """Raise `NotFiniteError`, which names a graph, if a feature or a target is NaN or infinite.

    Where `task.partly_known`, some targets of a graph may be NaN, but not all.
    """
    graphs = task.graphs
    for name, values, ptr in (
        ("vertex features", graphs.x, graphs.node_ptr),
        ("edge features", graphs.edge_attr, graphs.edge_ptr),
        ("targets", graphs.y, torch.arange(len(graphs) + 1)),
    ):
        if values is None or not values.is_floating_point() or bool(values.isfinite().all()):
            continue
        rows = values.reshape(values.size(0), -1)
        wrong = ~rows.isfinite().all(dim=1)
        if name == "targets" and task.partly_known:
            wrong = rows.isinf().any(dim=1) | rows.isnan().all(dim=1)
        if not bool(wrong.any()):
            continue
        row = int(wrong.cpu().nonzero()[0])
        graph = int(torch.searchsorted(ptr, torch.tensor(row), right=True)) - 1
        raise NotFiniteError(
            f"the {name} of graph {graph} of {task.name}, counted from 0, have a NaN or an infinity: expected finite "
            "numbers. Mend or leave out that graph."
        )


def check_answers(task: Task, split: Split) -> None:
    """Raise `RunError` where a yes-or-no target is the same in all training or validation graphs (the area under the
    ROC curve is then not defined, and there is no best epoch), and where one of several targets is not known for any
    training graph.
    """
    y = task.graphs.y
    if y is None:
        return
    if task.partly_known:
        _check_known(task, y[split.train.to(y.device)])
    if task.target != "binary":
        return
    for part, index in (("training", split.train), ("validation", split.val)):
        if torch.unique(y[index.to(y.device)]).numel() < 2:
            raise RunError(
                f"the {index.numel()} {part} graphs of {task.name} all have the target {float(y[index[0]].item()):g}: "
                "expected both 0 and 1. Give more data, or another split (--split-seed)."
            )


def _check_known(task: Task, y: Tensor) -> None:
    never = y.isnan().all(dim=0).nonzero().flatten().tolist()
    if never:
        name = repr(task.classes[never[0]]) if task.classes else f"number {never[0]}"
        raise RunError(
            f"the target {name} of {task.name} is not known for any of the {y.size(0)} training graphs: nothing "
            "teaches it. Leave it out, give more data, or another split (--split-seed)."
        )
