"""Extraction on the CPU: bound, reserve, write once, close the gaps; ranges of roots in parallel threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from pathnn.paths.cpu.path_distances import fill_path_distances
from pathnn.paths.cpu.samples import draw_walks, sample_walks
from pathnn.paths.cpu.token_tries import component_spans, fill_table, smallest_of_components, walk_tries
from pathnn.paths.cpu.walks import bound_walks, close_gaps, count_walks, list_walks, scratch
from pathnn.paths.csr import Csr, sort_by_count
from pathnn.paths.options import OTHER_COLLECTIONS, UNLIMITED, WALKS, PathOptions
from pathnn.paths.trie import PathTrie

Ints = npt.NDArray[Any]

T = TypeVar("T")
Item = TypeVar("Item")
Range = tuple[int, int]

SMALL = 2048  # roots: below this, threads cost more than they bring
TABLE_BYTES = 2**26  # of distances between the vertices of a component


def count_per_source(
    csr: Csr, options: PathOptions, limit: int = UNLIMITED, sources: Tensor | None = None
) -> tuple[Tensor, bool]:
    """Count paths per source and length, `[num_nodes, k]`; return also whether all were counted before the `limit`.

    Vertices that are not among `sources` (None: all are) have none. Cycles are listed to count them; if there are too
    many paths to search for them, these are what is counted.
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

    return torch.from_numpy(counts), all(_in_ranges(count, _ranges(roots.size)))


def bound_per_source(csr: Csr, k: int) -> Tensor:
    """Bound the number of paths per source and length, cheaply: walks that never turn straight back, float64."""
    rowptr, col, _ = csr.arrays()
    return torch.from_numpy(bound_walks(rowptr, col, csr.reverse.numpy(), k, np.empty((0, 0))))


def extract(csr: Csr, most: Tensor, options: PathOptions, table: tuple[Ints, Ints] | None) -> PathTrie:
    """Extract the tries of a collection, walking from far ends: `csr` is the graph with its edges turned around.

    `most[v, l - 1]` bounds the number of walks of length `l` from `v`; `table` has the distances that tokens need.
    """
    rowptr, col, edge_of = csr.arrays()
    reach = max(int(most.any(dim=0).sum()), 1)  # longer lengths are empty
    split = table is not None
    ranges = _ranges(csr.num_nodes)
    counts = np.concatenate(
        [[[b - a for a, b in ranges]], _per_range(most[:, :reach], ranges).T]
    )  # [reach + 1, ranges]
    lengths, depths = at = tuple(np.array([(length, t) for length in range(1, reach + 1) for t in range(length + 1)]).T)
    below = lengths[depths > 0], depths[depths > 0]
    room = np.zeros((reach + 1, reach + 1, len(ranges)), np.int64)
    room[at] = counts[lengths] if split else np.minimum(counts[lengths], counts[depths])
    starts, entries = _starts(room, at)
    child_starts, children = _starts(room, below)
    vertex, distance = np.empty(entries, np.int32), np.empty(entries if split else 0, np.int32)
    parent, edge = np.empty(children, np.int32), np.empty(children, np.int32)

    pointer, distances = table or (np.empty(0, np.int64), np.empty(0, np.uint8))

    def walk(start: int, stop: int) -> Ints:
        i = ranges.index((start, stop))
        found = walk_tries(
            rowptr, col, edge_of, options.definition.rule, pointer, distances, reach, np.arange(start, stop),
            most.numpy(), starts[:, :, i].copy(), child_starts[:, :, i].copy(), vertex, parent, edge, distance,
        )  # fmt: skip
        return np.asarray(found)

    found = _in_ranges(walk, ranges)
    size = np.stack(found, axis=2) if found else room
    sizes = tuple(tuple(int(n) for n in size[length, : length + 1].sum(axis=1)) for length in range(1, reach + 1))
    sizes += tuple((0,) * (length + 1) for length in range(reach + 1, options.k + 1))
    first = size.cumsum(axis=2) - size  # of each range within its level
    _close(vertex, starts[at], size[at])
    _close(edge, child_starts[below], size[below])
    _close(parent, child_starts[below], size[below], first[below[0], below[1] - 1])
    if split:
        _close(distance, starts[at], size[at])
    known = torch.from_numpy(distance) if split else _position_distances(sizes) if options.distances else None
    flat = [torch.from_numpy(x) for x in (vertex, parent, edge)]
    return PathTrie(
        flat[0], flat[1], flat[2], known, sizes, options.collection, csr.num_nodes, csr.num_edges,
        directed=csr.directed,
    )  # fmt: skip


def enumerate_paths(csr: Csr, most: Tensor, options: PathOptions, sources: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """The paths, `[n, length + 1]` int32 per length, source first; and per length which are continued by none.

    `most[v, l - 1]` bounds the number of paths of length `l` from `v`.
    """
    arrays, rule, roots = csr.arrays(), options.definition.rule, sources.numpy()
    no_rows = np.empty(0, np.int32)

    def write(start: int, stop: int, starts: Ints, paths: Ints, end_starts: Ints, ended: Ints) -> Ints:
        count, searched = np.zeros(options.k + 1, np.int64), scratch(csr.num_nodes)
        some = roots[start:stop]
        list_walks(*arrays, rule, options.k, some, searched, starts, count, paths, no_rows, end_starts, ended)
        return count

    return _write_paths(most[sources], write)


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
    reverse, smallest, roots = csr.reverse.numpy(), smallest_of_components(rowptr, col), sources.numpy()
    if options.collection in WALKS:
        backtrack = options.collection == "walks"

        def draw(start: int, stop: int, starts: Ints, walks: Ints, *_: Ints) -> Ints:
            some = roots[start:stop]
            return np.asarray(draw_walks(rowptr, col, backtrack, k, kept, seed, smallest, some, starts, walks))

        return _write_paths(torch.full((roots.size, k), float(kept)), draw)[0]
    cumulated = np.empty((0 if options.definition.by_distance else k, col.size))
    bounds = bound_walks(rowptr, col, reverse, k, cumulated)

    def write(start: int, stop: int, starts: Ints, paths: Ints, *_: Ints) -> Ints:
        found = sample_walks(
            rowptr, col, reverse, into, before, cumulated, bounds, rule, k, kept, seed, smallest,
            roots[start:stop], starts, paths,
        )  # fmt: skip
        return np.asarray(found)

    return _write_paths(torch.from_numpy(bounds[roots].clip(max=kept)), write)[0]


def _write_paths(most: Tensor, write: Callable[..., Ints]) -> tuple[list[Tensor], list[Tensor]]:
    """Reserve memory for paths and a mark for each, let `write` fill it in ranges of roots, and close the gaps."""
    k, ranges = most.size(1), _ranges(most.size(0))
    bounds = _per_range(most, ranges)
    room = np.concatenate([np.zeros_like(bounds[:, :1]), bounds], axis=1).T.copy()  # [k + 1, ranges]
    width = np.arange(1, k + 2)[:, None]
    starts = (np.cumsum(room * width) - (room * width).ravel()).reshape(room.shape)
    end_starts = (np.cumsum(room) - room.ravel()).reshape(room.shape)
    paths, ended = np.empty((room * width).sum(), np.int32), np.empty(room.sum(), np.uint8)

    def walk(start: int, stop: int) -> Ints:
        i = ranges.index((start, stop))
        return write(start, stop, starts[:, i].copy(), paths, end_starts[:, i].copy(), ended)

    found = _in_ranges(walk, ranges)
    size = np.stack(found, axis=1) if found else room
    _close(paths, starts, size * width)
    _close(ended, end_starts, size)
    totals = size.sum(axis=1)[1:].tolist()
    lists = torch.split(torch.from_numpy(paths), [n * (i + 2) for i, n in enumerate(totals)])
    return [x.view(-1, i + 2) for i, x in enumerate(lists)], list(torch.split(torch.from_numpy(ended).bool(), totals))


def path_distances(csr: Csr, paths: Sequence[Tensor]) -> list[Tensor]:
    """The distance of each vertex of the paths from its source, int32; `k + 1` for dummy tokens.

    `paths[l - 1]` is `[n, l + 1]` int32, source first.

    >>> from pathnn.paths.csr import to_csr
    >>> triangle = to_csr(torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), 3)
    >>> path_distances(triangle, [torch.tensor([[0, 1]]), torch.tensor([[0, 1, 2]])])[1].tolist()
    [[0, 1, 1]]
    """
    rowptr, col, _ = csr.arrays()
    into, sources, _ = csr.flip().arrays()
    sizes = [rows.numel() for rows in paths]
    rows = torch.cat([rows.flatten().int() for rows in paths]).numpy()
    begin, ptr, places, numbers = [], [], 0, 0
    for length, first in enumerate((x[:, 0].int().numpy() for x in paths), start=1):
        order = sort_by_count(first, np.arange(first.size), csr.num_nodes)
        begin.append(places + order * (length + 1))
        ptr.append(numbers + np.searchsorted(first[order], np.arange(csr.num_nodes + 1)))
        places, numbers = places + first.size * (length + 1), numbers + first.size
    begins, ptrs, out = np.concatenate(begin), np.stack(ptr), np.empty(rows.size, np.int32)

    def fill(start: int, stop: int) -> None:
        fill_path_distances(rowptr, col, into, sources, len(paths), rows, begins, ptrs, start, stop, out)

    _in_ranges(fill, _ranges(csr.num_nodes))
    lists = torch.split(torch.from_numpy(out), sizes)
    return [x.view(-1, length + 1) for length, x in enumerate(lists, start=1)]


def _position_distances(sizes: tuple[tuple[int, ...], ...]) -> Tensor:
    """Return distances to the source on shortest paths: level `t` of length `l` is `l - t` away."""
    values = [len(levels) - 1 - t for levels in sizes for t in range(len(levels))]
    repeats = torch.tensor([n for levels in sizes for n in levels])
    return torch.tensor(values, dtype=torch.int32).repeat_interleave(repeats)


def distance_table(csr: Csr, k: int) -> tuple[Ints, Ints] | None:
    """Return pointers and distances up to `k`: that of `x` from `v` is `distances[pointer[v] + x]`.

    Returns None if a table of all pairs of vertices that are connected would be too large.
    """
    rowptr, col, _ = csr.arrays()
    low, high = component_spans(rowptr, col)
    span = high - low + 1
    if span.sum() > TABLE_BYTES:
        return None
    pointer, distances = np.cumsum(span) - span - low, np.empty(span.sum(), np.uint8)
    _in_ranges(lambda a, b: fill_table(rowptr, col, k, a, b, pointer, distances), _ranges(csr.num_nodes))
    return pointer, distances


def _per_range(most: Tensor, ranges: list[Range]) -> Ints:
    """Sum of the bounds of each range of roots, `[ranges, k]`."""
    total = np.array([most[a:b].sum(dim=0).numpy() for a, b in ranges]).reshape(-1, most.size(1))
    return total.astype(np.int64)


def _starts(room: Ints, levels: tuple[Ints, Ints]) -> tuple[Ints, int]:
    """Where each level's part of each range begins, `[k + 1, k + 1, ranges]`, and the room of all."""
    starts, flat = np.zeros_like(room), room[levels]
    starts[levels] = (np.cumsum(flat) - flat.ravel()).reshape(flat.shape)
    return starts, int(flat.sum())


def _close(values: Ints, starts: Ints, sizes: Ints, shifts: Ints | None = None) -> None:
    """Close the gaps between segments, in place."""
    shifts = np.zeros_like(sizes) if shifts is None else shifts
    values.resize(close_gaps(values, starts.ravel(), sizes.ravel(), shifts.ravel()), refcheck=False)


def _ranges(num_nodes: int) -> list[Range]:
    """Ranges of roots, several per thread so that dense parts of a graph do not hold up one of them."""
    threads = torch.get_num_threads()
    parts = 1 if threads == 1 or num_nodes < SMALL else 4 * threads
    bounds = [num_nodes * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def _in_ranges(work: Callable[[int, int], T], ranges: list[Range]) -> list[T]:
    return in_threads(lambda ends: work(*ends), ranges)


def in_threads(work: Callable[[Item], T], items: Sequence[Item]) -> list[T]:
    """Return `[work(item) for item in items]`, computed by as many threads as torch uses.

    >>> in_threads(abs, [-2, 1])
    [2, 1]
    """
    workers = min(torch.get_num_threads(), len(items))
    if workers <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))
