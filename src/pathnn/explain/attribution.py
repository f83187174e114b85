"""Attribute predictions to paths: integrated gradients over a weight for each vertex and path."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pathnn.explain.explanation import Explanation
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget, EdgeTypes, PathReader, Shared
from pathnn.nn.encoders import check_features
from pathnn.nn.graph_model import read_out
from pathnn.nn.path_lstm import Edges, PathRNN, divide_by_paths
from pathnn.nn.readout import join_graph_attr
from pathnn.paths.csr import check_edge_index
from pathnn.paths.extract import extract_paths
from pathnn.paths.trie import LengthTrie, PathTrie

if TYPE_CHECKING:
    from torch_geometric.data import Data


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


class WeightedReadout(nn.Module):
    """Multiply each vertex by its weight before the readout."""

    def __init__(self, readout: nn.Module) -> None:
        super().__init__()
        self.readout = readout
        self.weights = torch.empty(0)

    def forward(self, h: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None) -> Tensor:
        """Return one row per graph."""
        return read_out(self.readout, h * self.weights.unsqueeze(1), batch, batch_size)


class ReferenceHead(nn.Module):
    """Fill what the weights leave out of a graph with other graphs, and return the mean output over them.

    `kept` has the weight of the vertices and of the descriptors of each graph, `[graphs, 2]`.
    """

    def __init__(self, head: nn.Module, reference: Tensor | None, descriptors: int) -> None:
        super().__init__()
        self.head, self.reference, self.descriptors = head, reference, descriptors
        self.kept = torch.empty(0)

    def forward(self, own: Tensor) -> Tensor:
        """Return the outputs of graphs with the inputs `own` of the head."""
        out: Tensor
        if self.reference is None:
            out = self.head(own)
            return out
        sizes = torch.tensor([own.size(1) - self.descriptors, self.descriptors], device=own.device)
        kept = self.kept.repeat_interleave(sizes, dim=1)
        # the readout has multiplied the vertices by their weights already
        own = torch.cat([own[:, : sizes[0]], own[:, sizes[0] :] * kept[:, sizes[0] :]], dim=1)
        out = self.head((own.unsqueeze(1) + (1 - kept).unsqueeze(1) * self.reference).flatten(0, 1))
        return out.view(own.size(0), self.reference.size(0), -1).mean(dim=1)


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
    reference: Tensor | None = None,
) -> Explanation:
    """Compute how much each path adds to one output of `model` for one graph; see `explain_graphs`.

    >>> _ = torch.manual_seed(0)
    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> found = explain_paths(PathNN(3, 8, 1, collection="ap", k=2), torch.rand(4, 3), ring)
    >>> len(found.ranked()), abs(found.rest) < 0.01 * abs(found.prediction - found.baseline)
    (8, True)
    """
    from torch_geometric.data import Data

    graph = Data(x=x, edge_index=edge_index, edge_attr=edge_attr, graph_attr=graph_attr)
    return explain_graphs(model, [graph], output=output, tolerance=tolerance, reference=reference)[0]


def explain_graphs(
    model: PathNN,
    graphs: Sequence[Data],
    *,
    output: int = 0,
    tolerance: float = 0.01,
    reference: Tensor | None = None,
) -> list[Explanation]:
    r"""Compute how much each path adds to one output of `model` for each graph; all graphs are read in one batch.

    Every path gets a weight in the sum of equation 2, and every vertex, a path of length 0, one in the readout. What
    the weights leave out of the input of the head is filled with the inputs for reference graphs, and $f$ is the mean
    output over them. All weights are $\alpha$, from 0 ($f$ is the mean prediction for the reference graphs) to 1 (the
    unchanged model). Integrated gradients (Sundararajan et al., ICML 2017) follow $f$; with several references they
    are called expected gradients (Erion et al., 2021):

    $$s_\pi = \int_0^1 \frac{\partial f}{\partial w_\pi}(\alpha, \ldots, \alpha) \, d\alpha, \qquad
    \sum_\pi s_\pi = f(1) - f(0)$$

    Gauss-Legendre quadrature uses 16 points, then up to 256, until the error of the sum is at most `tolerance` times
    the sum of the absolute scores; `Explanation.rest` is this error. The model is not changed: a copy in evaluation
    mode reads several copies of the graphs at once. The cost is that of 16 to 496 predictions with gradients, and the
    memory for the representation of every path.

    Without `reference`, only the weights of paths go from 0 to 1: $f(0)$ is the output for the vertices alone, and
    `Explanation.descriptors` is what the features of the graph change in it, from the mean of the training graphs.

    >>> from torch_geometric.data import Data
    >>> line = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> found, _ = explain_graphs(PathNN(2, 8, 1, collection="sp", k=2), [line, line])
    >>> [len(rows) for rows in found.paths]
    [4, 2]

    Args:
        model: a `PathNN` with a readout, so that one graph has one row of outputs.
        graphs: PyG graphs as the model reads them: `x`, `edge_index`, `edge_attr`, `graph_attr`.
        output: the number of the output to explain.
        tolerance: the largest error of the sum, relative to the sum of the absolute scores.
        reference: the result of `reference_inputs` for the reference graphs, for example a sample of the training data.

    Raises:
        ValueError: the model cannot be explained, because its paths cannot be weighed, or because the weighted model
            differs from the model itself: at weight 1 for this graph, or at weight 0 for the graph without edges.
    """
    found: dict[int, Explanation] = {}
    with torch.inference_mode(False), torch.enable_grad():
        weighted = weighted_copy(model, None if reference is None else reference.clone())
        for steps in STEPS:
            todo = [i for i in range(len(graphs)) if i not in found]
            if not todo:
                break
            copies = Copies.of(weighted, [graphs[i] for i in todo])
            if steps == STEPS[0]:
                _check_weighted(model, copies, output)
            for i, one in zip(todo, _integrate(copies, output, steps), strict=True):
                size = sum(float(score.abs().sum()) for score in one.scores)
                if abs(one.rest) <= tolerance * size or steps == STEPS[-1]:
                    found[i] = one
    return [found[i] for i in range(len(graphs))]


@torch.no_grad()
def reference_inputs(model: PathNN, graphs: Sequence[Data]) -> Tensor:
    """Return what the head of `model` reads for some graphs, `[graphs, channels]`: a reference for explanations.

    >>> from torch_geometric.data import Data
    >>> graph = Data(x=torch.rand(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> reference_inputs(PathNN(3, 8, 1, collection="ap", k=2), [graph, graph]).shape
    torch.Size([2, 8])
    """
    model, joined = deepcopy(model).eval(), Joined.of(graphs)
    features: dict[str, Any] = {"edge_attr": joined.edge_attr, "batch": joined.batch, "batch_size": len(graphs)}
    h = model.embed(joined.x, joined.edge_index, **features)
    return join_graph_attr(h, joined.graph_attr, model.graph_scale)


class Joined(NamedTuple):
    """Several graphs as one."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    graph_attr: Tensor | None
    batch: Tensor  # the graph of each vertex
    ptr: Tensor  # the first vertex of each graph, and the number of vertices

    @staticmethod
    def of(graphs: Sequence[Data]) -> Joined:
        """Check and join graphs."""
        for graph in graphs:
            check_features(graph.x)
            check_edge_index(graph.edge_index, graph.x.size(0))
        sizes = torch.tensor([graph.x.size(0) for graph in graphs], device=graphs[0].x.device)
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        edges = torch.cat([graph.edge_index + first for graph, first in zip(graphs, ptr, strict=False)], dim=1)
        parts = [[graph.get(name) for graph in graphs] for name in ("edge_attr", "graph_attr")]
        edge_attr, graph_attr = (None if part[0] is None else torch.cat(part) for part in parts)
        x = torch.cat([graph.x for graph in graphs])
        return Joined(x, edges, edge_attr, graph_attr, torch.repeat_interleave(sizes), ptr)


def _check_weighted(model: PathNN, copies: Copies, output: int) -> None:
    """Refuse a model that is not the sum of its paths, and an output that does not exist."""
    model, graphs = deepcopy(model).eval(), copies.graphs
    given = {"batch": graphs.batch, "batch_size": copies.num_graphs, "graph_attr": graphs.graph_attr}
    try:
        with torch.no_grad():
            no_edges = None if graphs.edge_attr is None else graphs.edge_attr[:0]
            alone = model(graphs.x, graphs.edge_index[:, :0], edge_attr=no_edges, **given)
            expected = torch.stack([alone, model(graphs.x, graphs.edge_index, edge_attr=graphs.edge_attr, **given)])
            ends = torch.cat(
                [copies.outputs(copies.weights(torch.tensor([alpha]), only_paths=True)) for alpha in (0.0, 1.0)]
            )
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"the paths of this model cannot be weighed ({error}). Its custom modules must be called like the "
            "parts of a PathNN that they replace."
        ) from error
    if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < ends.size(2):
        raise ValueError(f"output={output}: expected 0 to {ends.size(2) - 1}, the outputs of the model.")
    for weighted, known in zip(ends[..., output].T, expected[..., output].T, strict=True):
        _check_same(weighted, known)


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


def _integrate(copies: Copies, output: int, steps: int) -> list[Explanation]:
    """Integrate the gradient of each weight from 0 to 1, and return the explanation of each graph."""
    points, shares = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(steps))
    scores = torch.zeros(sum(copies.sizes), dtype=torch.float64)
    for some in torch.split(torch.arange(steps), copies.number):
        weights = copies.weights((points[some] + 1) / 2).requires_grad_()
        out = copies.outputs(weights)[..., output]
        (grad,) = torch.autograd.grad(out.sum(), weights)
        scores += shares[some] / 2 @ grad.cpu().double()
    with torch.no_grad():
        start, end = (copies.outputs(copies.weights(torch.tensor([a])))[0, :, output].tolist() for a in (0.0, 1.0))
    vertices, descriptors, *parts = torch.split(scores, copies.sizes)
    paths = [rows.cpu() for rows in copies.paths]
    if copies.reference is None:
        descriptors = copies.descriptor_effect(output)
    else:
        paths, parts = [torch.arange(len(vertices)).unsqueeze(1), *paths], [vertices, *parts]
    batch, first = copies.graphs.batch.cpu(), copies.graphs.ptr.cpu()
    found = []
    for g in range(copies.num_graphs):
        mine = [batch[rows[:, 0]] == g for rows in paths]
        own = tuple(torch.where(r[m] < 0, -1, r[m] - first[g]) for r, m in zip(paths, mine, strict=True))
        ours = tuple(part[m] for part, m in zip(parts, mine, strict=True))
        change = float(descriptors[g])
        start_at = start[g] - (change if copies.reference is None else 0.0)
        found.append(Explanation(end[g], start_at, own, ours, int(first[g + 1] - first[g]), change))
    return found


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of some graphs in one batch, each with other weights of its vertices, descriptors and paths."""

    model: PathNN
    graphs: Joined  # one copy
    batch: Tensor  # the graph of each vertex of all copies
    trie: PathTrie  # of all copies
    paths: tuple[Tensor, ...]  # of one copy
    number: int
    num_graphs: int

    @staticmethod
    def of(model: PathNN, graphs: Sequence[Data]) -> Copies:
        """Make as many copies of graphs as one batch holds, for a model of `weighted_copy`."""
        joined, config = Joined.of(graphs), model.config
        trie = extract_paths(
            joined.edge_index, joined.x.size(0), collection=config.collection, k=config.k, distances=config.distances,
            extend=config.extend, batch=joined.batch,
        )  # fmt: skip
        number = max(1, min(STEPS[0], ENTRIES // max(trie.num_entries, 1)))
        shift = torch.arange(number, device=joined.x.device).repeat_interleave(joined.x.size(0)) * len(graphs)
        batch = joined.batch.repeat(number) + shift
        return Copies(model, joined, batch, PathTrie.cat([trie] * number), tuple(trie.to_paths()), number, len(graphs))

    @property
    def sizes(self) -> list[int]:
        """Return the number of weights of vertices, descriptors, and paths of each length."""
        return [self.graphs.x.size(0), self.num_graphs, *(rows.size(0) for rows in self.paths)]

    @property
    def reference(self) -> Tensor | None:
        """Return the inputs of the head for the reference graphs."""
        head: Any = self.model.head
        found: Tensor | None = head.reference
        return found

    def weights(self, alphas: Tensor, *, only_paths: bool = False) -> Tensor:
        """Return rows of equal weights, `[alphas, weights]`; if `only_paths` or without reference, 1 for vertices."""
        rows = alphas.unsqueeze(1).repeat(1, sum(self.sizes))
        if only_paths or self.reference is None:
            rows[:, : self.sizes[0] + self.num_graphs] = 1.0
        return rows.to(self.graphs.x.device, next(self.model.parameters()).dtype)

    def outputs(self, weights: Tensor) -> Tensor:
        """Return the outputs with each row of `weights`, for each graph: `[rows, graphs, outputs]`."""
        unused = weights.new_zeros(self.number - weights.size(0), weights.size(1))
        vertices, descriptors, *paths = torch.split(torch.cat([weights, unused]), self.sizes, dim=1)
        lstm: Any = self.model.lstm
        readout: Any = self.model.readout
        head: Any = self.model.head
        lstm.weights = [part.flatten() for part in paths]
        readout.weights = vertices.flatten()
        count, one = self.number * self.num_graphs, vertices.new_ones(self.batch.size(0))
        sums, sizes = (one.new_zeros(count).index_add(0, self.batch, part) for part in (vertices.flatten(), one))
        head.kept = torch.stack([sums / sizes.clamp(min=1), descriptors.flatten()], dim=1)
        given = (self.graphs.x, self.graphs.edge_attr, self.graphs.graph_attr)
        repeated = (None if one is None else one.repeat(self.number, *[1] * (one.dim() - 1)) for one in given)
        x, edge_attr, graph_attr = repeated
        features = {"edge_attr": edge_attr, "graph_attr": graph_attr, "batch": self.batch, "batch_size": count}
        out: Tensor = self.model(x, trie=self.trie, **features, budget=Budget())
        return out.view(self.number, self.num_graphs, -1)[: weights.size(0)]

    @torch.no_grad()
    def descriptor_effect(self, output: int) -> Tensor:
        """Return what the descriptors of each graph change in an output without paths, from their mean."""
        if self.graphs.graph_attr is None:
            return torch.zeros(self.num_graphs)
        mean = self.graphs._replace(graph_attr=torch.full_like(self.graphs.graph_attr, torch.nan))
        none = self.weights(torch.zeros(1))
        return (self.outputs(none) - replace(self, graphs=mean).outputs(none))[0, :, output]


def weighted_copy(model: PathNN, reference: Tensor | None = None) -> PathNN:
    """Copy the model, in evaluation mode, with weights for its vertices and paths."""
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
    weighted.readout = WeightedReadout(model.readout)
    weighted.head = ReferenceHead(weighted.head, reference, model.config.graph_channels)
    return weighted
