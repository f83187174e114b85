"""Extraction on the CPU: bound, reserve, write once, join what was written; ranges of roots in parallel threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from pathnn.paths.cpu.path_distances import fill_path_distances
from pathnn.paths.cpu.samples import draw_walks, sample_walks
from pathnn.paths.cpu.token_tries import fill_table, smallest_of_components, spare_memory, write_tries
from pathnn.paths.cpu.walks import AP, bound_walks, count_walks, list_walks, scratch
from pathnn.paths.csr import Csr, Ints
from pathnn.paths.options import OTHER_COLLECTIONS, UNLIMITED, WALKS, PathOptions
from pathnn.paths.trie import PathTrie

T = TypeVar("T")
Item = TypeVar("Item")

PER_PART, LEAST = 512, 4096  # roots of a part, and of all parts: below, threads cost more than they bring (NOTES, 45)
BLOCK = 2**16  # tokens that are listed at once: they stay in the cache, and loops over them are long
TABLE_BYTES = 2**26  # of distances between the vertices of a component


def count_per_source(
    csr: Csr, options: PathOptions, limit: int = UNLIMITED, sources: Tensor | None = None
) -> tuple[Tensor, bool]:
    """Count paths per source and length, `[num_nodes, k]`; return also whether all were counted before the `limit`.

    Cycles are listed to count them; if there are too many paths to search for them, these are what is counted.
    """
    if options.collection == "cycles":
        searched = options.searched_for_cycles()
        most, complete = count_per_source(csr, searched, limit, sources)
        if not complete:
            return pad(most, (1, 0))[:, : options.k], False
        cycles = list_cycles(csr, most, searched, torch.arange(csr.num_nodes) if sources is None else sources)
        starts = [torch.bincount(rows[:, 0], minlength=csr.num_nodes) for rows in cycles]
        return torch.stack(starts[: options.k], dim=1), True
    if options.collection in OTHER_COLLECTIONS:
        raise ValueError(
            f"collection={options.collection!r} has no paths to count: walks are drawn, give max_paths_per_source; "
            "custom paths come from a function, in extract_paths or AddPaths."
        )
    rowptr, col, _ = csr.arrays()
    into, before, _ = csr.flip().arrays()
    rule, k = options.definition.rule, options.k
    roots = np.arange(csr.num_nodes) if sources is None else sources.numpy()
    counts = np.zeros((csr.num_nodes, k), np.int64)

    def count(start: int, stop: int) -> bool:
        some = roots[start:stop]
        return bool(count_walks(rowptr, col, into, before, rule, k, some, limit, counts) == some.size)

    return torch.from_numpy(counts), all(_in_ranges(count, roots.size))


def bound_per_source(csr: Csr, k: int, cumulated: Ints | None = None) -> Tensor:
    """Bound the number of paths per source and length, float64, by the walks that never turn straight back."""
    rowptr, col, _ = csr.arrays()
    bounds = np.zeros((csr.num_nodes, k))
    cumulated = np.empty((0, 0)) if cumulated is None else cumulated
    bound_walks(rowptr, col, csr.reverse.numpy(), k, bounds, cumulated, np.ones(col.size), np.empty(col.size))
    return torch.from_numpy(bounds)


def extract(csr: Csr, most: Tensor, options: PathOptions, table: tuple[Ints, Ints] | None) -> PathTrie:
    """Extract the tries of a collection, walking from far ends: `csr` is the graph with its edges turned around.

    `most[v, l - 1]` bounds the number of walks of length `l` from `v`; `table` has the distances that tokens need.
    """
    reach = max(int(most.any(dim=0).sum()), 1)  # longer lengths are empty
    arrays, rule = csr.arrays(), options.definition.rule
    no_starts, no_ends = np.empty(0, np.int64), np.empty(0, np.uint8)
    split, (pointer, table_distances) = table is not None, table or (no_starts, no_ends)
    width, largest = np.arange(2, reach + 2), int(most.numpy().max(initial=0))  # tokens of a path; paths of a root
    lengths, depths = at = tuple(np.array([(length, t) for length in range(1, reach + 1) for t in range(length + 1)]).T)

    def walk(start: int, stop: int) -> list[Ints]:
        paths = np.append(stop - start, most[start:stop, :reach].sum(dim=0).numpy()).astype(np.int64)
        room = paths[lengths] if split else np.minimum(paths[lengths], paths[depths])
        below = room * (depths > 0)
        starts, child_starts, count = np.zeros((3, reach + 1, reach + 1), np.int64)
        starts[at], child_starts[at] = np.cumsum(room) - room, np.cumsum(below) - below
        vertex, distance = np.empty(room.sum(), np.int32), np.empty(room.sum() if split else 0, np.int32)
        parent, edge = np.empty(below.sum(), np.int32), np.empty(below.sum(), np.int32)
        listed = np.minimum(paths[1:] * width, largest * width + BLOCK)
        lines, size, roots = np.append(0, np.cumsum(listed) - listed), listed.sum(), np.arange(start, stop)
        (vertices, rows), distances = np.empty((2, size), np.int32), np.zeros(size, np.uint8)
        spare, searched = spare_memory(size, reach), scratch(0 if rule == AP else csr.num_nodes)
        while roots.size:
            number = np.zeros(reach + 1, np.int64)
            done = list_walks(
                *arrays, rule, reach, roots, BLOCK, *searched, lines, number, vertices, rows, no_starts, no_ends
            )
            write_tries(
                number, lines, vertices, rows, distances, *spare, pointer, table_distances, count,
                starts, child_starts, vertex, parent, edge, distance, False,
            )  # fmt: skip
            roots = roots[done:]
        return [count[at], starts[at], child_starts[at], vertex, parent, edge, distance]

    size, starts, child_starts, *flat = zip(*_in_ranges(walk, csr.num_nodes), strict=True)
    before = np.cumsum(size, axis=0) - size  # entries of each level in earlier ranges
    shifts = np.roll(before, 1, axis=1)  # a parent is in the level before
    below = np.array(size) * (depths > 0)
    total = iter(np.sum(size, axis=0).tolist())
    sizes = tuple(tuple(next(total, 0) for _ in range(length + 1)) for length in range(1, options.k + 1))
    vertex, parent = join(flat.pop(0), starts, size), join(flat.pop(0), child_starts, below, shifts)  # frees the parts
    edge, known = join(flat.pop(0), child_starts, below), join(flat.pop(0), starts, size) if split else None
    if options.distances and not split:
        known = _position_distances(sizes)
    return PathTrie(
        vertex, parent, edge, known, sizes, options.collection, csr.num_nodes, csr.num_edges, directed=csr.directed
    )


def enumerate_paths(csr: Csr, most: Tensor, options: PathOptions, sources: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the paths, `[n, length + 1]` int32 per length, source first; and per length which none continues."""
    arrays, rule, no_rows = csr.arrays(), options.definition.rule, np.empty(0, np.int32)

    def write(roots: Ints, starts: Ints, paths: Ints, end_starts: Ints, ended: Ints) -> Ints:
        count, searched = np.zeros(options.k + 1, np.int64), scratch(csr.num_nodes)
        list_walks(
            *arrays, rule, options.k, roots, UNLIMITED, *searched, starts, count, paths, no_rows, end_starts, ended
        )
        return count

    return _write_paths(most[sources], sources, write)


def list_cycles(csr: Csr, most: Tensor, options: PathOptions, sources: Tensor) -> list[Tensor]:
    """The cycles, `[n, length + 1]` int32 per length, from each of their vertices in `sources` back to it.

    They are the simple paths that an edge closes: `options` are those of all simple paths, up to one edge less.
    """
    edges = csr.sources() * csr.num_nodes + csr.col
    cycles = [torch.empty(0, 2, dtype=torch.int32)]
    for rows in enumerate_paths(csr, most, options, sources)[0]:
        closed = torch.isin(rows[:, -1].long() * csr.num_nodes + rows[:, 0], edges)
        closed &= csr.directed or rows.size(1) > 2  # there and back along one edge is no cycle
        cycles.append(torch.cat([rows, rows[:, :1]], dim=1)[closed])
    return cycles


def sample_paths(csr: Csr, options: PathOptions, seed: int, sources: Tensor) -> list[Tensor]:
    """A sample of the paths, or walks, `[n, length + 1]` int32 per length, source first; see `cpu/samples.py`."""
    kept, k, rule = options.max_paths_per_source, options.k, options.definition.rule
    assert kept is not None
    rowptr, col, _ = csr.arrays()
    into, before, _ = csr.flip().arrays()
    smallest = smallest_of_components(rowptr, col)
    if options.collection in WALKS:
        backtrack = options.collection == "walks"

        def draw(roots: Ints, starts: Ints, walks: Ints, *_: Ints) -> Ints:
            return draw_walks(rowptr, col, backtrack, k, kept, seed, smallest, roots, starts, walks)

        return _write_paths(torch.full((sources.numel(), k), float(kept)), sources, draw)[0]
    cumulated = np.empty((0 if options.definition.by_distance else k, col.size))
    bounds = bound_per_source(csr, k, cumulated)
    graph = rowptr, col, csr.reverse.numpy(), into, before, cumulated, bounds.numpy()

    def write(roots: Ints, starts: Ints, paths: Ints, *_: Ints) -> Ints:
        return sample_walks(*graph, rule, k, kept, seed, smallest, roots, starts, paths)

    return _write_paths(bounds[sources].clip(max=kept), sources, write)[0]


def _write_paths(most: Tensor, sources: Tensor, write: Callable[..., Ints]) -> tuple[list[Tensor], list[Tensor]]:
    """Reserve memory for paths and a mark for each, let `write` fill it in ranges of roots, and join what is filled."""
    width = np.arange(1, most.size(1) + 2)

    def walk(start: int, stop: int) -> tuple[Ints, ...]:
        room = np.append(0, most[start:stop].sum(dim=0).numpy()).astype(np.int64)
        starts, end_starts = np.cumsum(room * width) - room * width, np.cumsum(room) - room
        paths, ended = np.empty((room * width).sum(), np.int32), np.empty(room.sum(), np.uint8)
        return write(sources[start:stop].numpy(), starts, paths, end_starts, ended), starts, end_starts, paths, ended

    size, starts, end_starts, paths, ended = zip(*_in_ranges(walk, most.size(0)), strict=True)
    totals = np.sum(size, axis=0)[1:].tolist()
    lists = torch.split(join(paths, starts, size * width), [n * (i + 2) for i, n in enumerate(totals)])
    marks = torch.split(join(ended, end_starts, size).bool(), totals)
    return [x.view(-1, i + 2) for i, x in enumerate(lists)], list(marks)


def path_distances(csr: Csr, paths: Sequence[Tensor]) -> list[Tensor]:
    """Return the distance of each vertex of the paths from its source, int32; `k + 1` for dummy tokens."""
    rowptr, col, _ = csr.arrays()
    into, sources, _ = csr.flip().arrays()
    sizes = [rows.numel() for rows in paths]
    rows = torch.cat([rows.flatten().int() for rows in paths]).numpy()
    begin, ptr, places, numbers = [], [], 0, 0
    for length, first in enumerate((x[:, 0].int().numpy() for x in paths), start=1):
        order = first.argsort(kind="stable")
        begin.append(places + order * (length + 1))
        ptr.append(numbers + np.searchsorted(first[order], np.arange(csr.num_nodes + 1)))
        places, numbers = places + first.size * (length + 1), numbers + first.size
    begins, ptrs, out = np.concatenate(begin), np.stack(ptr), np.empty(rows.size, np.int32)

    def fill(start: int, stop: int) -> None:
        fill_path_distances(rowptr, col, into, sources, len(paths), rows, begins, ptrs, start, stop, out)

    _in_ranges(fill, csr.num_nodes)
    lists = torch.split(torch.from_numpy(out), sizes)
    return [x.view(-1, length + 1) for length, x in enumerate(lists, start=1)]


def _position_distances(sizes: tuple[tuple[int, ...], ...]) -> Tensor:
    """Return distances to the source on shortest paths: level `t` of length `l` is `l - t` away."""
    values = [len(levels) - 1 - t for levels in sizes for t in range(len(levels))]
    repeats = torch.tensor([n for levels in sizes for n in levels])
    return torch.tensor(values, dtype=torch.int32).repeat_interleave(repeats)


def distance_table(csr: Csr, k: int) -> tuple[Ints, Ints] | None:
    """Return pointers and distances up to `k`, that of `x` from `v` at `pointer[v] + x`; None if it were too large."""
    rowptr, col, _ = csr.arrays()
    low = smallest_of_components(rowptr, col)
    high = np.empty_like(low)
    high[low] = np.arange(low.size)  # of a component, its last vertex stays
    span = high[low] - low + 1
    if span.sum() > TABLE_BYTES:
        return None
    pointer, distances = np.cumsum(span) - span - low, np.empty(span.sum(), np.uint8)
    n = csr.num_nodes
    _in_ranges(lambda a, b: fill_table(rowptr, col, k, a, b, pointer, distances, *scratch(n)), n)
    return pointer, distances


def join(parts: Sequence[Ints], starts: Sequence[Ints], sizes: Sequence[Ints], shifts: Ints | None = None) -> Tensor:
    """Concatenate segments `parts[i][starts[i][j]:][:sizes[i][j]]`, `j` by `j`; add `shifts[i, j]` to each."""
    pieces = []
    for j in range(len(starts[0])):
        for i, part in enumerate(parts):
            piece = part[starts[i][j] : starts[i][j] + sizes[i][j]]
            pieces.append(piece if shifts is None or not shifts[i, j] else piece + part.dtype.type(shifts[i, j]))
    return torch.from_numpy(np.concatenate(pieces))


def _in_ranges(work: Callable[[int, int], T], number: int) -> list[T]:
    """Do the work for ranges of roots, several per thread so that dense parts of a graph do not hold up one of them."""
    threads = torch.get_num_threads()
    parts = 1 if threads == 1 or number < LEAST else min(4 * threads, number // PER_PART)
    bounds = [number * i // parts for i in range(parts + 1)]
    return in_threads(lambda ends: work(*ends), [(a, b) for a, b in pairwise(bounds) if a < b] or [(0, 0)])


def in_threads(work: Callable[[Item], T], items: Sequence[Item]) -> list[T]:
    """Return `[work(item) for item in items]`, computed by as many threads as torch uses."""
    workers = min(torch.get_num_threads(), len(items))
    if workers <= 1:
        return [work(item) for item in items]
    return list(_pool(workers, os.getpid()).map(work, items))


@cache
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    """Return the threads of a process (a forked one has none of the first): starting them takes long."""
    return ThreadPoolExecutor(workers)
