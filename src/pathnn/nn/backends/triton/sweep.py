"""All levels down and up again on a GPU: launches of the kernels, and the products between them."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from pathnn.nn.backends.base import LevelTokens
from pathnn.nn.backends.levels import ProjectedInputs
from pathnn.nn.backends.triton.kernels.blocks import column_block, cover, parts_of
from pathnn.nn.backends.triton.kernels.level import backward_children, forward_entries
from pathnn.nn.backends.triton.kernels.segment import sum_segments, sum_small_tables
from pathnn.nn.backends.triton.order import Order, flat, sort_keys, split
from pathnn.nn.backends.triton.products import SplitWeight, grad_of_hidden, new_hidden, new_slots, project_hidden

if TYPE_CHECKING:
    from pathnn.nn.backends.triton.backend import Tokens
    from pathnn.nn.backends.triton.shared_gradients import SharedGradients


class Kept(NamedTuple):
    """h (as the products read it) and c of the inner entries, level after level, `[terms, inner, width]` and
    `[inner, d]`; and perhaps `W_hh h`, `[inner, 4d]`, over which the backward pass writes."""

    hidden: Tensor
    cell: Tensor
    projected: Tensor | None


TILE, WARPS = 128, 2
"""Numbers per program and gate, two for each thread."""


AT_ONCE, SUM_WARPS = 4, 1


LONG, LONG_AT_ONCE, LONG_WARPS = 64, 32, 4
"""Rows that a sum of rows reads at a time, and the warps of a program; and those where sums have that many rows on
average."""


MOST_FEW = 128
"""Rows of both small tables up to which their gradient is a product with zeros and ones; above, rows are sorted."""


FEW_PROGRAMS, LEAST_FEW_PARTS, MOST_FEW_PARTS, FEW_ROWS = 1024, 32, 256, 256


FEW_AT_ONCE, FEW_WARPS = 32, 4
"""That product is done by about so many programs, in parts (`parts_of`); a program, with so many warps, reads a few
rows at a time."""


MOST_PARTS, ROWS_PER_PART = 64, 256
"""A sum of sorted rows is cut into parts of about so many rows, but not into more parts than that."""


def forward_sweep(
    tables: ProjectedInputs,
    weight: SplitWeight,
    tokens: Tokens,
    out: Tensor | None,
    order: Order | None,
    *,
    add: bool = False,
    every: bool = False,
) -> Kept:
    """Run all levels, return the states of the inner entries, and with `every` the products of all levels.

    The paths' states go to `out`: with `order` summed at their sources (`add`: to what is there), else one row each.
    Without `out` the last level is left out.
    """
    levels, channels = tokens.levels, weight.channels
    starts = _starts(levels)
    cell = tables.vertex.new_empty(starts[-2], channels)
    hidden = new_hidden(cell, starts[-2], weight)
    products = cell.new_empty(starts[-2], 4 * channels) if every else None
    projected: Tensor | None = None
    for t, level in enumerate(levels):
        leaf: Tensor | None = None
        if t == len(levels) - 1:
            if out is None:
                break
            leaf = out if order is None else out.new_empty(level.num_entries, channels)
        if t:
            inner = slice(starts[t - 1], starts[t])
            projected = _room(products, inner, cell)
            project_hidden(hidden[:, inner], weight, projected)
        _forward_level(tables, tokens, t, starts, projected, hidden, cell, leaf)
        if leaf is not None and order is not None and out is not None:
            sum_rows(leaf, order, out, first_row=starts[t] + order.first_row, stride=2, span=1, add=add)
    return Kept(hidden, cell, products)


def _room(products: Tensor | None, rows: slice, cell: Tensor) -> Tensor:
    """Where the products of some rows go."""
    return cell.new_empty(rows.stop - rows.start, 4 * cell.size(1)) if products is None else products[rows]


def _forward_level(
    tables: ProjectedInputs,
    tokens: Tokens,
    t: int,
    starts: list[int],
    projected: Tensor | None,
    hidden: Tensor,
    cell: Tensor,
    leaf: Tensor | None,
) -> None:
    level, channels = tokens.levels[t], cell.size(1)
    if level.num_entries == 0:
        return
    block = column_block(channels)
    rows = TILE // block
    forward_entries[cover(level.num_entries, rows), cover(channels, block)](
        level.parent, level.vertex, level.edge, level.distance,
        tables.vertex, tables.edge, tables.distance, projected, hidden, cell, leaf,
        level.num_entries, starts[t], starts[t - 1] if t else 0, tokens.num_nodes, _no_edge(tables), hidden.stride(0),
        CHANNELS=channels, WIDTH=hidden.size(2), PARTS=hidden.size(0), ROWS=rows, BLOCK=block, num_warps=WARPS,
    )  # fmt: skip


def backward_sweep(
    tables: ProjectedInputs,
    weight: SplitWeight,
    tokens: Tokens,
    kept: Kept,
    grad: Tensor,
    order: Order,
    *,
    summed: bool,
    collected: SharedGradients | None,
) -> Tensor:
    """The gradient of the table of vertices, where `grad` is that of what `forward_sweep` writes; those of the other
    tables and of `weight_hh` are `collected`, if they are wanted."""
    levels, (hidden, cell, projected) = tokens.levels, kept
    starts, gates = _starts(levels), 4 * weight.channels
    grad_gates = grad.new_empty(starts[-1], gates)
    slots = new_slots(grad, len(levels), weight.models)
    if projected is None:  # else they were kept
        projected = grad.new_empty(starts[-2], gates)
        # rows of several models lie level by level; those of one can all be done at once
        for first, last in pairwise(starts[:-1] if weight.models > 1 else [0, starts[-2]]):
            project_hidden(hidden[:, first:last], weight, projected[first:last])
    grad_hidden, grad_cell, by_source = grad, None, summed
    for t in range(len(levels) - 1, -1, -1):
        parents = Parents(None, None, None, None, 0)
        if t:
            inner = slice(starts[t - 1], starts[t])
            children, first = tokens.children(t, starts[t] - starts[t - 1])
            parents = Parents(children, projected[inner], torch.empty_like(cell[inner]), slots[t], first)
        _backward_level(
            tables, tokens, t, starts, parents, cell, grad_hidden, grad_cell, grad_gates, by_source, weight.models
        )
        if parents.projected is not None and parents.slots is not None:
            grad_hidden, grad_cell = grad_of_hidden(parents.projected, parents.slots, weight), parents.grad_cell
            by_source = False
    if collected is not None:
        collected.add(tables, tokens, weight, grad_gates, (projected, slots, hidden))
    grad_vertex = torch.empty_like(tables.vertex)
    if collected is None or not leaves_apart(tables):
        sum_rows(grad_gates, order, grad_vertex, first_row=order.first_row, stride=2, span=2)
        return grad_vertex
    sum_rows(grad_gates, order, grad_vertex, first_row=order.first_row, stride=2, span=1)
    collected.add_leaves(grad_vertex, weight.models)
    others = order._replace(start=order.start[1:])
    sum_rows(grad_gates, others, grad_vertex, first_row=order.first_row, stride=2, span=1, add=True)
    return grad_vertex


def leaves_apart(tables: ProjectedInputs) -> bool:
    """Whether the gradients of the leaves need not be read for the small tables: leaves are the sources of paths, at
    the distance 0, so that their sums at vertices, which are taken anyway, are all that is needed."""
    return tables.edge is None and tables.distance is not None


class Parents(NamedTuple):
    """The parents of a level: where the children of each begin, counted from `first_child`; `W_hh h`, over which its
    gradient is written; where the gradient of c goes; and where the largest of the former is collected."""

    children: Tensor | None
    projected: Tensor | None
    grad_cell: Tensor | None
    slots: Tensor | None
    first_child: int


def _backward_level(
    tables: ProjectedInputs,
    tokens: Tokens,
    t: int,
    starts: list[int],
    above: Parents,
    cell: Tensor,
    grad_hidden: Tensor,
    grad_cell: Tensor | None,
    grad_gates: Tensor,
    by_source: bool,
    models: int,
) -> None:
    level, channels = tokens.levels[t], cell.size(1)
    parents = starts[t] - starts[t - 1] if t else level.num_entries
    if parents == 0:
        return
    block = column_block(channels)
    rows = TILE // block
    backward_children[cover(parents, rows), cover(channels, block)](
        above.children, level.vertex, level.edge, level.distance,
        tables.vertex, tables.edge, tables.distance, above.projected, cell,
        grad_hidden, grad_cell, grad_gates, above.projected, above.grad_cell, above.slots,
        parents, parents // models, starts[t], starts[t - 1] if t else 0, above.first_child,
        tokens.num_nodes, _no_edge(tables),
        BY_SOURCE=by_source, CHANNELS=channels, ROWS=rows, BLOCK=block, num_warps=WARPS,
    )  # fmt: skip


def sum_rows(
    rows: Tensor, order: Order, out: Tensor, *, first_row: int, stride: int = 1, span: int = 1, add: bool = False
) -> None:
    """Sum rows into each place of `out`, in their order; rows are counted from `first_row` in `order`."""
    if out.numel() == 0:
        return
    block, long = column_block(out.size(1)), rows.size(0) >= LONG * out.size(0)
    sum_segments[out.size(0), cover(out.size(1), block)](
        rows, order.order, order.start, out, first_row, stride, span,
        ADD=add, WIDTH=out.size(1), AT_ONCE=LONG_AT_ONCE if long else AT_ONCE, BLOCK=block,
        num_warps=LONG_WARPS if long else SUM_WARPS,
    )  # fmt: skip


def add_small_tables(
    tables: ProjectedInputs, tokens: Tokens, grad_gates: Tensor, models: int, collected: SharedGradients
) -> None:
    """Add the gradients of the tables of edges and of distances: one product for those that have few rows.

    Several models have no edges, and their tables of distances, one after the other, few rows each.
    """
    roots = tokens.levels[0].num_entries
    edge = _flat([level.edge for level in tokens.levels[1:]])
    apart = leaves_apart(tables)
    read = tokens.levels[:-1] if apart else tokens.levels
    distance = _flat([level.distance for level in read])
    if apart:
        grad_gates = grad_gates[: sum(level.num_entries for level in read)]
    edges = 0 if tables.edge is None or edge is None else tokens.parts or tables.edge.size(0) - 1
    distances = 0 if tables.distance is None or distance is None else tables.distance.size(0) // models
    few_edges = edges if edges + distances <= MOST_FEW else 0
    if 0 < few_edges + distances <= MOST_FEW:
        spans = None if tokens.plan is None else tokens.plan.spans
        spans = spans[:-1] if apart and spans is not None else spans
        collected.few = sum_few_parts(
            grad_gates,
            edge,
            distance,
            roots,
            few_edges,
            distances,
            collected.few,
            models,
            spans,
            tokens.marks,
        )
    if edge is not None and tables.edge is not None and edges > few_edges:
        collected.edge = _sum_sorted(
            grad_gates, torch.where(edge < 0, edges, edge), tables.edge, collected.edge, first_row=-roots
        )
    if distance is not None and tables.distance is not None and distances > MOST_FEW:
        collected.distance = _sum_sorted(grad_gates, distance, tables.distance, collected.distance, first_row=0)


def _sum_sorted(rows: Tensor, place: Tensor, like: Tensor, total: Tensor | None, *, first_row: int) -> Tensor:
    """The sum of the rows of each place, as many as `like` has, added to `total`; in parts where there are many."""
    places, width = like.shape
    order, parts = sort_keys(place, places), min(MOST_PARTS, place.numel() // (ROWS_PER_PART * places) + 1)
    out = torch.empty_like(like)
    if parts == 1:
        sum_rows(rows, order, out, first_row=first_row)
    else:
        each = out.new_empty(places * parts, width)
        sum_rows(rows, split(order, parts), each, first_row=first_row)
        torch.sum(each.view(places, parts, width), dim=1, out=out)
    return out if total is None else total.add_(out)


def sum_few_parts(
    rows: Tensor,
    edge: Tensor | None,
    distance: Tensor | None,
    roots: int,
    edges: int,
    distances: int,
    partial: Tensor | None = None,
    models: int = 1,
    spans: Tensor | None = None,
    marks: Tensor | None = None,
) -> Tensor:
    """The sum of the rows of each of `edges` kinds, then of each of `distances` distances, in parts that are to be
    summed: `[models, parts, edges + distances, d]`; added to `partial` if there is one.

    `edge` begins with row `roots`; with `marks` the sums are those of the parts of each kind (`EdgeTypes`). `spans` are
    where the rows of several models lie.
    """
    entries, width = rows.shape
    block, at_once = column_block(width, largest=64), FEW_AT_ONCE
    blocks, each = cover(width, block) * models, entries // models
    parts = parts_of(each, FEW_ROWS, blocks=blocks, programs=FEW_PROGRAMS, least=LEAST_FEW_PARTS, most=MOST_FEW_PARTS)
    parts = parts if partial is None else min(parts, partial.size(1))
    out = rows.new_empty(models, parts, edges + distances, width) if partial is None else partial
    sum_small_tables[models * parts, cover(width, block)](
        rows, edge if edges else None, distance, marks, spans, out, entries, roots, parts, out.size(1),
        ADD=partial is not None, SPANS=1 if spans is None else spans.size(0), EDGES=edges, DISTANCES=distances,
        KINDS=max(16, 1 << (edges + distances - 1).bit_length()),
        WIDTH=width, ROWS=at_once, BLOCK=block, num_warps=FEW_WARPS,
    )  # fmt: skip
    return out


def _flat(parts: list[Tensor | None]) -> Tensor | None:
    """The rows of all levels one after the other; None if the levels have none."""
    there = [part for part in parts if part is not None]
    return flat(there) if there else None


def _starts(levels: list[LevelTokens]) -> list[int]:
    """The first entry of each level when all are counted through, and their number."""
    return list(accumulate((level.num_entries for level in levels), initial=0))


def _no_edge(tables: ProjectedInputs) -> int:
    return 0 if tables.edge is None else tables.edge.size(0) - 1
