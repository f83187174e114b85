"""Networks side by side: what of it does not need a GPU. See also tests/backend/test_cuda_together.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from pathnn.nn import Baseline, PathNN
from pathnn.nn.baselines import BaselineName
from pathnn.nn.stack import Stack
from pathnn.nn.stacked import stack_fault, stacked_twin
from pathnn.nn.stacked_layers import StackedLinear, StackedNorm


def networks(count: int = 3, hidden: int = 8) -> list[PathNN]:
    torch.manual_seed(0)
    return [PathNN(5, hidden, 2, collection="ap", k=2) for _ in range(count)]


def test_a_stack_holds_the_weights_of_all() -> None:
    models = networks()
    stack = Stack(models)
    for i, model in enumerate(models):
        found = stack.weights_of(i)
        state = model.state_dict()
        assert all(torch.equal(found[name], state[name]) for name in found)
        assert {name for name in state if name not in found} == {n for n in state if n.endswith("num_batches_tracked")}
        assert int((stack.owner == i).sum()) == sum(p.numel() for p in model.parameters())


def test_a_change_of_the_stack_changes_the_network_that_owns_the_number() -> None:
    models = networks()
    stack = Stack(models)
    with torch.no_grad():
        stack.flat[stack.owner == 1] += 1.0
    for i, model in enumerate(models):
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(stack.weights_of(i)[name], parameter.detach() + (i == 1))


@pytest.mark.parametrize("rows", [256, 10])
def test_linear_layers_are_those_of_each_network(rows: int) -> None:
    models = networks(hidden=8)
    stack = Stack(models)
    linear = StackedLinear(stack, "head.linear1", nn.Linear(8, 8))
    x = torch.randn(3 * rows, 8, requires_grad=True)
    weights = torch.randn(3 * rows, 8)
    stack.refresh()
    (linear(x) * weights).sum().backward()
    grads, grad_x = stack.views(stack.grad), x.grad
    assert grad_x is not None
    for i, model in enumerate(models):
        own = slice(i * rows, (i + 1) * rows)
        alone = x.detach()[own].requires_grad_()
        layer = model.get_submodule("head.linear1")
        assert isinstance(layer, nn.Linear)
        out = layer(alone)
        torch.testing.assert_close(linear(x)[own].detach(), out.detach())
        (out * weights[own]).sum().backward()
        assert layer.bias.grad is not None
        torch.testing.assert_close(grad_x[own], alone.grad)
        torch.testing.assert_close(grads["head.linear1.weight"][i], layer.weight.grad, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(grads["head.linear1.bias"][i], layer.bias.grad, rtol=1e-4, atol=1e-4)


def test_batch_norm_in_evaluation_is_that_of_each_network() -> None:
    models = networks()
    for model in models:  # running statistics that differ
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d):
                module(torch.randn(20, module.num_features) * 3 + 1)
    stack = Stack([model.eval() for model in models])
    x, name = torch.randn(3 * 7, 8), "convs.1.norm"
    norm = models[0].get_submodule(name)
    assert isinstance(norm, nn.BatchNorm1d)
    valid = torch.zeros(3, dtype=torch.int32)
    with torch.no_grad():
        stack.refresh()
        out = StackedNorm(stack, name, norm, valid, relu=False).eval()(x)
        for i, model in enumerate(models):
            own = slice(7 * i, 7 * i + 7)
            torch.testing.assert_close(out[own], model.get_submodule(name)(x[own]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["gin", "gcn", "graphsage", "mlp"])
def test_baselines_predict_what_each_predicts_alone(name: BaselineName) -> None:
    torch.manual_seed(0)
    models = [Baseline(name, 5, 8, 2).eval() for _ in range(3)]
    edge_index, x = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]]), torch.randn(3, 4, 5)
    stack = Stack(models)
    twin = stacked_twin(models[0], stack, torch.full((3,), 4, dtype=torch.int32)).eval()
    with torch.no_grad():
        stack.refresh()
        edges = torch.cat([edge_index + 4 * i for i in range(3)], dim=1)
        out = twin(x.flatten(0, 1), edges, batch=torch.arange(3).repeat_interleave(4), batch_size=3)
        for i, model in enumerate(models):
            torch.testing.assert_close(out[i : i + 1], model(x[i], edge_index), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["gin", "gcn", "graphsage", "mlp"])
@pytest.mark.parametrize("bonds", [(3, 2), 4])
def test_baselines_on_molecules_have_the_gradients_of_each(name: BaselineName, bonds: int | tuple[int, ...]) -> None:
    torch.manual_seed(0)
    options: dict[str, Any] = {"edge_channels": bonds, "norm": None, "num_layers": 2}
    models = [Baseline(name, (5, 9), 8, 2, **options) for _ in range(3)]
    edge_index, x = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]]), torch.randint(0, 5, (3, 4, 2))
    edge_attr = torch.randint(0, 2, (3, 5, 2)) if isinstance(bonds, tuple) else torch.randn(3, 5, bonds)
    stack, weights = Stack(models), torch.randn(3, 2)
    twin = stacked_twin(models[0], stack, torch.full((3,), 4, dtype=torch.int32))
    stack.refresh()
    edges = torch.cat([edge_index + 4 * i for i in range(3)], dim=1)
    rows = {"batch": torch.arange(3).repeat_interleave(4), "edge_attr": edge_attr.flatten(0, 1), "batch_size": 3}
    (twin(x.flatten(0, 1), edges, **rows) * weights).sum().backward()
    grads = stack.views(stack.grad)
    for i, model in enumerate(models):
        (model(x[i], edge_index, edge_attr=edge_attr[i]) * weights[i]).sum().backward()
        for key, parameter in model.named_parameters():
            expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(grads[key][i], expected, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_stacked_is_refused() -> None:
    with pytest.raises(ValueError, match="no models to stack"):
        Stack([])
    with pytest.raises(ValueError, match="different shapes"):
        Stack([*networks(1), PathNN(5, 16, 2, collection="ap", k=2)])
    edges = PathNN(5, 8, 2, collection="ap", k=2, edge_channels=3)
    assert "edge features" in str(stack_fault(edges))
    assert "encoder.embeddings.1 has 500 rows" in str(stack_fault(PathNN((4, 500), 8, 2, collection="ap", k=2)))
    assert stack_fault(PathNN((4,), 8, 2, collection="ap", k=2)) is None
    assert stack_fault(Baseline("gin", (4,), 8, 2, edge_channels=(3,))) is None
    assert "only PathNN and the baselines" in str(stack_fault(nn.Linear(2, 2)))
    assert "convs.0" in str(stack_fault(Baseline("gat", 5, 8, 2)))
    assert stack_fault(networks(1)[0]) is None
    with pytest.raises(ValueError, match="edge features"):
        stacked_twin(edges, Stack([edges]), torch.zeros(1, dtype=torch.int32))
