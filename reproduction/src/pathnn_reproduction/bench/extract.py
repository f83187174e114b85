"""Measure how fast paths are extracted: against igraph, in memory, with the number of graphs, on a GPU."""

from __future__ import annotations

import multiprocessing
import re
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.paths import extract_paths, list_paths
from pathnn.paths.options import COLLECTIONS, Collection
from pathnn_reproduction.bench import timing
from pathnn_reproduction.bench.shapes import graph_set


def igraph_paths(graph: Any, collection: Collection, k: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return paths and, for AP, distances, a tensor per length: path by path, as the released code does."""
    apart = np.array(graph.distances()) if collection == "ap" else None
    paths: list[list[list[int]]] = [[] for _ in range(k)]
    distances: list[list[list[int]]] = [[] for _ in range(k)]
    for source in range(graph.vcount()):
        if collection == "ap":
            found = graph.get_all_simple_paths(source, minlen=1, maxlen=k)
        elif collection == "sp+":
            found = graph.get_all_shortest_paths(source)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # "couldn't reach some vertices"
                found = graph.get_shortest_paths(source)
        for path in found:
            if 2 <= len(path) <= k + 1:
                paths[len(path) - 2].append(path)
                if apart is not None:
                    distances[len(path) - 2].append([apart[source, vertex] for vertex in path])
    return [_tensor(found) for found in paths], [_tensor(found) for found in distances]


def _tensor(rows: list[list[int]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.long)


def to_igraph(edge_index: Tensor, num_nodes: int) -> Any:
    """Return the graph as an `igraph.Graph`."""
    import igraph

    one_way = edge_index[:, edge_index[0] < edge_index[1]].t().tolist()
    return igraph.Graph(n=num_nodes, edges=one_way)


WORKLOADS: dict[str, tuple[int, int, int]] = {  # k, graphs for ours, graphs for the peer
    "zinc": (4, 4000, 150),
    "dd": (2, 300, 12),
    "peptides": (8, 500, 20),
}


def compare(threads: int) -> list[dict[str, Any]]:
    """Return the milliseconds per 1000 graphs of ours and of igraph; a row per workload and collection."""
    rows = []
    with timing.threads(threads):
        for shape, collection in product(WORKLOADS, COLLECTIONS):
            k, many, few = WORKLOADS[shape]
            graphs = graph_set(shape, many)
            union = graphs.union(), graphs.num_nodes
            peers = [to_igraph(graphs[i].edge_index, graphs[i].num_nodes) for i in range(few)]
            igraph = partial(_igraph_all, peers, collection, k)
            listed, trie = (partial(work, *union, collection=collection, k=k) for work in (list_paths, extract_paths))
            peer = timing.medians({"igraph": igraph}, 3)["igraph"] / few
            ours = timing.medians({"list": listed, "trie": trie}, 5)
            ours = {name: ms / many for name, ms in ours.items()}
            rows.append({
                "workload": shape, "collection": collection, "k": k, "threads": threads, "igraph_ms": 1e3 * peer,
                "list_ms": 1e3 * ours["list"], "trie_ms": 1e3 * ours["trie"],
                "list_ratio": peer / ours["list"], "trie_ratio": peer / ours["trie"],
            })  # fmt: skip
    return rows


def _igraph_all(graphs: list[Any], collection: Collection, k: int) -> None:
    for graph in graphs:
        igraph_paths(graph, collection, k)


def memory() -> list[dict[str, Any]]:
    """Return the peak memory of an extraction over the size of its result, each in a process of its own."""
    rows = []
    for shape, (k, _, _) in WORKLOADS.items():
        for collection in COLLECTIONS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                size, peak = pool.apply(_memory_of, (shape, collection))
            rows.append(
                {"workload": shape, "collection": collection, "k": k, "result_bytes": size, "peak_bytes": peak,
                 "ratio": peak / size}
            )  # fmt: skip
    return rows


def _memory_of(shape: str, collection: Collection) -> tuple[int, int]:
    """Return the bytes of a result and of the peak, after a small extraction that loads all code."""
    k, many, _ = WORKLOADS[shape]
    graphs = graph_set(shape, many)
    few, union = graphs.chunk(0, 8), graphs.union()
    extract_paths(few.union(), few.num_nodes, collection=collection, k=k)
    trie, peak = peak_bytes(lambda: extract_paths(union, graphs.num_nodes, collection=collection, k=k))
    return trie.nbytes, peak


def scale(sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000), *, chunk_size: int = 10_000) -> list[dict[str, Any]]:
    """Return time and peak memory by the number of ZINC-shaped molecules, AP, K = 4, in equal chunks."""
    chunk = graph_set("zinc", chunk_size)
    extract = partial(extract_paths, chunk.union(), chunk.num_nodes, collection="ap", k=4)
    rows = []
    for size in sizes:
        reset_peak()
        start = time.perf_counter()
        paths = sum(extract().num_paths for _ in range(size // len(chunk)))
        seconds = time.perf_counter() - start
        rows.append(
            {"graphs": size, "paths": paths, "seconds": seconds, "us_per_graph": 1e6 * seconds / size,
             "peak_process_bytes": status_bytes("VmHWM")}
        )  # fmt: skip
    return rows


def on_gpu(graphs: int = 12_000) -> dict[str, Any]:
    """Return the milliseconds to extract ZINC-shaped graphs on the GPU, K = 4, and whether the CPU agrees."""
    batch = graph_set("zinc", graphs)
    union = batch.union()
    result: dict[str, Any] = {"graphs": graphs, "k": 4}
    for collection in COLLECTIONS:
        work = partial(extract_paths, union.cuda(), batch.num_nodes, collection=collection, k=4)
        result[f"{collection}_ms"] = timing.medians({"ours": work}, 11)["ours"]
        trie = work()
        result[f"{collection}_equal_to_cpu"] = trie.equal(
            extract_paths(union, batch.num_nodes, collection=collection, k=4).to("cuda")
        )
        result[f"{collection}_entries"] = trie.num_entries
    return result


def peak_bytes(work: Callable[[], Any]) -> tuple[Any, int]:
    """Return the result of `work`, and how far the memory of the process rose during the call (Linux)."""
    reset_peak()
    before = status_bytes("VmRSS")
    result = work()
    return result, status_bytes("VmHWM") - before


def reset_peak() -> None:
    """Reset the peak memory of this process."""
    Path("/proc/self/clear_refs").write_text("5")


def status_bytes(name: str) -> int:
    """Return a line of `/proc/self/status`, in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])
