"""Extract the paths of a graph, as tries or as lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pathnn.paths.build import check_paths, trie_of_paths
from pathnn.paths.count import refuse_explosion
from pathnn.paths.cpu import extract as cpu
from pathnn.paths.csr import Csr, check_batch, check_sources, to_csr, warn_parallel_edges
from pathnn.paths.options import (
    DEFAULT_MAX_PATHS,
    WALKS,
    Collection,
    PathFunction,
    PathOptions,
    check_collection,
    make_options,
)
from pathnn.paths.trie import PathTrie

if TYPE_CHECKING:
    from torch_geometric.data import Data

COUNT_TO = 10**7  # paths that are counted in any case; above max_paths the error then says "at least"
TRUST_BOUND = 2**25  # paths: memory is reserved by a bound up to this, by an exact count above


def extract_paths(
    edge_index: Tensor | Data,
    num_nodes: int | None = None,
    *,
    collection: Collection | PathFunction,
    k: int,
    distances: bool | None = None,
    extend: bool = False,
    max_paths: int | None = DEFAULT_MAX_PATHS,
    max_paths_per_source: int | None = None,
    seed: int | None = 0,
    directed: bool = False,
    sources: Tensor | None = None,
    batch: Tensor | None = None,
) -> PathTrie:
    """Extract the tries of all paths of length 1 to k of a graph, or of a batch of graphs.

    Runs compiled loops on the CPU, in as many threads as torch uses; the trie is on the device of `edge_index`. A batch
    gives the concatenation of what its graphs give. Self-loops and repeated edges change nothing: edge ids are the
    first row of `edge_index` for an edge.

    Args:
        edge_index: `[2, num_edges]`, both directions of each edge unless `directed`; or a PyG `Data` or `Batch`, from
            which `edge_index`, `num_nodes` and `batch` are taken (leave `num_nodes` out).
        num_nodes: number of vertices.
        collection: `"sp"` (one shortest path per pair: of several, the one that avoids the largest vertex ids),
            `"sp+"` (all shortest paths), `"ap"` (all simple paths), `"walks"` or `"nb-walks"` (random walks, of which
            the second never turn straight back; `max_paths_per_source` of each length), `"cycles"` (of at most `k`
            edges, from each of their vertices), or a function from `edge_index` and `num_nodes` to paths, as
            `PathTrie.from_paths` takes them.
        k: largest path length, in edges.
        distances: whether tokens carry their distance to the source; None means: for `"ap"`.
        extend: continue paths that no other path continues with dummy tokens up to length `k`.
        max_paths: refuse with `PathExplosionError`, before anything is allocated, when there are more; None: never.
        max_paths_per_source: keep at most this many paths per source and length, a sample; docs/paths.md says what
            is uniform.
        seed: what determines the sample; None: every call draws again.
        directed: take paths that follow the direction of edges, from their source to their far end. Distances are
            those from the source, and `trie.edge` has the edges in their own direction.
        sources: take only paths that start at these vertices, int64 without repetitions; the cost is that of their
            paths. Other vertices then have no paths, whatever their place in the paths of these.
        batch: graph of each vertex, as in PyG; only so that an error can name the graph.

    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])     # a triangle
    >>> trie = extract_paths(edge_index, 3, collection="ap", k=2)
    >>> trie
    PathTrie(collection='ap', k=2, num_paths=12, entries=24, device='cpu')
    >>> trie.to_paths()[1].tolist()
    [[2, 1, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [0, 1, 2]]
    """
    options = make_options(
        collection, k, distances=distances, extend=extend, max_paths_per_source=max_paths_per_source, seed=seed,
        max_paths=max_paths, directed=directed,
    )  # fmt: skip
    data: Any = edge_index
    if num_nodes is None and isinstance(getattr(data, "edge_index", None), Tensor):
        edge_index, num_nodes = data.edge_index, data.num_nodes
        batch = getattr(data, "batch", None) if batch is None else batch
    return extract_with(edge_index, num_nodes, options, batch, sources)


def extract_with(
    edge_index: Any,
    num_nodes: Any,
    options: PathOptions,
    batch: Tensor | None = None,
    sources: Tensor | None = None,
    edge_attr: Tensor | None = None,
) -> PathTrie:
    """Extract paths as `extract_paths` does, with checked options; warn of edges whose rows of `edge_attr` differ."""
    csr = to_csr(edge_index, num_nodes, directed=options.directed)
    if csr.parallel and edge_attr is not None:
        warn_parallel_edges(edge_index, edge_attr)
    check_batch(batch, num_nodes)
    if options.collection in WALKS and options.max_paths_per_source is None:
        raise ValueError(f"collection={options.collection!r}: give max_paths_per_source, the walks of each length.")
    roots = torch.arange(csr.num_nodes) if sources is None else check_sources(sources, csr)
    if options.collection in ("cycles", "custom"):
        trie = trie_of_paths(_other_paths(edge_index, csr, options, batch, roots), csr, options)
    elif options.max_paths_per_source is not None:
        trie = trie_of_paths(_sample(csr, options, batch, roots), csr, options)
    elif options.extend:
        trie = trie_of_paths(_extended(csr, options, batch, roots), csr, options)
    elif sources is None:
        trie = _extract_all(csr, options, batch, roots)
    else:
        trie = trie_of_paths(_list(csr, options, batch, roots)[0], csr, options)
    return trie if edge_index.device.type == "cpu" else trie.to(edge_index.device)


def list_paths(
    edge_index: Tensor,
    num_nodes: int,
    *,
    collection: Collection,
    k: int,
    max_paths: int | None = DEFAULT_MAX_PATHS,
    directed: bool = False,
) -> list[Tensor]:
    """List the paths, without a trie: one sorted int32 tensor `[n, length + 1]` per length, source first.

    Refuses with `PathExplosionError` when there are more than `max_paths`. With `directed`, paths follow the direction
    of edges.

    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])     # 0 - 1 - 2
    >>> list_paths(edge_index, 3, collection="ap", k=2)[1].tolist()
    [[0, 1, 2], [2, 1, 0]]
    """
    options = PathOptions(check_collection(collection), k, max_paths=max_paths, directed=directed)
    csr = to_csr(edge_index, num_nodes, directed=options.directed)
    paths, _ = _list(csr, options, None, torch.arange(csr.num_nodes))
    return [rows.to(edge_index.device) for rows in paths]


def _list(csr: Csr, options: PathOptions, batch: Tensor | None, sources: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the paths per length, and which of them no other path continues."""
    return cpu.enumerate_paths(csr, _bounds(csr, options, batch, sources), options, sources)


def _other_paths(
    edge_index: Tensor, csr: Csr, options: PathOptions, batch: Tensor | None, sources: Tensor
) -> list[Tensor]:
    """Return the cycles, or the paths that a function gives, of all lengths, int32."""
    k, function = options.k, options.function
    if options.collection == "cycles":
        searched = options.searched_for_cycles()
        return cpu.list_cycles(csr, _bounds(csr, searched, batch, sources), searched, sources)[:k]
    if function is None:
        raise ValueError(
            "collection='custom' does not say which paths: give extract_paths or AddPaths a function as collection, "
            "and a model their trie (trie=)."
        )
    given = function(edge_index, csr.num_nodes)
    if not isinstance(given, Sequence) or len(given) > k:
        came = f"{len(given)} lengths" if isinstance(given, Sequence) else f"a {type(given).__name__}"
        raise ValueError(f"the function gave {came}: expected a list of at most k={k} tensors, one per length.")
    paths = [*given, *(torch.empty(0, i + 2, dtype=torch.int32) for i in range(len(given), k))]
    for length, rows in enumerate(paths, start=1):
        check_paths(rows, length, csr.num_nodes, simple=False)
    paths = [rows.int().cpu().contiguous() for rows in paths]
    return [rows[torch.isin(rows[:, 0], sources.int())] for rows in paths]


def _extract_all(csr: Csr, options: PathOptions, batch: Tensor | None, sources: Tensor) -> PathTrie:
    """Write tries without a list of paths; with a list if the distances that tokens need take too much memory."""
    flipped = csr.flip()  # tries begin at far ends
    bounds = _bounds(flipped, options, batch, sources)
    if not options.distances or options.definition.by_distance:
        return cpu.extract(flipped, bounds, options, None)
    table = cpu.distance_table(csr, options.k)
    if table is None:
        return trie_of_paths(_list(csr, options, batch, sources)[0], csr, options)
    return cpu.extract(flipped, bounds, options, table)


def _extended(csr: Csr, options: PathOptions, batch: Tensor | None, sources: Tensor) -> list[Tensor]:
    """Return the paths, and those that no other path continues once more for every length, with dummy tokens."""
    k = options.k
    paths, ended = _list(csr, options, batch, sources)
    counts = torch.stack([torch.bincount(rows[:, 0], minlength=csr.num_nodes) for rows in paths], dim=1)
    for i in range(k - 1):
        counts[:, i + 1 :] += torch.bincount(paths[i][ended[i], 0], minlength=csr.num_nodes)[:, None]
    refuse_explosion(counts, True, options, options.limit, batch)
    return [
        torch.cat([pad(paths[i][ended[i]], (0, length - i), value=-1) for i in range(length)] + [paths[length]])
        for length in range(k)
    ]


def _sample(csr: Csr, options: PathOptions, batch: Tensor | None, sources: Tensor) -> list[Tensor]:
    seed = int(torch.randint(2**62, ())) if options.seed is None else options.seed
    paths = cpu.sample_paths(csr, options, seed, sources)
    if sum(map(len, paths)) > options.limit:
        counts = torch.stack([torch.bincount(rows[:, 0], minlength=csr.num_nodes) for rows in paths], dim=1)
        refuse_explosion(counts, True, options, options.limit, batch)
    return paths


def _bounds(csr: Csr, options: PathOptions, batch: Tensor | None, sources: Tensor) -> Tensor:
    """Bound the number of paths per source and length; count them and check the limit if the bound is too large."""
    bounds = cpu.bound_per_source(csr, options.k)
    if float(bounds[sources].sum()) <= min(options.limit, TRUST_BOUND):
        return bounds
    counts, complete = cpu.count_per_source(csr, options, max(options.limit, COUNT_TO), sources)
    refuse_explosion(counts, complete, options, options.limit, batch)
    return counts
