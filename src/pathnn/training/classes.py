"""Classes by name: data that a trained model is measured on may number them in another way, or lack some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from pathnn.data.targets import class_key, classification
from pathnn.data.task import Task
from pathnn.training.errors import MismatchError


def align_classes(task: Task, known: Sequence[str]) -> Task:
    """The same task with its classes numbered as in `known`, the names that a model was trained with.

    Names that are numbers are compared as numbers ("3" is "3.0"). A task or a model that does not name its classes
    is left as it is. A class that is not known is a `MismatchError`: the model cannot predict it.

    >>> from pathnn.data import PackedGraphs, task_from_graphs
    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> graphs = replace(PackedGraphs.from_edges([edge, edge], [2, 2]), y=torch.tensor([9, 3]))
    >>> align_classes(task_from_graphs(graphs), ["3", "7", "9"]).graphs.y
    tensor([2, 0])
    """
    y = task.graphs.y
    if task.target != "class" or y is None or not task.classes or not known:
        return task
    number = {class_key(name): i for i, name in enumerate(known)}
    unseen = [name for name in task.classes if class_key(name) not in number]
    if unseen:
        raise MismatchError(
            f"{task.name} has {_words(unseen)}, which the model was not trained on: expected {_words(known)}. "
            "Leave those graphs out, name another column (--target), or train a model on data that has them."
        )
    codes = torch.tensor([number[class_key(name)] for name in task.classes], device=y.device)
    graphs = replace(task.graphs, y=codes[y])
    return replace(task, graphs=graphs, classes=tuple(known), **classification(len(known)))


def _words(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    kind = "the class" if len(names) == 1 else "the classes"
    return f"{kind} {', '.join(map(repr, names[:most]))}{more}"
