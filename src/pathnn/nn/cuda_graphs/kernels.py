"""Kernels for padded batches."""

from __future__ import annotations

import triton
import triton.language as tl

_NUMBERS = ["levels", "nodes", "all_nodes", "edges", "all_edges"]


@triton.jit(do_not_specialize=_NUMBERS, do_not_specialize_on_alignment=["vertex", "parent", "edge", "distance"])
def pad_levels(
    table, vertex, parent, edge, distance, out_vertex, out_parent, out_edge, out_distance,
    levels, nodes, all_nodes, edges, all_edges, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy each level of a trie into a padded one, and spread the padded entries evenly over the padding above.

    The rows of `table`, `[6, levels]`, are: entries; room for them; first entry and first child (-1: a root), here and
    in the padded trie. Programs of the second dimension share a level.
    """
    level = tl.program_id(0)
    size, room = tl.load(table + level), tl.load(table + levels + level)
    first, child = tl.load(table + 2 * levels + level), tl.load(table + 3 * levels + level)
    to, to_child = tl.load(table + 4 * levels + level), tl.load(table + 5 * levels + level)
    above = tl.load(table + level - 1, mask=level > 0, other=0)
    above_room = tl.load(table + levels + level - 1, mask=level > 0, other=0)
    free = (room - size).to(tl.int64)
    for begin in range(tl.program_id(1) * BLOCK, room, tl.num_programs(1) * BLOCK):
        j = begin + tl.arange(0, BLOCK)
        on, real = j < room, j < size
        share = (j - size).to(tl.int64)
        v = tl.load(vertex + first + j, mask=real, other=0)
        padding = nodes + (share * (all_nodes - nodes) // free).to(tl.int32)
        tl.store(out_vertex + to + j, tl.where(real, v, padding), mask=on)
        if distance is not None:
            tl.store(out_distance + to + j, tl.load(distance + first + j, mask=real, other=0), mask=on)
        below = on & (child >= 0)
        p = tl.load(parent + child + j, mask=real & below, other=0)
        padding = above + (share * (above_room - above) // free).to(tl.int32)
        tl.store(out_parent + to_child + j, tl.where(real, p, padding), mask=below)
        e = tl.load(edge + child + j, mask=real & below, other=0)
        padding = edges + (share * (all_edges - edges) // free).to(tl.int32)
        tl.store(out_edge + to_child + j, tl.where(real, e, padding), mask=below)
