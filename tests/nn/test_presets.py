from __future__ import annotations

import pytest
import torch

from pathnn.nn import PathNN, paper_config
from pathnn.nn.presets import PRESETS

COUNTS = {
    "zinc": (496433, 501061),
    "molhiv": (305793, 371713),
    "peptides-func": (509706, 494354),
    "peptides-struct": (468731, 494507),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_parameter_counts(name, collection):
    model = PathNN.from_paper(name, collection=collection)
    assert sum(p.numel() for p in model.parameters()) == COUNTS[name][collection == "ap"]
    assert (model.lstm.distance_encoder is not None) == (collection == "ap")


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_every_preset_runs(name, collection):
    model = PathNN.from_paper(name, collection=collection)
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    sizes, edges = model.config.in_channels, model.config.edge_channels
    x = torch.zeros(3, len(sizes), dtype=torch.long) if isinstance(sizes, tuple) else torch.ones(3, sizes)
    edge_attr = torch.zeros(6, len(edges), dtype=torch.long) if isinstance(edges, tuple) else None
    out = model.eval()(x, edge_index, edge_attr=edge_attr)
    assert out.shape == (1, model.config.out_channels or model.config.hidden_channels)
    assert out.isfinite().all()


def test_facts_of_the_paper():
    for name, k in (("csl", 11), ("exp", 10), ("cexp", 10), ("exp-iso", 10), ("sr", 4)):
        assert paper_config(name, collection="sp").k == k
    for name in ("csl", "exp", "cexp", "exp-iso"):
        assert paper_config(name, collection="ap").k == 5
    assert paper_config("peptides-func", collection="ap").k == 7
    assert not paper_config("csl", collection="sp").normalize
    assert paper_config("csl", collection="ap").normalize
    assert paper_config("sr", collection="sp").normalize
    struct = paper_config("peptides-struct", collection="sp")
    assert (struct.aggregation, struct.norm, struct.readout) == ("mean", None, "sum")
    hiv = paper_config("molhiv", collection="sp")
    assert (hiv.readout, hiv.dropout) == ("mean", 0.5)


def test_options_and_variants():
    config = paper_config("dd", collection="ap", k=1, hidden_channels=32, dropout=0.5, in_channels=82)
    assert (config.k, config.hidden_channels, config.dropout, config.in_channels) == (1, 32, 0.5, 82)
    paper, released = (paper_config("csl", collection="sp", variant=v) for v in ("paper", "released"))
    assert (paper.phi, paper.head) == ("identity", "linear")
    assert (released.phi, released.head) == ("relu", "mlp")
    with pytest.raises(ValueError, match="'mnist' is not an experiment of the paper: expected one of zinc"):
        PathNN.from_paper("mnist", collection="sp")
    with pytest.raises(ValueError, match="variant='mine' is unknown"):
        paper_config("csl", collection="sp", variant="mine")
