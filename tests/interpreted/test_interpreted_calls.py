"""Plain calls that are replayed give the outputs, gradients and running statistics of plain calls."""

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
from pathnn.transforms import AddPaths
from random_data import graphs
from triton_on_cpu import Interpreted, difference

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Converting a tensor")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, interpreted: Interpreted) -> None:
    monkeypatch.setattr(calls, "CALLS_BEFORE", 1)


def make(**options: Any) -> PathNN:
    torch.manual_seed(1)
    return PathNN(4, 12, 1, collection="ap", k=2, edge_channels=(3,), **options)


def batches(number: int, *, descriptors: bool = False) -> list[Batch]:
    data = [AddPaths("ap", 2)(one) for one in graphs(number + 2, descriptors=descriptors)]
    return [Batch.from_data_list(data[at : at + 3]) for at in range(number)]


def arguments(batch: Batch, way: str) -> dict[str, Any]:
    more = {"graph_attr": batch.graph_attr} if "graph_attr" in batch else {}
    if way == "edge_index":
        return {"edge_index": batch.edge_index, "batch": batch.batch, "edge_attr": batch.edge_attr, **more}
    trie = PathTrie.from_data(batch)
    return {"trie": trie, "batch": batch.batch, "edge_attr": batch.edge_attr, "batch_size": batch.num_graphs, **more}


def train(model: PathNN, data: list[Batch], way: str) -> Tensor:
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
    for batch in data:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model.train()(batch.x, **arguments(batch, way)), batch.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        return torch.stack([*losses, *(model.eval()(b.x, **arguments(b, way)).sum() for b in data[:2])])


def replays(model: PathNN) -> int:
    return sum(len(slots) for slots in calls._captured[model]._slots.values())


@pytest.mark.parametrize("way", ["trie", "edge_index"])
@pytest.mark.parametrize("options", [{}, {"graph_channels": 3}, {"readout": "mean", "phi": "mlp"}])
def test_a_loop_of_plain_calls(way: str, options: dict[str, Any], interpreted: Interpreted) -> None:
    data, model = batches(5, descriptors="graph_channels" in options), make(**options)
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    losses, expected = train(model, data, way), train(twin, data, way)
    assert replays(model) >= 2
    assert twin not in calls._captured
    assert difference(losses, expected) <= 1e-5
    ours, theirs = (torch.cat([x.flatten().float() for x in one.state_dict().values()]) for one in (model, twin))
    assert difference(ours, theirs) <= 1e-5


def test_a_model_with_a_kernel(interpreted: Interpreted) -> None:
    data, model = batches(5, descriptors=True), make(graph_channels=3)
    features = torch.cat([batch.graph_attr for batch in data])
    model.graph_scale.fit(features)
    model.fit_kernel(features, features[:, :1].sin(), counts=1)
    model.kernel.share.fill_(0.5)
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    losses, expected = train(model, data, "trie"), train(twin, data, "trie")
    assert replays(model) >= 2
    assert difference(losses, expected) <= 1e-5
    model.kernel.share.zero_()
    with torch.no_grad():
        alone = model(data[0].x, **arguments(data[0], "trie")).sum()
    assert (alone - losses[-2]).abs() > 1e-3  # replays read the share


def test_a_second_call_before_the_backward_pass_is_computed_plainly() -> None:
    data, model = batches(3), make()
    first, second = (arguments(batch, "trie") for batch in data[:2])
    for _ in range(2):
        model(data[0].x, **first).sum().backward()
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    for one in (model, twin):
        one.zero_grad()
        a, b = one(data[0].x, **first), one(data[1].x, **second)  # the statistics of the second follow the first
        (a.sum() + 2 * b.sum()).backward()
    assert replays(model) == 1
    ours, theirs = (torch.cat([p.grad.flatten() for p in one.parameters()]) for one in (model, twin))
    assert difference(ours, theirs) <= 1e-5


def test_a_late_backward_pass_is_refused() -> None:
    data, model = batches(1), make()
    inputs = arguments(data[0], "trie")
    for _ in range(2):
        out = model(data[0].x, **inputs).sum()
        out.backward(retain_graph=True)
    model(data[0].x, **inputs).sum().backward()
    with pytest.raises(RuntimeError, match="cuda_graphs = False"):
        out.backward()
    out = model(data[0].x, **inputs).sum()
    with torch.no_grad():
        next(iter(model.parameters())).mul_(2)
    with pytest.raises(RuntimeError, match="parameters have changed"):
        out.backward()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.lstm.register_forward_hook(lambda *_: None),
        lambda m: setattr(m, "head", nn.Sequential(nn.Linear(12, 1), nn.BatchNorm1d(1))),
        lambda m: setattr(m, "lstm", nn.Identity()),
        lambda m: setattr(m, "cuda_graphs", False),
    ],
)
def test_what_a_replay_would_not_follow_is_computed_plainly(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make()
    change(model)
    monkeypatch.setattr(model, "_vertices", lambda x, *_: x.new_zeros(x.size(0), 12), raising=False)
    monkeypatch.setattr(calls._Slot, "__call__", lambda *_: pytest.fail("replayed"))
    batch = batches(1)[0]
    for _ in range(4):
        model(batch.x, **arguments(batch, "trie"))


def test_changed_weights_and_modules_are_followed() -> None:
    data, model = batches(1), make()
    inputs = arguments(data[0], "trie")
    for _ in range(2):
        model(data[0].x, **inputs).sum().backward()
    first = calls._captured[model]
    model.head = nn.Linear(12, 2)
    assert model(data[0].x, **inputs).shape == (3, 2)
    assert calls._captured[model] is not first
    model.convs[0].phi = nn.Identity()
    next(model.head.parameters()).requires_grad = False
    twin = copy.deepcopy(model)
    twin.cuda_graphs = False
    outs = [one(data[0].x, **inputs) for one in (model, twin)]
    assert difference(*outs) <= 1e-6
