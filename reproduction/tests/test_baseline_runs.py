"""The baselines' runs are as the results page says: as large as the largest PathNN, and trained in the same way."""

from __future__ import annotations

import pytest

from pathnn.nn import Baseline, PathNN, paper_config
from pathnn.nn.presets import TU_SETS
from pathnn.training.recipes import paper_run
from pathnn_reproduction.experiments.baselines import SHAPES, baseline_run


@pytest.mark.parametrize("model", ["gin", "gcn"])
@pytest.mark.parametrize("data", SHAPES)
def test_the_next_even_width_would_be_larger_than_every_pathnn(data: str, model: str) -> None:
    largest = max(size(PathNN.from_paper(data, collection=collection)) for collection in ("sp", "sp+", "ap"))
    options, config = dict(baseline_run(model, data).options), paper_config(data, collection="sp")
    width = options.pop("hidden_channels")
    found = [
        size(Baseline(model, config.in_channels, w, config.out_channels, edge_channels=config.edge_channels, **options))
        for w in (width, width + 2)
    ]
    assert 0.97 * largest < found[0] <= largest < found[1]


def size(model: PathNN | Baseline) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("data", [*SHAPES, "csl", "exp", "cexp", *TU_SETS])
def test_they_are_trained_like_a_pathnn_on_the_same_data(data: str) -> None:
    ours, theirs = paper_run(data, "sp"), baseline_run("gin", data)
    assert ours is not None
    for name in ("batch_size", "epochs", "patience", "lr", "min_lr", "plateau_factor", "plateau_patience"):
        assert getattr(theirs, name) == getattr(ours, name), name
    config = paper_config(data, collection="sp")
    assert theirs.options.get("readout", "sum") == config.readout
    assert theirs.options.get("head", "mlp") == config.head
    assert theirs.options.get("dropout", 0.0) == config.dropout
