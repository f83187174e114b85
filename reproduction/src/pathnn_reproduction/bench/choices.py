"""Write the page that says which collection and which K to take, from `collections.jsonl` and the results of the paper.

`benchmarks/path_choices.py` measures the numbers of `collections.jsonl`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pathnn.paths.options import COLLECTIONS, OTHER_COLLECTIONS
from pathnn_reproduction.pages import all_entries, fill
from pathnn_reproduction.paper import TABLES
from pathnn_reproduction.results import Results, Row
from pathnn_reproduction.tables import markdown_table, ours_text

WORKLOADS = {
    "zinc": "ZINC", "esol": "ESOL", "imdb-binary": "IMDB-BINARY", "hub": "one graph with hubs",
}  # fmt: skip
ESOL = {"gine": "GINE", "gine-rwpe": "GINE, random-walk encodings"}


def choices_page(folder: Path, paper: Path) -> str | None:
    """Return the page as Markdown, or None if `folder` has no `collections.jsonl`; `paper` has the paper's results."""
    rows = Results.open(folder / "collections.jsonl").rows
    if not rows:
        return None
    parts = {part: [row for row in rows if row["part"] == part] for part in {row["part"] for row in rows}}
    (hubs,), esol = parts["hubs"], sorted(parts["esol"], key=lambda row: float(row["rmse"]))
    gine = next(row["rmse"] for row in esol if row["name"] == "gine-rwpe")
    ours = next(row["rmse"] for row in esol if row["name"] not in ESOL)
    return fill(
        "bench/choices",
        cost="\n\n".join(cost_table(parts["cost"], workload) for workload in WORKLOADS),
        reader=reader_table(parts["reader"]),
        sampler=sampler_table(parts["sampler"]),
        esol=esol_table(esol),
        **{name: esol[0][name] for name in ("folds", "epochs")},
        molecules=f"{esol[0]['molecules']:,}",
        error=f"{100 / (2 * esol[0]['molecules']) ** 0.5:.1f}",
        best=_esol_name(esol[0]),
        share=f"{ours / gine:.2f}",
        accuracy=accuracy_table(paper),
        nodes="\n\n".join(map(nodes_text, parts["nodes"] + parts["nodes-gpu"])),
        **{name: f"{hubs[name]:,}" for name in ("vertices", "max_degree")},
        hubs_seconds=f"{hubs['cpu_seconds'] / hubs['batches']:.2f}",
        hubs_paths=f"{hubs['paths'] / hubs['batches']:,.0f}",
        hubs_memory=f"{hubs['peak_bytes'] / 2**20:,.0f}",
        commits=", ".join(sorted({str(row["commit"]) for row in rows})),
        device=", ".join(sorted({row["device"] for row in rows})),
    )


def cost_table(rows: Iterable[Row], workload: str) -> str:
    """Return paths per vertex, entries per path, and times per graph or per 1,000 vertices, by collection and K."""
    mine = sorted((row for row in rows if row["workload"] == workload), key=_place)
    found = {(_collection(row), row["k"]): row for row in mine}
    lengths = sorted({k for _, k in found})
    reference = found.get(("SP", lengths[0]), {}).get("step_ms")
    names = dict.fromkeys(name for name, _ in found)
    table = [[name, *(_cost(found.get((name, k)), reference) for k in lengths)] for name in names]
    row = mine[0]
    title = f"**{WORKLOADS[workload]}**, {row['vertices'] / row['graphs']:,.0f} vertices per graph"
    return f"{title}:\n\n{markdown_table(('collection', *(f'K = {k}' for k in lengths)), table)}"


def _place(row: Row) -> tuple[bool, int]:
    names = tuple(COLLECTIONS | OTHER_COLLECTIONS)
    return row["collection"] in COLLECTIONS and row["per_source"] is not None, names.index(row["collection"])


def _collection(row: Row) -> str:
    sampled = "" if row["per_source"] is None else f", {row['per_source']} per source"
    return row["collection"].upper() + sampled if len(row["collection"]) < 4 else row["collection"] + sampled


def _cost(row: Row | None, reference: float | None) -> str:
    if row is None:
        return "—"
    if row.get("refused"):
        return "too many"
    step = "" if reference is None else f" · {row['step_ms'] / reference:.1f}x"
    return f"{row['paths'] / row['vertices']:,.1f} · {row['entries'] / row['vertices']:,.1f}{step}"


def reader_table(rows: Iterable[Row]) -> str:
    """Return the time of a training step of cells and aggregations relative to the LSTM and the sum."""
    found = {(row["cell"], row["aggregation"], row["workload"]): row["step_ms"] for row in rows}
    workloads = [name for name in WORKLOADS if any(name == workload for *_, workload in found)]
    table = [
        [cell, aggregation, *(f"{found[cell, aggregation, name] / found['lstm', 'sum', name]:.1f}x"
                              if (cell, aggregation, name) in found else "—" for name in workloads)]
        for cell, aggregation in dict.fromkeys((cell, aggregation) for cell, aggregation, _ in found)
    ]  # fmt: skip
    return markdown_table(("cell", "aggregation", *(WORKLOADS[name] for name in workloads)), table)


def sampler_table(rows: Iterable[Row]) -> str:
    """Return time and memory of all paths and of a sample."""
    found = {(row["collection"], row["per_source"]): row for row in rows}
    table = []
    for collection, many in found:
        every = found[collection, None]
        row = found[collection, many]
        less = [f"{every[name] / row[name]:.0f}x" if many else "" for name in ("cpu_seconds", "peak_bytes")]
        table.append([collection.upper(), str(many or "all"), f"{row['paths']:,}", f"{row['cpu_seconds']:.2f}",
                      f"{row['peak_bytes'] / 2**20:,.0f}", *less])  # fmt: skip
    head = ("collection", "per source and length", "paths", "CPU s", "peak, MiB", "less time", "less memory")
    return markdown_table(head, table)


def esol_table(rows: Iterable[Row]) -> str:
    """Return the out-of-fold errors on the training part of ESOL."""
    table = [
        [_esol_name(row), str(row["k"]), f"{row['rmse']:.3f}", f"{row['cpu_seconds']:.0f}", f"{row['parameters']:,}"]
        for row in rows
    ]
    return markdown_table(("model", "K, or layers", "RMSE", "CPU s", "parameters"), table)


def _esol_name(row: Row) -> str:
    return ESOL.get(row["name"], f"PathNN, {row['name']}")


def accuracy_table(paper: Path) -> str:
    """Return our scores on the paper's datasets, by collection."""
    table = []
    for dataset, entries in all_entries(paper).items():
        about = TABLES[dataset]
        measured = [entry for entry in entries if entry.ours is not None and entry.model in ("pathnn", "gin")]
        for k in sorted({entry.k for entry in measured if entry.k is not None}):
            ours = {entry.collection: ours_text(entry) for entry in measured if entry.k in (k, None)}
            texts = [ours.get(name, "—") for name in (None, *COLLECTIONS)]
            table.append([about.title, about.metric, str(k), *texts])
    return markdown_table(("dataset", "metric", "K", "GIN", "SP", "SP⁺", "AP"), table)


def nodes_text(row: Mapping[str, Any]) -> str:
    """Return the table of the example that classifies vertices; times are relative to GCN on the same batches."""
    models, on_gpu = row["models"], row["part"] == "nodes-gpu"
    seconds = {name: one["seconds" if on_gpu else "cpu_seconds"] for name, one in models.items()}
    table = [
        [name, f"{one['val']:.1f}", f"{one['test']:.1f}", f"{seconds[name]:.2f}",
         f"{seconds[name] / seconds['GCN, 2 layers']:.1f}x"]
        for name, one in models.items()
    ]  # fmt: skip
    where = f"On one {row['device']}" if on_gpu else "On one thread of a CPU"
    head = ("model", "validation, %", "test, %", f"{'seconds' if on_gpu else 'CPU s'} per epoch", "relative")
    facts = f"{row['vertices']:,} vertices, {row['epochs']} epochs; always the larger class: {row['majority']:.1f} %."
    return f"{where}: {facts}\n\n{markdown_table(head, table)}"
