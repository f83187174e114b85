"""Kernels for padded batches: gather a batch from a packed dataset, and normalise its rows without the padding.

The gather kernels read three tables. `layout`, `[batch + 1, columns]`, says for each graph of the batch where its
entries begin in each level, then where its vertices and its edges begin, and which graph it is; its last row has the
totals. `table`, `[graphs, levels, 4]`, says for each graph and level: number of entries, first entry, first child
entry, and what was added to its parents. `origin`, `[graphs, 4]`, says: first vertex and edge in the features, and what
was added to vertices and edges in the tries. Padding is spread evenly over the padded parents, vertices and edges, so
that no sum becomes long.

BatchNorm reads the first `valid` rows of a matrix; `valid` is in the memory of the GPU. Statistics are computed per
chunk of rows and combined by every program that needs them: two launches, no atomics.
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
    """Gather the tokens of one graph and level, or (after the last graph) write the padding of a level.

    Several programs for the same graph and level take turns.
    """
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
    """Write the rows of the features of the vertices and edges of the batch, and the graph of each vertex.

    Padding is row 0 of the features and graph number `batch`. `valid` becomes the number of vertices of the batch. With
    `edge_index`, which counts vertices within a graph, also write the ends of the edges, `[2, edges]`; padding is loops
    at the padded vertices.
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


@triton.jit
def chunk_statistics(
    x, valid, partial, chunk, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Compute mean and sum of squared differences of the valid rows of each chunk: `partial[chunks, 2, d]`."""
    first = tl.program_id(0) * chunk
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    last = tl.minimum(first + chunk, tl.load(valid))
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        total += tl.load(
            x + row[:, None] * WIDTH + col[None, :], mask=(row < last)[:, None] & width[None, :], other=0.0
        )
    count = tl.maximum(last - first, 1)
    mean = tl.sum(total, axis=0) / count
    spread = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        on = (row < last)[:, None] & width[None, :]
        away = tl.load(x + row[:, None] * WIDTH + col[None, :], mask=on, other=0.0) - mean[None, :]
        spread += tl.where(on, away * away, 0.0)
    out = partial + tl.program_id(0) * (2 * WIDTH) + col
    tl.store(out, mean, mask=width)
    tl.store(out + WIDTH, tl.sum(spread, axis=0), mask=width)


@triton.jit
def normalise(
    x, valid, partial, weight, bias, running_mean, running_var, out, mean_out, scale_out,
    rows, chunk, chunks, eps, momentum,
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, TIMES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Normalise `TIMES` times `ROWS` rows, padding included; with `RELU`, write their positive parts.

    The first programs also write the statistics, and update the running ones.
    """
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    true = tl.load(valid)
    n = tl.maximum(true, 1)
    part = tl.arange(0, CHUNKS)
    here = (part < chunks)[:, None] & width[None, :]
    at = partial + part[:, None] * (2 * WIDTH) + col[None, :]
    means = tl.load(at, mask=here, other=0.0)
    count = tl.minimum(tl.maximum(n - part * chunk, 0), chunk).to(tl.float32)
    mean = tl.sum(means * count[:, None], axis=0) / n
    away = means - mean[None, :]
    spread = tl.load(at + WIDTH, mask=here, other=0.0) + away * away * count[:, None]
    square = tl.sum(tl.where(here, spread, 0.0), axis=0)
    scale = 1.0 / tl.sqrt(square / n + eps)
    w = tl.load(weight + col, mask=width, other=0.0)
    b = tl.load(bias + col, mask=width, other=0.0)
    for time in range(TIMES):
        row = (tl.program_id(0) * TIMES + time) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & width[None, :]
        place = row[:, None] * WIDTH + col[None, :]
        value = (tl.load(x + place, mask=mask, other=0.0) - mean[None, :]) * (scale * w)[None, :] + b[None, :]
        if RELU:
            value = tl.maximum(value, 0.0)
        tl.store(out + place, value, mask=mask)
    if tl.program_id(0) == 0:
        tl.store(mean_out + col, mean, mask=width)
        tl.store(scale_out + col, scale, mask=width)
        learns = width & (true > 0)
        old = tl.load(running_mean + col, mask=width, other=0.0)
        tl.store(running_mean + col, old + momentum * (mean - old), mask=learns)
        old = tl.load(running_var + col, mask=width, other=0.0)
        tl.store(running_var + col, old + momentum * (square / tl.maximum(n - 1, 1) - old), mask=learns)


@triton.jit
def chunk_gradients(
    grad, x, valid, mean, scale, weight, bias, partial, chunk,
    RELU: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the gradient, and its product with the normalised input, over the valid rows of each chunk."""
    first = tl.program_id(0) * chunk
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    last = tl.minimum(first + chunk, tl.load(valid))
    m = tl.load(mean + col, mask=width, other=0.0)
    s = tl.load(scale + col, mask=width, other=0.0)
    w = tl.load(weight + col, mask=width, other=0.0)
    b = tl.load(bias + col, mask=width, other=0.0)
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    along = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        on = (row < last)[:, None] & width[None, :]
        place = row[:, None] * WIDTH + col[None, :]
        g = tl.load(grad + place, mask=on, other=0.0)
        away = tl.load(x + place, mask=on, other=0.0) - m[None, :]
        if RELU:
            g = tl.where(away * (s * w)[None, :] + b[None, :] > 0.0, g, 0.0)
        total += g
        along += g * away * s[None, :]
    out = partial + tl.program_id(0) * (2 * WIDTH) + col
    tl.store(out, tl.sum(total, axis=0), mask=width)
    tl.store(out + WIDTH, tl.sum(along, axis=0), mask=width)


@triton.jit
def normalise_backward(
    grad, x, valid, mean, scale, weight, bias, partial, grad_x, grad_weight, grad_bias, rows, chunks,
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, TIMES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of the input, zero in the padding; the first programs also write those of the parameters."""
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    true = tl.load(valid)
    n = tl.maximum(true, 1)
    part = tl.arange(0, CHUNKS)
    here = (part < chunks)[:, None] & width[None, :]
    at = partial + part[:, None] * (2 * WIDTH) + col[None, :]
    total = tl.sum(tl.load(at, mask=here, other=0.0), axis=0)
    along = tl.sum(tl.load(at + WIDTH, mask=here, other=0.0), axis=0)
    m = tl.load(mean + col, mask=width, other=0.0)
    s = tl.load(scale + col, mask=width, other=0.0)
    w = tl.load(weight + col, mask=width, other=0.0)
    b = tl.load(bias + col, mask=width, other=0.0)
    for time in range(TIMES):
        row = (tl.program_id(0) * TIMES + time) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & width[None, :]
        on = (row < true)[:, None] & width[None, :]
        place = row[:, None] * WIDTH + col[None, :]
        g = tl.load(grad + place, mask=on, other=0.0)
        away = tl.load(x + place, mask=on, other=0.0) - m[None, :]
        if RELU:
            g = tl.where(away * (s * w)[None, :] + b[None, :] > 0.0, g, 0.0)
        normal = away * s[None, :]
        value = (w * s)[None, :] * (g - (total / n)[None, :] - normal * (along / n)[None, :])
        tl.store(grad_x + place, tl.where(on, value, 0.0), mask=mask)
    if tl.program_id(0) == 0:
        tl.store(grad_weight + col, along, mask=width)
        tl.store(grad_bias + col, total, mask=width)
