"""Models in half precision: what they return, and that autocast and the other types are as they were."""

from __future__ import annotations

import pytest
import torch

from nn_graphs import graph
from pathnn.nn import Baseline, PathNN, Readout
from pathnn.testing import relative_difference

EDGE_INDEX, N = graph()
BATCH = torch.tensor([0] * 9 + [1] * 3)
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(5))
HALVES = (torch.bfloat16, torch.float16)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"readout": "mean", "phi": "mlp", "aggregation": "mean"},
        {"readout": None},
        {"head": None, "out_channels": None},
        {"head": "linear", "extend": True, "max_entries": 20},
        {"backend": "dense", "normalize": True},
    ],
)
@pytest.mark.parametrize("dtype", HALVES)
def test_a_model_in_half_precision_returns_its_type(dtype, options):
    torch.manual_seed(0)
    model = PathNN(**{"in_channels": 4, "hidden_channels": 8, "out_channels": 2, "collection": "ap", "k": 3, **options})
    expected = model.eval()(X, EDGE_INDEX, batch=BATCH)
    model.to(dtype)
    out = model(X.to(dtype), EDGE_INDEX, batch=BATCH)
    assert out.dtype == dtype
    assert relative_difference(out.float(), expected) < 0.05
    model.train()(X.to(dtype), EDGE_INDEX, batch=BATCH).sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("dtype", [*HALVES, torch.float64])
def test_a_baseline_returns_its_type(dtype):
    assert Baseline("gin", 4, 8, 2).to(dtype)(X.to(dtype), EDGE_INDEX, batch=BATCH).dtype == dtype


@pytest.mark.parametrize("kind", ["sum", "mean"])
@pytest.mark.parametrize("batch", [None, torch.zeros(3000, dtype=torch.long)])
def test_sums_have_more_bits_than_their_rows(kind, batch):
    h = torch.ones(3000, 1, dtype=torch.bfloat16)  # where bfloat16 itself would stop at 256
    out = Readout(kind)(h, batch)
    assert out.dtype == torch.bfloat16
    assert out.item() == torch.tensor(3000.0 if kind == "sum" else 1.0).bfloat16().item()


@pytest.mark.parametrize("dtype", HALVES)
def test_autocast_keeps_the_readout_in_float32(dtype):
    with torch.autocast("cpu", dtype=dtype):
        assert Readout()(torch.ones(3, 1, dtype=dtype)).dtype == torch.float32
        headless = PathNN(4, 8, None, collection="ap", k=2, phi="mlp", head=None)
        assert headless(X, EDGE_INDEX).dtype == torch.float32
        assert PathNN(4, 8, 1, collection="ap", k=2)(X.to(dtype), EDGE_INDEX).dtype == dtype
    for other in (torch.float32, torch.float64):
        assert Readout()(torch.ones(3, 1, dtype=other)).dtype == other


@pytest.mark.filterwarnings("ignore")  # of the compiler's own
def test_compiled_in_half_precision():
    model = PathNN(4, 8, 1, collection="ap", k=2).bfloat16().eval()
    compiled = torch.compile(model, backend="eager")
    arguments = {"edge_index": EDGE_INDEX, "batch": BATCH, "batch_size": 2}
    assert torch.equal(compiled(X.bfloat16(), **arguments), model(X.bfloat16(), **arguments))
