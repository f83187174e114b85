"""The backend of the GPU, in Triton's interpreter, is the backend of the CPU: same values, same gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from pathnn.nn import EdgeTypes, PathLSTM
from pathnn.nn.backends.base import Budget
from pathnn.nn.backends.triton.ops import tall_linear
from pathnn.paths.extract import extract_paths
from pathnn.paths.trie import LengthTrie, PathTrie
from triton_on_cpu import Interpreted, difference, large_batches

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Converting a tensor")  # exp2 of 1000
PAIRS = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2), (6, 7)]


def trie_of(collection: Any = "ap", *, k: int = 3, extend: bool = False) -> PathTrie:
    """Cycles of length 3 and 4, an edge and a vertex."""
    edges = torch.tensor(PAIRS).t()
    edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    return extract_paths(edge_index, 9, collection=collection, k=k, distances=True, extend=extend)


def edges_of(kind: str, trie: PathTrie) -> tuple[Callable[[], Any], list[Tensor]]:
    """A function that makes edge features of a kind, and what of them needs a gradient."""
    if kind == "none":
        return lambda: None, []
    if kind == "sums":
        components = torch.randn(7, 5, requires_grad=True)
        pairs = torch.cartesian_prod(torch.arange(3), 3 + torch.arange(4))
        types, masks = torch.randint(0, 12, (trie.num_edges,)), (1 << pairs).sum(dim=1, dtype=torch.int32)
        return lambda: EdgeTypes(components[pairs].sum(dim=1), types, components, masks), [components]
    rows = {"few": 4, "many": 200}.get(kind, trie.num_edges)
    table = torch.randn(rows, 5, requires_grad=True)
    if kind == "continuous":
        return lambda: table, [table]
    columns = torch.randint(0, rows, (trie.num_edges, 2))
    return lambda: EdgeTypes(table, columns[:, 1]), [table]


def results(
    lstm: PathLSTM,
    h: Tensor,
    trie: LengthTrie,
    edges: Callable[[], Any],
    leaves: list[Tensor],
    budget: Budget | None = None,
) -> list[Tensor]:
    out = lstm(h, trie, lstm.prepare(edges(), budget))
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
    inputs = [h, *leaves, *lstm.parameters()]
    grads = torch.autograd.grad((out * weights).sum(), inputs, allow_unused=True, materialize_grads=True)
    return [out.detach(), *grads]


@pytest.mark.parametrize(
    ("kind", "channels", "collection", "options"),
    [
        ("none", 16, "sp", {}),
        ("few", 20, "ap", {"plan": True}),
        ("many", 33, "sp+", {}),
        ("sums", 12, "ap", {"plan": True, "recompute": False}),
        ("sums", 12, "ap", {"distances": 125}),
        ("continuous", 12, "ap", {"plan": True, "extend": True}),
        ("few", 20, "ap", {"pieces": 20}),
        ("few", 20, "ap", {"extend": True, "plan": True}),
        ("sums", 12, "sp", {"extend": True, "pieces": 20}),
        ("few", 130, "sp", {"k": 1, "recompute": False}),
    ],
)
def test_parity(kind: str, channels: int, collection: Any, options: Any, interpreted: Interpreted) -> None:
    from pathnn.nn.backends.triton.order import Planner

    torch.manual_seed(0)
    k, extend = options.get("k", 3), options.get("extend", False)
    trie = trie_of(collection, k=k, extend=extend)
    edges, leaves = edges_of(kind, trie)
    rows = options.get("distances", k + 1 + extend)
    lstm = PathLSTM(channels, distances=rows, edge_channels=None if kind == "none" else 5, extended=extend)
    budget = Budget(options.get("pieces"), options.get("recompute", True))
    h = torch.randn(trie.num_nodes, channels, requires_grad=True)
    with interpreted.off():
        expected = results(lstm, h, trie.length(k), edges, leaves, budget)
    planned = replace(trie, plans=Planner(trie).plan(trie)) if "plan" in options else trie
    values = results(lstm, h, planned.length(k), edges, leaves, budget)
    for value, truth in zip(values, expected, strict=True):
        assert difference(value, truth) <= 2e-6


def test_kernels_are_launched(interpreted: Interpreted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests here would compare the backend of the CPU with itself."""
    from pathnn.nn.backends.triton import sweep

    launched, kernel = [], sweep.forward_entries

    class Counted:
        def __getitem__(self, grid: Any) -> Any:
            launched.append(grid)
            return kernel[grid]

    monkeypatch.setattr(sweep, "forward_entries", Counted())
    lstm, trie = PathLSTM(8), trie_of().length(2)
    assert lstm.prepare(None).backend.name == "triton"
    lstm(torch.randn(9, 8), trie)
    assert len(launched) == 3
    with interpreted.off():
        lstm(torch.randn(9, 8), trie)
    assert len(launched) == 3


@pytest.mark.parametrize("kinds", [3, 60, 300])
@pytest.mark.parametrize("column", [False, True])
def test_features_of_edges_by_kind(kinds: int, column: bool, interpreted: Interpreted) -> None:
    torch.manual_seed(0)
    types, grad = torch.randint(0, kinds, (700,)) // 2, torch.randn(700, 20)
    table = torch.randn(kinds, 20, requires_grad=True)
    features = EdgeTypes(table, torch.stack([types, 0 * types], dim=1)[:, 0] if column else types).expand()
    features.backward(grad)
    truth = torch.zeros(kinds, 20, dtype=torch.float64).index_add_(0, types, grad.double())
    assert torch.equal(features.detach(), table.detach()[types])
    assert table.grad is not None
    assert difference(table.grad, truth) <= 1e-6


@pytest.mark.parametrize(("rows", "deep", "wide", "bias"), [(300, 122, 122, True), (257, 16, 40, False)])
def test_many_rows(
    rows: int, deep: int, wide: int, bias: bool, interpreted: Interpreted, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_batches(monkeypatch)
    torch.manual_seed(0)
    x, weight = torch.randn(rows, deep, requires_grad=True), torch.randn(wide, 2 * deep)[:, deep:].requires_grad_()
    shift, grad = torch.randn(wide, requires_grad=True) if bias else None, torch.randn(rows, wide)
    leaves = [x, weight, *([] if shift is None else [shift])]
    value = tall_linear(x, weight, shift)
    truth = torch.nn.functional.linear(x.double(), weight.double(), None if shift is None else shift.double())
    assert difference(value, truth) <= 1e-6
    ours, theirs = torch.autograd.grad(value, leaves, grad), torch.autograd.grad(truth, leaves, grad.double())
    assert all(difference(one, other) <= 1e-6 for one, other in zip(ours, theirs, strict=True))


def test_tokens_may_be_columns(interpreted: Interpreted) -> None:
    """Kernels count on contiguous rows; whoever makes a trie need not know."""
    torch.manual_seed(0)
    trie = trie_of()
    components = torch.randn(7, 5, requires_grad=True)
    pairs = torch.cartesian_prod(torch.arange(3), 3 + torch.arange(4))
    types, masks = torch.randint(0, 12, (trie.num_edges,)), (1 << pairs).sum(dim=1, dtype=torch.int32)
    lstm, h = PathLSTM(12, distances=4, edge_channels=5), torch.randn(9, 12, requires_grad=True)
    names = ("vertex", "parent", "edge", "distance")
    found = []
    for how in (lambda x: x, lambda x: torch.stack([x, x + 1], dim=1)[:, 0]):
        strided = replace(trie, **{name: how(getattr(trie, name)) for name in names})
        edges = partial(EdgeTypes, types=how(types), components=components, masks=how(masks))
        found.append(results(lstm, h, strided.length(3), lambda e=edges: e(components[pairs].sum(dim=1)), [components]))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_weights_may_be_transposed(interpreted: Interpreted, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathnn.nn.backends.triton import ops

    monkeypatch.setattr(ops, "MANY", 100)
    x, weight, bias = torch.randn(200, 8), torch.randn(8, 12).t(), torch.randn(12, 2)[:, 0]
    assert difference(tall_linear(x, weight, bias), torch.nn.functional.linear(x, weight, bias)) <= 1e-6


def test_a_second_backward_pass_is_the_first_again(interpreted: Interpreted) -> None:
    trie, lstm, h = trie_of(), PathLSTM(12), torch.randn(9, 12, requires_grad=True)
    out = lstm(h, trie.length(3), lstm.prepare(None, Budget(recompute=False))).sum()
    first, second = (torch.autograd.grad(out, [h, *lstm.parameters()], retain_graph=True) for _ in range(2))
    assert all(difference(one, other) <= 1e-6 for one, other in zip(second, first, strict=True))


def test_gradients_of_gradients(interpreted: Interpreted) -> None:
    """Refused by the trie backend, which has none; the dense one has them, edges by kinds included."""
    trie, table = trie_of(), torch.randn(4, 5, requires_grad=True)
    edges, h = EdgeTypes(table, torch.arange(trie.num_edges) % 4), torch.randn(9, 12, requires_grad=True)
    lstm = PathLSTM(12, edge_channels=5)
    with pytest.raises(RuntimeError, match="use backend='dense'"):
        torch.autograd.grad(lstm(h, trie.length(3), edges).sum(), h, create_graph=True)
    dense = PathLSTM(12, edge_channels=5, backend="dense")
    (grad,) = torch.autograd.grad(dense(h, trie.length(3), edges).sum(), table, create_graph=True)
    (again,) = torch.autograd.grad(grad.pow(2).sum(), table)
    with interpreted.off():
        (grad,) = torch.autograd.grad(dense(h, trie.length(3), edges).sum(), table, create_graph=True)
        assert difference(again, torch.autograd.grad(grad.pow(2).sum(), table)[0]) <= 1e-5
