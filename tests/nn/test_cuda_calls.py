"""Plain calls on a GPU, replayed as CUDA graphs. Needs no hypothesis, so that it runs on a bare machine."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from pathnn import PathTrie
from pathnn.nn import PathNN
from pathnn.nn.cuda_graphs import calls
from pathnn.testing import relative_difference
from pathnn.transforms import AddPaths
from random_data import graphs

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def batches(number: int) -> list[Batch]:
    data = [AddPaths("ap", 3)(one) for one in graphs(16)]
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0)).tolist()
    return [Batch.from_data_list([data[i] for i in order[at % 8 : at % 8 + 8]]).cuda() for at in range(number)]


def arguments(batch: Batch, way: str) -> dict[str, Any]:
    rest = {"batch": batch.batch, "edge_attr": batch.edge_attr}
    structure = {"edge_index": batch.edge_index} if way == "edge_index" else {"trie": PathTrie.from_data(batch)}
    return {**structure, **rest}


def train(model: PathNN, data: list[Batch], way: str) -> Tensor:
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.02), []
    for batch in data:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model.train()(batch.x, **arguments(batch, way)), batch.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        return torch.stack([*losses, *(model.eval()(b.x, **arguments(b, way)).sum() for b in data[:6])])


@pytest.mark.parametrize("way", ["trie", "edge_index"])
@pytest.mark.parametrize("options", [{}, {"readout": "mean", "phi": "mlp"}, {"phi": "mlp", "normalize": True}])
def test_a_loop_of_replayed_calls_is_that_of_plain_calls(way: str, options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    data = batches(14)
    model = PathNN(4, 24, 1, collection="ap", k=3, edge_channels=(3,), **options).cuda()
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    losses, expected = train(model, data, way), train(twin, data, way)
    assert {key[1][0] for key, slots in calls._captured[model]._slots.items() if slots} == {True, False}
    assert relative_difference(losses, expected) <= 1e-4
    for (name, ours), theirs in zip(model.state_dict().items(), twin.state_dict().values(), strict=True):
        # the gradient of a bias before a BatchNorm is 0 but for rounding
        assert (ours - theirs).float().norm() <= 1e-3 * theirs.float().norm() + 1e-7, name


@pytest.mark.parametrize("way", ["trie", "edge_index"])
def test_outputs_for_vertices_are_replayed(way: str) -> None:
    torch.manual_seed(1)
    model = PathNN(4, 24, 2, collection="ap", k=3, edge_channels=(3,), readout=None, aggregation="mean").cuda()
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    for batch in batches(12):
        weights = torch.rand(batch.num_nodes, 2, device="cuda")
        for one in (model, twin):
            one.zero_grad()
            out = one(batch.x, **arguments(batch, way))
            assert out.shape == weights.shape
            (out * weights)[:5].sum().backward()  # as with the seeds of NeighborLoader
        ours, theirs = (torch.cat([p.grad.flatten() for p in one.parameters()]) for one in (model, twin))
        assert relative_difference(ours, theirs) <= 1e-3
    assert any(calls._captured[model]._slots.values())
    with torch.no_grad():
        ours, theirs = (one.eval()(batch.x, **arguments(batch, way)) for one in (model, twin))
    assert relative_difference(ours, theirs) <= 1e-4


def test_autocast_is_replayed() -> None:
    torch.manual_seed(1)
    data = batches(1)[0]
    model = PathNN(4, 32, 1, collection="ap", k=3, edge_channels=(3,)).cuda()
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    for one in (model, twin):
        for _ in range(6):
            one.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                out = one(data.x, **arguments(data, "trie"))
            out.float().sum().backward()
    assert calls._captured[model]._slots
    ours, theirs = (torch.cat([p.grad.flatten() for p in one.parameters()]) for one in (model, twin))
    assert relative_difference(ours, theirs) <= 2e-2
    with torch.no_grad():  # without autocast, the capture in bfloat16 is not replayed
        assert relative_difference(model.eval()(data.x, **arguments(data, "trie")), out) != 0


def test_dropout_is_drawn_again_in_each_replay() -> None:
    torch.manual_seed(1)
    batch = batches(1)[0]
    model = PathNN(4, 24, 1, collection="ap", k=3, edge_channels=(3,), dropout=0.5, norm=None).cuda()
    outs = []
    for _ in range(8):
        out = model(batch.x, **arguments(batch, "trie"))
        out.sum().backward()
        outs.append(out.detach())
    assert calls._captured[model]._slots
    assert not torch.equal(outs[-1], outs[-2])


def test_a_second_call_before_the_backward_pass_is_right() -> None:
    torch.manual_seed(1)
    data = batches(2)
    model = PathNN(4, 24, 1, collection="ap", k=3, edge_channels=(3,)).cuda()
    for _ in range(5):
        model(data[0].x, **arguments(data[0], "trie")).sum().backward()
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    for one in (model, twin):
        one.zero_grad()
        first, second = (one(batch.x, **arguments(batch, "trie")) for batch in data)
        (first.sum() + 2 * second.sum()).backward()
    ours, theirs = (torch.cat([p.grad.flatten() for p in one.parameters()]) for one in (model, twin))
    assert relative_difference(ours, theirs) <= 1e-3
