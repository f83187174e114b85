"""The backend "triton": the same function as `levels`, in kernels for NVIDIA GPUs. float32, LSTM.

Every sum has a fixed order, so the same inputs give the same bits. The forward pass keeps h and c of the inner entries;
the backward pass recomputes gates. Unless `budget.recompute` is off, it also recomputes the projected vertices, and
`W_hh h` of the parents except in the last layer, whose backward pass comes first. The gradients of the gates of all
levels are one matrix: the gradient of each table is one sum over it, and that of `W_hh` one product. Products are as
exact as float32 (`kernels.product`), unless TF32 is allowed or `torch.autocast` is on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget, EdgeTypes, Inputs, LevelTokens, ProjectedInputs, Shared
from pathnn.nn.backends.triton.kernels.blocks import cover
from pathnn.nn.backends.triton.kernels.level import look_up_types
from pathnn.nn.backends.triton.order import LengthPlan, Order, child_starts, flat, order_by_vertex
from pathnn.nn.backends.triton.products import SplitWeight, grad_of_linear, linear, split_of, terms
from pathnn.nn.backends.triton.shared_gradients import SharedGradients, is_wanted, share
from pathnn.nn.backends.triton.sweep import SMALL_ROWS, Kept, backward_sweep, forward_sweep
from pathnn.nn.cells import PathCell, lstm_step
from pathnn.paths.trie import LengthTrie

TYPES_AT_ONCE = 1024
"""Edges whose types a program looks up."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TritonShared(Shared):
    """Projected tables and split weights; their gradients are summed in `collected`, and flow through `anchor`."""

    bias: Tensor
    edge: Tensor | None
    distance: Tensor | None
    split_weight: SplitWeight
    split_hh: SplitWeight
    collected: SharedGradients
    anchor: Tensor


class Triton:
    """Kernels for NVIDIA GPUs, with their own autograd function: it does not return the gradients of what is shared."""

    name = "triton"

    def supports(self, cell: PathCell, like: Tensor) -> bool:
        """Return whether it is an LSTM in float32 on an NVIDIA GPU, and Triton is installed."""
        return cell.step is lstm_step and base.on_triton(like)

    def prepare(self, cell: PathCell, inputs: Inputs, budget: Budget) -> TritonShared:
        """Project edges and distances, and split the weights for the products on tensor cores."""
        number, (weight, bias, weight_hh) = terms(), cell.weights()  # `terms` reads whether autocast is on
        assert weight_hh is not None
        edges, distances = inputs
        with torch.autocast(weight.device.type, enabled=False), torch.cuda.device(weight.device):
            if isinstance(edges, EdgeTypes) and edges.components is not None:
                rows = edges.components.size(0) + (0 if distances is None else distances.size(0))
                edges = edges if rows <= SMALL_ROWS else edges._replace(components=None, masks=None)
            inputs = Inputs(edges, distances)
            tables = small = base.project_small(inputs, weight, cell.channels)
            if isinstance(edges, EdgeTypes) and edges.components is not None:  # gradients are summed per component
                small = F.linear(edges.components, weight[:, -edges.components.size(1) :]), tables[1]
            collected = SharedGradients()
            vertex = weight[:, : cell.channels]
            anchor = share(collected, weight_hh, vertex, bias, *small)
            edge, distance = (None if table is None else table.detach() for table in tables)
            split_weight, split_hh = split_of(vertex, number), split_of(weight_hh, number)
        return TritonShared(
            backend=self, budget=budget, cell=cell, inputs=inputs, bias=bias.detach(), edge=edge, distance=distance,
            split_weight=split_weight, split_hh=split_hh, collected=collected, anchor=anchor,
        )  # fmt: skip

    def run(self, shared: TritonShared, h: Tensor, trie: LengthTrie, *, summed: bool) -> Tensor:
        """Return the last hidden state of every path, or their sums at the sources; differentiable once."""
        keep = torch.is_grad_enabled() and (h.requires_grad or shared.anchor.requires_grad)
        with torch.cuda.device(h.device):
            tokens = _tokens(trie, shared)
            out: Tensor = _TritonRun.apply(h, shared.anchor, shared, tokens, summed, keep)  # type: ignore[no-untyped-call]
        return out


class Tokens(NamedTuple):
    """The tokens of a trie, level by level; `prefixes` is that of `LengthTrie`.

    A vertex below 0 is a dummy token, whose row is `num_nodes`; an edge is a row of the table of edges, below 0 no
    edge. `longest`: the last layer. `masks` and the number of `components` are those of `EdgeTypes`.
    """

    levels: list[LevelTokens]
    num_nodes: int
    plan: LengthPlan | None = None
    longest: bool = False
    masks: Tensor | None = None
    components: int = 0
    prefixes: bool = False

    @property
    def num_entries(self) -> int:
        """Return the number of entries of all levels."""
        return sum(level.num_entries for level in self.levels)

    def children(self, t: int, parents: int) -> tuple[Tensor, int]:
        """Return where in level `t` the children of each parent begin, and the child from which they are counted."""
        return (child_starts(self.levels[t], parents), 0) if self.plan is None else self.plan.children[t - 1]


def _tokens(trie: LengthTrie, shared: TritonShared) -> Tokens:
    """Return what the model reads of a trie, as contiguous rows, which the kernels need."""
    edges = shared.inputs.edges
    levels = [
        LevelTokens(
            _contiguous(level.parent),
            level.vertex.contiguous(),
            None if edges is None else _contiguous(level.edge),
            None if shared.distance is None else _contiguous(level.distance),
        )
        for level in trie.levels
    ]
    masks, components = None, 0
    if isinstance(edges, EdgeTypes):
        levels = _with_types(levels, edges.types)
        if edges.components is not None:
            masks, components = _contiguous(edges.masks), edges.components.size(0)
    return Tokens(levels, trie.num_nodes, trie.plan, trie.longest, masks, components, trie.prefixes)


def _with_types(levels: list[LevelTokens], types: Tensor) -> list[LevelTokens]:
    """Return the levels with the type of each edge in its place, looked up once for all kernels."""
    edge = flat([level.edge for level in levels[1:]])
    if edge is None:
        return levels
    found = torch.empty_like(edge, dtype=torch.int32)
    if edge.numel():
        look_up_types[(cover(edge.numel(), TYPES_AT_ONCE),)](
            edge, types.contiguous(), found, edge.numel(), BLOCK=TYPES_AT_ONCE
        )
    own = torch.split(found, [level.num_entries for level in levels[1:]])
    return [levels[0], *(level._replace(edge=types) for level, types in zip(levels[1:], own, strict=True))]


def _contiguous(rows: Tensor | None) -> Tensor | None:
    return None if rows is None else rows.contiguous()


class _TritonRun(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, anchor: Tensor, shared: TritonShared, tokens: Tokens, summed: bool, keep: bool
    ) -> Tensor:
        h, max_entries = h.contiguous(), shared.budget.max_entries
        tables, split = _tables(h, shared), shared.split_hh
        pieces = base.cut(tokens.levels, max_entries) if max_entries else [tokens.levels]
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
            leaves_only = not (whole or tokens.prefixes)
            order = _order(piece, h.size(0), leaves_only=leaves_only) if summed or whole else None
            target = out if summed else out[first : first + number]
            # the backward pass of the last layer comes first: its products can be kept without more memory
            every = whole and (tokens.longest or not shared.budget.recompute)
            kept = forward_sweep(tables, split, piece, target, order if summed else None, add=t > 0, every=every)
            if whole:
                states, orders, ctx.projected = [kept.hidden, kept.c], [order], kept.projected
            first += number
        if keep:
            ctx.save_for_backward(h, *states)
            ctx.shared, ctx.pieces, ctx.orders, ctx.tokens, ctx.summed = shared, pieces, orders, tokens, summed
            ctx.tables = None if shared.budget.recompute else tables
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        base.check_once()
        h, *states = ctx.saved_tensors
        shared, grad, first = ctx.shared, grad.contiguous(), 0
        collected = shared.collected if is_wanted(shared.anchor) else None
        grad_vertex: Tensor | None = None
        with torch.cuda.device(h.device):
            tables = _tables(h, shared) if ctx.tables is None else ctx.tables
            ctx.tables = None  # frees their memory after this layer
            for levels in ctx.pieces:
                if collected is not None:
                    collected.begin()  # frees the memory of the piece before
                piece = ctx.tokens if len(ctx.pieces) == 1 else ctx.tokens._replace(levels=levels, plan=None)
                last = first + levels[-1].num_entries
                rows = grad if ctx.summed else grad[first:last]
                kept = (
                    Kept(states[0], states[1], ctx.projected)
                    if states
                    else forward_sweep(tables, shared.split_hh, piece, None, None)
                )
                ctx.projected = None  # its gradient overwrites it
                order = ctx.orders[0] if ctx.orders else _order(piece, h.size(0), leaves_only=False)
                found = backward_sweep(
                    tables, shared.split_hh, piece, kept, rows, order, summed=ctx.summed, collected=collected
                )
                grad_vertex = found if grad_vertex is None else grad_vertex.add_(found)
                first = last
                del kept, found
            assert grad_vertex is not None
            if collected is not None:
                collected.add_vertices(grad_vertex, h, shared.split_weight, bias=shared.distance is None)
            grad_h = grad_of_linear(grad_vertex, shared.split_weight)
        return grad_h, None, None, None, None, None


def _tables(h: Tensor, shared: TritonShared) -> ProjectedInputs:
    return ProjectedInputs(linear(h, shared.split_weight, shared.bias), shared.edge, shared.distance)


def _order(tokens: Tokens, places: int, *, leaves_only: bool) -> Order:
    if tokens.plan is not None:
        return tokens.plan.order
    levels = tokens.levels[-1:] if leaves_only else tokens.levels
    before = tokens.num_entries - levels[-1].num_entries if leaves_only else 0
    return order_by_vertex(levels, tokens.num_nodes, places)._replace(first_row=-before)
