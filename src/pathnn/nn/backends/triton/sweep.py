"""Run all levels forward and backward on a GPU: launch the kernels, and the products between them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from pathnn.nn.backends.base import LevelTokens, ProjectedInputs
from pathnn.nn.backends.triton.kernels.blocks import column_block, cover, parts_of, power_above
from pathnn.nn.backends.triton.kernels.level import backward_children, forward_entries
from pathnn.nn.backends.triton.kernels.segment import sum_segments, sum_small_tables
from pathnn.nn.backends.triton.order import Order, flat, sort_keys, split
from pathnn.nn.backends.triton.products import SplitWeight, grad_of_hidden, new_slots, project_hidden

if TYPE_CHECKING:
    from pathnn.nn.backends.triton.backend import Tokens
    from pathnn.nn.backends.triton.shared_gradients import SharedGradients


class Kept(NamedTuple):
    """The inner entries: h as products read it, c, and `W_hh h` or None; the backward pass overwrites the last."""

    hidden: Tensor
    c: Tensor
    projected: Tensor | None


TILE, WARPS = 128, 2
"""Numbers per program and gate, two for each thread."""

AT_ONCE, SUM_WARPS = 4, 1
LONG, LONG_AT_ONCE, LONG_WARPS = 64, 32, 4
"""A sum reads `AT_ONCE` rows at a time; `LONG_AT_ONCE` if the sums have at least `LONG` rows on average."""

SMALL_ROWS = 128
"""If both small tables have at most this many rows, their gradient is a product with zeros and ones; otherwise rows
are sorted."""

SMALL_PROGRAMS, LEAST_SMALL_PARTS, MOST_SMALL_PARTS, ROWS_PER_SMALL_PART = 1024, 32, 256, 256
"""The numbers of programs, parts and rows of that product (`parts_of`)."""

SMALL_AT_ONCE, SMALL_WARPS = 32, 4
"""The rows that a program of that product reads at a time, and its warps."""

MOST_PARTS, ROWS_PER_PART = 64, 256
"""A sum of sorted rows is cut into at most `MOST_PARTS` parts of about `ROWS_PER_PART` rows."""


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
    """Run all levels; return the states of the inner entries, and with `every` the products of all levels.

    The states of the paths (of all entries with `tokens.prefixes`) are summed into `out` in `order`, or with `add`
    added to it; without `order`, each has a row. Without `out`, the last level is left out.
    """
    levels, channels = tokens.levels, weight.channels
    starts = _starts(levels)
    c = tables.vertex.new_empty(starts[-2], channels)
    hidden = c.new_empty(weight.terms, starts[-2], weight.width, dtype=torch.float16)  # as the products read it
    products = c.new_empty(starts[-2], 4 * channels) if every else None
    projected: Tensor | None = None
    states = c.new_empty(starts[-1], channels) if tokens.prefixes and out is not None else None
    block = column_block(channels)
    at_once, no_edge = TILE // block, 0 if tables.edge is None else tables.edge.size(0) - 1
    for t, level in enumerate(levels):
        last, above = t == len(levels) - 1, slice(starts[t - 1] if t else 0, starts[t])
        leaf = None if states is None else states[starts[t] : starts[t + 1]]
        if last and out is None:
            break
        if last and out is not None and leaf is None:
            leaf = out if order is None else out.new_empty(level.num_entries, channels)
        if t:
            projected = c.new_empty(above.stop - above.start, 4 * channels) if products is None else products[above]
            project_hidden(hidden[:, above], weight, projected)
        if level.num_entries:
            forward_entries[cover(level.num_entries, at_once), cover(channels, block)](
                level.parent, level.vertex, level.edge, level.distance,
                tables.vertex, tables.edge, tables.distance, projected,
                None if last else hidden, c, leaf,
                level.num_entries, starts[t], above.start, tokens.num_nodes, no_edge, hidden.stride(0),
                CHANNELS=channels, WIDTH=hidden.size(2), PARTS=hidden.size(0), ROWS=at_once, BLOCK=block,
                num_warps=WARPS,
            )  # fmt: skip
        if last and leaf is not None and order is not None and out is not None:
            if states is None:
                sum_rows(leaf, order, out, first_row=starts[t] + order.first_row, stride=2, span=1, add=add)
            else:
                sum_rows(states, order, out, first_row=order.first_row, stride=2, span=2, add=add)
    return Kept(hidden, c, products)


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
    """Return the gradient of the table of vertices, from that of `out`; add the others to `collected`, unless None."""
    levels, (hidden, c, projected) = tokens.levels, kept
    starts, gates = _starts(levels), 4 * weight.channels
    grad_gates = grad.new_empty(starts[-1], gates)
    slots = new_slots(grad, len(levels))
    if projected is None:
        projected = grad.new_empty(starts[-2], gates)
        project_hidden(hidden, weight, projected)
    grad_hidden, grad_source, grad_c = None if summed else grad, grad if summed else None, None
    channels, block = weight.channels, column_block(weight.channels)
    at_once, no_edge = TILE // block, 0 if tables.edge is None else tables.edge.size(0) - 1
    for t in range(len(levels) - 1, -1, -1):
        level, above = levels[t], slice(starts[t - 1] if t else 0, starts[t])
        number, first_child = above.stop - above.start if t else level.num_entries, 0  # a root has no parent
        children = products = grad_above = largest = None  # `products` is overwritten by its gradient
        if t:
            children, first_child = tokens.children(t, number)
            products, grad_above, largest = projected[above], torch.empty_like(c[above]), slots[t]
        if number:
            backward_children[cover(number, at_once), cover(channels, block)](
                children, level.vertex, level.edge, level.distance,
                tables.vertex, tables.edge, tables.distance, products, c,
                grad_hidden, grad_source, grad_c, grad_gates, products, grad_above, largest,
                number, starts[t], above.start, first_child, tokens.num_nodes, no_edge,
                CHANNELS=channels, ROWS=at_once, BLOCK=block, num_warps=WARPS,
            )  # fmt: skip
        if products is not None and largest is not None:
            grad_hidden, grad_c = grad_of_hidden(products, largest, weight), grad_above
            grad_source = grad if tokens.prefixes else None
    if collected is not None:
        collected.add(tables, tokens, weight, grad_gates, (projected, slots, hidden))
    grad_vertex = torch.empty_like(tables.vertex)
    if collected is None or not leaves_apart(tables, tokens):
        sum_rows(grad_gates, order, grad_vertex, first_row=order.first_row, stride=2, span=2)
        return grad_vertex
    sum_rows(grad_gates, order, grad_vertex, first_row=order.first_row, stride=2, span=1)
    collected.add_leaves(grad_vertex)
    others = order._replace(start=order.start[1:])
    sum_rows(grad_gates, others, grad_vertex, first_row=order.first_row, stride=2, span=1, add=True)
    return grad_vertex


def leaves_apart(tables: ProjectedInputs, tokens: Tokens) -> bool:
    """Return whether sums of the leaves (sources, at distance 0) at vertices replace their rows of the small tables."""
    return tables.edge is None and tables.distance is not None and not tokens.prefixes


def sum_rows(
    rows: Tensor, order: Order, out: Tensor, *, first_row: int, stride: int = 1, span: int = 1, add: bool = False
) -> None:
    """Sum rows into each row of `out`, in their order; `order` counts rows from `first_row`."""
    if out.numel() == 0:
        return
    block, long = column_block(out.size(1)), rows.size(0) >= LONG * out.size(0)
    sum_segments[out.size(0), cover(out.size(1), block)](
        rows, order.order, order.start, out, first_row, stride, span,
        ADD=add, WIDTH=out.size(1), AT_ONCE=LONG_AT_ONCE if long else AT_ONCE, BLOCK=block,
        num_warps=LONG_WARPS if long else SUM_WARPS,
    )  # fmt: skip


def add_small_tables(tables: ProjectedInputs, tokens: Tokens, grad_gates: Tensor, collected: SharedGradients) -> None:
    """Add the gradients of the tables of edges and of distances: one product for small tables."""
    roots = tokens.levels[0].num_entries
    edge = flat([level.edge for level in tokens.levels[1:]])
    apart = leaves_apart(tables, tokens)
    read = tokens.levels[:-1] if apart else tokens.levels
    distance = flat([level.distance for level in read])
    if apart:
        grad_gates = grad_gates[: sum(level.num_entries for level in read)]
    edges = 0 if tables.edge is None or edge is None else tokens.components or tables.edge.size(0) - 1
    distances = 0 if tables.distance is None or distance is None else tables.distance.size(0)
    small_edges = edges if edges + distances <= SMALL_ROWS else 0
    if 0 < small_edges + distances <= SMALL_ROWS:
        collected.small = sum_small_parts(
            grad_gates, edge, distance, roots, small_edges, distances, collected.small, tokens.masks
        )
    if edge is not None and tables.edge is not None and edges > small_edges:
        collected.edge = _sum_sorted(
            grad_gates, torch.where(edge < 0, edges, edge), tables.edge, collected.edge, first_row=-roots
        )
    if distance is not None and tables.distance is not None and distances > SMALL_ROWS:
        collected.distance = _sum_sorted(grad_gates, distance, tables.distance, collected.distance, first_row=0)


def _sum_sorted(rows: Tensor, place: Tensor, like: Tensor, total: Tensor | None, *, first_row: int) -> Tensor:
    """Return the sums of the rows of each place, shaped like `like`, added to `total`; in parts if rows are many."""
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


def sum_small_parts(
    rows: Tensor,
    edge: Tensor | None,
    distance: Tensor | None,
    roots: int,
    edges: int,
    distances: int,
    partial: Tensor | None = None,
    masks: Tensor | None = None,
) -> Tensor:
    """Sum the rows of each of `edges` types, then of each of `distances` distances, in parts (`sum_small_tables`).

    Returns `[parts, edges + distances, d]`, added to `partial` if given.
    """
    entries, width = rows.shape
    block = column_block(width, largest=64)
    parts = parts_of(
        entries, ROWS_PER_SMALL_PART,
        blocks=cover(width, block), programs=SMALL_PROGRAMS, least=LEAST_SMALL_PARTS, most=MOST_SMALL_PARTS,
    )  # fmt: skip
    parts = parts if partial is None else min(parts, partial.size(0))
    out = rows.new_empty(parts, edges + distances, width) if partial is None else partial
    sum_small_tables[parts, cover(width, block)](
        rows, edge if edges else None, distance, masks, out, entries, roots, parts,
        ADD=partial is not None, EDGES=edges, DISTANCES=distances, TABLE=max(16, power_above(edges + distances)),
        WIDTH=width, ROWS=SMALL_AT_ONCE, BLOCK=block, num_warps=SMALL_WARPS,
    )  # fmt: skip
    return out


def _starts(levels: list[LevelTokens]) -> list[int]:
    """Return the first entry of each level, counted over all levels, and the number of entries."""
    return list(accumulate((level.num_entries for level in levels), initial=0))
