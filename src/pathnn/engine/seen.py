"""Which graphs a model has been trained on, by fingerprints in its file: their scores say nothing about new ones."""

from __future__ import annotations

import base64

import numpy as np
import torch
from torch import Tensor

from pathnn.data.fingerprints import graph_prints
from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Task
from pathnn.engine.facts import TaskFacts

MOST = 200_000
"""Prints of more graphs than that would be larger than the model."""


def training_prints(graphs: PackedGraphs, index: Tensor) -> str:
    """The prints of the graphs `index`, as text for `TaskFacts.seen`; "" where there are too many."""
    if index.numel() > MOST:
        return ""
    prints = np.unique(graph_prints(graphs.subset(index.cpu()))).astype("<u8")
    return base64.b64encode(prints.tobytes()).decode()


def seen_in_training(facts: TaskFacts, task: Task, index: Tensor | None = None) -> Tensor | None:
    """For each of the graphs `index` of a task (None: all) whether the model was trained on it, or on one that looks
    the same whatever the order of its vertices; None where the model's file does not say.

    ```python
    trained = load_model(Path("run/model.safetensors"))
    seen = seen_in_training(trained.facts, load_data("new.csv", targets=[]))
    ```
    """
    if not facts.seen:
        return None
    graphs = task.graphs if index is None else task.graphs.subset(index)
    before = np.frombuffer(base64.b64decode(facts.seen), dtype="<u8")
    return torch.from_numpy(np.isin(graph_prints(graphs), before))
