"""The paper's figure of strongly regular graphs, and beyond its K = 4: which pairs of a family are distinguished.

Each family is tested by 1-WL and 3-WL, by the exact test with ever longer paths, and by untrained networks: a job each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pathnn.data import load_dataset
from pathnn.data.datasets.pairs import IN_THE_FIGURE
from pathnn.paths import count_paths
from pathnn.theory.fingerprints import (
    Lanes,
    classes,
    folklore_fingerprints,
    hashed_annotations,
    stack_lanes,
    wl_fingerprints,
)
from pathnn.theory.graphs import Graph
from pathnn.theory.isomorphism import all_pairs, as_graphs, confused_pairs
from pathnn.theory.untrained import UntrainedPhi, embeddings, untrained_models
from pathnn_reproduction.results import Row, has_key, read_rows

BEYOND = ("sr351899", "sr351668")
"""Families that the paper left out."""


ALL = (*IN_THE_FIGURE, *BEYOND)


SPEED = ("sr361446", 6)
"""A graph and a length of paths to measure the exact test by."""


SEEDS = 5


@dataclass(frozen=True)
class Job:
    """One row to be: a test of one family."""

    family: str
    test: str  # "wl", "exact", "network" or "speed"
    k: int = 0
    distances: bool = True
    phi: UntrainedPhi | None = None

    def key(self) -> Row:
        """What identifies the row."""
        return dict(vars(self))


def jobs(families: Sequence[str], *, k: int = 4, longest: int = 6, network_k: int | None = None) -> list[Job]:
    """All rows of the report: networks at `k`, with and without distances, the exact test up to `longest`.

    With `network_k`, networks with distances read paths up to that length as well.

    >>> [job.test for job in jobs(["sr16622"], longest=4)]
    ['wl', 'exact', 'exact', 'network', 'network', 'network', 'network', 'network']
    """
    phis: tuple[UntrainedPhi, ...] = ("identity", "tanh")
    with_relu: tuple[UntrainedPhi, ...] = ("identity", "relu", "tanh")
    found = []
    for family in families:
        found += [Job(family, "wl"), Job(family, "exact", longest, True), Job(family, "exact", k, False)]
        found += [Job(family, "network", k, True, phi) for phi in with_relu]
        found += [Job(family, "network", k, False, phi) for phi in phis]
        found += [Job(family, "network", i, True, phi) for i in range(k + 1, (network_k or k) + 1) for phi in phis]
    return found + ([Job(SPEED[0], "speed", SPEED[1])] if SPEED[0] in families else [])


def run(job: Job, *, device: str = "cpu") -> Row:
    """The result of one job: the number of confused pairs, and the time."""
    task = load_dataset(job.family)
    graphs = as_graphs(task.graphs)
    begin = time.perf_counter()
    if job.test == "wl":
        found: Row = {"wl1": pairs_in(wl_fingerprints(graphs)), "wl3": pairs_in(folklore_fingerprints(graphs))}
    elif job.test == "exact":
        found = {"lengths": list(exact_by_length(graphs, job.k, distances=job.distances))}
    elif job.test == "speed":
        return speed(graphs[0], job.k)
    else:
        found = _network(graphs, job, device)
    size = {"graphs": len(graphs), "pairs": len(graphs) * (len(graphs) - 1) // 2}
    return {**size, **found, "threads": torch.get_num_threads(), "seconds": time.perf_counter() - begin}


def exact_by_length(graphs: Sequence[Graph], longest: int, *, distances: bool, first: int = 3) -> Iterator[Row]:
    """The exact test at k = first, ..., longest: of graphs that are still confused with another one.

    An annotation keeps that of the level before, so what is once distinct stays so. `sum` is the number of pairs that
    are confused where the last layer only adds up; it needs all graphs and so is there only while all are tested.
    """
    alive = list(range(len(graphs)))
    for k in range(first, longest + 1):
        begin = time.perf_counter()
        found = hashed_annotations([graphs[i] for i in alive], collection="ap", k=k, distances=distances)
        rows = stack_lanes([one.fingerprints()[k] for one in found], (2,))
        whole = len(alive) == len(graphs)
        row: Row = {"k": k, "graphs": len(alive), "confused": pairs_in(rows)}
        row["sum"] = pairs_in(stack_lanes([one.total() for one in found], (2,))) if whole else None
        row["seconds"] = time.perf_counter() - begin
        groups = classes(rows)
        sizes = np.bincount(groups, minlength=1)
        alive = [i for i, group in zip(alive, groups, strict=True) if sizes[group] > 1]
        row["confused_graphs"] = _groups(alive, groups[sizes[groups] > 1]) if len(alive) <= 40 else None
        yield row
        if not alive:
            return


def speed(graph: Graph, k: int) -> Row:
    """Paths of length 1..k in a graph, and the seconds that the exact test takes for them on one core."""
    options: Row = {"collection": "ap", "k": k}
    hashed_annotations([graph], collection="ap", k=1)  # compiles, or loads what was compiled
    begin = time.perf_counter()
    hashed_annotations([graph], **options)
    seconds = time.perf_counter() - begin
    paths = int(count_paths(*graph, **options).sum())
    return {"graphs": 1, "pairs": 0, "paths": paths, "threads": 1, "seconds": seconds}


def pairs_in(rows: Lanes) -> int:
    """Number of pairs of equal rows.

    >>> pairs_in(np.array([[1, 1], [2, 2], [1, 1], [1, 1]], np.uint64))
    3
    """
    sizes = np.bincount(classes(rows), minlength=1)
    return int((sizes * (sizes - 1) // 2).sum())


def _groups(alive: Sequence[int], groups: np.ndarray[Any, Any]) -> list[list[int]]:
    return [[i for i, other in zip(alive, groups, strict=True) if other == group] for group in np.unique(groups)]


def _network(graphs: Sequence[Graph], job: Job, device: str) -> Row:
    assert job.phi is not None
    models = untrained_models(collection="ap", k=job.k, seeds=SEEDS, distances=job.distances, phi=job.phi)
    found = embeddings(models, graphs, device=device).cpu()
    pairs = all_pairs(len(graphs))
    return {"confused": [int(confused_pairs(rows, pairs).sum()) for rows in found], "network_device": device}


NETWORKS = (
    ("network", True, "identity"),
    ("relu", True, "relu"),
    ("closed", True, "tanh"),
    ("without", False, "identity"),
)
"""The networks of the report: the paper's, with a ReLU, the one that closes the gap, the paper's without distances."""


def summarize(path: Path, k: int = 4) -> list[Row]:
    """One row per family, in the paper's order: confused pairs of each test, None where it was not run."""
    rows = read_rows(path)
    return [_family(family, [row for row in rows if row["family"] == family], k) for family in ALL
            if any(row["family"] == family for row in rows)]  # fmt: skip


def _family(family: str, rows: Sequence[Row], k: int) -> Row:
    rows = [row for row in rows if row["test"] != "speed"]
    wl = _first(rows, test="wl") or {}
    found: Row = {"family": family, "graphs": rows[0]["graphs"], "pairs": rows[0]["pairs"]}
    found |= {"wl1": wl.get("wl1"), "wl3": wl.get("wl3")}
    for name, distances, phi in NETWORKS:
        row = _first(rows, test="network", k=k, distances=distances, phi=phi)
        found[name] = None if row is None else row["confused"]
        found[f"{name}_seconds"] = None if row is None else row["seconds"]
    lengths = {one["k"]: one for row in rows if row["test"] == "exact" and row["distances"] for one in row["lengths"]}
    without = [one for row in rows if row["test"] == "exact" and not row["distances"] for one in row["lengths"]]
    found["exact"] = {length: lengths[length]["confused"] for length in sorted(lengths)}
    found["exact_seconds"] = {length: lengths[length]["seconds"] for length in sorted(lengths)}
    found["sum"] = lengths[k]["sum"] if k in lengths else None
    found["exact_without"] = next((one["confused"] for one in without if one["k"] == k), None)
    found["longer_networks"] = {
        f"{row['k']} {row['phi']}": row["confused"] for row in rows if row["test"] == "network" and row["k"] > k
    }
    return found


def _first(rows: Sequence[Row], **key: object) -> Row | None:
    return next((row for row in rows if has_key(row, key)), None)


def exact_at(row: Row, k: int) -> int | None:
    """Pairs that the exact test confuses at `k`; 0 from where it was 0 on, None where it was not run.

    >>> exact_at({"exact": {4: 7, 5: 0}}, 6)
    0
    """
    lengths: dict[int, int] = row["exact"]
    if k in lengths:
        return lengths[k]
    return 0 if any(count == 0 for length, count in lengths.items() if length < k) else None


def percent(count: float | None, pairs: int) -> str:
    """A share of the pairs for people.

    >>> percent(1, 820), percent(0, 5), percent(None, 5)
    ('0.12', '0', 'not run')
    """
    if count is None:
        return "not run"
    return (
        "0" if count == 0 else f"{100 * count / pairs:.2f}" if count / pairs >= 1e-4 else f"{100 * count / pairs:.1e}"
    )


def mean(counts: Sequence[int] | None) -> float | None:
    """The mean over seeds."""
    return None if counts is None else sum(counts) / len(counts)


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Head and lines of the main table: shares of confused pairs in percent."""
    longest = max((length for row in rows for length in row["exact"]), default=4)
    head = ["family", "pairs", "network, no distances", "network", "adding up, at best", "network, tanh"]
    head += [f"exact, K = {k}" for k in range(4, longest + 1)] + ["3-WL", "1-WL"]
    lines = []
    for row in rows:
        share = [mean(row["without"]), mean(row["network"]), row["sum"], mean(row["closed"])]
        share += [exact_at(row, k) for k in range(4, longest + 1)] + [row["wl3"], row["wl1"]]
        lines.append([row["family"], f"{row['pairs']:,}", *(percent(count, row["pairs"]) for count in share)])
    return head, lines
