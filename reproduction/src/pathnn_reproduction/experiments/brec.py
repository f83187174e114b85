"""BREC: which of its 400 pairs the exact test distinguishes, by length of paths, and whether relabelled copies agree.

A row of the exact test has one collection and one K: the pairs that are first distinguished there, and those that would
take too many steps. Only the other pairs are tested at the next K.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

import torch

from pathnn.data.datasets.synthetic import BREC_CATEGORIES as CATEGORIES
from pathnn.paths import PathExplosionError, count_paths
from pathnn.paths.cpu.extract import in_threads
from pathnn.paths.options import COLLECTIONS, Collection
from pathnn.theory.fingerprints import folklore_fingerprints, hashed_annotations, wl_fingerprints
from pathnn.theory.graphs import Graph
from pathnn_reproduction.experiments.brec_protocol import (
    BLOCK,
    COPIES,
    MAX_STEPS,
    brec_graphs,
    protocol_run,
    relabelled,
)
from pathnn_reproduction.results import Results, Row, measured_row
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import Table
from pathnn_reproduction.worker import Settings

PROTOCOL: tuple[tuple[Collection, int], ...] = (("sp", 8), ("sp+", 8), ("ap", 4), ("ap", 5), ("ap", 8))
"""Collections and lengths of paths of the networks that are trained by BREC's protocol."""


@dataclass(frozen=True)
class Variant:
    """The paths of the exact test: a collection up to length `longest`, with or without distances."""

    collection: Collection
    distances: bool
    longest: int
    copies: int | None = None  # the length of paths with which relabelled copies are compared

    def key(self, test: str, k: int) -> dict[str, str | int | None]:
        """Return what identifies a row."""
        return {"test": test, "collection": self.collection, "distances": self.distances, "k": k}


VARIANTS = (
    Variant("sp", False, 20, 8), Variant("sp+", False, 20, 8), Variant("ap", True, 9, 4), Variant("ap", False, 6),
)  # fmt: skip


def brec() -> Iterator[RunSpec]:
    """Yield all tests of BREC."""
    yield RunSpec(target="brec", key={"test": "wl"}, run=brec_run)
    for variant in VARIANTS:
        for k in range(1, variant.longest + 1):
            before = variant.key("exact", k - 1) if k > 1 else None
            yield RunSpec(target="brec", key=variant.key("exact", k), run=brec_run, needs=before)
        if variant.copies is not None:
            yield RunSpec(target="brec", key=variant.key("copies", variant.copies), run=brec_run)
    for collection, k in PROTOCOL:
        key = {"test": "protocol", "collection": collection, "k": k, "seed": 0}
        for first in range(0, 400, BLOCK):
            yield RunSpec(target="brec", key={**key, "first": first}, run=protocol_run)
    yield RunSpec(target="brec", key={"test": "bounds", "collection": "ap", "k": 8}, run=brec_run)


def brec_run(spec: RunSpec, settings: Settings) -> Row:
    """Do one test; the exact test leaves out pairs that rows of a smaller K have distinguished."""
    graphs, key, begin = brec_graphs(), spec.key, time.perf_counter()
    if key["test"] == "wl":
        found = wl_row(graphs)
    elif key["test"] == "exact":
        found = exact_row(graphs, key, Results.open(settings.results).rows)
    elif key["test"] == "copies":
        found = invariance_row(graphs, key)
    else:
        found = bounds_row(graphs, key)
    return measured_row(spec, {**found, "seconds": time.perf_counter() - begin})


def bounds_row(graphs: Sequence[Graph], key: Any) -> Row:
    """Return for each pair bounds of the paths of length K - 1 in its larger graph, from its paths of length 3.

    A path of length i can be continued by at least d - i vertices, d the smallest degree, and at most by D - 1.
    """
    steps = key["k"] - 1

    def bounds(graph: Graph) -> tuple[int, int]:
        degrees = torch.bincount(graph[0][0], minlength=graph[1])
        short = int(count_paths(*graph, collection=key["collection"], k=3)[:, 2].sum())
        least = short * prod(max(int(degrees.min()) - i, 0) for i in range(3, steps))
        return least, short * max(int(degrees.max()) - 1, 0) ** (steps - 3)

    found = [bounds(graph) for graph in graphs]
    pairs = [tuple(map(max, zip(*found[i : i + 2], strict=True))) for i in range(0, len(found), 2)]
    return {"least": [least for least, _ in pairs], "most": [most for _, most in pairs], "max_steps": MAX_STEPS}


def exact_row(graphs: Sequence[Graph], key: Any, rows: Sequence[Row], *, max_steps: int = MAX_STEPS) -> Row:
    """Test the pairs that `rows` have not distinguished at a smaller K."""
    k, variant = key["k"], {name: key[name] for name in ("collection", "distances")}
    before = [row for row in rows if row["test"] == "exact" and variant.items() <= row.items() and row["k"] < k]
    over = {pair for row in before for name in ("told_apart", "over") for pair in row[name]}
    left = [pair for pair in range(len(graphs) // 2) if pair not in over]

    def test(pair: int) -> bool | None:
        try:
            first, second = hashed_annotations(graphs[2 * pair : 2 * pair + 2], k=k, max_steps=max_steps, **variant)
        except PathExplosionError:
            return None
        return bool((first.fingerprints()[k] != second.fingerprints()[k]).any())

    # a task is a pair, so that a large pair does not hold up the others
    found = dict(zip(left, in_threads(test, left), strict=True))
    return {
        "told_apart": [pair for pair, different in found.items() if different],
        "over": [pair for pair, different in found.items() if different is None],
        "tested": len(left),
        "max_steps": max_steps,
    }


def wl_row(graphs: Sequence[Graph]) -> Row:
    """Return the pairs that 1-WL and 3-WL distinguish."""
    prints = {"wl1": wl_fingerprints(graphs), "wl3": folklore_fingerprints(graphs)}
    return {name: (one[0::2] != one[1::2]).any(axis=1).nonzero()[0].tolist() for name, one in prints.items()}


def invariance_row(graphs: Sequence[Graph], key: Any, *, copies: int = COPIES) -> Row:
    """Return the graphs that the test distinguishes from one of their own relabelled copies, as `unstable`.

    For SP+ and AP there must be none. `consistent` are the distinguished pairs of two stable graphs.
    """
    k, variant = key["k"], {name: key[name] for name in ("collection", "distances")}

    def prints(index: int) -> tuple[set[tuple[int, ...]], tuple[int, ...]]:
        numbered = [graphs[index], *(relabelled(graphs[index], 1000 * index + i) for i in range(copies))]
        found = [tuple(one.fingerprints()[k].tolist()) for one in hashed_annotations(numbered, k=k, **variant)]
        return set(found), found[0]

    found = [prints(index) for index in range(len(graphs))]
    unstable = [index for index, (seen, _) in enumerate(found) if len(seen) > 1]
    consistent = [
        pair
        for pair in range(len(graphs) // 2)
        if not {2 * pair, 2 * pair + 1} & set(unstable) and found[2 * pair][1] != found[2 * pair + 1][1]
    ]
    return {"copies": copies, "unstable": unstable, "consistent": consistent}


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return one row per test and K: `told_apart` by category, `total`, and the pairs that were not tested."""
    found: list[Row] = []
    for row in rows:
        if row["test"] == "wl":
            found += [{"name": name, "k": None, "over": 0, **_counts(row[key])} for name, key in WL]
    for variant in VARIANTS:
        told: set[int] = set()
        over: set[int] = set()
        key = {"test": "exact", "collection": variant.collection, "distances": variant.distances}
        for row in sorted((row for row in rows if key.items() <= row.items()), key=lambda row: row["k"]):
            told |= set(row["told_apart"])
            over |= set(row["over"])
            found.append({"name": variant_name(key), "k": row["k"], "over": len(over), **_counts(told)})
    return found + protocol_rows([row for row in rows if row["test"] == "protocol"])


def protocol_rows(rows: Sequence[Row]) -> list[Row]:
    """Return one row per collection and K of BREC's own protocol; `tested` counts the tested pairs by category."""
    found = []
    order = list(COLLECTIONS)
    for collection, k in sorted(
        {(row["collection"], row["k"]) for row in rows}, key=lambda x: (order.index(x[0]), x[1])
    ):
        blocks = [row for row in rows if (row["collection"], row["k"]) == (collection, k)]
        told = {pair for row in blocks for pair in row["told_apart"]}
        tested = _counts(pair for row in blocks for pair in row["pairs"])
        unreliable = sum(len(row["unreliable"]) for row in blocks)
        own = {"over": 400 - tested["total"], "unreliable": unreliable, "tested": tested["told_apart"]}
        found.append({"name": f"{collection.upper()}, trained", "k": k, **own, **_counts(told)})
    return found


def bounds_table(rows: Sequence[Row], bounds: Row) -> tuple[list[str], list[list[str]]]:
    """Return head and rows: by category, which pairs BREC's protocol was run on, and which have too many paths."""
    length = f"paths of length {bounds['k'] - 1}"
    head = ["category", "pairs", "run", length, "too many", "perhaps too many", "not run yet"]
    same = {"test": "protocol", "collection": bounds["collection"], "k": bounds["k"]}
    run = {pair for row in rows if same.items() <= row.items() for pair in row["pairs"]}
    limit, lines = bounds["max_steps"], []
    for name, pairs in CATEGORIES.items():
        over = {pair for pair in pairs if bounds["least"][pair] > limit}
        open_ = {pair for pair in pairs if bounds["most"][pair] > limit} - over - run
        least, most = min(bounds["least"][pair] for pair in pairs), max(bounds["most"][pair] for pair in pairs)
        sets = [ranges(set(pairs) & run), f"{least:,.2g} to {most:,.2g}", ranges(over), ranges(open_)]
        lines.append([name, ranges(pairs), *sets, ranges(set(pairs) - run - over)])
    return head, lines


def ranges(numbers: Iterable[int]) -> str:
    """Return a set of numbers as text.

    >>> ranges([1, 2, 3, 7]), ranges([])
    ('1-3, 7', '—')
    """
    found = []
    for _, run in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        ends = [number for _, number in run]
        found.append(str(ends[0]) if len(ends) == 1 else f"{ends[0]}-{ends[-1]}")
    return ", ".join(found) or "—"


WL = (("1-WL", "wl1"), ("3-WL", "wl3"))


def variant_name(key: Any) -> str:
    """Return the name of a variant in tables.

    >>> variant_name({"collection": "ap", "distances": False})
    'AP, no distances'
    """
    name = str(key["collection"]).upper()
    return f"{name}, no distances" if name == "AP" and not key["distances"] else name


def _counts(pairs: Iterable[int]) -> Row:
    chosen = set(pairs)
    by_category = {name: len(chosen & set(where)) for name, where in CATEGORIES.items()}
    return {"told_apart": by_category, "total": len(chosen)}


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows: one per test and K, without those at which nothing changes.

    A dash stands for a category without tested pairs.
    """
    head = ["test", "K", *(f"{name} ({len(where)})" for name, where in CATEGORIES.items()), "all (400)", "not tested"]
    lines = []
    last: Row = {}
    for i, row in enumerate(rows):
        after = rows[i + 1]["name"] if i + 1 < len(rows) else None
        if last.get("name") == row["name"] == after and last["total"] == row["total"] and last["over"] == row["over"]:
            continue
        counts = [_count_text(row, name) for name in CATEGORIES]
        k = "" if row["k"] is None else str(row["k"])
        lines.append([row["name"], k, *counts, str(row["total"]), str(row["over"])])
        last = row
    return head, lines


def _count_text(row: Row, category: str) -> str:
    told, tested = row["told_apart"][category], row.get("tested", {}).get(category)
    if tested == 0:
        return "—"
    return str(told) if tested in (None, len(CATEGORIES[category])) else f"{told} of {tested}"


def tables(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> list[Table]:
    """Return the table of all tests."""
    rows = summarize(results.rows)
    return [Table("Pairs distinguished, of 400", *table(rows), rows, left=2)] if rows else []
