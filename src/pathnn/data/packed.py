"""Many graphs as flat tensors and offsets, from PyG or networkx, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from pathnn.data.errors import DataError
from pathnn.paths.options import DEFAULT_MAX_PATHS, Collection, PathOptions
from pathnn.paths.ragged import ragged_index
from pathnn.paths.random_walks import random_walk_pe
from pathnn.paths.trie import PathTrie

if TYPE_CHECKING:
    from pathnn.data.paths import Tries


class RaggedRows(NamedTuple):
    """Rows of a flat array, the position of each row's segment among the chosen ones, and where these begin (CPU)."""

    rows: Tensor
    segment: Tensor
    ptr: Tensor


def ragged_rows(ptr: Tensor, index: Tensor, device: torch.device | str = "cpu") -> RaggedRows:
    """Return the rows of the segments `index`, on `device`; segment `i` is `ptr[i]` to `ptr[i + 1]` (both on the CPU).

    >>> [part.tolist() for part in ragged_rows(torch.tensor([0, 2, 5, 6]), torch.tensor([2, 0]))]
    [[5, 0, 1], [0, 1, 1], [0, 1, 3]]
    """
    size = ptr[index + 1] - ptr[index]
    out_ptr = offsets(size)
    segment, rows = ragged_index(size.to(device), ptr[index].to(device), int(out_ptr[-1]))
    return RaggedRows(rows, segment, out_ptr)


def offsets(sizes: Tensor) -> Tensor:
    """Return the offsets of segments of these sizes, `[len(sizes) + 1]`, int64."""
    return pad(sizes.cumsum(dim=0), (1, 0))


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch:
    """Several graphs as one, equal to PyG's `Batch` of the same graphs, field by field.

    Features are those of `PackedGraphs`; `x` and `edge_attr` are int64 for categories, else floating.

    Attributes:
        edge_index: `[2, num_edges]`, int64, vertices numbered through the batch.
        batch: `[num_nodes]`, the graph of each vertex.
        ptr: `[num_graphs + 1]`, the first vertex of each graph.
        trie: the paths of the batch, or None.
        max_entries: how many entries of `trie` a model may process at once; None: all.
    """

    edge_index: Tensor
    batch: Tensor
    ptr: Tensor
    num_nodes: int
    num_graphs: int
    x: Tensor | None = None
    edge_attr: Tensor | None = None
    y: Tensor | None = None
    trie: PathTrie | None = None
    max_entries: int | None = None
    graph_attr: Tensor | None = None
    random_walk_pe: Tensor | None = None

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    @property
    def device(self) -> torch.device:
        """The device of its tensors."""
        return self.edge_index.device

    def __len__(self) -> int:
        return self.num_graphs

    def __repr__(self) -> str:
        sizes = f"num_graphs={self.num_graphs}, num_nodes={self.num_nodes}, num_edges={self.num_edges}"
        return f"GraphBatch({sizes}, trie={self.trie}, device={str(self.device)!r})"

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> GraphBatch:
        """Move the batch to `device`."""
        return self._map(lambda part: part.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> GraphBatch:
        """Copy the batch to page-locked memory, for asynchronous copies to a GPU."""
        return self._map(lambda part: part.pin_memory())

    def _map(self, function: Callable[[Any], Any]) -> GraphBatch:
        parts = {name: part for name, part in vars(self).items() if isinstance(part, Tensor | PathTrie)}
        return replace(self, **{name: function(part) for name, part in parts.items()})


FEATURES = ("x", "edge_attr", "y", "graph_attr")
WIDENED = ("x", "edge_attr")
TENSORS = ("edge_index", "node_ptr", "edge_ptr", *FEATURES)
"""The fields of `PackedGraphs` that are tensors."""


@dataclass(frozen=True, eq=False, repr=False)
class PackedGraphs:
    """Many graphs, with or without their paths, as flat tensors.

    Tensors may be stored compactly: `select` and `__getitem__` widen integers to int64 and booleans to float32, for
    models. Offsets stay on the CPU, so that the size of a batch is known without a synchronization.

    >>> graphs = PackedGraphs.from_edges([torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0], [0]])], [2, 1])
    >>> graphs
    PackedGraphs(graphs=2, nodes=3, edges=3, device='cpu')
    >>> graphs.select(torch.tensor([1, 0])).edge_index.tolist()
    [[0, 1, 2], [0, 2, 1]]

    Attributes:
        edge_index: `[2, E]`, numbered within each graph.
        node_ptr: `[G + 1]`, int64, CPU: graph `i` has the vertices `node_ptr[i]` to `node_ptr[i + 1]`.
        edge_ptr: `[G + 1]`, the same for edges.
        x: `[N, ...]` or None.
        edge_attr: `[E, ...]` or None.
        y: `[G, ...]` or None.
        names: the name of each graph (a SMILES string, a graph6 line), or None.
        tries: the paths, made by `with_paths`, or None.
        graph_attr: `[G, graph_channels]` or None: features of each graph, such as descriptors of a molecule.
        random_walk_pe: `[N, walk_length]`, made by `with_random_walks`, or None.
    """

    edge_index: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    x: Tensor | None = None
    edge_attr: Tensor | None = None
    y: Tensor | None = None
    names: tuple[str, ...] | None = None
    tries: Tries | None = None
    graph_attr: Tensor | None = None
    random_walk_pe: Tensor | None = None

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def num_nodes(self) -> int:
        """Number of vertices of all graphs."""
        return int(self.node_ptr[-1])

    @property
    def num_edges(self) -> int:
        """Number of directed edges of all graphs."""
        return int(self.edge_ptr[-1])

    @property
    def device(self) -> torch.device:
        """The device of the tensors, except the offsets."""
        return self.edge_index.device

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors, including paths and random walks."""
        walks = [] if self.random_walk_pe is None else [self.random_walk_pe]
        own = sum(t.numel() * t.element_size() for t in (*self.tensors().values(), *walks))
        return own + (0 if self.tries is None else self.tries.nbytes)

    def __repr__(self) -> str:
        tries = "" if self.tries is None else f", tries={self.tries}"
        sizes = f"graphs={len(self)}, nodes={self.num_nodes}, edges={self.num_edges}"
        return f"PackedGraphs({sizes}, device={str(self.device)!r}{tries})"

    def select(self, index: Tensor | Sequence[int]) -> GraphBatch:
        """Return the batch of the graphs `index`, in that order, on the device of the dataset."""
        index, nodes, edges, rows = self._rows(index)
        ptr = nodes.ptr.to(self.device)
        features: dict[str, Any] = {name: widen(part) if name in WIDENED else part for name, part in rows.items()}
        return GraphBatch(
            edge_index=self.edge_index[:, edges.rows].long() + ptr[:-1][edges.segment],
            batch=nodes.segment,
            ptr=ptr,
            num_nodes=int(nodes.ptr[-1]),
            num_graphs=index.numel(),
            trie=None if self.tries is None else self.tries.select(index),
            random_walk_pe=None if self.random_walk_pe is None else self.random_walk_pe[nodes.rows],
            **features,
        )

    def subset(self, index: Tensor | Sequence[int]) -> PackedGraphs:
        """Return the graphs `index`, in that order, as a dataset without paths and random walks."""
        index, nodes, edges, features = self._rows(index)
        return PackedGraphs(
            edge_index=self.edge_index[:, edges.rows],
            node_ptr=nodes.ptr,
            edge_ptr=edges.ptr,
            names=None if self.names is None else tuple(self.names[i] for i in index.tolist()),
            **features,
        )

    def _rows(self, index: Tensor | Sequence[int]) -> tuple[Tensor, RaggedRows, RaggedRows, dict[str, Any]]:
        """Check numbers of graphs; return them, the rows of their vertices and edges, and their features."""
        index = torch.as_tensor(index, dtype=torch.long).cpu()
        if index.dim() != 1:
            raise ValueError(f"index: expected a flat list of graph numbers, got shape {tuple(index.shape)}.")
        if index.numel() and (int(index.min()) < 0 or int(index.max()) >= len(self)):
            raise IndexError(f"index: expected graph numbers 0 to {len(self) - 1}, got {index.min()} to {index.max()}.")
        nodes, edges = (ragged_rows(ptr, index, self.device) for ptr in (self.node_ptr, self.edge_ptr))
        return index, nodes, edges, self._features(nodes.rows, edges.rows, index.to(self.device))

    def chunk(self, start: int, stop: int) -> PackedGraphs:
        """Return the graphs `start` to `stop` as views of the same tensors, without paths and random walks."""
        (n0, n1), (e0, e1) = self.node_ptr[[start, stop]].tolist(), self.edge_ptr[[start, stop]].tolist()
        return PackedGraphs(
            edge_index=self.edge_index[:, e0:e1],
            node_ptr=self.node_ptr[start : stop + 1] - n0,
            edge_ptr=self.edge_ptr[start : stop + 1] - e0,
            names=None if self.names is None else self.names[start:stop],
            **self._features(slice(n0, n1), slice(e0, e1), slice(start, stop)),
        )

    def _features(self, nodes: Tensor | slice, edges: Tensor | slice, graphs: Tensor | slice) -> dict[str, Any]:
        """Return some rows of `FEATURES`, of those that exist."""
        tensors = self.tensors()
        rows = zip(FEATURES, (nodes, edges, graphs, graphs), strict=True)
        return {name: tensors[name][chosen] for name, chosen in rows if name in tensors}

    def union(self) -> Tensor:
        """Return `edge_index` of the disjoint union of all graphs, `[2, num_edges]`, int64."""
        sizes = self.edge_ptr.diff().to(self.device)
        shift = torch.repeat_interleave(self.node_ptr[:-1].to(self.device), sizes, output_size=self.num_edges)
        return self.edge_index.long() + shift

    def __getitem__(self, i: int) -> Any:
        """Return graph `i` as a `torch_geometric.data.Data`; `y` keeps its first axis, as PyG batches it."""
        from torch_geometric.data import Data

        if not -len(self) <= i < len(self):
            raise IndexError(f"graph {i} does not exist: expected 0 to {len(self) - 1}.")
        one = self.chunk(i % len(self), i % len(self) + 1)
        data = Data(edge_index=one.edge_index.long())
        for name, tensor in one.tensors().items():
            if name in FEATURES:
                data[name] = widen(tensor) if name in WIDENED else tensor
        data.num_nodes = one.num_nodes
        return data

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @staticmethod
    def from_edges(edge_indices: Sequence[Tensor], num_nodes: Sequence[int] | Tensor) -> PackedGraphs:
        """Pack graphs without features: one `edge_index` and one number of vertices each."""
        return PackedGraphs(
            edge_index=torch.cat([torch.empty(2, 0, dtype=torch.long), *edge_indices], dim=1),
            node_ptr=offsets(torch.as_tensor(num_nodes, dtype=torch.long)),
            edge_ptr=offsets(torch.tensor([edges.size(1) for edges in edge_indices], dtype=torch.long)),
        ).validate()

    def with_paths(
        self,
        *,
        collection: Collection,
        k: int,
        distances: bool | None = None,
        extend: bool = False,
        max_paths_per_source: int | None = None,
        seed: int = 0,
        max_paths: int | None = None,
        directed: bool = False,
        store: bool = True,
    ) -> PackedGraphs:
        """Extract the paths of `collection` up to length `k`; `extract_paths` explains the options.

        More than `max_paths` (None: what fits into the free memory) are refused with `PathExplosionError`. With
        `store=False`, for more paths than fit into the memory, the paths of a batch are extracted when it is selected.
        """
        from pathnn.data.paths import BatchPaths, build_paths

        options = PathOptions(collection, k, distances, extend, max_paths_per_source, seed, max_paths, directed)
        if store:
            return replace(self, tries=build_paths(self, options))
        options = replace(options, max_paths=DEFAULT_MAX_PATHS if max_paths is None else max_paths)
        plain = PackedGraphs(self.edge_index, self.node_ptr, self.edge_ptr)
        return replace(self, tries=BatchPaths(plain, options))

    def with_random_walks(self, walk_length: int) -> PackedGraphs:
        """Compute how likely random walks of up to `walk_length` steps return (`random_walk_pe`), if not done yet."""
        if self.random_walk_pe is not None and self.random_walk_pe.size(1) == walk_length:
            return self
        return replace(self, random_walk_pe=random_walk_pe(self.union(), self.num_nodes, walk_length))

    def trie(self) -> PathTrie:
        """Return the trie of the disjoint union of all graphs."""
        if self.tries is None:
            raise ValueError("these graphs have no paths: call with_paths(collection=..., k=...) first.")
        return self.tries.select(torch.arange(len(self)))

    def to(self, device: torch.device | str) -> PackedGraphs:
        """Move the dataset to `device`; the offsets stay on the CPU."""
        names = [name for name in self.tensors() if not name.endswith("ptr")]
        names += [name for name in ("tries", "random_walk_pe") if vars(self)[name] is not None]
        return replace(self, **{name: vars(self)[name].to(device) for name in names})

    def validate(self) -> PackedGraphs:
        """Return the dataset, or raise `ValueError` for the first inconsistency."""
        for name, ptr in (("node_ptr", self.node_ptr), ("edge_ptr", self.edge_ptr)):
            if ptr.dtype != torch.long or ptr.dim() != 1 or ptr.device.type != "cpu":
                raise ValueError(f"{name}: expected flat int64 on the CPU, got {ptr.dtype} {tuple(ptr.shape)}.")
            if ptr.numel() < 1 or int(ptr[0]) != 0 or bool((ptr.diff() < 0).any()):
                raise ValueError(f"{name}: expected offsets that begin with 0 and never decrease.")
        graphs, sizes = len(self), {"x": self.num_nodes, "edge_attr": self.num_edges}
        sizes |= {"y": graphs, "graph_attr": graphs}
        if self.edge_ptr.numel() != graphs + 1:
            raise ValueError(f"edge_ptr has {self.edge_ptr.numel()} offsets, node_ptr has {graphs + 1}.")
        if tuple(self.edge_index.shape) != (2, self.num_edges):
            raise ValueError(f"edge_index: expected shape (2, {self.num_edges}), got {tuple(self.edge_index.shape)}.")
        for name, tensor in self.tensors().items():
            if name in sizes and (tensor.dim() < 1 or tensor.size(0) != sizes[name]):
                raise ValueError(f"{name}: expected {sizes[name]} rows, got shape {tuple(tensor.shape)}.")
        if self.names is not None and len(self.names) != graphs:
            raise ValueError(f"names: expected {graphs}, got {len(self.names)}.")
        self._check_edges()
        return self

    def _check_edges(self) -> None:
        graph = torch.repeat_interleave(self.edge_ptr.diff(), output_size=self.num_edges)
        edges = self.edge_index.cpu()
        wrong = ((edges < 0) | (edges >= self.node_ptr.diff()[graph])).any(dim=0)
        if bool(wrong.any()):
            i = int(graph[wrong][0])
            size = int(self.node_ptr[i + 1] - self.node_ptr[i])
            edge = edges[:, wrong][:, 0].tolist()
            raise ValueError(f"graph {i}: edge {edge} has an unknown vertex; expected 0 to {size - 1}.")

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, without the paths."""
        return {name: vars(self)[name] for name in TENSORS if vars(self)[name] is not None}


def widen(tensor: Tensor) -> Tensor:
    """Convert integers to int64 and booleans (one-hot codes) to float32; keep floats."""
    if tensor.dtype == torch.bool:
        return tensor.float()
    return tensor if tensor.is_floating_point() else tensor.long()


def with_ones(graphs: PackedGraphs, y: Tensor | None = None) -> PackedGraphs:
    """Replace the features by `x = 1` (one channel), and the targets by `y` if given."""
    return replace(graphs, x=torch.ones(graphs.num_nodes, 1, dtype=torch.bool), y=graphs.y if y is None else y)


def from_pyg(data_list: Iterable[Any]) -> PackedGraphs:
    """Pack `x`, `edge_index`, `edge_attr`, `y` and the sizes of a PyG dataset or a list of `Data`.

    >>> from torch_geometric.data import Data
    >>> from_pyg([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=torch.tensor([1.5]))])
    PackedGraphs(graphs=1, nodes=2, edges=2, device='cpu')
    """
    from torch_geometric.data.data import BaseData

    if isinstance(data_list, BaseData):
        raise ValueError(f"got one {type(data_list).__name__}: expected a dataset or a list, from_pyg([data]).")
    graphs = list(data_list)
    if not graphs:
        raise ValueError("got no graphs: expected a PyG dataset or a list with at least one Data.")
    for i, data in enumerate(graphs):
        edge_index = getattr(data, "edge_index", None)
        if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
            raise ValueError(f"graph {i}: expected torch_geometric.data.Data with edge_index [2, edges], got {data!r}.")
    values = {name: [getattr(data, name, None) for data in graphs] for name in FEATURES}
    values["y"] = [None if y is None else _target(i, y) for i, y in enumerate(values["y"])]
    features: dict[str, Any] = {name: _joined(name, rows, "graph") for name, rows in values.items()}
    packed = PackedGraphs.from_edges([data.edge_index for data in graphs], [data.num_nodes for data in graphs])
    return replace(packed, **features).validate()


def from_networkx(graphs: Iterable[Any]) -> PackedGraphs:
    """Pack a list of `networkx.Graph`: vertices in networkx's order, both directions of each edge, no loops.

    If every vertex of every graph has the attribute `x` (a number or a list of numbers), it becomes `x`. The graph
    attribute `y` becomes `y`.

    >>> import networkx
    >>> from_networkx([networkx.path_graph(3), networkx.cycle_graph(4)])
    PackedGraphs(graphs=2, nodes=7, edges=12, device='cpu')
    """
    if hasattr(graphs, "is_directed"):
        raise DataError(f"got one {type(graphs).__name__}: expected a list of graphs, from_networkx([graph]).")
    members = list(graphs)
    edges = [_edges(i, graph) for i, graph in enumerate(members)]
    packed = PackedGraphs.from_edges(edges, [graph.number_of_nodes() for graph in members])
    x = _joined("x", [_row(value.get("x")) for graph in members for _, value in graph.nodes(data=True)], "vertex")
    y = _joined("y", [_row(graph.graph.get("y")) for graph in members], "graph")
    y = y.view(-1) if y is not None and not y.is_floating_point() and y.size(1) == 1 else y
    return replace(packed, x=x, y=y).validate()


def _edges(i: int, graph: Any) -> Tensor:
    if graph.is_directed():
        raise DataError(f"graph {i} is directed; expected undirected graphs: call to_undirected() on it first.")
    number = {vertex: position for position, vertex in enumerate(graph)}
    pairs = {(number[u], number[v]) for u, v in graph.edges() if u != v}
    return torch.tensor(sorted(pairs | {(v, u) for u, v in pairs}), dtype=torch.long).view(-1, 2).t()


def _row(value: Any) -> Tensor | None:
    """Return a number or a list of numbers as a row; Python's numbers are float64."""
    if value is None:
        return None
    return (value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))).reshape(1, -1)


def _joined(name: str, rows: list[Any], owner: str) -> Tensor | None:
    """Join the rows of all graphs or vertices; none of them may be missing unless all are."""
    missing = [i for i, value in enumerate(rows) if value is None]
    if len(missing) == len(rows):
        return None
    if missing:
        raise DataError(f"{owner} {missing[0]} has no {name}, others have: expected all of them to have it, or none.")
    shapes = {tuple(value.shape[1:]) for value in rows}
    if len(shapes) > 1:
        raise DataError(f"{name} has rows of different shapes, {sorted(shapes)}: expected one shape everywhere.")
    return torch.cat(rows)


def _target(i: int, y: Any) -> Tensor:
    """Return a target as one row; PyG stores it as a number, as `[1]` or as `[1, targets]`."""
    y = y if isinstance(y, Tensor) else torch.from_numpy(np.array(y))  # Python's numbers are float64
    y = y.view(1) if y.dim() == 0 else y
    if y.size(0) != 1:
        raise ValueError(f"graph {i}: y has shape {tuple(y.shape)}; expected one target row, [1] or [1, targets].")
    return y
