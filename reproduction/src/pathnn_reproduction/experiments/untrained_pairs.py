"""EXP-Iso (table 1): how many pairs of graphs an untrained network confuses."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import torch

from pathnn.data.loader import PackedLoader
from pathnn.data.task import Task
from pathnn.provenance import versions
from pathnn.theory.isomorphism import confused_pairs
from pathnn.training import build_model, model_outputs
from pathnn.training.config import RunConfig


def count_confused(config: RunConfig, task: Task, device: torch.device | str) -> tuple[int, int]:
    """How many pairs of the task the untrained model of `config` confuses, in float64, and its parameters.

    The task's graphs have the paths that the model reads.
    """
    model = build_model(config, task).double().to(device)
    loader = PackedLoader(task.graphs, batch_size=config.batch_size, device=device)
    rows, pairs = model_outputs(model, loader), task.pair_index().to(device)
    return int(confused_pairs(rows, pairs).sum()), sum(p.numel() for p in model.parameters())


def isomorphism_result(config: RunConfig, task: Task, device: torch.device) -> dict[str, Any]:
    """The same in the form of a run's result, less the commit. Nothing is trained: validation repeats the test."""
    begin = time.perf_counter()
    confused, parameters = count_confused(config, task, device)
    return {
        "metric": "undistinguished pairs",
        "val_score": confused,
        "test_score": confused,
        "epochs": 0,
        "best_epoch": 0,
        "stopped": "untrained",
        "seconds": time.perf_counter() - begin,
        "parameters": parameters,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
