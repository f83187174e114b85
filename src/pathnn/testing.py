"""Assertions that hold for every path neural network, for your own tests."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from pathnn.nn.path_lstm import PathLSTM, PathRNN


def assert_permutation_invariant(
    model: Any,
    x: Tensor,
    edge_index: Tensor,
    *,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
    trials: int = 3,
    seed: int = 0,
    tolerance: float = 1e-4,
) -> None:
    """Raise `AssertionError` unless renumbering vertices and reordering edges leaves the output as it is.

    Outputs per vertex (`readout=None`) have to move with their vertices. Holds for collections "sp+" and
    "ap"; with "sp", which of several shortest paths is read depends on the numbers. A copy of the model is run in
    evaluation mode. `tolerance` is relative to the largest output.

    >>> from pathnn.nn import PathNN
    >>> model = PathNN(2, 8, 1, collection="ap", k=2)
    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    >>> assert_permutation_invariant(model, torch.rand(3, 2), edge_index)
    """
    generator = torch.Generator().manual_seed(seed)
    per_vertex = getattr(model, "readout", True) is None
    model = copy.deepcopy(model).eval()
    with torch.no_grad():
        expected = model(x, edge_index, edge_attr=edge_attr, batch=batch)
        for trial in range(trials):
            order = torch.randperm(x.size(0), generator=generator)
            if batch is not None:  # keep the vertices of a graph together
                order = order[batch.cpu()[order].argsort(stable=True)]
            order = order.to(x.device)
            number = torch.empty_like(order)
            number[order] = torch.arange(order.numel(), device=order.device)
            edges = torch.randperm(edge_index.size(1), generator=generator).to(x.device)
            out = model(
                x[order],
                number[edge_index[:, edges]],
                edge_attr=None if edge_attr is None else edge_attr[edges],
                batch=None if batch is None else batch[order],
            )
            error = relative_difference(out, expected[order] if per_vertex else expected)
            if not error <= tolerance:
                raise AssertionError(
                    f"the output changed by {error:.2e} (relative to its largest value) when the vertices "
                    f"were renumbered (trial {trial}, seed {seed}); allowed is {tolerance:.0e}."
                )


def assert_backends_agree(
    model: Any,
    x: Tensor,
    edge_index: Tensor | None = None,
    *,
    trie: Any = None,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
    tolerance: float | None = None,
    gradient_tolerance: float | None = None,
) -> None:
    """Raise `AssertionError` unless the model's backend and `backend="dense"` give the same outputs and gradients.

    Differences are relative to the largest value; by default 1e-5 (outputs) and 1e-4 (gradients) in float32,
    1e-12 and 1e-10 in float64. The model keeps its backend, its mode and its gradients.

    >>> from pathnn.nn import PathNN
    >>> _ = torch.manual_seed(0)
    >>> model = PathNN(2, 8, 1, collection="ap", k=2, norm=None)
    >>> assert_backends_agree(model, torch.rand(3, 2), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    """
    double = next(model.parameters()).dtype == torch.float64
    tolerance = tolerance or (1e-12 if double else 1e-5)
    gradient_tolerance = gradient_tolerance or (1e-10 if double else 1e-4)
    results = []
    for backend in ("dense", None):
        twin = copy.deepcopy(model).eval()
        for module in twin.modules():
            if isinstance(module, PathRNN):
                module.backend = backend or ("auto" if module.backend == "dense" else module.backend)
            if isinstance(module, PathLSTM):
                module.flatten_parameters()  # a copy's are not; cuDNN would warn
        twin.zero_grad()
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # on by default for nn.LSTM on a GPU
            out = twin(x, edge_index, trie=trie, edge_attr=edge_attr, batch=batch)
            out.square().sum().backward()
        results.append((out.detach(), {name: p.grad for name, p in twin.named_parameters() if p.grad is not None}))
    (dense, dense_grads), (ours, our_grads) = results
    _assert_close("outputs", ours, dense, tolerance)
    if dense_grads.keys() != our_grads.keys():
        raise AssertionError(f"gradients of different parameters: {sorted(dense_grads)} and {sorted(our_grads)}.")
    scale = max((float(grad.abs().max()) for grad in dense_grads.values()), default=0.0)
    for name, grad in dense_grads.items():
        _assert_close(f"gradients of {name}", our_grads[name], grad, gradient_tolerance, scale=1e-3 * scale)


def relative_difference(value: Tensor, expected: Tensor, *, scale: float = 0.0) -> float:
    """Return the largest difference over the largest expected value (or over `scale`, if that is larger).

    >>> relative_difference(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0]))
    0.25
    """
    if value.shape != expected.shape:
        raise AssertionError(f"shapes differ: {tuple(value.shape)} and {tuple(expected.shape)}.")
    if value.numel() == 0:
        return 0.0
    value, expected = value.detach(), expected.detach()
    largest = max(float(expected.abs().max()), scale, torch.finfo(expected.dtype).tiny)
    return float((value - expected).abs().max()) / largest


def _assert_close(what: str, value: Tensor, expected: Tensor, tolerance: float, *, scale: float = 0.0) -> None:
    error = relative_difference(value, expected, scale=scale)
    if not error <= tolerance:
        raise AssertionError(
            f"{what} differ from those of the dense backend by {error:.2e}; allowed is {tolerance:.0e}."
        )
