"""Kernels that gather a padded batch from a packed dataset.

They read three tables. `layout`, `[batch + 1, columns]`, says for each graph of the batch where its
entries begin in each level, then where its vertices and its edges begin, and which graph it is; its last row has the
totals. `table`, `[graphs, levels, 4]`, says for each graph and level: number of entries, first entry, first child
entry, and what was added to its parents. `origin`, `[graphs, 4]`, says: first vertex and edge in the features, and what
was added to vertices and edges in the tries. Padding is spread evenly over the padded parents, vertices and edges, so
that no sum becomes long.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gather_entries(
    layout, table, origin, level_first, child_first, capacity,
    vertex, parent, edge, distance, out_vertex, out_parent, out_edge, out_distance,
    batch, nodes, edges, LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gather the tokens of a graph and level, by several programs, or after the last graph the padding of a level."""
    parts = tl.num_programs(0) // (batch + 1)
    b = tl.program_id(0) // parts
    skip = (tl.program_id(0) % parts) * BLOCK
    level = tl.program_id(1)
    mine = layout + b * (LEVELS + 3)
    start = tl.load(mine + level)
    room = tl.load(capacity + level)
    room_above = tl.load(capacity + (level - 1), mask=level > 0, other=0)
    to = tl.load(level_first + level) + start
    child_at = tl.load(child_first + level)
    to_child = child_at + start
    above = tl.load(mine + (level - 1), mask=level > 0, other=0)
    node = tl.load(mine + LEVELS)
    link = tl.load(mine + LEVELS + 1)
    if b < batch:
        graph = tl.load(mine + LEVELS + 2).to(tl.int64)
        here = table + (graph * LEVELS + level) * 4
        size = tl.load(mine + (LEVELS + 3) + level) - start
        source = tl.load(here + 1)
        child = tl.load(here + 2)
        by_parent = above - tl.load(here + 3).to(tl.int32)
        by_node = node - tl.load(origin + graph * 4 + 2).to(tl.int32)
        by_edge = link - tl.load(origin + graph * 4 + 3).to(tl.int32)
        for begin in range(skip, size, parts * BLOCK):
            j = begin + tl.arange(0, BLOCK)
            on = j < size
            v = tl.load(vertex + source + j, mask=on, other=0)
            tl.store(out_vertex + to + j, tl.where(v < 0, v - by_node, v + by_node), mask=on)
            if distance is not None:
                tl.store(out_distance + to + j, tl.load(distance + source + j, mask=on, other=0), mask=on)
            below = on & (child_at >= 0)
            p = tl.load(parent + child + j, mask=below, other=0)
            tl.store(out_parent + to_child + j, p + by_parent, mask=below)
            e = tl.load(edge + child + j, mask=below, other=0)
            tl.store(out_edge + to_child + j, tl.where(e < 0, e, e + by_edge), mask=below)
    else:
        size = room - start
        parents = room_above - above
        for begin in range(skip, size, parts * BLOCK):
            j = begin + tl.arange(0, BLOCK)
            on = j < size
            share = j.to(tl.int64)
            v = node + (share * (nodes - node) // size).to(tl.int32)
            tl.store(out_vertex + to + j, v, mask=on)
            if distance is not None:
                tl.store(out_distance + to + j, tl.zeros([BLOCK], dtype=tl.int32), mask=on)
            below = on & (child_at >= 0)
            tl.store(out_parent + to_child + j, above + (share * parents // size).to(tl.int32), mask=below)
            tl.store(out_edge + to_child + j, link + (share * (edges - link) // size).to(tl.int32), mask=below)


@triton.jit
def gather_rows(
    layout, origin, edge_index, out_node, out_edge, out_batch, out_edge_index, valid, all_edges, batch, nodes, edges,
    LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the rows of the features of the batch, the graph of each vertex, and in `valid` the number of vertices.

    Padding is row 0 of the features and graph `batch`. With `edge_index`, which counts vertices within a graph, also
    write the ends of the edges, `[2, edges]`; padding is loops at the padded vertices.
    """
    b = tl.program_id(0)
    mine = layout + b * (LEVELS + 3)
    node = tl.load(mine + LEVELS)
    link = tl.load(mine + LEVELS + 1)
    more = b < batch
    last_node = tl.load(mine + 2 * LEVELS + 3, mask=more, other=0)
    last_link = tl.load(mine + 2 * LEVELS + 4, mask=more, other=0)
    graph = tl.load(mine + LEVELS + 2).to(tl.int64)
    first_node = tl.load(origin + graph * 4, mask=more, other=0)
    first_edge = tl.load(origin + graph * 4 + 1, mask=more, other=0)
    last_node = tl.where(more, last_node, nodes)
    last_link = tl.where(more, last_link, edges)
    for begin in range(node, last_node, BLOCK):
        j = begin + tl.arange(0, BLOCK)
        on = j < last_node
        tl.store(out_node + j, tl.where(more, first_node + (j - node), 0), mask=on)
        tl.store(out_batch + j, tl.zeros([BLOCK], dtype=tl.int64) + b, mask=on)
    for begin in range(link, last_link, BLOCK):
        j = begin + tl.arange(0, BLOCK)
        on = j < last_link
        tl.store(out_edge + j, tl.where(more, first_edge + (j - link), 0), mask=on)
        if edge_index is not None:
            loop = node + (j - link) % (nodes - node)
            for end in tl.static_range(2):
                v = tl.load(edge_index + end * all_edges + first_edge + (j - link), mask=on & more, other=0)
                to = out_edge_index + end * edges + j
                tl.store(to, tl.where(more, v.to(tl.int32) + node, loop).to(tl.int64), mask=on)
    tl.store(valid, node, mask=b == batch)
