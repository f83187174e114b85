"""A PathLSTM whose paths have weights: 1 is the model as it is, 0 a model that does not see the path."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.explain.explanation import Explanation
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget, PathReader, Shared
from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.encoders import check_features
from pathnn.nn.path_lstm import Edges, PathLSTM, divide_by_paths
from pathnn.paths.csr import check_edge_index
from pathnn.paths.extract import extract_paths
from pathnn.paths.trie import LengthTrie, PathTrie


class WeightedPaths(PathReader):
    r"""Stands in for the LSTM of a `PathNN`, which then computes, with a weight $w_\pi$ for each path,

    $$h_v^{(k)} = \phi\big(\mathrm{NORM}(h_v^{(k-1)} + \sum_{\pi \in \mathcal{P}_v^k} w_\pi \mathrm{LSTM}(\pi))\big)$$

    `weights` has a tensor `[num_paths]` per length, in the order of `PathTrie.to_paths()`; set it before a call. A mean
    over paths still divides by the number of all paths.
    """

    def __init__(self, lstm: PathLSTM) -> None:
        super().__init__()
        self.lstm = lstm
        self.weights: list[Tensor] = []

    def prepare(self, edges: Tensor | EdgeTypes | None, budget: Budget | None = None) -> Shared:
        """As `PathLSTM.prepare`."""
        return self.lstm.prepare(edges, budget)

    def forward(self, h: Tensor, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """The weighted sum (or mean) over the paths of each vertex, `[num_nodes, channels]`."""
        rows = self.lstm.path_representations(h, trie, edges)
        rows = rows * self.weights[trie.length - 1].unsqueeze(1)
        sums = rows.new_zeros(trie.num_nodes, rows.size(1)).index_add(0, trie.source, rows)
        return divide_by_paths(sums, trie) if self.lstm.aggregation == "mean" else sums


STEPS = (16, 32, 64, 128, 256)
"""Numbers of points to integrate with, one after the other, until the sum is close enough."""


ENTRIES = 2**18
"""Trie entries to work on at once; more gain nothing."""


def explain_paths(
    model: PathNN,
    x: Tensor,
    edge_index: Tensor,
    *,
    edge_attr: Tensor | None = None,
    output: int = 0,
    tolerance: float = 0.01,
) -> Explanation:
    r"""What each path adds to one output of `model` for one graph.

    Give every path a weight in the sum of equation 2, all weights $\alpha$, and let $\alpha$ go from 0 (the model sees
    vertices alone) to 1 (the model as it is). Integrated gradients (Sundararajan et al., ICML 2017) follow the output
    $f$ along the way:

    $$s_\pi = \int_0^1 \frac{\partial f}{\partial w_\pi}(\alpha, \ldots, \alpha) \, d\alpha, \qquad
    \sum_\pi s_\pi = f(1) - f(0)$$

    The integral is computed at 16 points (Gauss and Legendre), or more, at most 256, until what is missing of the sum
    is at most `tolerance` of the sizes of all scores together; `Explanation.rest` is what is missing. The model is
    copied and not changed; the copy is in evaluation mode, and reads several copies of the graph at once. It costs 16
    to 496 times a prediction and its gradient, and the memory of every path's representation.

    Args:
        model: a `PathNN` with a readout, so that one graph has one row of outputs.
        x, edge_index, edge_attr: the graph, as the model reads it.
        output: which of the outputs.
        tolerance: the largest error of the sum, as a part of the sum of all sizes.

    >>> _ = torch.manual_seed(0)
    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> found = explain_paths(PathNN(3, 8, 1, collection="ap", k=2), torch.rand(4, 3), ring)
    >>> len(found.ranked()), abs(found.rest) < 0.01 * abs(found.prediction - found.baseline)
    (8, True)
    """
    check_features(x)
    check_edge_index(edge_index, x.size(0))
    with torch.inference_mode(False), torch.enable_grad():
        copies = Copies.of(model, x.clone(), edge_index.clone(), None if edge_attr is None else edge_attr.clone())
        first, last = (copies.outputs(torch.tensor([alpha]))[0][0].detach() for alpha in (0.0, 1.0))
        if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < first.numel():
            raise ValueError(f"output={output}: expected 0 to {first.numel() - 1}, the outputs of the model.")
        baseline, prediction = first[output].item(), last[output].item()
        scores = _integrate(copies, output, prediction - baseline, tolerance)
    return Explanation(prediction, baseline, tuple(rows.cpu() for rows in copies.paths), scores, x.size(0))


def _integrate(copies: Copies, output: int, whole: float, tolerance: float) -> tuple[Tensor, ...]:
    """The integral of the gradient from 0 to 1, per path."""
    scores: tuple[Tensor, ...] = ()
    for steps in STEPS:
        points, shares = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(steps))
        scores = tuple(torch.zeros(rows.size(0), dtype=torch.float64) for rows in copies.paths)
        for first in range(0, steps, copies.number):
            some = slice(first, first + copies.number)
            out, weights = copies.outputs((points[some] + 1) / 2)
            grads = torch.autograd.grad(out[:, output].sum(), weights, allow_unused=True, materialize_grads=True)
            for score, grad in zip(scores, grads, strict=True):
                score += shares[some] / 2 @ grad.cpu().double().view(copies.number, score.numel())[: out.size(0)]
        missing = abs(whole - sum(float(score.sum()) for score in scores))
        if missing <= tolerance * sum(float(score.abs().sum()) for score in scores):
            break
    return scores


@dataclass(frozen=True, eq=False)
class Copies:
    """Several copies of one graph in one batch, for as many weights of the paths at once."""

    model: PathNN
    x: Tensor
    edge_attr: Tensor | None
    batch: Tensor
    trie: PathTrie
    paths: tuple[Tensor, ...]
    number: int

    @staticmethod
    def of(model: PathNN, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Copies:
        """As many copies as are worth it, of a graph that `model` reads."""
        twin, config = _weighted_twin(model), model.config
        trie = extract_paths(
            edge_index, x.size(0), collection=config.collection, k=config.k, distances=config.distances,
            extend=config.extend,
        )  # fmt: skip
        number = max(1, min(STEPS[0], ENTRIES // max(trie.num_entries, 1)))
        return Copies(
            twin,
            _repeat(x, number),
            None if edge_attr is None else _repeat(edge_attr, number),
            torch.arange(number, device=x.device).repeat_interleave(x.size(0)),
            PathTrie.cat([trie] * number),
            tuple(trie.to_paths()),
            number,
        )

    def outputs(self, alphas: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The outputs with all weights equal to each of `alphas`, `[alphas, outputs]`, and the weights behind them."""
        each = torch.zeros(self.number, dtype=torch.float64)
        each[: alphas.numel()] = alphas
        dtype = next(self.model.parameters()).dtype
        lstm: Any = self.model.lstm
        assert isinstance(lstm, WeightedPaths)
        lstm.weights = [
            each.to(self.x.device, dtype).repeat_interleave(rows.size(0)).requires_grad_() for rows in self.paths
        ]
        out = self.model(
            self.x, trie=self.trie, edge_attr=self.edge_attr, batch=self.batch, batch_size=self.number, budget=Budget()
        )
        return out[: alphas.numel()], lstm.weights


def _repeat(rows: Tensor, number: int) -> Tensor:
    return rows.repeat(number, *[1] * (rows.dim() - 1))


def _weighted_twin(model: PathNN) -> PathNN:
    """A copy of the model, in evaluation mode, that reads its paths with weights."""
    if not isinstance(model, PathNN):
        raise ValueError(f"model is a {type(model).__name__}: expected a PathNN. Others have no paths to explain.")
    if not isinstance(model.lstm, PathLSTM):
        raise ValueError(
            f"the model's lstm is a {type(model.lstm).__name__}: expected a PathLSTM, whose paths can be weighed."
        )
    if model.readout is None:
        raise ValueError("the model has readout=None, an output for each vertex: expected a readout.")
    twin = deepcopy(model).eval().requires_grad_(False)
    twin.lstm = WeightedPaths(twin.lstm)  # type: ignore[assignment]
    return twin
