"""The step of a user's loop gives the same weights as a plain loop, eagerly and on padded copies of batches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from pathnn.nn import Baseline, DeepPathNN, PathNN
from pathnn.training import capture
from pathnn.transforms import AddPaths
from random_data import graphs
from triton_on_cpu import Interpreted, difference

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Converting a tensor")


def plain_loop(model: Any, batches: list[Batch]) -> list[Tensor]:
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
    for batch in batches:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model.train()(batch), batch.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def captured_loop(model: Any, batches: list[Batch]) -> tuple[list[Tensor], Any]:
    step = capture(model, torch.optim.SGD(model.parameters(), lr=0.05), nn.L1Loss())
    return [step(batch) for batch in batches], step


def make(name: str, *, descriptors: bool = False, **options: Any) -> Any:
    torch.manual_seed(1)
    options |= {"edge_channels": (3,), "graph_channels": 3 if descriptors else 0}
    if name == "pathnn":
        return PathNN(4, 12, 1, collection="ap", k=2, **options)
    if name.startswith("pathnn+"):
        options |= {"num_layers": 2, "walk_length": 4, "prefixes": name == "pathnn+ prefixes"}
        return DeepPathNN(4, 12, 1, collection="ap", k=2, **options)
    return Baseline(name, 4, 12, 1, num_layers=2, **options)


@pytest.mark.parametrize("descriptors", [False, True])
@pytest.mark.parametrize("name", ["pathnn", "pathnn+", "gin"])
def test_a_step_on_the_cpu_is_that_of_a_plain_loop(name: str, descriptors: bool) -> None:
    data = graphs(12, descriptors=descriptors)
    batches = [Batch.from_data_list(data[at : at + 5]) for at in (0, 5, 10)]
    model = make(name, descriptors=descriptors, dropout=0.3)
    twin = copy.deepcopy(model)
    torch.manual_seed(2)
    expected = plain_loop(twin, batches)
    torch.manual_seed(2)
    losses, step = captured_loop(model, batches)
    assert not step._steps
    assert torch.equal(torch.stack(losses), torch.stack(expected))
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), twin.parameters(), strict=True))


@pytest.mark.parametrize(
    ("name", "descriptors", "transform"),
    [
        ("pathnn", False, None),
        ("pathnn", True, AddPaths("ap", 2)),
        ("pathnn+", True, None),
        ("pathnn+", False, AddPaths("ap", 2)),
        ("pathnn+ prefixes", False, None),
        ("gin", True, None),
        ("gcn", False, None),
    ],
)
def test_padded_copies_give_the_same_loop(
    name: str, descriptors: bool, transform: Any, interpreted: Interpreted
) -> None:
    data = graphs(6, descriptors=descriptors)
    data = data if transform is None else [transform(one) for one in data]
    batches = 2 * [Batch.from_data_list(data[at : at + 3]) for at in (0, 3)]
    model = make(name, descriptors=descriptors)
    twin = copy.deepcopy(model)
    losses, step = captured_loop(model, batches)
    with interpreted.off():
        expected = plain_loop(twin, batches)
    assert (1 <= len(step._steps) < len(batches)) == (name != "gcn")  # self-loops are not looked for in every batch
    assert difference(torch.stack(losses), torch.stack(expected)) <= 1e-5
    ours, theirs = (torch.cat([x.flatten().float() for x in one.state_dict().values()]) for one in (model, twin))
    assert difference(ours, theirs) <= 1e-5


def test_batches_that_cannot_be_captured_are_trained_on_all_the_same(
    interpreted: Interpreted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch without edges, a single graph, and batches of too many sizes."""
    data, shapes = graphs(8), 2
    monkeypatch.setattr("pathnn.nn.cuda_graphs.padded_copies.MOST_SHAPES", shapes)
    nothing = torch.zeros(2, 0, dtype=torch.long)
    alone = Data(torch.rand(2, 4), nothing, nothing.t()[:, :1], y=torch.rand(1, 1))
    batches = [Batch.from_data_list([alone] * 3), data[0]]
    batches += [Batch.from_data_list(data[:size]) for size in range(2, 6)]
    model = make("pathnn", norm=None)
    twin = copy.deepcopy(model)
    losses, step = captured_loop(model, batches)
    with interpreted.off():
        expected = plain_loop(twin, batches)
    assert len(step._steps) == shapes
    assert difference(torch.stack(losses), torch.stack(expected)) <= 1e-5


def test_a_batch_without_targets_is_refused() -> None:
    model = make("pathnn")
    batch = Batch.from_data_list([Data(one.x, one.edge_index, one.edge_attr) for one in graphs(2)])
    with pytest.raises(ValueError, match=r"batch\.y"):
        capture(model, torch.optim.SGD(model.parameters()), nn.L1Loss())(batch)
