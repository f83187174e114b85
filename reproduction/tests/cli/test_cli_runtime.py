"""`pathnn reproduce runtime`: the paper's rows, measured here at a tiny size."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pathnn_reproduction.bench import epoch
from pathnn_reproduction.bench.report import benchmark_page
from pathnn_reproduction.experiments import get_experiment, runtime
from pathnn_reproduction.paper import TIMES
from pathnn_reproduction.spec import RunSpec
from tiny_experiments import InlinePool

Run = Callable[..., Any]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, mirror: Path, tmp_path: Path) -> Path:
    """Twelve graphs of the smallest of each dataset."""
    whole = epoch.load_task

    def load(config: Any) -> Any:
        task = whole(config)
        few = task.graphs.node_ptr.diff().sort().indices[:12]
        rows = torch.arange(12)
        split = replace(task.splits[0], train=rows[:8], val=rows[8:10], test=rows[10:])
        return replace(task, graphs=task.graphs.subset(few), splits=(split,))

    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(epoch, "load_task", load)
    monkeypatch.setattr(runtime, "load_task", load)
    monkeypatch.setattr(runtime, "EPOCHS", 2)
    monkeypatch.setattr("pathnn_reproduction.cli._pool", lambda settings, ray: InlinePool(settings))
    return tmp_path


def test_every_row_of_the_table_is_measured(cli: Run, tiny: Path) -> None:
    result = cli("reproduce", "runtime", "--device", "cpu", "--results", tiny, "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["tables"][0]["rows"]
    measured = [key for key in TIMES if key not in runtime.NOT_OURS]
    assert [(r["dataset"], r["model"], r["collection"], r["k"]) for r in rows] == measured
    assert all(row["epoch"] > 0 and row["inference"] > 0 for row in rows)
    printed = [TIMES[row["dataset"], row["model"], row["collection"], row["k"]] for row in rows]
    assert [row["preprocessing"] > 0 for row in rows] == [time.preprocessing is not None for time in printed]
    page = benchmark_page(tiny)
    assert page.count("| PathNN-AP |") == 2
    assert "| 98.98 |" in page
    assert "| ZINC | KP-GIN | 4 | 197.47 | — | 3.09 | — | 0.13 | — |" in page


@pytest.mark.parametrize("spec", get_experiment("runtime").specs, ids=lambda spec: spec.name)
def test_models_of_a_dataset_have_the_same_batches(spec: RunSpec) -> None:
    config = runtime.run_of(spec.key)
    assert config.batch_size == (32 if spec.dataset == "dd" else 128)
    assert config.k == spec.key["k"] or config.options["num_layers"] == spec.key["k"]
