"""The interface of backends: how an LSTM, or another cell, is computed over the paths of a trie.

A backend has a `name` and three methods: `supports(cell, like)`, `prepare(cell, inputs, budget)`, which computes once
what the layers of one forward pass share, and `run(shared, h, trie, summed=...)`, which each layer calls. To add one:

1. Subclass `Levels` (plain torch, level by level) and override its slow methods, or write `prepare` and `run`.
2. Add it to `_CLASSES`, and to those that "auto" tries in `choose`.
3. Add it to the parity test, `tests/nn/test_backends.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pathnn.checks import check_choice
from pathnn.nn.cells import PathCell
from pathnn.paths.trie import LengthTrie

_CLASSES = {"dense": "dense:Dense", "torch": "levels:Levels", "cpu": "cpu:Cpu", "triton": "triton.backend:Triton"}
"""The module and the class of each backend."""

BACKENDS = ("auto", *_CLASSES)


class Budget(NamedTuple):
    """The memory that one forward pass may use.

    A trie of more than `max_entries` entries is cut by roots into pieces, which the backward pass recomputes; None for
    no limit. `recompute=False` uses more memory and less time in the backward pass (Triton only). With `merge`, equal
    surroundings are computed once (`nn.merge`): for models without custom modules, in evaluation.
    """

    max_entries: int | None = None
    recompute: bool = True
    merge: bool = False


MOST_COMPONENTS = 31
"""The number of bits of a mask of `EdgeTypes`."""


class EdgeTypes(NamedTuple):
    """Edge features as a table of types and the type of each edge: a backend projects each type once.

    If the rows of the table are sums of even fewer vectors, these are `components`, and bit j of a mask says whether
    component j is in the sum: gradients can then be summed per component.

    Shapes: `table` is `[num_types, edge_channels]`, `types` is `[num_edges]`, `components` is
    `[num_components, edge_channels]` with at most `MOST_COMPONENTS` rows, `masks` is `[num_types]`, int32.

    >>> bonds = EdgeTypes(torch.eye(2), torch.tensor([0, 1, 1]))
    >>> bonds.expand().tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """

    table: Tensor
    types: Tensor
    components: Tensor | None = None
    masks: Tensor | None = None

    def expand(self) -> Tensor:
        """Return the features of every edge, `[num_edges, edge_channels]`."""
        if on_triton(self.table):
            from pathnn.nn.backends.triton.ops import MOST_ROWS, lookup

            if self.table.size(0) <= MOST_ROWS:
                return lookup(self.table, self.types.long())
        return F.embedding(self.types.long(), self.table)  # table[types] has a slow gradient


class Inputs(NamedTuple):
    """The inputs of tokens besides vertices, in the dtype of the weights, with dropout applied."""

    edges: Tensor | EdgeTypes | None
    distances: Tensor | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Shared:
    """The data that the layers of one forward pass share; a backend may have a subclass with its own tensors."""

    backend: Backend
    budget: Budget
    cell: PathCell
    inputs: Inputs


class Backend(Protocol):
    """The interface of a backend, which computes the representations of paths."""

    name: str

    def supports(self, cell: PathCell, like: Tensor) -> bool:
        """Return whether it can compute `cell` with weights of the device and dtype of `like`."""
        ...

    def prepare(self, cell: PathCell, inputs: Inputs, budget: Budget) -> Shared:
        """Compute what all layers share."""
        ...

    def run(self, shared: Any, h: Tensor, trie: LengthTrie, *, summed: bool) -> Tensor:
        """Return the last hidden state of every path, `[num_paths, d]`, or their sums at the sources, `[num_nodes, d]`.

        `h` has one more row than there are vertices where the trie may have dummy tokens. Autocast is off.
        """
        ...


class PathReader(nn.Module):
    """A module that reads paths and shares work between layers: `prepare` once, then a call for each length."""

    def prepare(self, edges: Tensor | EdgeTypes | None, budget: Budget | None = None) -> Shared:
        """Compute what the layers of one forward pass share; pass the result to them in place of the edges."""
        raise NotImplementedError


def choose(name: str, cell: PathCell, like: Tensor) -> Backend:
    """Return the backend of a name; "auto" is the first that supports the cell on the device and dtype of `like`."""
    for each in ("triton", "cpu", "torch") if check_choice("backend", name, BACKENDS) == "auto" else (name,):
        if each == "triton" and not on_triton(like):
            continue  # its module imports Triton
        backend = _make(each)
        if backend.supports(cell, like):
            return backend
    raise ValueError(
        f"backend={name!r} does not support {type(cell).__name__} in {like.dtype} on {like.device.type!r}: "
        "use backend='auto'."
    )


@cache
def _make(name: str) -> Backend:
    """Import a backend when it is needed: numba and Triton take a second."""
    return resolve_name(f"pathnn.nn.backends.{_CLASSES[name]}")()


@cache
def _triton_installed() -> bool:
    return find_spec("triton") is not None


def on_triton(like: Tensor) -> bool:
    """Return whether Triton kernels can read a tensor: float32, NVIDIA GPU, with Triton and not `PATHNN_TRITON=0`.

    Call it as `base.on_triton`: tests replace it.
    """
    if not like.is_cuda or like.dtype != torch.float32:
        return False
    return os.environ.get("PATHNN_TRITON") != "0" and torch.version.hip is None and _triton_installed()


def tf32_allowed() -> bool:
    """Return whether torch computes products of float32 matrices as TF32."""
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32)
    except RuntimeError:  # the newer of torch's two settings is in use
        return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def wide(x: Tensor) -> Tensor:
    """Return half precision as float32: sums over many paths need more bits."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def divide_by_counts(sums: Tensor, index: Tensor) -> Tensor:
    """Return the means of rows, given their sums `[n, d]` and the row of `sums` to which each one belongs."""
    ones = torch.ones(index.shape, dtype=torch.int32, device=index.device)  # bincount would wait for the GPU
    counts = torch.zeros(sums.size(0), dtype=torch.int32, device=sums.device).index_add_(0, index, ones)
    return sums / counts.clamp_(min=1).to(sums.dtype).unsqueeze(1)


def check_once() -> None:
    """Raise `RuntimeError` in a backward pass with `create_graph=True`; `once_differentiable` misses some cases."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "this backend is differentiable once, and create_graph=True needs more: use backend='dense'."
        )


class ProjectedInputs(NamedTuple):
    """A gate before activation is the sum of one row of each table and of `W_hh h`; None for what is not read.

    Shapes: `vertex` is `[num_nodes, gates * d]`, with the bias, and one more row for a dummy token; `edge` is
    `[num_types + 1, gates * d]`, with zeros last, "no edge"; `distance` is `[rows, gates * d]`; `recurrent` is `W_hh`.
    """

    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None
    recurrent: Tensor | None = None


def project_small(inputs: Inputs, weight_ih: Tensor, channels: int) -> tuple[Tensor | None, Tensor | None]:
    """Return the tables of edges and distances times their columns of `W_ih [h; d; e]`: the same in every layer."""
    edges, distances = inputs
    split = channels if distances is None else 2 * channels
    distance = None if distances is None else F.linear(distances, weight_ih[:, channels:split])
    if edges is None:
        return None, distance
    features = edges.table if isinstance(edges, EdgeTypes) else edges
    if on_triton(features):
        from pathnn.nn.backends.triton.ops import tall_linear

        edge = tall_linear(features, weight_ih[:, split:])
    else:
        edge = F.linear(features, weight_ih[:, split:])
    return torch.cat([edge, edge.new_zeros(1, edge.size(1))]), distance


def edge_rows(edge: Tensor, edges: Tensor | EdgeTypes) -> Tensor:
    """Return the row of each edge; -1, no edge, is the row after the last."""
    if not isinstance(edges, EdgeTypes):
        return torch.where(edge < 0, edges.size(0), edge)
    return F.pad(edges.types.int(), (0, 1), value=edges.table.size(0))[edge.long()]


class LevelTokens(NamedTuple):
    """The rows of the parent and of each input for each entry of a level, int32; None for inputs that are not read."""

    parent: Tensor | None
    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None

    @property
    def num_entries(self) -> int:
        """Return the number of entries of the level."""
        return self.vertex.numel()

    def slice(self, start: int, stop: int, *, parent_start: int) -> LevelTokens:
        """Return the entries `start:stop`; their parents are counted from `parent_start` of the level before."""
        parent, vertex, edge, distance = (None if rows is None else rows[start:stop] for rows in self)
        assert vertex is not None
        return LevelTokens(None if parent is None else parent - parent_start, vertex, edge, distance)


Piece = list[LevelTokens]
"""The levels of a trie, or of its part below some roots."""


def cut(levels: Piece, max_entries: int) -> list[Piece]:
    """Return pieces of at most `max_entries` entries; one root with its descendants is not cut."""
    if max_entries < 1:
        raise ValueError(f"max_entries={max_entries}: expected a positive number of trie entries, or None.")
    if sum(level.num_entries for level in levels) <= max_entries:
        return [levels]
    starts, roots = _starts(levels), [0]  # entries are sorted by parent: below some roots, they are consecutive
    entries = starts.sum(dim=0)
    while roots[-1] < entries.numel() - 1:
        last = int(torch.searchsorted(entries, entries[roots[-1]] + max_entries, right=True)) - 1
        roots.append(max(last, roots[-1] + 1))
    return _slices(levels, starts, roots)


def cut_evenly(levels: Piece, parts: int) -> list[Piece]:
    """Return at most `parts` parts with about the same number of entries."""
    if parts == 1 or levels[0].num_entries < 2:
        return [levels]
    starts = _starts(levels)
    total = starts.sum(dim=0)
    targets = torch.arange(1, parts) * int(total[-1]) // parts
    inner = torch.searchsorted(total, targets).clamp_(1, total.numel() - 1)
    return _slices(levels, starts, sorted({0, *inner.tolist(), total.numel() - 1}))


def _starts(levels: Piece) -> Tensor:
    """Return the first entry of each level that is not below an earlier root: `[levels, num_roots + 1]`, on the CPU."""
    rows = [torch.arange(levels[0].num_entries + 1)]
    for level in levels[1:]:
        assert level.parent is not None
        rows.append(torch.searchsorted(level.parent.cpu(), rows[-1].to(level.parent.dtype)))
    return torch.stack(rows)


def _slices(levels: Piece, starts: Tensor, roots: list[int]) -> list[Piece]:
    """Return the entries below the roots between consecutive cuts."""
    bounds = starts[:, roots].t().tolist()
    pieces = []
    for first, last in pairwise(bounds):
        above = [0, *first]
        pieces.append([level.slice(first[t], last[t], parent_start=above[t]) for t, level in enumerate(levels)])
    return pieces
