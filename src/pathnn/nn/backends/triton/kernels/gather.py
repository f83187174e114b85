"""A batch of graphs out of a packed dataset in a few launches, padded to shapes that do not change.

`plan`, `[batch + 1, columns]`, says for each graph of the batch where its entries begin in each level, then where its
vertices and its edges begin, and which graph it is; its last row holds the totals. `table`, `[graphs, levels, 4]`, says
for each graph and level: number of entries, first entry, first child entry, and what was added to its parents;
`origin`, `[graphs, 4]`: first vertex and edge in the features, and what was added to vertices and edges in the tries.
Padding is spread evenly over the padded parents, vertices and edges, so that no sum becomes long.

A batch may hold those of several models: the last axis of the programs counts them, each has its plan, and of every
level, of the vertices and of the edges its part, all of the same capacity. The distances of each are counted after
those of the models before it. A graph that has nothing in the plan (a batch with fewer graphs) is none.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gather_entries(
    plan, table, origin, level_first, child_first, capacity,
    vertex, parent, edge, distance, out_vertex, out_parent, out_edge, out_distance,
    batch, nodes, edges, distances, LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The tokens of one graph and level, or (after the last graph) the padding of a level; where there are several
    programs for each, they take turns."""
    parts = tl.num_programs(0) // (batch + 1)
    b = tl.program_id(0) // parts
    skip = (tl.program_id(0) % parts) * BLOCK
    level = tl.program_id(1)
    model = tl.program_id(2)
    mine = plan + (model * (batch + 1) + b) * (LEVELS + 3)
    start = tl.load(mine + level)
    room = tl.load(capacity + level)
    room_above = tl.load(capacity + (level - 1), mask=level > 0, other=0)
    to = tl.load(level_first + level) + model * room + start
    child_at = tl.load(child_first + level)
    to_child = child_at + model * room + start
    begins_above = tl.load(mine + (level - 1), mask=level > 0, other=0)
    above = model * room_above + begins_above
    begins_node = tl.load(mine + LEVELS)
    node = model * nodes + begins_node
    begins_link = tl.load(mine + LEVELS + 1)
    link = model * edges + begins_link
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
                far = tl.load(distance + source + j, mask=on, other=0) + model * distances
                tl.store(out_distance + to + j, far, mask=on)
            below = on & (child_at >= 0)
            p = tl.load(parent + child + j, mask=below, other=0)
            tl.store(out_parent + to_child + j, p + by_parent, mask=below)
            e = tl.load(edge + child + j, mask=below, other=0)
            tl.store(out_edge + to_child + j, tl.where(e < 0, e, e + by_edge), mask=below)
    else:
        size = room - start
        parents = room_above - begins_above
        for begin in range(skip, size, parts * BLOCK):
            j = begin + tl.arange(0, BLOCK)
            on = j < size
            share = j.to(tl.int64)
            v = node + (share * (nodes - begins_node) // size).to(tl.int32)
            tl.store(out_vertex + to + j, v, mask=on)
            if distance is not None:
                tl.store(out_distance + to + j, tl.zeros([BLOCK], dtype=tl.int32) + model * distances, mask=on)
            below = on & (child_at >= 0)
            tl.store(out_parent + to_child + j, above + (share * parents // size).to(tl.int32), mask=below)
            tl.store(out_edge + to_child + j, link + (share * (edges - begins_link) // size).to(tl.int32), mask=below)


@triton.jit
def gather_rows(
    plan, origin, out_node, out_edge, out_batch, valid, batch, nodes, edges,
    LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Which rows of the features the vertices and edges of the batch are, and the graph of each vertex.

    Padding is row 0 of the features and graph number `batch`. `valid` becomes the number of true vertices.
    """
    b = tl.program_id(0)
    model = tl.program_id(1)
    mine = plan + (model * (batch + 1) + b) * (LEVELS + 3)
    out_node += model * nodes
    out_batch += model * nodes
    out_edge += model * edges
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
        tl.store(out_batch + j, tl.zeros([BLOCK], dtype=tl.int64) + (model * (batch + 1) + b), mask=on)
    for begin in range(link, last_link, BLOCK):
        j = begin + tl.arange(0, BLOCK)
        tl.store(out_edge + j, tl.where(more, first_edge + (j - link), 0), mask=j < last_link)
    tl.store(valid + model, node, mask=b == batch)


@triton.jit
def gather_edges(
    plan, origin, edge_index, out, all_edges, batch, nodes, edges, LEVELS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The ends of the edges of the batch, `[2, models * edges]`; `edge_index`, `[2, all_edges]`, counts vertices within
    a graph.

    Padding is loops at the padded vertices.
    """
    b = tl.program_id(0)
    model = tl.program_id(1)
    mine = plan + (model * (batch + 1) + b) * (LEVELS + 3)
    every = tl.num_programs(1) * edges
    out += model * edges
    node = tl.load(mine + LEVELS)
    link = tl.load(mine + LEVELS + 1)
    more = b < batch
    last = tl.where(more, tl.load(mine + 2 * LEVELS + 4, mask=more, other=0), edges)
    graph = tl.load(mine + LEVELS + 2).to(tl.int64)
    first = tl.load(origin + graph * 4 + 1, mask=more, other=0)
    for begin in range(link, last, BLOCK):
        j = begin + tl.arange(0, BLOCK)
        on = j < last
        true = on & more
        loop = node + (j - link) % (nodes - node)
        for end in tl.static_range(2):
            v = tl.load(edge_index + end * all_edges + first + (j - link), mask=true, other=0)
            vertex = model * nodes + tl.where(more, v.to(tl.int32) + node, loop)
            tl.store(out + end * every + j, vertex.to(tl.int64), mask=on)
