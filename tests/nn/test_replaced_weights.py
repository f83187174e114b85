"""Both engines read the weights that the model has, also where they are replaced, and add up paths in float32."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad
from torch.nn.utils.parametrizations import weight_norm

from pathnn import PathNN, extract_paths
from pathnn.nn import EdgeTypes, PathLSTM
from pathnn.nn.readout import Readout

RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def model_of(backend: str) -> PathNN:
    torch.manual_seed(0)
    model = PathNN(3, 6, 2, collection="ap", k=2).double().eval()
    model.lstm.backend = backend  # type: ignore[assignment]
    return model


def test_gradients_of_a_function_of_the_weights():
    x, trie = torch.rand(4, 3, dtype=torch.float64), extract_paths(RING, 4, collection="ap", k=2)
    model = model_of("dense")

    def total(parameters: dict[str, Tensor]) -> Tensor:
        return functional_call(model, parameters, (x,), {"trie": trie}).sum()

    found = grad(total)({name: p.detach() for name, p in model.named_parameters()})
    model(x, trie=trie).sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad)
    assert found["lstm.weight_hh_l0"].abs().sum() > 0


def test_weights_that_are_computed():
    x, trie, out = torch.rand(4, 3, dtype=torch.float64), extract_paths(RING, 4, collection="ap", k=2), []
    for backend in ("auto", "dense"):
        model = model_of(backend)
        before = model(x, trie=trie)
        weight_norm(model.lstm, "weight_hh_l0")
        with torch.no_grad():
            model.lstm.parametrizations.weight_hh_l0.original0 *= 3  # type: ignore[union-attr, operator]
        out.append(model(x, trie=trie))
        assert not torch.allclose(out[-1], before)
    torch.testing.assert_close(out[0], out[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("backend", ["auto", "dense"])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_many_paths_in_half_precision(dtype: torch.dtype, backend: str, aggregation: str):
    """A hub with 4000 leaves: sums in half precision would stop growing."""
    leaves = torch.arange(1, 4001)
    star = torch.stack([torch.cat([torch.zeros_like(leaves), leaves]), torch.cat([leaves, torch.zeros_like(leaves)])])
    trie = extract_paths(star, 4001, collection="sp", k=1).length(1)
    torch.manual_seed(0)
    lstm = PathLSTM(8, aggregation=aggregation, backend=backend)  # type: ignore[arg-type]
    h = torch.randn(4001, 8)
    expected = lstm(h, trie)[0].detach()
    lstm = lstm.to(dtype)
    narrow = h.to(dtype).requires_grad_()
    out = lstm(narrow, trie)
    assert out.dtype == dtype
    torch.testing.assert_close(out[0].detach().float(), expected, rtol=2e-2, atol=2e-2 * float(expected.abs().max()))
    if backend == "auto":
        out[0].float().sum().backward()
        assert narrow.grad is not None
        assert narrow.grad.dtype == dtype


@pytest.mark.parametrize("kind", [-1, 2, 10**8])
@pytest.mark.parametrize("backend", ["auto", "dense"])
def test_types_that_the_table_does_not_have(kind: int, backend: str):
    trie = extract_paths(RING, 4, collection="sp", k=1).length(1)
    lstm = PathLSTM(8, edge_channels=4, backend=backend)  # type: ignore[arg-type]
    edges = EdgeTypes(table=torch.rand(2, 4), types=torch.full((8,), kind))
    with pytest.raises(ValueError, match=f"expected rows of the table, 0 to 1, got {kind} to {kind}"):
        lstm(torch.rand(4, 8), trie, edges)


def test_the_mean_of_a_graph_without_vertices():
    readout, h, batch = Readout("mean"), torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)
    assert readout(h, None).tolist() == readout(h, batch, batch_size=1).tolist() == [[0.0] * 3]
    with pytest.raises(ValueError, match="batch_size=3 without batch"):
        readout(h, None, batch_size=3)
