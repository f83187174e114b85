"""Attribute a prediction to paths: integrated gradients over a weight for each path."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.explain.explanation import Explanation
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget, EdgeTypes, PathReader, Shared
from pathnn.nn.encoders import check_features
from pathnn.nn.path_lstm import Edges, PathRNN, divide_by_paths
from pathnn.paths.csr import check_edge_index
from pathnn.paths.extract import extract_paths
from pathnn.paths.trie import LengthTrie, PathTrie


class WeightedPaths(PathReader):
    r"""Replace the LSTM of a `PathNN` by one that weights its paths; 1 keeps a path, 0 leaves it out.

    With a weight $w_\pi$ for each path, the network computes

    $$h_v^{(k)} = \phi\big(\mathrm{NORM}(h_v^{(k-1)} + \sum_{\pi \in \mathcal{P}_v^k} w_\pi \mathrm{LSTM}(\pi))\big)$$

    `weights` has a tensor `[num_paths]` per length, in the order of `PathTrie.to_paths()`; set it before a call. The
    mean over paths divides by the number of all paths, whatever their weights.
    """

    def __init__(self, lstm: PathRNN) -> None:
        super().__init__()
        self.lstm = lstm
        self.weights: list[Tensor] = []

    def prepare(self, edges: Tensor | EdgeTypes | None, budget: Budget | None = None) -> Shared:
        """Prepare edges as `PathRNN.prepare` does."""
        return self.lstm.prepare(edges, budget)

    def forward(self, h: Tensor, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """Return the weighted sum (or mean) over the paths of each vertex, `[num_nodes, channels]`."""
        rows = self.lstm.path_representations(h, trie, edges)
        rows = rows * self.weights[trie.length - 1].unsqueeze(1)
        sums = rows.new_zeros(trie.num_nodes, rows.size(1)).index_add(0, trie.source, rows)
        return divide_by_paths(sums, trie) if self.lstm.aggregation == "mean" else sums


STEPS = (16, 32, 64, 128, 256)
"""Numbers of points of the integral, tried in this order until the sum is close enough."""

ENTRIES = 2**18
"""Trie entries of one batch of copies; larger batches are not faster."""

CLOSE = 0.01
"""How far the weighted model may be from the model itself: wider than rounding, narrower than another model."""


def explain_paths(
    model: PathNN,
    x: Tensor,
    edge_index: Tensor,
    *,
    edge_attr: Tensor | None = None,
    graph_attr: Tensor | None = None,
    output: int = 0,
    tolerance: float = 0.01,
) -> Explanation:
    r"""Compute how much each path adds to one output of `model` for one graph.

    Every path gets a weight in the sum of equation 2. All weights are $\alpha$, from 0 (the model reads vertices
    alone) to 1 (the unchanged model). Integrated gradients (Sundararajan et al., ICML 2017) follow the output $f$:

    $$s_\pi = \int_0^1 \frac{\partial f}{\partial w_\pi}(\alpha, \ldots, \alpha) \, d\alpha, \qquad
    \sum_\pi s_\pi = f(1) - f(0)$$

    Gauss-Legendre quadrature uses 16 points, then up to 256, until the error of the sum is at most `tolerance` times
    the sum of the absolute scores; `Explanation.rest` is this error. The model is not changed: a copy in evaluation
    mode reads several copies of the graph at once. The cost is that of 16 to 496 predictions with gradients, and the
    memory for the representation of every path.

    For a model that reads features of graphs, `Explanation.descriptors` is what they change in the output without
    paths, from the mean of the training graphs; $f(0)$ has them, and `Explanation.baseline` has that mean.

    Args:
        model: a `PathNN` with a readout, so that one graph has one row of outputs.
        x, edge_index, edge_attr, graph_attr: the graph, as the model reads it.
        output: the number of the output to explain.
        tolerance: the largest error of the sum, relative to the sum of the absolute scores.

    Raises:
        ValueError: the model cannot be explained, because its paths cannot be weighed, or because the weighted model
            differs from the model itself: at weight 1 for this graph, or at weight 0 for the graph without edges.

    >>> _ = torch.manual_seed(0)
    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> found = explain_paths(PathNN(3, 8, 1, collection="ap", k=2), torch.rand(4, 3), ring)
    >>> len(found.ranked()), abs(found.rest) < 0.01 * abs(found.prediction - found.baseline)
    (8, True)
    """
    check_features(x)
    check_edge_index(edge_index, x.size(0))
    with torch.inference_mode(False), torch.enable_grad():
        edge_attr, graph_attr = (None if one is None else one.clone() for one in (edge_attr, graph_attr))
        graph = (x.clone(), edge_index.clone(), edge_attr, graph_attr)
        copies = Copies.of(model, *graph)
        try:
            ends = torch.cat([copies.outputs(torch.tensor([alpha]))[0].detach() for alpha in (0.0, 1.0)])
            expected = _own_outputs(model, *graph)
        except (AttributeError, TypeError) as error:
            raise ValueError(
                f"the paths of this model cannot be weighed ({error}). Its custom modules must be called like the "
                "parts of a PathNN that they replace."
            ) from error
        if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < ends.size(1):
            raise ValueError(f"output={output}: expected 0 to {ends.size(1) - 1}, the outputs of the model.")
        _check_same(ends[:, output], expected[:, output])
        without, prediction = ends[:, output].tolist()
        scores = _integrate(copies, output, prediction - without, tolerance)
        descriptors = 0.0
        if copies.graph_attr is not None:
            mean = replace(copies, graph_attr=torch.full_like(copies.graph_attr, torch.nan))
            descriptors = without - float(mean.outputs(torch.zeros(1))[0][0, output].detach())
    paths = tuple(rows.cpu() for rows in copies.paths)
    return Explanation(prediction, without - descriptors, paths, scores, x.size(0), descriptors)


def _own_outputs(
    model: PathNN, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, graph_attr: Tensor | None
) -> Tensor:
    """What the model itself predicts without any edge and for the whole graph, `[2, outputs]`."""
    model = deepcopy(model).eval()
    with torch.no_grad():
        no_edges = None if edge_attr is None else edge_attr[:0]
        alone = model(x, edge_index[:, :0], edge_attr=no_edges, graph_attr=graph_attr)
        return torch.cat([alone, model(x, edge_index, edge_attr=edge_attr, graph_attr=graph_attr)])


def _check_same(weighted: Tensor, expected: Tensor) -> None:
    """Refuse a model that differs from the weighted model at weight 0 or 1 by more than rounding."""
    close = max(CLOSE, torch.finfo(expected.dtype).eps ** 0.5)
    if (weighted - expected).abs().max() > close * expected.abs().max() + 1e-4:
        (alone, whole), (baseline, prediction) = expected.tolist(), weighted.tolist()
        raise ValueError(
            f"the model predicts {whole:.4g} ({alone:.4g} without edges), but its weighted paths give {prediction:.4g} "
            f"({baseline:.4g}). Its paths cannot be explained: a custom module computes something else than the part "
            "of a PathNN that it replaces."
        )


def _integrate(copies: Copies, output: int, whole: float, tolerance: float) -> tuple[Tensor, ...]:
    """Integrate the gradient of each path from 0 to 1."""
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
    """Copies of one graph in one batch, each with other weights of its paths."""

    model: PathNN
    x: Tensor
    edge_attr: Tensor | None
    graph_attr: Tensor | None
    batch: Tensor
    trie: PathTrie
    paths: tuple[Tensor, ...]
    number: int

    @staticmethod
    def of(
        model: PathNN, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, graph_attr: Tensor | None = None
    ) -> Copies:
        """Make as many copies of a graph as one batch holds."""
        weighted, config = _weighted_copy(model), model.config
        trie = extract_paths(
            edge_index, x.size(0), collection=config.collection, k=config.k, distances=config.distances,
            extend=config.extend,
        )  # fmt: skip
        number = max(1, min(STEPS[0], ENTRIES // max(trie.num_entries, 1)))
        return Copies(
            weighted,
            _repeat(x, number),
            None if edge_attr is None else _repeat(edge_attr, number),
            None if graph_attr is None else _repeat(graph_attr, number),
            torch.arange(number, device=x.device).repeat_interleave(x.size(0)),
            PathTrie.cat([trie] * number),
            tuple(trie.to_paths()),
            number,
        )

    def outputs(self, alphas: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the outputs with all weights equal to each of `alphas`, `[alphas, outputs]`, and these weights."""
        each = torch.zeros(self.number, dtype=torch.float64)
        each[: alphas.numel()] = alphas
        dtype = next(self.model.parameters()).dtype
        lstm: Any = self.model.lstm
        assert isinstance(lstm, WeightedPaths)
        lstm.weights = [
            each.to(self.x.device, dtype).repeat_interleave(rows.size(0)).requires_grad_() for rows in self.paths
        ]
        features = {"edge_attr": self.edge_attr, "graph_attr": self.graph_attr, "batch": self.batch}
        out = self.model(self.x, trie=self.trie, **features, batch_size=self.number, budget=Budget())
        return out[: alphas.numel()], lstm.weights


def _repeat(rows: Tensor, number: int) -> Tensor:
    return rows.repeat(number, *[1] * (rows.dim() - 1))


def _weighted_copy(model: PathNN) -> PathNN:
    """Copy the model, in evaluation mode, with weights for its paths."""
    if not isinstance(model, PathNN):
        raise ValueError(f"model is a {type(model).__name__}: expected a PathNN, which has paths to explain.")
    if not isinstance(model.lstm, PathRNN):
        raise ValueError(
            f"the model's lstm is a {type(model.lstm).__name__}: expected a PathLSTM or a PathRNN, whose paths can be "
            "weighted."
        )
    if model.lstm.aggr is not None:
        raise ValueError("the model's paths are not summed or averaged: paths of other aggregations have no weights.")
    if model.readout is None:
        raise ValueError("the model has readout=None, an output for each vertex: expected a readout.")
    weighted = deepcopy(model).eval().requires_grad_(False)
    weighted.lstm = WeightedPaths(weighted.lstm)  # type: ignore[assignment]
    return weighted
