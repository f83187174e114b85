"""Attribute predictions to paths: integrated gradients over a weight for each vertex and path."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from pathnn.explain.explanation import Explanation
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget, EdgeTypes, PathReader, Shared
from pathnn.nn.encoders import check_features
from pathnn.nn.graph_model import read_out
from pathnn.nn.path_lstm import Edges, PathRNN, divide_by_paths
from pathnn.nn.readout import Readout, join_graph_attr
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

    `vertices` has their mean weight in each graph, `[graphs, 1]` (the readout has weighted them already), and
    `descriptors` the weight of each of them. Without reference, zeros stand for it: the mean of the descriptors.
    """

    def __init__(self, head: nn.Module, reference: Tensor | None) -> None:
        super().__init__()
        self.head, self.reference = head, reference
        self.vertices = self.descriptors = torch.empty(0)

    def forward(self, own: Tensor) -> Tensor:
        """Return the outputs of graphs with the inputs `own` of the head."""
        channels = own.size(1) - self.descriptors.size(1)
        kept = torch.cat([self.vertices.expand(-1, channels), self.descriptors], dim=1)
        own = torch.cat([own[:, :channels], own[:, channels:] * self.descriptors], dim=1)
        reference = own.new_zeros(1, own.size(1)) if self.reference is None else self.reference
        filled = own.unsqueeze(1) + (1 - kept).unsqueeze(1) * reference
        out: Tensor = self.head(filled.flatten(0, 1))
        return out.view(own.size(0), reference.size(0), -1).mean(dim=1)


STEPS = (16, 32, 64, 128, 256)
"""Numbers of points of the integral, tried in this order until the sum is close enough."""

ENTRIES, INPUTS = 2**18, 2**26
"""Trie entries and inputs of the head of one batch of copies; larger batches are not faster."""

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

    Features of the graph (descriptors) have a weight and a score each. Without `reference`, vertices have none: $f(0)$
    is the output for the vertices alone, with the mean descriptors of the training graphs.

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
            if not (todo := [i for i in range(len(graphs)) if i not in found]):
                break
            copies = Copies(weighted, [graphs[i] for i in todo])
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
    model, joined = deepcopy(model).eval(), _join(graphs)
    features: dict[str, Any] = {"edge_attr": joined.get("edge_attr"), "batch": joined.batch, "batch_size": len(graphs)}
    h = model.embed(joined.x, joined.edge_index, **features)
    return join_graph_attr(h, joined.get("graph_attr"), model.graph_scale)


def _join(graphs: Sequence[Data]) -> Any:
    """Check graphs, and join what the model reads of them to a PyG batch."""
    from torch_geometric.data import Batch, Data

    for graph in graphs:
        check_features(graph.x)
        check_edge_index(graph.edge_index, graph.x.size(0))
    names = ("x", "edge_index", "edge_attr", "graph_attr")
    return Batch.from_data_list([Data(**{name: graph.get(name) for name in names}) for graph in graphs])


def _check_weighted(model: PathNN, copies: Copies, output: int) -> None:
    """Refuse a model that is not the sum of its paths, and an output that does not exist."""
    model, graphs = deepcopy(model).eval(), copies.graphs
    given = {"batch": graphs.batch, "batch_size": graphs.num_graphs, "graph_attr": graphs.get("graph_attr")}
    edge_attr = graphs.get("edge_attr")
    try:
        with torch.no_grad():
            no_edges = None if edge_attr is None else edge_attr[:0]
            alone = model(graphs.x, graphs.edge_index[:, :0], edge_attr=no_edges, **given)
            expected = torch.stack([alone, model(graphs.x, graphs.edge_index, edge_attr=edge_attr, **given)])
            weights = copies.weights(torch.tensor([0.0, 1.0]))
            weights[:, : sum(copies.sizes[:2])] = 1.0  # without any path, and with all
            weighted = copies.outputs(weights)
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"the paths of this model cannot be weighed ({error}). Its custom modules must be called like the "
            "parts of a PathNN that they replace."
        ) from error
    if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < weighted.size(2):
        raise ValueError(f"output={output}: expected 0 to {weighted.size(2) - 1}, the outputs of the model.")
    weighted, expected = weighted[..., output], expected[..., output]
    close = max(CLOSE, torch.finfo(expected.dtype).eps ** 0.5)
    differs = (weighted - expected).abs().amax(dim=0) > close * expected.abs().amax(dim=0) + 1e-4
    if differs.any():
        (baseline, prediction), (alone, whole) = weighted.T[differs][0].tolist(), expected.T[differs][0].tolist()
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
        (grad,) = torch.autograd.grad(copies.outputs(weights)[..., output].sum(), weights)
        scores += shares[some] / 2 @ grad.cpu().double()
    with torch.no_grad():
        start, end = copies.outputs(copies.weights(torch.tensor([0.0, 1.0])))[..., output].tolist()
    vertices, descriptors, *parts = torch.split(scores, copies.sizes)
    paths = [rows.cpu() for rows in copies.paths]
    if copies.has_reference:
        paths, parts = [torch.arange(len(vertices)).unsqueeze(1), *paths], [vertices, *parts]
    batch, ptr = copies.graphs.batch.cpu(), copies.graphs.ptr.tolist()
    found = []
    for g, own in enumerate(descriptors.view(len(start), -1)):
        mine = [batch[rows[:, 0]] == g for rows in paths]
        ours = tuple(torch.where(r[m] < 0, -1, r[m] - ptr[g]) for r, m in zip(paths, mine, strict=True))
        each = tuple(part[m] for part, m in zip(parts, mine, strict=True))
        found.append(Explanation(end[g], start[g], ours, each, ptr[g + 1] - ptr[g], own))
    return found


class Copies:
    """Copies of some graphs in one batch, each with other weights of its vertices, descriptors and paths.

    `sizes` has the numbers of weights of a copy: of vertices, descriptors, and paths of each length. `paths` are those
    of one copy, and `number` is the number of copies.
    """

    def __init__(self, model: PathNN, graphs: Sequence[Data]) -> None:
        """Make as many copies of graphs as one batch holds, for a model of `weighted_copy`."""
        self.model, self.graphs, config = model, _join(graphs), model.config
        trie = extract_paths(
            self.graphs.edge_index, self.graphs.num_nodes, collection=config.collection, k=config.k,
            distances=config.distances, extend=config.extend, batch=self.graphs.batch,
        )  # fmt: skip
        reference: Any = model.head.reference
        self.has_reference = reference is not None
        inputs = len(graphs) * (reference.numel() if self.has_reference else 1)
        self.number = max(1, min(STEPS[0], ENTRIES // max(trie.num_entries, 1), INPUTS // inputs))
        self.trie, self.paths = PathTrie.cat([trie] * self.number), tuple(trie.to_paths())
        descriptors = len(graphs) * (config.graph_channels or 0)
        self.sizes = [self.graphs.num_nodes, descriptors, *(rows.size(0) for rows in self.paths)]
        shift = torch.arange(self.number, device=self.graphs.x.device).repeat_interleave(self.graphs.num_nodes)
        self.batch = self.graphs.batch.repeat(self.number) + shift * len(graphs)

    def weights(self, alphas: Tensor) -> Tensor:
        """Return rows of equal weights, `[alphas, weights]`; without reference, those of vertices are 1."""
        rows = alphas.unsqueeze(1).repeat(1, sum(self.sizes))
        if not self.has_reference:
            rows[:, : self.sizes[0]] = 1.0
        return rows.to(self.graphs.x.device, next(self.model.parameters()).dtype)

    def outputs(self, weights: Tensor) -> Tensor:
        """Return the outputs with each row of `weights`, for each graph: `[rows, graphs, outputs]`."""
        return torch.cat([self._outputs(some) for some in torch.split(weights, self.number)])

    def _outputs(self, weights: Tensor) -> Tensor:
        unused = weights.new_zeros(self.number - weights.size(0), weights.size(1))
        vertices, descriptors, *paths = torch.split(torch.cat([weights, unused]), self.sizes, dim=1)
        lstm, readout, head = cast(Any, (self.model.lstm, self.model.readout, self.model.head))
        lstm.weights, readout.weights = [part.flatten() for part in paths], vertices.flatten()
        count = self.number * self.graphs.num_graphs
        head.vertices = Readout("mean")(vertices.reshape(-1, 1), self.batch, batch_size=count)
        head.descriptors = descriptors.reshape(count, -1)
        given = {name: self.graphs[name] for name in ("x", "edge_attr", "graph_attr") if name in self.graphs}
        features = {name: torch.cat([one] * self.number) for name, one in given.items()}
        out: Tensor = self.model(**features, trie=self.trie, batch=self.batch, batch_size=count, budget=Budget())
        return out.view(self.number, self.graphs.num_graphs, -1)[: weights.size(0)]


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
    weighted.head = ReferenceHead(weighted.head, reference)
    return weighted
