"""Strongly regular graphs (a figure of the paper, and longer paths): which pairs of a family are distinguished.

Each family is tested by 1-WL and 3-WL, by the exact test with longer and longer paths, and by untrained networks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from pathnn.data import load_dataset
from pathnn.data.datasets.synthetic import IN_THE_FIGURE
from pathnn.device import resolve
from pathnn.paths import count_paths
from pathnn.theory.fingerprints import Lanes, classes, folklore_fingerprints, hashed_annotations, wl_fingerprints
from pathnn.theory.graphs import Graph
from pathnn.theory.isomorphism import UntrainedPhi, all_pairs, as_graphs, confused_pairs, untrained_models
from pathnn.theory.merged import merged_embeddings
from pathnn_reproduction.results import Results, Row, measured_row
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import Table
from pathnn_reproduction.worker import Settings

ALL = (*IN_THE_FIGURE, "sr351899", "sr351668")
"""The families of the figure, and two that the paper left out."""

SPEED = ("sr361446", 6)
"""The family and the length of paths that the speed of the exact test is measured with."""

SEEDS = 5

LONGER = {"sr16622": (5, 6), "sr251256": (5,), "sr261034": (5,), "sr281264": (5,)}
"""Families that networks also read with longer paths than the paper's, and these lengths."""

K, LONGEST = 4, 8
"""The longest paths of the paper's networks, and of the exact test."""


def sr() -> Iterator[RunSpec]:
    """Yield the runs of the figure: one per family and test."""
    return (RunSpec(target="sr", key=key, run=sr_run) for family in ALL for key in _keys(family))


def _keys(family: str) -> Iterator[dict[str, str | int | None]]:
    def key(test: str, k: int = 0, phi: UntrainedPhi | None = None, *, distances: bool = True) -> dict[str, Any]:
        return {"family": family, "test": test, "k": k, "distances": distances, "phi": phi}

    yield from (key("wl"), key("exact", LONGEST), key("exact", K, distances=False))
    yield from (key("network", K, "identity"), key("network", K, "relu"), key("network", K, "tanh"))
    yield from (key("network", K, "identity", distances=False), key("network", K, "tanh", distances=False))
    for k in LONGER.get(family, ()):
        yield from (key("network", k, "identity"), key("network", k, "tanh"))
    if family == SPEED[0]:
        yield key("speed", SPEED[1])


def sr_run(spec: RunSpec, settings: Settings) -> Row:
    """Do one test of a family: the number of confused pairs, and the time."""
    key: Any = spec.key
    graphs = as_graphs(load_dataset(key["family"]).graphs)
    begin = time.perf_counter()
    if key["test"] == "speed":
        return measured_row(spec, speed(graphs[0], key["k"]))
    device = "cpu"
    if key["test"] == "wl":
        found: Row = {"wl1": pairs_in(wl_fingerprints(graphs)), "wl3": pairs_in(folklore_fingerprints(graphs))}
    elif key["test"] == "exact":
        found = {"lengths": list(exact_by_length(graphs, key["k"], distances=key["distances"]))}
    else:
        device = str(resolve(settings.device))
        models = untrained_models(collection="ap", k=key["k"], seeds=SEEDS, distances=key["distances"], phi=key["phi"])
        rows, pairs = merged_embeddings(models, graphs, device=device).cpu(), all_pairs(len(graphs))
        found = {"confused": [int(confused_pairs(one, pairs).sum()) for one in rows], "network_device": device}
    size = {"graphs": len(graphs), "pairs": len(graphs) * (len(graphs) - 1) // 2}
    own = {"threads": torch.get_num_threads(), "seconds": time.perf_counter() - begin}
    return measured_row(spec, {**size, **found, **own}, device=device)


def exact_by_length(graphs: Sequence[Graph], longest: int, *, distances: bool, first: int = 3) -> Iterator[Row]:
    """Yield the result of the exact test at k = first, ..., longest, on graphs that are still confused with another.

    An annotation contains that of the level before, so graphs that differ once differ at all later levels. `sum` is
    the number of pairs that are confused if the last layer only adds up; it is None if not all graphs were tested.
    """
    alive = list(range(len(graphs)))
    for k in range(first, longest + 1):
        begin = time.perf_counter()
        found = hashed_annotations([graphs[i] for i in alive], collection="ap", k=k, distances=distances)
        rows = np.array([one.fingerprints()[k] for one in found])
        whole = len(alive) == len(graphs)
        row: Row = {"k": k, "graphs": len(alive), "confused": pairs_in(rows)}
        row["sum"] = pairs_in(np.array([one.total() for one in found])) if whole else None
        row["seconds"] = time.perf_counter() - begin
        groups = classes(rows)
        sizes = np.bincount(groups, minlength=1)
        alive = [i for i, group in zip(alive, groups, strict=True) if sizes[group] > 1]
        alike: dict[int, list[int]] = {}
        for i, group in sorted(zip(alive, groups[sizes[groups] > 1].tolist(), strict=True), key=lambda one: one[1]):
            alike.setdefault(group, []).append(i)
        row["confused_graphs"] = list(alike.values()) if len(alive) <= 40 else None
        yield row
        if not alive:
            return


def speed(graph: Graph, k: int) -> Row:
    """Return the number of paths up to length k in a graph, and the seconds of the exact test on one core."""
    options: Row = {"collection": "ap", "k": k}
    hashed_annotations([graph], collection="ap", k=1)  # compiles, or loads what was compiled
    begin = time.perf_counter()
    hashed_annotations([graph], **options)
    seconds = time.perf_counter() - begin
    paths = int(count_paths(*graph, **options).sum())
    return {"graphs": 1, "pairs": 0, "paths": paths, "threads": 1, "seconds": seconds}


def pairs_in(rows: Lanes) -> int:
    """Return the number of pairs of equal rows.

    >>> pairs_in(np.array([[1, 1], [2, 2], [1, 1], [1, 1]], np.uint64))
    3
    """
    sizes = np.bincount(classes(rows), minlength=1)
    return int((sizes * (sizes - 1) // 2).sum())


NETWORKS = (
    ("network", True, "identity"),
    ("relu", True, "relu"),
    ("closed", True, "tanh"),
    ("without", False, "identity"),
)
"""The networks of the page: the paper's, with a ReLU, with BatchNorm and tanh, the paper's without distances."""


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return one row per family, in the order of the paper: confused pairs of each test, None if it was not run."""
    rows = [row for row in rows if row["test"] != "speed"]
    families = [[row for row in rows if row["family"] == family] for family in ALL]
    return [_family(found) for found in families if found]


def _family(rows: Sequence[Row]) -> Row:
    def first(**key: object) -> Row:
        return next((row for row in rows if key.items() <= row.items()), {})

    found = {name: rows[0][name] for name in ("family", "graphs", "pairs")}
    found |= {name: first(test="wl").get(name) for name in ("wl1", "wl3")}
    for name, distances, phi in NETWORKS:
        found[name] = first(test="network", k=K, distances=distances, phi=phi).get("confused")
    tests = [row for row in rows if row["test"] == "exact"]
    exact, without = (
        {one["k"]: one for row in tests if row["distances"] == given for one in row["lengths"]}
        for given in (True, False)
    )
    found["exact"] = {length: exact[length]["confused"] for length in sorted(exact)}
    found["sum"] = exact.get(K, {}).get("sum")
    found["exact_without"] = without.get(K, {}).get("confused")
    found["longer_networks"] = {
        f"{row['k']} {row['phi']}": row["confused"] for row in rows if row["test"] == "network" and row["k"] > K
    }
    return found


def exact_at(row: Row, k: int) -> int | None:
    """Return the pairs that the exact test confuses at `k`, or None if it was not run; 0 stays 0 for larger k.

    >>> exact_at({"exact": {4: 7, 5: 0}}, 6)
    0
    """
    lengths: dict[int, int] = row["exact"]
    if k in lengths:
        return lengths[k]
    return 0 if any(count == 0 for length, count in lengths.items() if length < k) else None


def percent(count: float | None, pairs: int) -> str:
    """Return a share of the pairs in percent, as text.

    >>> percent(1, 820), percent(0, 5), percent(None, 5)
    ('0.12', '0', 'not run')
    """
    if not count:
        return "not run" if count is None else "0"
    return f"{100 * count / pairs:.2f}" if count / pairs >= 1e-4 else f"{100 * count / pairs:.1e}"


def mean(counts: Sequence[int] | None) -> float | None:
    """Return the mean over seeds."""
    return None if counts is None else sum(counts) / len(counts)


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the main table: shares of confused pairs in percent."""
    longest = max((length for row in rows for length in row["exact"]), default=4)
    head = ["family", "pairs", "network, no distances", "network", "adding up, at best", "network, tanh"]
    head += [f"exact, K = {k}" for k in range(4, longest + 1)] + ["3-WL", "1-WL"]
    lines = []
    for row in rows:
        share = [mean(row["without"]), mean(row["network"]), row["sum"], mean(row["closed"])]
        share += [exact_at(row, k) for k in range(4, longest + 1)] + [row["wl3"], row["wl1"]]
        lines.append([row["family"], f"{row['pairs']:,}", *(percent(count, row["pairs"]) for count in share)])
    return head, lines


def tables(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> list[Table]:
    """Return the main table of the families of `specs`."""
    chosen = {spec.key["family"] for spec in specs}
    rows = [row for row in summarize(results.rows) if row["family"] in chosen]
    return [Table("Share of the pairs that are confused, in percent", *table(rows), rows)] if rows else []
