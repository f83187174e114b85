"""BREC: which of its 400 pairs the exact test distinguishes, by length of paths, and whether relabelled copies agree.

A row holds one collection and one K: the pairs first distinguished there, and those that would take
too many steps. Only pairs that are still confused are tested at the next K.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from pathnn.data import load_dataset
from pathnn.data.datasets.pairs import BREC_CATEGORIES as CATEGORIES
from pathnn.paths import PathExplosionError
from pathnn.paths.cpu.extract import in_threads
from pathnn.paths.options import COLLECTIONS, Collection
from pathnn.theory.fingerprints import folklore_fingerprints, path_fingerprints, wl_fingerprints
from pathnn.theory.graphs import Graph
from pathnn.theory.isomorphism import as_graphs
from pathnn_reproduction.results import Row, has_key, read_rows

MAX_STEPS = 2_000_000_000
"""Steps that a graph may take at one K, a step being a path of the last length but one."""


COPIES = 32
"""Relabelled copies of each graph, as in BREC's protocol."""


@dataclass(frozen=True)
class Variant:
    """What is tested: a collection of paths, with or without distances."""

    collection: Collection
    distances: bool

    def key(self) -> Row:
        """What identifies its rows."""
        return {"test": "exact", **vars(self)}


VARIANTS = (Variant("sp", False), Variant("sp+", False), Variant("ap", True), Variant("ap", False))


def brec_graphs() -> list[Graph]:
    """The 800 graphs; 2i and 2i + 1 are pair i."""
    return as_graphs(load_dataset("brec").graphs)


def exact_row(graphs: Sequence[Graph], variant: Variant, k: int, path: Path, *, max_steps: int = MAX_STEPS) -> Row:
    """Test the pairs that rows in `path` have not distinguished at a smaller K."""
    before = [row for row in read_rows(path) if has_key(row, variant.key()) and row["k"] < k]
    told = {pair for row in before for pair in row["told_apart"]}
    over = {pair for row in before for pair in row["over"]}
    left = [pair for pair in range(len(graphs) // 2) if pair not in told | over]
    begin = time.perf_counter()

    def test(pair: int) -> bool | None:
        try:
            first, second = path_fingerprints(
                graphs[2 * pair : 2 * pair + 2], collection=variant.collection, k=k, distances=variant.distances,
                max_steps=max_steps,
            )  # fmt: skip
        except PathExplosionError:
            return None
        return bool((first[k] != second[k]).any())

    # a graph is one task; pairs side by side, so that one large pair does not hold up the others
    found = dict(zip(left, in_threads(test, left), strict=True))
    return {
        "told_apart": [pair for pair, different in found.items() if different],
        "over": [pair for pair, different in found.items() if different is None],
        "tested": len(left),
        "max_steps": max_steps,
        "seconds": time.perf_counter() - begin,
    }


def wl_row(graphs: Sequence[Graph]) -> Row:
    """1-WL and 3-WL: the pairs that each distinguishes."""
    begin = time.perf_counter()
    found = {}
    for name, prints in (("wl1", wl_fingerprints(graphs)), ("wl3", folklore_fingerprints(graphs, most_vertices=1000))):
        found[name] = (prints[0::2] != prints[1::2]).any(axis=1).nonzero()[0].tolist()
    return {**found, "seconds": time.perf_counter() - begin}


def relabelled(graph: Graph, seed: int) -> Graph:
    """The same graph with other numbers.

    >>> from pathnn.theory.examples import open_triplet
    >>> relabelled(open_triplet(), 1)[0].shape
    torch.Size([2, 4])
    """
    edge_index, num_nodes = graph
    new = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed))
    return torch.unique(new[edge_index], dim=1), num_nodes


def invariance_row(graphs: Sequence[Graph], variant: Variant, k: int, *, copies: int = COPIES) -> Row:
    """Which graphs the test distinguishes from one of their own relabelled copies; for SP+ and AP there must be none.

    `consistent` are the pairs that are distinguished and whose two graphs agree with all their copies.
    """
    begin = time.perf_counter()

    def prints(index: int) -> tuple[set[tuple[int, ...]], tuple[int, ...]]:
        numbered = [graphs[index], *(relabelled(graphs[index], 1000 * index + i) for i in range(copies))]
        found = path_fingerprints(numbered, collection=variant.collection, k=k, distances=variant.distances)[:, k]
        return {tuple(row) for row in found.tolist()}, tuple(found[0].tolist())

    found = [prints(index) for index in range(len(graphs))]
    unstable = [index for index, (seen, _) in enumerate(found) if len(seen) > 1]
    consistent = [
        pair
        for pair in range(len(graphs) // 2)
        if not {2 * pair, 2 * pair + 1} & set(unstable) and found[2 * pair][1] != found[2 * pair + 1][1]
    ]
    return {
        "copies": copies,
        "unstable": unstable,
        "consistent": consistent,
        "seconds": time.perf_counter() - begin,
    }


def summarize(path: Path) -> list[Row]:
    """One row per test and K: `told_apart` by category, `total`, and the pairs that were left as too large."""
    raw = read_rows(path)
    found: list[Row] = []
    for row in raw:
        if row["test"] == "wl":
            found += [{"name": name, "k": None, "over": 0, **_counts(row[key])} for name, key in WL]
    for variant in VARIANTS:
        told: set[int] = set()
        over: set[int] = set()
        rows = [row for row in raw if has_key(row, variant.key())]
        for row in sorted(rows, key=lambda row: row["k"]):
            told |= set(row["told_apart"])
            over |= set(row["over"])
            found.append({"name": variant_name(variant), "k": row["k"], "over": len(over), **_counts(told)})
    return found + protocol_rows(read_rows(protocol_file(path)))


def protocol_file(path: Path) -> Path:
    """Where the results of BREC's own protocol are, beside those of the exact test: both can run at once.

    >>> protocol_file(Path("results/brec.json")).name
    'brec-protocol.json'
    """
    return path.with_name(f"{path.stem}-protocol.json")


def protocol_rows(raw: Sequence[Row]) -> list[Row]:
    """BREC's own protocol: one row per collection and K; pairs that were not trained on count as not tested (`tested`
    has the number of those that were, by category)."""
    found = []
    rows = [row for row in raw if row["test"] == "protocol"]
    for collection, k in sorted({(row["collection"], row["k"]) for row in rows}, key=_order):
        blocks = [row for row in rows if (row["collection"], row["k"]) == (collection, k)]
        told = {pair for row in blocks for pair in row["told_apart"]}
        tested = _counts(pair for row in blocks for pair in row["pairs"])
        left = 400 - tested["total"]
        unreliable = sum(len(row["unreliable"]) for row in blocks)
        own = {"over": left, "unreliable": unreliable, "tested": tested["told_apart"]}
        found.append({"name": f"{collection.upper()}, trained", "k": k, **own, **_counts(told)})
    return found


def _order(each: tuple[Collection, int]) -> tuple[int, int]:
    return list(COLLECTIONS).index(each[0]), each[1]


WL = (("1-WL", "wl1"), ("3-WL", "wl3"))


def variant_name(variant: Variant) -> str:
    """For tables.

    >>> variant_name(VARIANTS[3])
    'AP, no distances'
    """
    name = variant.collection.upper()
    return f"{name}, no distances" if variant.collection == "ap" and not variant.distances else name


def _counts(pairs: Iterable[int]) -> Row:
    chosen = set(pairs)
    by_category = {name: len(chosen & set(where)) for name, where in CATEGORIES.items()}
    return {"told_apart": by_category, "total": len(chosen)}


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Head and lines: one per test and K, but not those at which nothing more is distinguished than at the K before.
    A dash is a category of which no pair was tested."""
    head = ["test", "K", *(f"{name} ({len(where)})" for name, where in CATEGORIES.items()), "all (400)", "not tested"]
    lines = []
    last: Row = {}
    for i, row in enumerate(rows):
        after = rows[i + 1]["name"] if i + 1 < len(rows) else None
        if last.get("name") == row["name"] == after and last["total"] == row["total"] and last["over"] == row["over"]:
            continue
        counts = [_cell(row, name) for name in CATEGORIES]
        k = "" if row["k"] is None else str(row["k"])
        lines.append([row["name"], k, *counts, str(row["total"]), str(row["over"])])
        last = row
    return head, lines


def _cell(row: Row, category: str) -> str:
    told, tested = row["told_apart"][category], row.get("tested", {}).get(category)
    if tested == 0:
        return "—"
    return str(told) if tested in (None, len(CATEGORIES[category])) else f"{told} of {tested}"


def copies(path: Path) -> list[Row]:
    """The rows on relabelled copies, with the name of each test."""
    names = {(variant.collection, variant.distances): variant_name(variant) for variant in VARIANTS}
    rows = [row for row in read_rows(path) if row["test"] == "copies"]
    return [{**row, "name": names[row["collection"], row["distances"]]} for row in rows]
