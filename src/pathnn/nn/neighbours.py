"""Messages along edges, summed at vertices: on a GPU by kernels that write nothing for an edge, in a fixed order."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pathnn.nn.backends import base
from pathnn.nn.backends.triton.kernels.blocks import column_block, cover, parts_of, power_above
from pathnn.nn.backends.triton.order import Order, sort_keys

if TYPE_CHECKING:
    from pathnn.nn.edge_types import EdgeTypes

MOST_KINDS, MANY_KINDS = 512, 128
"""Of edges: the gradient of their table is a product with zeros and ones; above the second, of fewer columns at a
time."""

AT_ONCE, WIDEST, PER_WARP = 4, 512, 128
"""Edges that a sum reads at a time, and of how many columns: all, where possible, since the wait is for where an edge
leads. Each warp of a program has so many of them."""

PROGRAMS, LEAST_PARTS, MOST_PARTS, EDGES_PER_PART, KIND_ROWS = 1024, 16, 256, 256, 32
"""The gradient of a table of kinds is summed by about so many programs, in parts (`parts_of`), so many edges at a
time."""


class Neighbours:
    """The edges of a batch, sorted by each of their ends, once for all layers.

    >>> edges = Neighbours(torch.tensor([[0, 1, 1], [1, 0, 1]]), 2)
    >>> edges.into.start.tolist(), edges.scale
    ([0, 1, 3], tensor([0.7071, 0.7071], dtype=torch.float64))
    """

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        self.source, self.target = edge_index.contiguous()
        self.num_nodes = num_nodes

    @cached_property
    def into(self) -> Order:
        """The edges that lead to each vertex."""
        return sort_keys(self.target, self.num_nodes)

    @cached_property
    def out_of(self) -> Order:
        """The edges that lead away from each vertex."""
        return sort_keys(self.source, self.num_nodes)

    @cached_property
    def scale(self) -> Tensor:
        """GCN's `1 / sqrt(degree)`, `[num_nodes]`, float64: each vertex has one loop of its own, whatever loops there
        are."""
        counted = (self.source != self.target).double()
        ones = torch.ones(self.num_nodes, dtype=counted.dtype, device=counted.device)
        return ones.index_add_(0, self.target, counted).rsqrt_()

    @cached_property
    def short_scale(self) -> Tensor:
        """The same in float32, as the kernels read it."""
        return self.scale.float()


class SharedNeighbours:
    """`Neighbours` of the last edges that were asked for: all layers of a step ask for the same."""

    def __init__(self) -> None:
        self._edge_index: Tensor | None = None
        self._found: Neighbours | None = None

    def __call__(self, edge_index: Tensor, num_nodes: int) -> Neighbours:
        """For these edges (kept until others come)."""
        if self._found is None or self._edge_index is not edge_index:
            self._edge_index, self._found = edge_index, Neighbours(edge_index, num_nodes)
        return self._found


def gcn_sum(x: Tensor, edges: Neighbours) -> Tensor:
    """Each vertex' own row and those of its neighbours, over the square roots of both degrees: `[num_nodes, d]`.

    >>> gcn_sum(torch.tensor([[1.0], [3.0]]), Neighbours(torch.tensor([[0, 1], [1, 0]]), 2))
    tensor([[2.0000],
            [2.0000]])
    """
    if base.on_triton(x):
        out: Tensor = _GcnSum.apply(x, edges)  # type: ignore[no-untyped-call]
        return out
    scale = edges.scale.to(x.dtype)
    weight = scale[edges.source] * scale[edges.target] * (edges.source != edges.target)
    own = x * (scale * scale).unsqueeze(1)
    return own.index_add(0, edges.target, x.index_select(0, edges.source) * weight.unsqueeze(1))


def gin_sum(
    x: Tensor, edges: Neighbours, kinds: EdgeTypes | None = None, *, own: float = 1.0, models: int = 1
) -> Tensor:
    """`own` times each vertex' row plus the rows of its neighbours, or the positive parts of those plus the row of the
    edge's kind: `[num_nodes, d]`.

    Kinds and edges of several models lie one after the other, as many for each.

    >>> gin_sum(torch.tensor([[1.0], [3.0]]), Neighbours(torch.tensor([[0, 1], [1, 0]]), 2)).tolist()
    [[4.0], [4.0]]
    """
    few = kinds is None or kinds.table.size(0) <= MOST_KINDS * models
    if base.on_triton(x) and few:
        table, types = (None, None) if kinds is None else (kinds.table, kinds.types)
        out: Tensor = _GinSum.apply(x, table, types, edges, own, models)  # type: ignore[no-untyped-call]
        return out
    messages = x.index_select(0, edges.source)
    messages = messages if kinds is None else (messages + kinds.expand()).relu()
    return (own * x).index_add(0, edges.target, messages)


class _GcnSum(torch.autograd.Function):
    """The matrix of the sum is symmetric but for the directions of edges."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Neighbours) -> Tensor:
        ctx.edges = edges
        return _sum(x.contiguous(), edges.into, edges.source, scale=edges.short_scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        edges: Neighbours = ctx.edges
        return _sum(grad.contiguous(), edges.out_of, edges.target, scale=edges.short_scale), None


class _GinSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, table: Tensor | None, types: Tensor | None, edges: Neighbours, own: float, models: int
    ) -> Tensor:
        x = x.contiguous()
        table = None if table is None else table.contiguous()
        types = None if types is None else types.contiguous()
        if table is not None:
            ctx.save_for_backward(x, table, types)
        ctx.edges, ctx.own, ctx.models, ctx.bonds = edges, own, models, table is not None
        return _sum(x, edges.into, edges.source, kinds=types, table=table, own=own)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        edges: Neighbours = ctx.edges
        x, table, types = ctx.saved_tensors if ctx.bonds else (None, None, None)
        grad = grad.contiguous()
        grad_x = grad_table = None
        if ctx.needs_input_grad[0]:
            grad_x = _sum(grad, edges.out_of, edges.target, kinds=types, table=table, at=x, own=ctx.own)
        if ctx.needs_input_grad[1] and x is not None and table is not None and types is not None:
            grad_table = _sum_kinds(x, table, grad, edges, types, ctx.models)
        return grad_x, grad_table, None, None, None, None


def _sum(
    x: Tensor,
    order: Order,
    other: Tensor,
    *,
    kinds: Tensor | None = None,
    table: Tensor | None = None,
    at: Tensor | None = None,
    scale: Tensor | None = None,
    own: float = 1.0,
) -> Tensor:
    from pathnn.nn.backends.triton.kernels.neighbours import sum_neighbours

    out = torch.empty_like(x)
    if out.numel():
        width, block = x.size(1), min(max(16, power_above(x.size(1))), WIDEST)
        with torch.cuda.device(x.device):
            sum_neighbours[x.size(0), cover(width, block)](
                x, order.order, order.start, other, kinds, table, at, scale, out, own,
                WIDTH=width, AT_ONCE=AT_ONCE, BLOCK=block, num_warps=max(1, block // PER_WARP),
            )  # fmt: skip
    return out


def _sum_kinds(x: Tensor, table: Tensor, grad: Tensor, edges: Neighbours, types: Tensor, models: int) -> Tensor:
    from pathnn.nn.backends.triton.kernels.neighbours import sum_kinds

    kinds, each = table.size(0) // models, edges.source.numel() // models
    width, block = x.size(1), column_block(x.size(1), largest=64) if kinds <= MANY_KINDS else 16
    blocks = cover(width, block) * models
    parts = parts_of(each, EDGES_PER_PART, blocks=blocks, programs=PROGRAMS, least=LEAST_PARTS, most=MOST_PARTS)
    partial = x.new_empty(models, parts, kinds, width)
    with torch.cuda.device(x.device):
        sum_kinds[models * parts, cover(width, block)](
            x, table, grad, edges.source, edges.target, types, partial, each, parts,
            KINDS=kinds, ROOM=max(16, power_above(kinds)), WIDTH=width, ROWS=KIND_ROWS, BLOCK=block, num_warps=4,
        )  # fmt: skip
    return partial.sum(dim=1).flatten(0, 1)
