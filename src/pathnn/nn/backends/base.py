"""The interface of backends: how an LSTM, or another cell, is computed over the paths of a trie.

A backend has a `name` and three methods: `supports(cell, like)`, `prepare(cell, inputs, budget)`, which computes once
what the layers of one forward pass share, and `run(shared, h, trie, summed=...)`, which each layer calls. To add one:

1. Subclass `Levels` (plain torch, level by level) and override its slow methods, or subclass `PieceBackend`, which has
   the autograd function and the loop over pieces, or write `prepare` and `run`.
2. Call `register(YourBackend())`. `backend="auto"` then tries it before the others.
3. Add it to the parity test, `tests/nn/test_backends.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pathnn.checks import check_choice
from pathnn.nn.cells import PathCell
from pathnn.paths.trie import LengthTrie

BACKENDS = ("auto", "dense", "torch", "cpu", "triton")
"""The names of the built-in backends."""


class Budget(NamedTuple):
    """The memory that one forward pass may use.

    A trie of more than `max_entries` entries is cut by roots into pieces, which the backward pass recomputes; None for
    no limit. `recompute=False` uses more memory and less time in the backward pass (Triton only).
    """

    max_entries: int | None = None
    recompute: bool = True


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
    """The data that the layers of one forward pass share; each backend has a subclass with its own tensors."""

    backend: Backend
    budget: Budget


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


_registered: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Make a backend available by its name; "auto" tries it before the built-in ones."""
    if backend.name in BACKENDS:
        raise ValueError(f"{backend.name!r} is the name of a built-in backend: choose another name.")
    _registered[backend.name] = backend


def check_backend(name: str) -> str:
    """Return the name of a backend, or raise `ValueError`."""
    return check_choice("backend", name, (*BACKENDS, *_registered))


def choose(name: str, cell: PathCell, like: Tensor) -> Backend:
    """Return the backend of a name; "auto" is the first that supports the cell on the device and dtype of `like`."""
    if name == "auto":
        return next(backend for backend in _candidates(like) if backend.supports(cell, like))
    backend = _find(check_backend(name))
    if not backend.supports(cell, like):
        raise ValueError(
            f"backend={name!r} does not support {type(cell).__name__} in {like.dtype} on {like.device.type!r}: "
            "use backend='auto'."
        )
    return backend


def _candidates(like: Tensor) -> Iterator[Backend]:
    """Yield the backends to try, best first."""
    yield from reversed(_registered.values())
    if on_triton(like):
        yield _find("triton")
    if like.device.type == "cpu":
        yield _find("cpu")
    yield _find("torch")


@cache
def _built_in(name: str) -> Backend:
    """Import a backend when it is needed: numba and Triton take a second."""
    if name == "dense":
        from pathnn.nn.backends.dense import Dense

        return Dense()
    if name == "torch":
        from pathnn.nn.backends.levels import Levels

        return Levels()
    if name == "cpu":
        from pathnn.nn.backends.cpu import Cpu

        return Cpu()
    from pathnn.nn.backends.triton.backend import Triton

    return Triton()


def _find(name: str) -> Backend:
    return _registered[name] if name in _registered else _built_in(name)


@cache
def _triton_installed() -> bool:
    return find_spec("triton") is not None


def on_triton(like: Tensor) -> bool:
    """Return whether Triton kernels can read a tensor: it is float32 on an NVIDIA GPU, and Triton is installed.

    `PATHNN_TRITON=0` in the environment turns them off. Call it as `base.on_triton`: tests replace it.
    """
    if not like.is_cuda or like.dtype != torch.float32:
        return False
    return os.environ.get("PATHNN_TRITON") != "0" and torch.version.hip is None and _triton_installed()


def wide(x: Tensor) -> Tensor:
    """Return half precision as float32: sums over many paths need more bits."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def check_once() -> None:
    """Raise `RuntimeError` in a backward pass with `create_graph=True`; `once_differentiable` misses some cases."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "this backend is differentiable once, and create_graph=True needs more: use backend='dense'."
        )


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

Tensors = tuple[Tensor | None, ...]


class Saved(NamedTuple):
    """The tensors, and anything else, that `forward` keeps for `backward`."""

    tensors: list[Tensor]
    context: Any = None


class PieceBackend:
    """A backend that computes one piece of a trie at a time: forward, and backward from kept or recomputed states.

    It has the autograd function. `project` widens half precision, and `run` narrows it.
    """

    def tokens(self, shared: Any, trie: LengthTrie) -> Piece:
        """Return the rows of `project` that each entry of the trie reads."""
        raise NotImplementedError

    def project(self, shared: Any, h: Tensor) -> Tensors:
        """Return the tensors that `forward` reads, differentiable and no narrower than float32."""
        raise NotImplementedError

    def forward(self, shared: Any, tensors: Tensors, piece: Piece, out: Tensor, *, summed: bool, keep: bool) -> Saved:
        """Compute the paths of a piece: add them to the rows of their sources if `summed`, else write one row each."""
        raise NotImplementedError

    def backward(
        self, shared: Any, tensors: Tensors, piece: Piece, saved: Saved | None, grad: Tensor, *, summed: bool
    ) -> Tensors:
        """Return the gradients of `tensors`; without `saved`, recompute the states first."""
        raise NotImplementedError

    def run(self, shared: Shared, h: Tensor, trie: LengthTrie, *, summed: bool) -> Tensor:
        """Return the last hidden state of every path, or their sums at the sources; differentiable once."""
        tokens, tensors = self.tokens(shared, trie), self.project(shared, h)
        most = shared.budget.max_entries
        pieces = cut(tokens, most) if most else [tokens]
        keep = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
        job = _Job(self, shared, pieces, trie.num_nodes if summed else trie.num_paths, summed, keep)
        out: Tensor = _Run.apply(job, *tensors)  # type: ignore[no-untyped-call]
        return out.to(h.dtype)


class _Job(NamedTuple):
    backend: PieceBackend
    shared: Shared
    pieces: list[Piece]
    rows: int
    summed: bool
    keep: bool

    def rows_of_pieces(self, all_rows: Tensor) -> Iterator[tuple[Piece, Tensor]]:
        """Yield each piece and its rows of the output: all rows if `summed`."""
        first = 0
        for piece in self.pieces:
            last = first + piece[-1].num_entries
            yield piece, all_rows if self.summed else all_rows[first:last]
            first = last


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, job: _Job, *tensors: Tensor | None) -> Tensor:
        backend, summed = job.backend, job.summed
        keep = job.keep and len(job.pieces) == 1
        weight = next(tensor for tensor in reversed(tensors) if tensor is not None)
        out = weight.new_zeros(job.rows, weight.size(1))
        saved = Saved([])
        for piece, rows in job.rows_of_pieces(out):
            saved = backend.forward(job.shared, tensors, piece, rows, summed=summed, keep=keep)
        ctx.job, ctx.context, ctx.kept, ctx.inputs = job, saved.context, keep, len(tensors)
        ctx.save_for_backward(*tensors, *(saved.tensors if keep else ()))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        check_once()
        job, (tensors, states) = ctx.job, (ctx.saved_tensors[: ctx.inputs], ctx.saved_tensors[ctx.inputs :])
        saved = Saved(list(states), ctx.context) if ctx.kept else None
        totals: list[Tensor | None] = [None] * len(tensors)
        with torch.autocast(grad.device.type, enabled=False):  # backward() may be called under autocast
            for piece, rows in job.rows_of_pieces(grad.contiguous()):
                found = job.backend.backward(job.shared, tensors, piece, saved, rows, summed=job.summed)
                totals = [add(total, more) for total, more in zip(totals, found, strict=True)]
        return None, *totals


def add(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    """Return the sum, computed in place in `total`."""
    return more if total is None else total.add_(more) if more is not None else total


def cut(levels: Piece, max_entries: int) -> list[Piece]:
    """Return pieces of at most `max_entries` entries; one root with its descendants is not cut.

    Entries are sorted by parent, so the descendants of consecutive roots are consecutive in every level.
    """
    if max_entries < 1:
        raise ValueError(f"max_entries={max_entries}: expected a positive number of trie entries, or None.")
    if sum(level.num_entries for level in levels) <= max_entries:
        return [levels]
    starts = _starts(levels)
    return _slices(levels, starts, _bounds(starts, max_entries))


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


def _bounds(starts: Tensor, max_entries: int) -> list[int]:
    """Return the roots at which to cut, so that a piece of several roots has at most `max_entries` entries."""
    entries = starts.sum(dim=0)
    bounds = [0]
    while bounds[-1] < entries.numel() - 1:
        last = int(torch.searchsorted(entries, entries[bounds[-1]] + max_entries, right=True)) - 1
        bounds.append(max(last, bounds[-1] + 1))
    return bounds


def _slices(levels: Piece, starts: Tensor, roots: list[int]) -> list[Piece]:
    """Return the entries below the roots between consecutive cuts."""
    bounds = starts[:, roots].t().tolist()
    pieces = []
    for first, last in pairwise(bounds):
        above = [0, *first]
        pieces.append([level.slice(first[t], last[t], parent_start=above[t]) for t, level in enumerate(levels)])
    return pieces
