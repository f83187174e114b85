"""How many paths a dataset has and what they weigh, chunk by chunk, never holding all tries at once."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from pathnn.data.build_paths import BYTES_PER_PATH, PathOptions, chunks_of_paths, count_per_graph
from pathnn.data.memory import free_memory
from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Task
from pathnn.paths.options import Collection

SUMMARY_BYTES = 64 * 2**20


@dataclass(frozen=True)
class PathSummary:
    """What `pathnn paths` prints; `mean_paths[l]`: mean number of paths of exactly `l` edges per graph."""

    dataset: str
    collection: Collection
    k: int
    graphs: int
    mean_paths: dict[int, float]
    total_paths: int
    entries: int
    bytes: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


def summarize_paths(
    data: Task | PackedGraphs, collection: Collection, k: int, *, name: str | None = None, device: str = "cpu"
) -> PathSummary:
    """Count and extract all paths of a dataset; `bytes` is what its tries take in memory.

    >>> import torch
    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> summary = summarize_paths(PackedGraphs.from_edges([edge, edge], [2, 2]), "sp", 2)
    >>> summary.mean_paths, summary.total_paths, summary.entries
    ({1: 2.0, 2: 0.0}, 4, 8)
    """
    graphs, title = (data.graphs, data.name) if isinstance(data, Task) else (data, "own")
    begin = time.perf_counter()
    options = PathOptions(collection, k)
    graphs = PackedGraphs(graphs.edge_index.to(device), graphs.node_ptr, graphs.edge_ptr)
    counts = count_per_graph(graphs, options, max_paths=_most_paths(device))
    entries = size = 0
    for _, tries in chunks_of_paths(graphs, options, counts, SUMMARY_BYTES):
        entries += int(tries.sizes.sum())
        size += tries.nbytes
    means = counts.sum(dim=0).double() / max(len(graphs), 1)
    return PathSummary(
        dataset=name or title,
        collection=collection,
        k=k,
        graphs=len(graphs),
        mean_paths={length: float(mean) for length, mean in enumerate(means, start=1)},
        total_paths=int(counts.sum()),
        entries=entries,
        bytes=size,
        seconds=time.perf_counter() - begin,
    )


def _most_paths(device: str) -> int:
    """A hundred times what fits into memory: to extract more would take too long to be meant."""
    return 100 * free_memory(device) // BYTES_PER_PATH
