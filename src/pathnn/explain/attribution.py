"""Attribute predictions to paths, by integrated gradients with respect to a weight for each vertex and path."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from pathnn.explain.explanation import Explanation
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget, EdgeTypes, PathReader, Shared, divide_by_counts
from pathnn.nn.encoders import check_features
from pathnn.nn.path_lstm import Edges, PathRNN
from pathnn.nn.readout import Readout, join_graph_attr
from pathnn.paths.csr import check_edge_index
from pathnn.paths.extract import extract_paths
from pathnn.paths.trie import LengthTrie

if TYPE_CHECKING:
    from torch_geometric.data import Data


class WeightedPaths(PathReader):
    r"""An LSTM that multiplies the representation of each path by a weight: 1 keeps a path, 0 removes it.

    $$h_v^{(k)} = \phi\big(\mathrm{NORM}(h_v^{(k-1)} + \sum_{\pi \in \mathcal{P}_v^k} w_\pi \mathrm{LSTM}(\pi))\big)$$

    `weights` has a tensor `[num_paths]` for each length, in the order of `PathTrie.to_paths()`. The mean over paths
    divides by the number of paths, not by the sum of their weights.
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
        return divide_by_counts(sums, trie.source) if self.lstm.aggregation == "mean" else sums


STEPS = (16, 32, 64, 128, 256)
"""Numbers of points of the numerical integral, in increasing accuracy."""

CLOSE = 0.01
"""The largest relative difference between the weighted model and the model itself that can be due to rounding."""


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
    """Compute the score of each path of a graph; see `explain_graphs`.

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
    r"""Compute how much each path of some graphs adds to one output of `model`.

    Each path has a weight in the sum of equation 2, and each vertex, which is a path of length 0, has a weight in the
    readout. The weights keep a part of the input of the head; the other part comes from the reference graphs, and $f$
    is the mean output over them. All weights are $\alpha$: with 0, $f$ is the mean prediction for the reference graphs,
    and with 1 it is the prediction. The score is the integral of the gradient (integrated gradients, Sundararajan et
    al., ICML 2017; with several references expected gradients, Erion et al., 2021):

    $$s_\pi = \int_0^1 \frac{\partial f}{\partial w_\pi}(\alpha, \ldots, \alpha) \, d\alpha, \qquad
    \sum_\pi s_\pi = f(1) - f(0)$$

    Gauss-Legendre quadrature uses 16 to 256 points, until the error of the sum is at most `tolerance` times the sum of
    the absolute scores; `Explanation.rest` is this error. A copy of the model in evaluation mode is explained, and all
    graphs are one batch. The cost is that of 16 to 496 predictions with gradients, and the memory is that of the
    representations of all paths.

    Each feature of the graph (descriptor) has a weight and a score, too. Without `reference`, vertices have no scores:
    $f(0)$ is the output for the vertices without any path, with the mean descriptors of the training graphs.

    >>> from torch_geometric.data import Data
    >>> line = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> found, _ = explain_graphs(PathNN(2, 8, 1, collection="sp", k=2), [line, line])
    >>> [len(rows) for rows in found.paths]
    [4, 2]

    Args:
        model: a `PathNN` with a readout.
        graphs: PyG graphs as the model reads them: `x`, `edge_index`, `edge_attr`, `graph_attr`.
        output: the number of the output to explain.
        tolerance: the largest error of the sum, relative to the sum of the absolute scores.
        reference: the result of `reference_inputs` for the reference graphs, for example a sample of the training data.

    Raises:
        ValueError: the paths of the model have no weights, or the model is not the sum of its paths: the weighted model
            differs from the model with weights of 1, or from the model on the graph without edges with weights of 0.
    """
    found: dict[int, Explanation] = {}
    with torch.inference_mode(False), torch.enable_grad():
        reference = None if reference is None else reference.clone()
        for steps in STEPS:
            if not (todo := [i for i in range(len(graphs)) if i not in found]):
                break
            batch = WeightedBatch(model, [graphs[i] for i in todo], reference)
            if steps == STEPS[0]:
                _check_weighted(model, batch, output)
            for i, one in zip(todo, _integrate(batch, output, steps), strict=True):
                size = sum(float(score.abs().sum()) for score in one.scores)
                if abs(one.rest) <= tolerance * size or steps == STEPS[-1]:
                    found[i] = one
    return [found[i] for i in range(len(graphs))]


@torch.no_grad()
def reference_inputs(model: PathNN, graphs: Sequence[Data]) -> Tensor:
    """Return the inputs of the head of `model` for reference graphs, `[graphs, channels]`.

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
    """Check graphs, and join them in a PyG batch."""
    from torch_geometric.data import Batch, Data

    for graph in graphs:
        check_features(graph.x)
        check_edge_index(graph.edge_index, graph.x.size(0))
    names = ("x", "edge_index", "edge_attr", "graph_attr")
    return Batch.from_data_list([Data(**{name: graph.get(name) for name in names}) for graph in graphs])


class WeightedBatch:
    """A batch of graphs, and a copy of the model that reads it with weights of vertices, descriptors and paths.

    The reference (or zeros, the mean descriptors) replaces what the weights remove of the input of the head, and the
    output is the mean over references. `sizes` has the numbers of weights: vertices, descriptors, paths by length.
    """

    def __init__(self, model: PathNN, graphs: Sequence[Data], reference: Tensor | None = None) -> None:
        self.model, self.reference, self.graphs, config = _copy(model), reference, _join(graphs), model.config
        self.trie = extract_paths(
            self.graphs.edge_index, self.graphs.num_nodes, collection=config.collection, k=config.k,
            distances=config.distances, extend=config.extend, batch=self.graphs.batch,
        )  # fmt: skip
        self.paths = tuple(self.trie.to_paths())
        descriptors = len(graphs) * (config.graph_channels or 0)
        self.sizes = [self.graphs.num_nodes, descriptors, *(rows.size(0) for rows in self.paths)]

    def weights(self, values: Tensor | float) -> Tensor:
        """Return weights of the given values, `[weights]`; without reference, the weights of vertices are 1."""
        weights = torch.as_tensor(values).to(self.graphs.x.device, next(self.model.parameters()).dtype)
        weights = weights.expand(sum(self.sizes)).clone()
        if self.reference is None:
            weights[: self.sizes[0]] = 1.0
        return weights

    def outputs(self, weights: Tensor) -> Tensor:
        """Return the outputs for the given weights, `[graphs, outputs]`."""
        vertices, descriptors, *paths = torch.split(weights, self.sizes)
        cast(WeightedPaths, self.model.lstm).weights = paths
        given = {name: self.graphs[name] for name in ("x", "edge_attr", "graph_attr") if name in self.graphs}
        batch = {"batch": self.graphs.batch, "batch_size": self.graphs.num_graphs}
        readout, head = cast(nn.Module, self.model.readout), self.model.head
        with (
            readout.register_forward_pre_hook(lambda _, given: (given[0] * vertices.unsqueeze(1), *given[1:])),
            head.register_forward_pre_hook(lambda _, given: self._fill(given[0], vertices, descriptors)),
            head.register_forward_hook(lambda _, given, out: out.unflatten(0, (batch["batch_size"], -1)).mean(dim=1)),
        ):
            return self.model(**given, trie=self.trie, **batch, budget=Budget())

    def _fill(self, own: Tensor, vertices: Tensor, descriptors: Tensor) -> Tensor:
        """Return the inputs of the head for each graph and each reference graph, `[graphs * references, channels]`."""
        descriptors = descriptors.view(len(own), -1)
        channels = own.size(1) - descriptors.size(1)
        mean = Readout("mean")(vertices.unsqueeze(1), self.graphs.batch, batch_size=len(own))
        kept = torch.cat([mean.expand(-1, channels), descriptors], dim=1)
        own = torch.cat([own[:, :channels], own[:, channels:] * descriptors], dim=1)  # the readout weighs vertices
        reference = own.new_zeros(1, own.size(1)) if self.reference is None else self.reference
        return (own.unsqueeze(1) + (1 - kept).unsqueeze(1) * reference).flatten(0, 1)

    def gradient(self, weights: Tensor, output: int) -> Tensor:
        """Return the gradient of one output with respect to the weights, `[weights]`, float64."""
        weights.requires_grad_()
        with torch.enable_grad():
            (grad,) = torch.autograd.grad(self.outputs(weights)[:, output].sum(), weights)
        return grad.cpu().double()

    def owners(self) -> Tensor:
        """Return the graph of each weight, `[weights]`."""
        batch, count = self.graphs.batch.cpu(), self.graphs.num_graphs
        descriptors = torch.arange(count).repeat_interleave(self.sizes[1] // count)
        return torch.cat([batch, descriptors, *(batch[rows[:, 0].cpu()] for rows in self.paths)])


def _copy(model: PathNN) -> PathNN:
    """Return a copy of a model in evaluation mode, with a `WeightedPaths`; refuse a model without paths to weight."""
    if not isinstance(model, PathNN):
        raise ValueError(f"model is a {type(model).__name__}: expected a PathNN, which has paths to explain.")
    if not isinstance(model.lstm, PathRNN):
        raise ValueError(
            f"the model's lstm is a {type(model.lstm).__name__}: expected a PathLSTM or a PathRNN, whose paths can be "
            "weighted."
        )
    if model.lstm.aggr is not None:
        raise ValueError("the paths of the model are not summed or averaged, so they cannot be weighted.")
    if model.readout is None:
        raise ValueError("the model has readout=None, an output for each vertex: expected a model with a readout.")
    copied = deepcopy(model).eval().requires_grad_(False)
    copied.lstm = WeightedPaths(copied.lstm)  # type: ignore[assignment]
    return copied


def _check_weighted(model: PathNN, batch: WeightedBatch, output: int) -> None:
    """Raise `ValueError` for a model that is not the sum of its paths, and for an output that does not exist."""
    model, graphs = deepcopy(model).eval(), batch.graphs
    edge_attr = graphs.get("edge_attr")
    given = {"batch": graphs.batch, "batch_size": graphs.num_graphs, "graph_attr": graphs.get("graph_attr")}
    weights = batch.weights(0.0)
    weights[: sum(batch.sizes[:2])] = 1.0  # without any path
    try:
        with torch.no_grad():
            no_edges = None if edge_attr is None else edge_attr[:0]
            alone = model(graphs.x, graphs.edge_index[:, :0], edge_attr=no_edges, **given)
            expected = torch.stack([alone, model(graphs.x, graphs.edge_index, edge_attr=edge_attr, **given)])
            weighted = torch.stack([batch.outputs(weights), batch.outputs(batch.weights(1.0))])
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"the paths of this model cannot be weighted ({error}). Custom modules must take the same arguments as the "
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
            f"({baseline:.4g}). The paths cannot be explained: a custom module does not compute the same as the part "
            "of a PathNN that it replaces."
        )


def _integrate(batch: WeightedBatch, output: int, steps: int) -> list[Explanation]:
    """Integrate the gradient of each weight from 0 to 1, and return the explanation of each graph."""
    points, shares = np.polynomial.legendre.leggauss(steps)
    scores = torch.zeros(sum(batch.sizes), dtype=torch.float64)
    for point, share in zip(points, shares, strict=True):
        scores += share / 2 * batch.gradient(batch.weights((point + 1) / 2), output)
    with torch.no_grad():
        start, end = (batch.outputs(batch.weights(alpha))[:, output].tolist() for alpha in (0.0, 1.0))
    owners, ptr = batch.owners(), batch.graphs.ptr.cpu()
    local = torch.arange(batch.sizes[0]) - ptr[owners[: batch.sizes[0]]]
    paths = [local.unsqueeze(1), *(torch.cat([local, torch.tensor([-1])])[rows.cpu()] for rows in batch.paths)]
    first = 1 if batch.reference is None else 0  # without reference, vertices have no scores
    found = []
    for g, (before, after) in enumerate(zip(start, end, strict=True)):
        mine = [owner == g for owner in torch.split(owners, batch.sizes)]
        vertices, descriptors, *rest = (p[m] for p, m in zip(torch.split(scores, batch.sizes), mine, strict=True))
        rows = tuple(p[m] for p, m in zip(paths, [mine[0], *mine[2:]], strict=True))
        found.append(Explanation(after, before, rows[first:], (vertices, *rest)[first:], len(vertices), descriptors))
    return found
