"""Measure how fast a batch with its paths is assembled: our packed graphs against PyG's `DataLoader`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from pathnn.data import PackedGraphs, PackedLoader, dataset_status, load_dataset
from pathnn.paths.ragged import RaggedTries
from pathnn.paths.storage import pack
from pathnn.paths.trie import PathTrie
from pathnn_reproduction.bench import timing
from pathnn_reproduction.bench.shapes import graph_set

OURS = "pathnn"
PER_LEVEL = "PyG, a tensor per level"
ADD_PATHS = "PyG, AddPaths"
ABOUT = (
    "Milliseconds to assemble a batch with its tries on a CPU: `PackedLoader` against PyG's `DataLoader`, once with a "
    "tensor per trie level shifted by `__inc__`, once with what `AddPaths` stores. Medians of rounds in which all make "
    "the same batches."
)


class LevelData(Data):
    """A graph with one tensor per field and level of its tries, shifted by `__inc__`, as PyG documents it."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Return how far the ids of the next graph of a batch are shifted."""
        field, _, place = key.partition("_")
        if field == "vertex":
            return self.num_nodes
        if field == "edgeid":
            return self.edge_index.size(1)
        if field == "parent":
            length, level = map(int, place.split("_"))
            return self[f"vertex_{length}_{level - 1}"].numel()
        return 0 if field == "distance" else super().__inc__(key, value, *args, **kwargs)


def level_data(data: Any, trie: PathTrie) -> LevelData:
    """Return the graph `data` with its tries, level by level.

    >>> from pathnn.paths import extract_paths
    >>> edges = torch.tensor([[0, 1], [1, 0]])
    >>> trie = extract_paths(edges, 2, collection="ap", k=1)
    >>> sorted(level_data(Data(edge_index=edges, num_nodes=2), trie).keys())[:3]
    ['distance_1_0', 'distance_1_1', 'edge_index']
    """
    out = LevelData(**data.to_dict())
    for length, levels in enumerate(trie.lengths(), start=1):
        for t, level in enumerate(levels.levels):
            fields = {"vertex": level.vertex, "distance": level.distance, "parent": level.parent, "edgeid": level.edge}
            for field, tensor in fields.items():
                if tensor is not None:
                    out[f"{field}_{length}_{t}"] = tensor
    return out


Method = Callable[[list[Tensor]], Iterator[Any]]
"""Yields the batches of some indices."""


def contestants(graphs: PackedGraphs, packed: PackedGraphs) -> dict[str, Method]:
    """Return the methods by name; `packed` has the tries of the graphs."""
    assert packed.tries is not None
    by_level, by_graph = [], []
    for i, data in enumerate(graphs):
        trie = packed.tries.select(torch.tensor([i]))
        by_level.append(level_data(data, trie))
        data.paths = pack(trie)
        by_graph.append(data)

    def with_tries(indices: list[Tensor]) -> Iterator[Any]:
        for batch in _pyg_batches(by_graph, indices):
            batch.trie = PathTrie.from_data(batch)
            yield batch

    return {
        OURS: lambda indices: map(PackedLoader(packed, max_entries=None).batch, indices),
        PER_LEVEL: partial(_pyg_batches, by_level),
        ADD_PATHS: with_tries,
    }


def _pyg_batches(graphs: list[Any], indices: list[Tensor]) -> Iterator[Any]:
    return iter(DataLoader(graphs, batch_sampler=[index.tolist() for index in indices]))


def run(
    *, graphs: int = 2000, batch_size: int = 128, k: int = 4, rounds: int = 15, threads: int = 1, batches: int = 4
) -> dict[str, Any]:
    """Return the milliseconds per batch of each method, medians of rounds with the same batches, and ratios."""
    with timing.threads(threads):
        data, origin = zinc_graphs(graphs)
        packed = data.with_paths(collection="ap", k=k)
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
        indices = list(torch.split(order[: batches * batch_size], batch_size))
        methods = contestants(data, packed)
        times = timing.medians({name: partial(_exhaust, method, indices) for name, method in methods.items()}, rounds)
    assert isinstance(packed.tries, RaggedTries)
    return {
        "about": ABOUT,
        "workload": f"{origin}, AP, k = {k}, batches of {batch_size}",
        "graphs": len(data),
        "batch_size": batch_size,
        "entries_per_batch": batch_size * int(packed.tries.sizes.sum()) / len(data),
        "threads": threads,
        "rows": [{"method": name, "ms": ms / len(indices), "ratio": ms / times[OURS]} for name, ms in times.items()],
    }


def _exhaust(method: Method, indices: list[Tensor]) -> None:
    """Make all batches."""
    deque(method(indices), maxlen=0)


def zinc_graphs(graphs: int) -> tuple[PackedGraphs, str]:
    """Return the first graphs of ZINC12k, or graphs of its shape if it is not available, and which of both."""
    if any(status.name == "zinc" and status.available for status in dataset_status()):
        data = load_dataset("zinc").graphs
        return data.subset(torch.arange(min(graphs, len(data)))), "ZINC12k"
    shaped = graph_set("zinc", graphs)
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(28, (shaped.num_nodes, 1), generator=generator)
    edge_attr = torch.randint(1, 4, (shaped.num_edges, 1), generator=generator)
    return replace(shaped, x=x, edge_attr=edge_attr, y=torch.randn(graphs, 1, generator=generator)), "ZINC-shaped"
