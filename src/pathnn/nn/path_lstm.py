"""The function f of the paper: one LSTM that reads every path of one length from its far end to its
source."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pathnn.checks import check_choice, check_count, check_dropout, check_flag
from pathnn.nn.backends.base import path_states
from pathnn.nn.backends.dense import dense_path_states
from pathnn.nn.backends.prepared import Edges, Prepared
from pathnn.nn.backends.tokens import ProjectedInputs, level_rows, project, project_small
from pathnn.nn.backends.triton.backend import cuda_path_states, cuda_tokens
from pathnn.nn.backends.triton.requirements import on_triton
from pathnn.nn.edge_types import EdgeTypes
from pathnn.paths.trie import LengthTrie

Aggregation = Literal["sum", "mean"]
BackendName = Literal["trie", "dense"]


class PathLSTM(nn.LSTM):
    r"""The representations of all paths of one length, aggregated at their sources (Michel et al. 2023,
    equation 1).

    $$a_v = \sum_{\pi \in \mathcal{P}_v^k} \mathrm{LSTM}\big([h_{\pi(k+1)}, \dots, h_{\pi(1)}]\big)$$

    Its parameters are those of one `nn.LSTM` (names, shapes, initialisation, order of the gates) that reads
    `[vertex, distance, edge]`; besides, `distance_encoder` is the table of distances and `dummy` the vector
    of the dummy token. Dropout acts on `h` per vertex and on the edge features per edge, before the input is
    projected; distances are left alone. (The released implementation draws a mask per position of each path;
    both are equal at rate 0 and in evaluation.) Under `torch.autocast` everything here runs in the type of
    the parameters; only the products of the GPU engine then have 11 bits.

    Args:
        channels: width of `h` and of the result.
        distances: rows of the table of distances (K + 1, or K + 2 with dummy tokens), or None: do not read
            distances (a PathNN finds the number out by itself).
        edge_channels: width of the edge features, or None: do not read edges.
        extended: whether tries may contain dummy tokens.
        aggregation: "sum" or "mean" over the paths of a source; a source without a path gets zeros.
        engine: "trie" shares prefixes; "dense" runs `nn.LSTM` over every path. Same numbers.
        dropout: rate on the LSTM's input; kept as `input_dropout` (`dropout` of an `nn.LSTM` is that between
            layers, of which there is one here).
        max_entries: memory budget of the trie engine: a trie with more entries is worked through in pieces
            that are
            recomputed in the backward pass. None: no limit.

    Shapes: `h` is `[num_nodes, channels]`, `edges` is `[num_edges, edge_channels]` or `EdgeTypes`; returns
    `[num_nodes, channels]`. With the trie engine, differentiable once.

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

    def __init__(
        self,
        channels: int,
        *,
        distances: int | None = None,
        edge_channels: int | None = None,
        extended: bool = False,
        aggregation: Aggregation = "sum",
        engine: BackendName = "trie",
        dropout: float = 0.0,
        max_entries: int | None = None,
    ) -> None:
        _check_rows(distances)
        check_dropout(dropout)
        channels, extended = check_count("channels", channels), check_flag("extended", extended)
        edge_channels = None if edge_channels is None else check_count("edge_channels", edge_channels)
        distances = None if distances is None else int(distances)
        width = channels + (0 if distances is None else channels) + (edge_channels or 0)
        super().__init__(width, channels)
        self.channels = channels
        self.edge_channels = edge_channels
        self.aggregation = check_choice("aggregation", aggregation, get_args(Aggregation))
        self.engine = engine
        self.input_dropout = dropout
        self.max_entries = _check_max_entries(max_entries)
        self.recompute = True  # on a GPU: False keeps more for the backward pass, which then has less to compute
        self.distance_encoder = None if distances is None else nn.Embedding(distances, channels)
        self.dummy = nn.Parameter(torch.randn(channels)) if extended else None

    @property
    def engine(self) -> BackendName:
        """How paths are computed: "trie" or "dense"; may be changed at any time."""
        return self._engine

    @engine.setter
    def engine(self, name: str) -> None:
        self._engine: BackendName = check_choice("engine", cast("BackendName", name), get_args(BackendName))

    def __setstate__(self, d: dict[str, Any]) -> None:
        """Take what was pickled, also before `engine` was checked."""
        if "engine" in d:
            d = {**{name: value for name, value in d.items() if name != "engine"}, "_engine": d["engine"]}
        super().__setstate__(d)  # type: ignore[no-untyped-call]

    def reset_parameters(self) -> None:
        """Draw all weights anew: each as when the model was made."""
        super().reset_parameters()
        if getattr(self, "distance_encoder", None) is not None:  # not while `nn.LSTM` is being made
            self.distance_encoder.reset_parameters()  # type: ignore[union-attr]
        if getattr(self, "dummy", None) is not None:
            nn.init.normal_(self.dummy)  # type: ignore[arg-type]

    def forward(self, h: Tensor, trie: LengthTrie, edges: Edges = None) -> Tensor:  # type: ignore[override]
        """Aggregate the representations of the paths in `trie` at their sources: `[num_nodes, channels]`."""
        return self._run(h, trie, edges, summed=True)

    def path_representations(self, h: Tensor, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """The representation of each path of `trie`, in its order: `[num_paths, channels]`."""
        return self._run(h, trie, edges, summed=False)

    @torch.compiler.disable
    def prepare(self, edges: Tensor | EdgeTypes | None) -> Edges:
        """The edges, together with what the layers of one forward pass would each work out again: on a GPU, without
        dropout on edges. Elsewhere the edges as they are.
        """
        masked = self.training and self.input_dropout > 0 and edges is not None
        if masked or self.engine == "dense" or not on_triton(self.weight_hh_l0):
            return edges
        from pathnn.nn.backends.triton.products import terms

        _check_edges(edges, self.edge_channels)
        return self._prepare(edges, terms())

    def _prepare(self, edges: Tensor | EdgeTypes | None, terms: int) -> Prepared:
        from pathnn.nn.backends.triton.products import split_of
        from pathnn.nn.backends.triton.shared_gradients import SharedGradients, share
        from pathnn.nn.backends.triton.sweep import MOST_FEW

        weight, bias = self.weight_ih_l0, self.bias_ih_l0 + self.bias_hh_l0
        distances = None if self.distance_encoder is None else self.distance_encoder.weight
        with torch.autocast(weight.device.type, enabled=False), torch.cuda.device(weight.device):
            edges = self._edges(edges)
            if isinstance(edges, EdgeTypes) and edges.parts is not None:
                rows = edges.parts.size(0) + (0 if distances is None else distances.size(0))
                edges = edges if rows <= MOST_FEW else edges._replace(parts=None, marks=None)
            tables = small = project_small(distances, edges, weight_ih=weight, channels=self.channels)
            if isinstance(edges, EdgeTypes) and edges.parts is not None:  # gradients are summed for each part
                small = F.linear(edges.parts, weight[:, -edges.parts.size(1) :]), tables[1]
            collected = SharedGradients()
            vertex = weight[:, : self.channels]
            anchor = share(self.weight_hh_l0, vertex, bias, *small, collected)
            edge, distance = (None if table is None else table.detach() for table in tables)
            splits = split_of(vertex, terms), split_of(self.weight_hh_l0, terms)
        return Prepared(edges, bias.detach(), edge, distance, *splits, collected, anchor, self.recompute)

    @torch.compiler.disable
    def _run(self, h: Tensor, trie: LengthTrie, edges: Edges, *, summed: bool) -> Tensor:
        plain = edges.edges if isinstance(edges, Prepared) else edges
        self._check(h, trie, plain)
        if not isinstance(edges, Prepared) and self.engine == "trie" and on_triton(self.weight_hh_l0):
            from pathnn.nn.backends.triton.products import terms

            edges = self._prepare(edges, terms())
        with torch.autocast(h.device.type, enabled=False):
            h = self._vertices(h)
            if isinstance(edges, Prepared):
                tokens = cuda_tokens(trie, edges, distances=self.distance_encoder is not None)
                out = cuda_path_states(h, edges, tokens, summed=summed, max_entries=self.max_entries)
            else:
                out = self._run_plain(h, trie, self._edges(plain), trie.num_nodes if summed else None)
        return divide_by_paths(out, trie) if self.aggregation == "mean" and summed else out

    def _run_plain(
        self, h: Tensor, trie: LengthTrie, edges: Tensor | EdgeTypes | None, num_nodes: int | None
    ) -> Tensor:
        distances = None if self.distance_encoder is None else self.distance_encoder.weight
        if self.engine == "dense":
            states = dense_path_states(self, h, trie, distances, edges)
            return states if num_nodes is None else _sum_at(trie.source, _wide(states), num_nodes).to(states.dtype)
        bias = self.bias_ih_l0 + self.bias_hh_l0
        tables = project(h, distances, edges, weight_ih=self.weight_ih_l0, bias=bias)
        narrow = tables.vertex.dtype
        tables = ProjectedInputs(*(None if table is None else _wide(table) for table in tables))  # type: ignore[arg-type]
        rows = level_rows(trie, edges, distances=distances is not None)
        weight = _wide(self.weight_hh_l0)
        out = path_states(tables, weight, rows, num_nodes=num_nodes, max_entries=self.max_entries)
        return out.to(narrow)

    def _vertices(self, h: Tensor) -> Tensor:
        """`h` as the LSTM reads it: in its type, with dropout, and the dummy token's vector at the end."""
        h = F.dropout(h.to(self.weight_ih_l0.dtype), self.input_dropout, self.training)
        return h if self.dummy is None else torch.cat([h, self.dummy.unsqueeze(0)])

    def _edges(self, edges: Tensor | EdgeTypes | None) -> Tensor | EdgeTypes | None:
        dtype = self.weight_ih_l0.dtype
        masked = self.training and self.input_dropout > 0
        if edges is None:
            return None
        if isinstance(edges, EdgeTypes) and not masked:
            parts = None if edges.parts is None else edges.parts.to(dtype)
            return edges._replace(table=edges.table.to(dtype), parts=parts)
        features = edges.expand() if isinstance(edges, EdgeTypes) else edges
        return F.dropout(features.to(dtype), self.input_dropout, self.training)

    def _check(self, h: Tensor, trie: LengthTrie, edges: Tensor | EdgeTypes | None) -> None:
        _check_one_length(trie)
        if h.dim() != 2 or h.size(1) != self.channels:
            raise ValueError(f"h: expected shape [num_nodes, {self.channels}], got {tuple(h.shape)}.")
        if h.size(0) != trie.num_nodes:
            raise ValueError(f"h has {h.size(0)} rows, but the trie was made for {trie.num_nodes} vertices.")
        if self.distance_encoder is not None and trie.levels[0].distance is None:
            raise ValueError(
                "this PathLSTM reads distances, but the trie has none. Extract paths with distances=True, "
                "or make it with distances=None."
            )
        _check_edges(edges, self.edge_channels)
        if h.device.type == "cpu":
            _check_bounds(trie, edges, self.distance_encoder, extended=self.dummy is not None)

    def extra_repr(self) -> str:
        """What `print(model)` says about it."""
        rows = None if self.distance_encoder is None else self.distance_encoder.num_embeddings
        read = {"edge_channels": self.edge_channels, "distances": rows, "extended": self.dummy is not None or None}
        chosen = {name: value for name, value in {**read, "max_entries": self.max_entries}.items() if value is not None}
        words = {"aggregation": self.aggregation, **chosen, "input_dropout": self.input_dropout, "engine": self.engine}
        return ", ".join([str(self.channels), *(f"{name}={value!r}" for name, value in words.items())])


def _check_rows(distances: Any) -> None:
    if distances is not None and (isinstance(distances, bool) or not isinstance(distances, Integral) or distances < 1):
        raise ValueError(
            f"distances={distances!r}: expected the rows of the table of distances, K + 1 (K + 2 with dummy tokens), "
            "or None: do not read distances."
        )


def _check_max_entries(max_entries: Any) -> int | None:
    if max_entries is None:
        return None
    if isinstance(max_entries, bool) or not isinstance(max_entries, Integral) or max_entries < 1:
        raise ValueError(f"max_entries={max_entries!r}: expected a positive number of trie entries, or None.")
    return int(max_entries)


def _check_one_length(trie: Any) -> None:
    if not isinstance(trie, LengthTrie):
        raise ValueError(
            f"trie is a {type(trie).__name__}: expected the paths of one length, a LengthTrie. "
            "Of a PathTrie, give trie.length(k), with k from 1 to trie.k."
        )


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
    """Kernels on the CPU do not check indices, so a trie that was not made for these features must end
    here."""
    num_edges = 0 if edges is None else edges.types.numel() if isinstance(edges, EdgeTypes) else edges.size(0)
    if isinstance(edges, EdgeTypes) and edges.types.numel():
        low, high = (int(x) for x in torch.aminmax(edges.types))
        if low < 0 or high >= edges.table.size(0):
            raise ValueError(
                f"EdgeTypes.types: expected rows of the table, 0 to {edges.table.size(0) - 1}, got {low} to {high}."
            )
    for level in trie.levels:
        if level.vertex.numel() == 0:
            continue
        low, high = (int(x) for x in torch.aminmax(level.vertex))
        if low < 0 and not extended:
            raise ValueError("the trie has dummy tokens: make the model with extended=True, or extract without extend.")
        if high >= trie.num_nodes:
            raise ValueError(f"the trie names vertex {high}, but there are {trie.num_nodes}.")
        if edges is not None and level.edge is not None and int(level.edge.max()) >= num_edges:
            raise ValueError(
                f"the trie names edge {int(level.edge.max())}, but there are features of {num_edges} edges."
            )
        if distances is not None and level.distance is not None:
            far = int(level.distance.max())
            if far >= distances.num_embeddings:
                raise ValueError(f"the trie has distance {far}, but the table has {distances.num_embeddings} rows.")


def _wide(x: Tensor) -> Tensor:
    """Half precision as float32: sums over many paths need more bits."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _sum_at(source: Tensor, states: Tensor, num_nodes: int) -> Tensor:
    return states.new_zeros(num_nodes, states.size(1)).index_add_(0, source, states)


def divide_by_paths(sums: Tensor, trie: LengthTrie) -> Tensor:
    """From the sums over the paths of each vertex, `[num_nodes, d]`, to their means."""
    ones = torch.ones(trie.num_paths, dtype=torch.int32, device=sums.device)  # bincount would wait for the GPU
    counts = torch.zeros(trie.num_nodes, dtype=torch.int32, device=sums.device).index_add_(0, trie.source, ones)
    return sums / counts.clamp_(min=1).to(sums.dtype).unsqueeze(1)
