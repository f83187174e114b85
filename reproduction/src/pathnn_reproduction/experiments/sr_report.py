"""What the results on strongly regular graphs say: one summary per family, and tables of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pathnn_reproduction.experiments.sr import ALL
from pathnn_reproduction.rows import Row, has_key, read_rows

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
