"""The LSTM, or another cell, that reads every path of one length from its far end to its source."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pathnn._lazy import not_compiled
from pathnn.checks import check_choice, check_count, check_dropout, check_flag
from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget, EdgeTypes, Inputs, PathReader, Shared
from pathnn.nn.cells import CellName, CellWeights, PathCell, lstm_step, make_cell
from pathnn.paths.trie import LengthTrie

Aggregation = Literal["sum", "mean", "max", "attention"]
Edges = Tensor | EdgeTypes | Shared | None
"""Edge features, or the result of `prepare` for them."""


class PathRNN(PathReader):
    r"""Aggregate the representations of all paths of one length, read by any cell, at their sources.

    `cell` is "gru", "mingru", a subclass of `PathCell`, or a cell that reads tokens `[vertex, distance, edge]`. The
    other options are those of `PathLSTM`.

    >>> from pathnn.paths.trie import PathTrie
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> trie = PathTrie.from_paths([edge_index.t()], edge_index, 3, collection="sp")
    >>> PathRNN(8, cell="gru")(torch.ones(3, 8), trie.length(1)).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        channels: int,
        *,
        cell: CellName | type[PathCell] | PathCell = "lstm",
        distances: int | None = None,
        edge_channels: int | None = None,
        extended: bool = False,
        aggregation: Aggregation | nn.Module = "sum",
        backend: str = "auto",
        dropout: float = 0.0,
        max_entries: int | None = None,
    ) -> None:
        channels = check_count("channels", channels)
        edge_channels = None if edge_channels is None else check_count("edge_channels", edge_channels)
        _check_rows(distances)
        check_dropout(dropout)
        width = channels * (1 if distances is None else 2) + (edge_channels or 0)
        self._make_cell(cell, width, channels)
        self.channels, self.edge_channels = channels, edge_channels
        custom = isinstance(aggregation, nn.Module)
        self.aggregation = "custom" if custom else check_choice("aggregation", aggregation, get_args(Aggregation))
        self.backend = check_choice("backend", backend, base.BACKENDS)
        self.input_dropout = dropout
        self.max_entries = None if max_entries is None else check_count("max_entries", max_entries)
        self.distance_encoder = None if distances is None else nn.Embedding(int(distances), channels)
        self.dummy = nn.Parameter(torch.randn(channels)) if check_flag("extended", extended) else None
        self.aggr = _make_aggregation(aggregation, channels)

    def _make_cell(self, cell: CellName | type[PathCell] | PathCell, width: int, channels: int) -> None:
        super().__init__()
        if cell == "lstm":
            raise ValueError("cell='lstm': make a PathLSTM, or name another cell.")
        self.cell = make_cell(cell, width, channels)

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        self.cell.reset_parameters()
        self._reset_tables()

    def _reset_tables(self) -> None:
        if self.distance_encoder is not None:
            self.distance_encoder.reset_parameters()
        if self.dummy is not None:
            nn.init.normal_(self.dummy)
        if self.aggr is not None:
            from torch_geometric.nn.inits import reset

            reset(self.aggr)

    def forward(self, h: Tensor, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """Aggregate the representations of the paths in `trie` at their sources: `[num_nodes, channels]`."""
        if self.aggr is None:
            out = self._run(h, trie, edges, summed=True)
            return base.divide_by_counts(out, trie.levels[-1].vertex) if self.aggregation == "mean" else out
        order = trie.source.argsort(stable=True)  # some aggregations need it, and sums have a fixed order
        rows = self._run(h, trie, edges, summed=False).index_select(0, order)
        out = self.aggr(rows, trie.source.index_select(0, order), dim_size=trie.num_nodes)
        if out.shape != (trie.num_nodes, self.channels):
            raise ValueError(
                f"aggregation: expected a result of shape {(trie.num_nodes, self.channels)} (vertices, channels), got "
                f"{tuple(out.shape)} from {type(self.aggr).__name__}."
            )
        return out

    def path_representations(self, h: Tensor, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """Return the representation of each path of `trie`, in its order: `[num_paths, channels]`."""
        return self._run(h, trie, edges, summed=False)

    @not_compiled
    def prepare(self, edges: Tensor | EdgeTypes | None, budget: Budget | None = None) -> Shared:
        """Compute what the layers of one forward pass share; pass the result to them in place of the edges.

        These calls do not check the trie again: it must belong to these edges. Dropout on edges is drawn per layer, so
        each layer then prepares its own edges.
        """
        _check_edges(edges, self.edge_channels)
        budget = Budget(self.max_entries) if budget is None else budget
        backend = base.choose(self.backend, self.cell, self._like())
        if self.training and self.input_dropout > 0 and edges is not None:
            return PerLayer(backend=backend, budget=budget, cell=self.cell, inputs=Inputs(edges, None))
        return self._prepare(backend, edges, budget)

    def _prepare(self, backend: base.Backend, edges: Tensor | EdgeTypes | None, budget: Budget) -> Shared:
        distances = None if self.distance_encoder is None else self.distance_encoder.weight
        return backend.prepare(self.cell, Inputs(self._edges(edges), distances), budget)

    @not_compiled
    def _run(self, h: Tensor, trie: LengthTrie, edges: Edges, *, summed: bool) -> Tensor:
        if isinstance(edges, Shared):
            _check_vertices(h, trie, self.channels)
            shared = edges
        else:
            self._check(h, trie, edges)
            shared = self.prepare(edges)
        if isinstance(shared, PerLayer):
            shared = self._prepare(shared.backend, shared.inputs.edges, shared.budget)
        with torch.autocast(h.device.type, enabled=False):
            return shared.backend.run(shared, self._vertices(h), trie, summed=summed)

    def _like(self) -> Tensor:
        return next(self.parameters())

    def _vertices(self, h: Tensor) -> Tensor:
        """Return `h` in the dtype of the cell, with dropout, and with the vector of the dummy token as last row."""
        h = F.dropout(h.to(self._like().dtype), self.input_dropout, self.training)
        return h if self.dummy is None else torch.cat([h, self.dummy.unsqueeze(0)])

    def _edges(self, edges: Tensor | EdgeTypes | None) -> Tensor | EdgeTypes | None:
        """Return the edges in the dtype of the cell, with dropout."""
        dtype = self._like().dtype
        masked = self.training and self.input_dropout > 0
        if edges is None:
            return None
        if isinstance(edges, EdgeTypes) and not masked:
            components = None if edges.components is None else edges.components.to(dtype)
            return edges._replace(table=edges.table.to(dtype), components=components)
        features = edges.expand() if isinstance(edges, EdgeTypes) else edges
        return F.dropout(features.to(dtype), self.input_dropout, self.training)

    def _check(self, h: Tensor, trie: Any, edges: Tensor | EdgeTypes | None) -> None:
        if not isinstance(trie, LengthTrie):
            raise ValueError(
                f"trie is a {type(trie).__name__}: expected the paths of one length, a LengthTrie. "
                "For a PathTrie, pass trie.length(k), with k from 1 to trie.k."
            )
        _check_vertices(h, trie, self.channels)
        if self.distance_encoder is not None and trie.levels[0].distance is None:
            raise ValueError(
                f"this {type(self).__name__} reads distances, but the trie has none. Extract paths with "
                "distances=True, or create it with distances=None."
            )
        _check_edges(edges, self.edge_channels)
        if h.device.type == "cpu":
            _check_bounds(trie, edges, self.distance_encoder, extended=self.dummy is not None)

    def extra_repr(self) -> str:
        """Return the text that `print(model)` shows."""
        rows = None if self.distance_encoder is None else self.distance_encoder.num_embeddings
        read = {"edge_channels": self.edge_channels, "distances": rows, "extended": self.dummy is not None or None}
        chosen = {name: value for name, value in {**read, "max_entries": self.max_entries}.items() if value is not None}
        words = {"aggregation": self.aggregation, **chosen}
        words |= {"input_dropout": self.input_dropout, "backend": self.backend}
        return ", ".join([str(self.channels), *(f"{name}={value!r}" for name, value in words.items())])


class PathLSTM(PathRNN, PathCell, nn.LSTM):  # type: ignore[misc]
    r"""Aggregate the representations of all paths of one length at their sources (Michel et al. 2023, equation 1).

    $$a_v = \sum_{\pi \in \mathcal{P}_v^k} \mathrm{LSTM}\big([h_{\pi(k+1)}, \dots, h_{\pi(1)}]\big)$$

    The parameters are those of one `nn.LSTM` (names, shapes, initialisation, order of the gates) that reads
    `[vertex, distance, edge]`, the table of distances `distance_encoder`, and the vector `dummy` of the dummy token.
    Dropout acts on `h` per vertex and on edge features per edge, before the input is projected, and not on distances.
    (The released implementation draws a mask per position of each path; both are equal at rate 0 and in evaluation.)
    Under `torch.autocast` the LSTM runs in the dtype of its parameters; only the products of the Triton backend then
    have 11 bits.

    Args:
        channels: the width of `h` and of the result.
        distances: the rows of the table of distances (K + 1, or K + 2 with dummy tokens), or None to ignore distances.
        edge_channels: the width of the edge features, or None to ignore edges.
        extended: whether tries may contain dummy tokens.
        aggregation: "sum", "mean", "max" or "attention" (a learned softmax) over the paths of a source, or an
            aggregation of PyG, whose result has `channels` columns. By name, a source without a path gets zeros.
        backend: how to compute: "auto" (the fastest), "torch", "cpu" or "triton", which share prefixes, or "dense",
            which runs `nn.LSTM` over every path. The results are the same up to rounding.
        dropout: the rate on the input, stored as `input_dropout` (`dropout` of an `nn.LSTM` is between layers).
        max_entries: the default `Budget`: a trie with more entries is computed in pieces, which the backward pass
            recomputes. None for no limit.

    Shapes: `h` is `[num_nodes, channels]`, `edges` is `[num_edges, edge_channels]` or `EdgeTypes`; returns
    `[num_nodes, channels]`. Differentiable once, except with backend "dense".

    >>> from pathnn.paths.trie import PathTrie
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> trie = PathTrie.from_paths([edge_index.t()], edge_index, 3, collection="sp")
    >>> lstm = PathLSTM(8)
    >>> lstm(torch.ones(3, 8), trie.length(1)).shape
    torch.Size([3, 8])
    >>> lstm.path_representations(torch.ones(3, 8), trie.length(1)).shape
    torch.Size([4, 8])
    """

    weight_ih_l0: Tensor
    weight_hh_l0: Tensor
    bias_ih_l0: Tensor
    bias_hh_l0: Tensor

    gates, states = 4, 2
    step = staticmethod(lstm_step)

    def _make_cell(self, cell: Any, width: int, channels: int) -> None:
        check_choice("cell", cell, ("lstm",))
        nn.LSTM.__init__(self, width, channels)

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        nn.LSTM.reset_parameters(self)
        if hasattr(self, "channels"):  # not while `nn.LSTM` is being made
            self._reset_tables()

    @property
    def cell(self) -> PathCell:  # type: ignore[override]
        """Return itself."""
        return self

    def weights(self) -> CellWeights:
        """Return the weights as backends read them; see `PathCell`."""
        return CellWeights(self.weight_ih_l0, self.bias_ih_l0 + self.bias_hh_l0, self.weight_hh_l0)

    def dense(self, steps: Tensor) -> Tensor:
        """Return the last hidden state for tokens `[length, paths, width]`; see `PathCell`.

        This is `nn.LSTM.forward` with gradients also in evaluation mode, which cuDNN refuses: the flag `differentiable`
        changes nothing else, since there is no dropout between layers.
        """
        start = steps.new_zeros(1, steps.size(1), self.hidden_size)
        differentiable = self.training or torch.is_grad_enabled()
        # not `_flat_weights`: functional_call and parametrizations replace the attributes alone
        weights = [self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0]
        options = (self.bias, self.num_layers, 0.0, differentiable, self.bidirectional, self.batch_first)
        _, last, _ = torch.lstm(steps, (start, start), weights, *options)
        return last[0]


class PerLayer(Shared):
    """Edges with dropout, which each layer draws and prepares."""


def _make_aggregation(aggregation: str | nn.Module, channels: int) -> nn.Module | None:
    """Return the aggregation of PyG; None for "sum" and "mean", which backends compute without one row per path."""
    if isinstance(aggregation, nn.Module) or aggregation in ("sum", "mean"):
        return aggregation if isinstance(aggregation, nn.Module) else None
    from torch_geometric.nn import aggr  # takes a second

    if aggregation == "max":
        return aggr.MaxAggregation()
    return aggr.AttentionalAggregation(nn.Linear(channels, 1))


def _check_rows(distances: Any) -> None:
    if distances is not None and (isinstance(distances, bool) or not isinstance(distances, Integral) or distances < 1):
        raise ValueError(
            f"distances={distances!r}: expected the rows of the table of distances, K + 1 (K + 2 with dummy tokens), "
            "or None to ignore distances."
        )


def _check_vertices(h: Tensor, trie: LengthTrie, channels: int) -> None:
    if h.dim() != 2 or h.size(1) != channels:
        raise ValueError(f"h: expected shape [num_nodes, {channels}], got {tuple(h.shape)}.")
    if h.size(0) != trie.num_nodes:
        raise ValueError(f"h has {h.size(0)} rows, but the trie was made for {trie.num_nodes} vertices.")


def _check_edges(edges: Tensor | EdgeTypes | None, edge_channels: int | None) -> None:
    if edges is None and edge_channels is not None:
        raise ValueError(f"edge features are missing: expected [num_edges, {edge_channels}], got None.")
    if edges is not None:
        features = edges.table if isinstance(edges, EdgeTypes) else edges
        if edge_channels is None:
            raise ValueError("edge features were given to a PathLSTM without edge_channels: leave them out.")
        if features.dim() != 2 or features.size(1) != edge_channels:
            raise ValueError(
                f"edge features: expected shape [num_edges, {edge_channels}], got {tuple(features.shape)}."
            )


def _check_bounds(
    trie: LengthTrie, edges: Tensor | EdgeTypes | None, distances: nn.Embedding | None, *, extended: bool
) -> None:
    """Raise `ValueError` if the trie does not belong to these features: kernels do not check indices."""
    num_edges = 0 if edges is None else edges.types.numel() if isinstance(edges, EdgeTypes) else edges.size(0)
    if isinstance(edges, EdgeTypes) and edges.types.numel():
        low, high = (int(x) for x in torch.aminmax(edges.types))
        if low < 0 or high >= edges.table.size(0):
            raise ValueError(
                f"EdgeTypes.types: expected rows of the table, 0 to {edges.table.size(0) - 1}, got {low} to {high}."
            )
    sizes = trie.num_nodes, num_edges, None if distances is None else distances.num_embeddings
    for level in trie.levels:
        check_rows((level.vertex, None if edges is None else level.edge, level.distance), sizes, extended=extended)


def check_rows(
    rows: tuple[Tensor, Tensor | None, Tensor | None], sizes: tuple[int, int, int | None], *, extended: bool
) -> None:
    """Raise `ValueError` if vertices, edges or distances of a trie are not below `sizes`; None for any distance."""
    (vertex, edge, distance), (num_nodes, num_edges, num_distances) = rows, sizes
    if vertex.numel() == 0:
        return
    low, high = (int(x) for x in torch.aminmax(vertex))
    if low < 0 and not extended:
        raise ValueError("the trie has dummy tokens: create the model with extended=True, or extract without extend.")
    if high >= num_nodes:
        raise ValueError(f"the trie names vertex {high}, but there are {num_nodes}.")
    if edge is not None and edge.numel() and int(edge.max()) >= num_edges:
        raise ValueError(f"the trie names edge {int(edge.max())}, but there are features of {num_edges} edges.")
    if num_distances is not None and distance is not None and int(distance.max()) >= num_distances:
        raise ValueError(f"the trie has distance {int(distance.max())}, but the table has {num_distances} rows.")
