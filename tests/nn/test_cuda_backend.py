"""The CUDA backend is the CPU backend: same values, same gradients, and the same bits every time."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from pathnn.nn import EdgeTypes, PathLSTM, PathNN
from pathnn.paths.extract import extract_paths
from pathnn.paths.trie import LengthTrie, PathTrie

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
FORWARD, BACKWARD = 1e-5, 1e-4
PAIRS = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2), (5, 6), (6, 7), (7, 8), (8, 4), (9, 10)]


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that a kernel does not write holds NaN, so that it cannot be right by chance."""
    monkeypatch.setenv("PATHNN_TRITON", "1")
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    new_empty, empty_like = Tensor.new_empty, torch.empty_like
    monkeypatch.setattr(Tensor, "new_empty", lambda self, *a, **k: _nan(new_empty(self, *a, **k)))
    monkeypatch.setattr(torch, "empty_like", lambda x, **k: _nan(empty_like(x, **k)))


def _nan(tensor: Tensor) -> Tensor:
    return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor


def graph(copies: int = 1) -> tuple[Tensor, int]:
    """Two components with cycles of length 3, 4 and 5 and an isolated vertex, several times."""
    one_way = torch.tensor(PAIRS).t()
    edges = torch.cat([one_way, one_way.flip(0)], dim=1)
    shifts = 12 * torch.arange(copies)
    return (edges[:, None] + shifts[None, :, None]).reshape(2, -1), 12 * copies


def trie_of(k: int = 4, *, collection: Any = "ap", extend: bool = False, copies: int = 6) -> PathTrie:
    edge_index, nodes = graph(copies)
    return extract_paths(edge_index, nodes, collection=collection, k=k, distances=True, extend=extend)


def features(trie: PathTrie, kind: str, width: int) -> tuple[Any, list[Tensor]]:
    """Edge features of a kind, and the tensors that need a gradient."""
    if kind == "none":
        return None, []
    if kind == "sums":
        parts = torch.randn(7, width, requires_grad=True)
        return sums_of(parts, torch.randint(0, 12, (trie.num_edges,))), [parts]
    rows = {"few": 4, "many": 200}.get(kind, trie.num_edges)
    table = torch.randn(rows, width, requires_grad=True)
    if kind == "continuous":
        return table, [table]
    return EdgeTypes(table, torch.randint(0, rows, (trie.num_edges,))), [table]


def sums_of(parts: Tensor, types: Tensor) -> EdgeTypes:
    """Twelve kinds of edges: one of the first three parts and one of the last four."""
    pairs = torch.cartesian_prod(torch.arange(3), 3 + torch.arange(4)).to(parts.device)
    return EdgeTypes(parts[pairs].sum(dim=1), types, parts, (1 << pairs).sum(dim=1, dtype=torch.int32))


def moved(edges: Any) -> tuple[Any, list[Tensor]]:
    if edges is None:
        return None, []
    if isinstance(edges, EdgeTypes) and edges.components is not None:
        parts = edges.components.detach().cuda().requires_grad_()
        return sums_of(parts, edges.types.cuda()), [parts]
    table = (edges.table if isinstance(edges, EdgeTypes) else edges).detach().cuda().requires_grad_()
    return (EdgeTypes(table, edges.types.cuda()) if isinstance(edges, EdgeTypes) else table), [table]


def results(lstm: PathLSTM, h: Tensor, trie: LengthTrie, edges: Any, leaves: list[Tensor], each: bool) -> list[Tensor]:
    """The output, and the gradients of a linear function of it."""
    out = lstm.path_representations(h, trie, edges) if each else lstm(h, trie, edges)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).to(out.device)
    inputs = [h, *leaves, *lstm.parameters()]
    grads = torch.autograd.grad((out * weights).sum(), inputs, allow_unused=True, materialize_grads=True)
    return [out.detach(), *grads]


def assert_parity(lstm: PathLSTM, trie: PathTrie, kind: str, *, each: bool = False, length: int | None = None) -> None:
    h = torch.randn(trie.num_nodes, lstm.channels, requires_grad=True)
    edges, leaves = features(trie, kind, lstm.edge_channels or 0)
    expected = results(lstm, h, trie.length(length or trie.k), edges, leaves, each)
    twin, trie = copy.deepcopy(lstm).cuda(), trie.to("cuda")
    edges, leaves = moved(edges)
    h = h.detach().cuda().requires_grad_()
    values = results(twin, h, trie.length(length or trie.k), edges, leaves, each)
    for i, (value, truth) in enumerate(zip(values, expected, strict=True)):
        error = float((value.cpu() - truth).norm() / truth.norm().clamp(min=1e-6))
        assert error <= (BACKWARD if i else FORWARD), (i, error)


@pytest.mark.parametrize("kind", ["none", "few", "many", "sums", "continuous"])
@pytest.mark.parametrize("distances", [False, True])
@pytest.mark.parametrize("extend", [False, True])
def test_parity(kind: str, distances: bool, extend: bool) -> None:
    trie = trie_of(extend=extend)
    edge_channels = None if kind == "none" else 5
    rows = trie.k + 1 + extend if distances else None
    assert_parity(PathLSTM(20, distances=rows, edge_channels=edge_channels, extended=extend), trie, kind)


def test_sums_of_parts_beside_many_distances() -> None:
    """Above the limit for small tables every kind has its own sum again."""
    assert_parity(PathLSTM(20, distances=125, edge_channels=5), trie_of(), "sums")


@pytest.mark.parametrize("kind", ["many", "continuous"])
def test_long_sums_in_parts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathnn.nn.backends.triton import sweep as cuda_sweep

    monkeypatch.setattr(cuda_sweep, "ROWS_PER_PART", 2)
    assert_parity(PathLSTM(20, distances=5, edge_channels=5), trie_of(), kind)


@pytest.mark.parametrize("channels", [16, 33, 64, 122, 140, 152, 512])
def test_parity_of_any_width(channels: int) -> None:
    trie = trie_of(copies=9)
    assert_parity(PathLSTM(channels, distances=trie.k + 1, edge_channels=7), trie, "few")


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_parity_of_each_length(collection: str, length: int) -> None:
    assert_parity(PathLSTM(24), trie_of(collection=collection), "none", length=length)


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("max_entries", [None, 100])
@pytest.mark.parametrize("each", [False, True])
def test_parity_in_pieces(aggregation: Any, max_entries: int | None, each: bool) -> None:
    trie = trie_of(extend=True)
    lstm = PathLSTM(
        20, distances=trie.k + 2, edge_channels=5, extended=True, aggregation=aggregation, max_entries=max_entries
    )
    assert_parity(lstm, trie, "few", each=each)


@pytest.mark.parametrize("edges", [torch.zeros(2, 0, dtype=torch.long), torch.tensor([[0, 1], [1, 0]])])
def test_levels_may_be_empty(edges: Tensor) -> None:
    trie = extract_paths(edges, 3, collection="ap", k=2)
    assert_parity(PathLSTM(16, distances=3), trie, "none", length=1)
    assert_parity(PathLSTM(16, distances=3), trie, "none", length=2)


def test_float32_takes_the_kernels_and_float64_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from pathnn.nn.backends.triton import backend as cuda

    taken = []
    forward = cuda._TritonRun.forward
    monkeypatch.setattr(cuda._TritonRun, "forward", staticmethod(lambda *a: (taken.append(1), forward(*a))[1]))
    trie = trie_of().to("cuda")
    for dtype in (torch.float32, torch.float64):
        lstm = PathLSTM(16).to("cuda", dtype)
        lstm(torch.randn(trie.num_nodes, 16, device="cuda", dtype=dtype), trie.length(3))
    assert len(taken) == 1


def training(steps: int) -> list[Tensor]:
    torch.manual_seed(0)
    edge_index, nodes = graph(40)
    model = PathNN((28,), 140, 1, collection="ap", k=4, edge_channels=(4,), phi="mlp").cuda()
    trie = extract_paths(edge_index, nodes, collection="ap", k=4).to("cuda")
    x, edge_attr = torch.randint(0, 28, (nodes,)).cuda(), torch.randint(0, 4, (trie.num_edges,)).cuda()
    batch = torch.arange(40).repeat_interleave(12).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(x, trie=trie, batch=batch, edge_attr=edge_attr, batch_size=40).abs().mean().backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def test_the_same_seed_gives_the_same_bits() -> None:
    assert all(torch.equal(a, b) for a, b in zip(training(20), training(20), strict=True))


def test_no_step_waits_for_the_gpu() -> None:
    training(1)
    edge_index, nodes = graph(4)
    trie = extract_paths(edge_index, nodes, collection="ap", k=4).to("cuda")
    lstm = PathLSTM(32, distances=5, aggregation="mean").cuda()
    h = torch.randn(nodes, 32, device="cuda", requires_grad=True)
    lstm(h, trie.length(4)).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "a prototype feature"
        torch.cuda.set_sync_debug_mode("error")
        try:
            lstm(h, trie.length(4)).sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_autograd_works_without_gradients() -> None:
    trie = trie_of().to("cuda")
    lstm = PathLSTM(16).cuda()
    h = torch.randn(trie.num_nodes, 16, device="cuda")
    with torch.inference_mode():
        quick = lstm(h, trie.length(4))
    assert torch.equal(quick, lstm(h, trie.length(4)).detach())


@pytest.mark.parametrize("kinds", [3, 60, 300])
@pytest.mark.parametrize("column", [False, True])
def test_features_of_edges_by_kind(kinds: int, column: bool) -> None:
    torch.manual_seed(0)
    types, grad = torch.randint(0, kinds, (5000,)) // 2, torch.randn(5000, 40)
    table = torch.randn(kinds, 40, device="cuda", requires_grad=True)
    on_gpu = torch.stack([types, types * 0], dim=1).cuda()[:, 0] if column else types.cuda()
    features = EdgeTypes(table, on_gpu).expand()
    features.backward(grad.cuda())
    truth = torch.zeros(kinds, 40, dtype=torch.float64).index_add_(0, types, grad.double())
    assert torch.equal(features.detach(), table.detach()[types.cuda()])
    assert table.grad is not None
    assert (table.grad.cpu() - truth).norm() <= 1e-6 * truth.norm()


def test_kinds_may_be_a_column_of_features() -> None:
    trie = trie_of().to("cuda")
    lstm, table = PathLSTM(16, edge_channels=5).cuda(), torch.randn(4, 5, device="cuda")
    h, columns = torch.randn(trie.num_nodes, 16, device="cuda"), torch.randint(0, 4, (trie.num_edges, 3), device="cuda")
    outs = [lstm(h, trie.length(3), EdgeTypes(table, types)) for types in (columns[:, 1], columns[:, 1].clone())]
    assert torch.equal(*outs)
