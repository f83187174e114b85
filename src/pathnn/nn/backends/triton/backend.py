"""The backend "triton": the same function as `levels`, in kernels for NVIDIA GPUs. float32, LSTM; every sum has a fixed
order, so the same inputs give the same bits.

Kept for the backward pass are h and c of the inner entries; gates are recomputed. So are, unless `budget.recompute` is
off, `W_hh h` of the parents (but for the last layer, whose backward comes first) and what vertices bring along. The
gradients of the gates of all levels lie in one matrix: each table's gradient is one sum over it, that of `W_hh` one
product. Products are as exact as float32's (`kernels.product`) unless TF32 is allowed, or under `torch.autocast`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget, Inputs, LevelTokens, Shared, check_once, cut
from pathnn.nn.backends.levels import ProjectedInputs, project_small
from pathnn.nn.backends.triton.kernels.blocks import cover
from pathnn.nn.backends.triton.order import LengthPlan, Order, child_starts, flat, order_by_vertex
from pathnn.nn.cells import PathCell, is_lstm
from pathnn.nn.edge_types import EdgeTypes
from pathnn.paths.trie import LengthTrie

if TYPE_CHECKING:
    from pathnn.nn.backends.triton.products import SplitWeight
    from pathnn.nn.backends.triton.shared_gradients import SharedGradients


KINDS_AT_ONCE = 1024
"""Edges whose kinds a program looks up."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TritonShared(Shared):
    """Edges together with the parts of the LSTM's input that do not change from layer to layer.

    `edges` are the features as they came; `edge` and `distance` their projected tables (see `ProjectedInputs`);
    `split_weight` (with `bias`) and `split_hh` are the weight of the vertices and `W_hh` as the products read them. The
    gradients of all these are `collected`, and reach them through `anchor`.
    """

    edges: Tensor | EdgeTypes | None
    bias: Tensor
    edge: Tensor | None
    distance: Tensor | None
    split_weight: SplitWeight
    split_hh: SplitWeight
    collected: SharedGradients
    anchor: Tensor


class Triton:
    """Kernels for NVIDIA GPUs, with their own autograd function: gradients of what is shared are summed beside it."""

    name = "triton"

    def supports(self, cell: PathCell, like: Tensor) -> bool:
        """Return whether it is an LSTM in float32 on an NVIDIA GPU, and Triton is installed."""
        return is_lstm(cell) and base.on_triton(like)

    def prepare(self, cell: PathCell, inputs: Inputs, budget: Budget) -> TritonShared:
        """Project edges and distances, and split the weights for the products on tensor cores."""
        from pathnn.nn.backends.triton.products import split_of, terms
        from pathnn.nn.backends.triton.shared_gradients import SharedGradients, share
        from pathnn.nn.backends.triton.sweep import MOST_FEW

        number, (weight, bias, weight_hh) = terms(), cell.weights()  # `terms` asks whether autocast is on
        edges, distances = inputs
        with torch.autocast(weight.device.type, enabled=False), torch.cuda.device(weight.device):
            if isinstance(edges, EdgeTypes) and edges.parts is not None:
                rows = edges.parts.size(0) + (0 if distances is None else distances.size(0))
                edges = edges if rows <= MOST_FEW else edges._replace(parts=None, marks=None)
            tables = small = project_small(distances, edges, weight_ih=weight, channels=cell.channels)
            if isinstance(edges, EdgeTypes) and edges.parts is not None:  # gradients are summed for each part
                small = F.linear(edges.parts, weight[:, -edges.parts.size(1) :]), tables[1]
            collected = SharedGradients()
            vertex = weight[:, : cell.channels]
            anchor = share(weight_hh, vertex, bias, *small, collected)
            edge, distance = (None if table is None else table.detach() for table in tables)
            split_weight, split_hh = split_of(vertex, number), split_of(weight_hh, number)
        return TritonShared(
            backend=self, budget=budget, edges=edges, bias=bias.detach(), edge=edge, distance=distance,
            split_weight=split_weight, split_hh=split_hh, collected=collected, anchor=anchor,
        )  # fmt: skip

    def run(self, shared: TritonShared, h: Tensor, trie: LengthTrie, *, summed: bool) -> Tensor:
        """Return the last hidden state of every path, or their sums at the sources; differentiable once."""
        return cuda_path_states(h, shared, cuda_tokens(trie, shared), summed=summed)


class Tokens(NamedTuple):
    """The tokens of a trie, level by level: vertices as it stores them (a dummy one below 0), of each edge the row in
    the table of edges (below 0: none). `num_nodes` is the row of the dummy token, `plan` what was worked out for this
    trie before, `longest` that of the last layer, `marks` which of the `parts` each kind of edge is the sum of (see
    `EdgeTypes`)."""

    levels: list[LevelTokens]
    num_nodes: int
    plan: LengthPlan | None = None
    longest: bool = False
    marks: Tensor | None = None
    parts: int = 0

    @property
    def num_entries(self) -> int:
        """Entries of all levels."""
        return sum(level.num_entries for level in self.levels)

    def children(self, t: int, parents: int) -> tuple[Tensor, int]:
        """Where in level `t` the children of each of its parents begin, and the child from which that is counted."""
        return (child_starts(self.levels[t], parents), 0) if self.plan is None else self.plan.children[t - 1]


def cuda_tokens(trie: LengthTrie, ready: TritonShared) -> Tokens:
    """Return what the model reads of a trie. Kernels count on contiguous rows."""
    edges = ready.edges
    levels = [
        LevelTokens(
            _contiguous(level.parent),
            level.vertex.contiguous(),
            None if edges is None else _contiguous(level.edge),
            None if ready.distance is None else _contiguous(level.distance),
        )
        for level in trie.levels
    ]
    if not isinstance(edges, EdgeTypes):
        return Tokens(levels, trie.num_nodes, trie.plan, trie.longest)
    parts = 0 if edges.parts is None else edges.parts.size(0)
    marks = _contiguous(edges.marks) if parts else None
    return Tokens(_with_kinds(levels, edges.types), trie.num_nodes, trie.plan, trie.longest, marks, parts)


def _with_kinds(levels: list[LevelTokens], types: Tensor) -> list[LevelTokens]:
    """The levels with the kind of each edge in its place, looked up once for all that reads it."""
    edges = [level.edge for level in levels[1:] if level.edge is not None]
    if not edges:
        return levels
    from pathnn.nn.backends.triton.kernels.level import edge_kinds

    edge = flat(edges)
    kind = torch.empty_like(edge, dtype=torch.int32)
    if edge.numel():
        with torch.cuda.device(edge.device):
            edge_kinds[(cover(edge.numel(), KINDS_AT_ONCE),)](
                edge, types.contiguous(), kind, edge.numel(), BLOCK=KINDS_AT_ONCE
            )
    kinds = torch.split(kind, [part.numel() for part in edges])
    return [levels[0], *(level._replace(edge=own) for level, own in zip(levels[1:], kinds, strict=True))]


def _contiguous(rows: Tensor | None) -> Tensor | None:
    return None if rows is None else rows.contiguous()


def cuda_path_states(h: Tensor, ready: TritonShared, tokens: Tokens, *, summed: bool) -> Tensor:
    """Return the last hidden state of every path: summed at the sources, `[num_nodes, d]`, or each, if not `summed`.

    Differentiable once, with respect to `h` and the weights behind `ready`.
    """
    keep = torch.is_grad_enabled() and (h.requires_grad or ready.anchor.requires_grad)
    arguments = h, ready.anchor, ready, tokens, summed, ready.budget.max_entries, keep
    with torch.cuda.device(h.device):
        out: Tensor = _CudaTrieLSTM.apply(*arguments)  # type: ignore[no-untyped-call]
    return out


class _CudaTrieLSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        anchor: Tensor,
        ready: TritonShared,
        tokens: Tokens,
        summed: bool,
        max_entries: int | None,
        keep: bool,
    ) -> Tensor:
        from pathnn.nn.backends.triton.sweep import forward_sweep

        h = h.contiguous()
        tables, split = _tables(h, ready), ready.split_hh
        pieces = cut(tokens.levels, max_entries) if max_entries else [tokens.levels]
        paths = [piece[-1].num_entries for piece in pieces]
        rows = tokens.num_nodes if summed else sum(paths)
        out = h.new_empty(rows, split.channels)
        states: list[Tensor] = []
        ctx.projected = None
        orders: list[Order | None] = []
        first = 0
        for t, (levels, number) in enumerate(zip(pieces, paths, strict=True)):
            piece = tokens if len(pieces) == 1 else tokens._replace(levels=levels, plan=None)
            whole = keep and len(pieces) == 1
            order = _order(piece, h.size(0), leaves_only=not whole) if summed or whole else None
            target = out if summed else out[first : first + number]
            # the last layer's backward comes first, so that keeping its products takes no memory from anything else
            every = whole and (tokens.longest or not ready.budget.recompute)
            kept = forward_sweep(tables, split, piece, target, order if summed else None, add=t > 0, every=every)
            if whole:
                states, orders, ctx.projected = [kept.hidden, kept.cell], [order], kept.projected
            first += number
        if keep:
            ctx.save_for_backward(h, *states)
            ctx.ready, ctx.pieces, ctx.orders, ctx.tokens, ctx.summed = ready, pieces, orders, tokens, summed
            ctx.tables = None if ready.budget.recompute else tables
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        from pathnn.nn.backends.triton.products import grad_of_linear
        from pathnn.nn.backends.triton.shared_gradients import is_wanted
        from pathnn.nn.backends.triton.sweep import Kept, backward_sweep, forward_sweep

        check_once()
        h, *states = ctx.saved_tensors
        ready, grad, first = ctx.ready, grad.contiguous(), 0
        collected = ready.collected if is_wanted(ready.anchor) else None
        grad_vertex: Tensor | None = None
        with torch.cuda.device(h.device):
            tables = _tables(h, ready) if ctx.tables is None else ctx.tables
            ctx.tables = None  # its memory is free when this layer is done
            for levels in ctx.pieces:
                if collected is not None:
                    collected.begin()  # what the piece before has left goes before this one's room is taken
                piece = ctx.tokens if len(ctx.pieces) == 1 else ctx.tokens._replace(levels=levels, plan=None)
                last = first + levels[-1].num_entries
                rows = grad if ctx.summed else grad[first:last]
                kept = (
                    Kept(states[0], states[1], ctx.projected)
                    if states
                    else forward_sweep(tables, ready.split_hh, piece, None, None)
                )
                ctx.projected = None  # its gradient is written over it
                order = ctx.orders[0] if ctx.orders else _order(piece, h.size(0), leaves_only=False)
                found = backward_sweep(
                    tables, ready.split_hh, piece, kept, rows, order, summed=ctx.summed, collected=collected
                )
                grad_vertex = found if grad_vertex is None else grad_vertex.add_(found)
                first = last
                del kept, found
            assert grad_vertex is not None
            if collected is not None:
                collected.add_vertices(grad_vertex, h, ready.split_weight, bias=ready.distance is None)
            grad_h = grad_of_linear(grad_vertex, ready.split_weight)
        return grad_h, None, None, None, None, None, None


def _tables(h: Tensor, ready: TritonShared) -> ProjectedInputs:
    """The projected inputs."""
    from pathnn.nn.backends.triton.products import linear

    return ProjectedInputs(linear(h, ready.split_weight, ready.bias), ready.edge, ready.distance)


def _order(tokens: Tokens, places: int, *, leaves_only: bool) -> Order:
    if tokens.plan is not None:
        return tokens.plan.order
    levels = tokens.levels[-1:] if leaves_only else tokens.levels
    before = tokens.num_entries - levels[-1].num_entries if leaves_only else 0
    return order_by_vertex(levels, tokens.num_nodes, places)._replace(first_row=-before)
