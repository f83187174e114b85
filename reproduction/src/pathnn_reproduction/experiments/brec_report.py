"""What the results on BREC say: pairs told apart per category, for each test and K."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pathnn.data.datasets.pairs import BREC_CATEGORIES as CATEGORIES
from pathnn.paths.options import COLLECTIONS, Collection
from pathnn_reproduction.experiments.brec import VARIANTS, Variant
from pathnn_reproduction.rows import Row, has_key, read_rows


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
    """Head and lines: one per test and K, but not those at which nothing more is told apart than at the K before.
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
