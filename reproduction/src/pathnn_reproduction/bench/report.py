"""Write the benchmark page of the docs and the README's table of speed from the result files.

The words are in `pages/bench/*.md`, templates with named values; this module computes the values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pathnn_reproduction.bench.choices import choices_page
from pathnn_reproduction.bench.molecules import molecules_page
from pathnn_reproduction.experiments.runtime import RUNTIME, runtime_texts
from pathnn_reproduction.pages import fill, replace_block, write_pages
from pathnn_reproduction.results import Results
from pathnn_reproduction.tables import Table, markdown_table

Result = dict[str, Any]
Rows = Sequence[Result]

WAYS = {
    "dense": "`nn.LSTM` over every path, tries ready",
    "edge_index": "PathNN in your own loop, `model(x, edge_index, ...)`: paths extracted in the call",
    "trie": "PathNN in your own loop, `trie=PathTrie.from_data(batch)`: paths of `AddPaths`",
    "pathnn train": "PathNN in our own loop, `pathnn train`",
    "gine": "PyG's GINE in your own loop",
}
"""Titles of the rows of `pathnn_reproduction.bench.user_loop`, in the order of the table."""


def write_benchmarks(root: Path) -> list[Path]:
    """Write the pages on speed and accuracy, and the table of the README, of a clone at `root`; return their names."""
    results, page, readme = root / "benchmarks" / "results", root / "docs" / "benchmarks.md", root / "README.md"
    if not (results.is_dir() and page.parent.is_dir() and readme.exists()):
        raise ValueError("benchmarks/results, docs and README.md are not all here: run --report in a clone of pathnn.")
    pages = {page: benchmark_page(results), readme: with_headline(readme.read_text(), results)}
    more = {"accuracy.md": molecules_page(results), "which-paths.md": choices_page(results, root / "results")}
    return write_pages(pages | {page.with_name(name): text for name, text in more.items() if text})


def benchmark_page(folder: Path) -> str:
    """Return the page as Markdown, from the result files in `folder`; a file that is missing has no section."""
    parts = [fill("bench/page")]
    for name, section in SECTIONS.items():
        if (folder / name).exists():
            result = _read(folder / name)
            parts.append(section(result) + _origin(result, name))
    return "\n".join(parts)


def _read(path: Path) -> Result:
    """Read a result, or the rows of a results file, which have the origin of the last one."""
    if path.suffix == ".json":
        return dict(json.loads(path.read_text()))
    rows = Results.open(path).rows
    return {**rows[-1], "rows": rows}


def compare_table(rows: Rows) -> Table:
    """Return the times of extraction and of igraph."""
    head = ("graphs like", "paths", "K", "cores", "igraph, ms", "list, ms", "trie, ms", "list", "trie")
    texts = [
        [row["workload"], row["collection"].upper(), str(row["k"]), str(row["threads"]), f"{row['igraph_ms']:,.0f}",
         f"{row['list_ms']:.1f}", f"{row['trie_ms']:.1f}", f"{row['list_ratio']:.0f}x", f"{row['trie_ratio']:.0f}x"]
        for row in rows
    ]  # fmt: skip
    return Table("Extraction, per 1000 graphs", head, texts, left=2)


def memory_table(rows: Rows) -> Table:
    """Return the peak memory of extraction."""
    texts = [
        [row["workload"], row["collection"].upper(), f"{row['result_bytes'] / 2**20:.1f}", f"{row['ratio']:.2f}"]
        for row in rows
    ]
    return Table("Peak memory", ("graphs like", "paths", "result, MiB", "peak / result"), texts, left=2)


def scale_table(rows: Rows) -> Table:
    """Return time and memory by the number of molecules."""
    texts = [
        [f"{row['graphs']:,}", f"{row['paths']:,}", f"{row['seconds']:.1f}", f"{row['us_per_graph']:.1f}",
         f"{row['peak_process_bytes'] / 2**20:.0f}"]
        for row in rows
    ]  # fmt: skip
    head = ("molecules", "paths", "seconds", "µs per molecule", "process peak, MiB")
    return Table("Molecules like ZINC's, AP, K = 4", head, texts, left=0)


def gpu_table(gpu: Result) -> Table:
    """Return the times of extraction on a GPU."""
    texts = [
        [name.upper(), f"{gpu[f'{name}_entries']:,}", f"{gpu[f'{name}_ms']:.1f}",
         str(gpu[f"{name}_equal_to_cpu"]).lower()]
        for name in ("sp", "sp+", "ap")
    ]  # fmt: skip
    return Table("On the GPU", ("paths", "entries", "ms", "equal to the CPU's, entry for entry"), texts)


def batch_table(rows: Rows) -> Table:
    """Return the times to assemble a batch."""
    texts = [[f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    return Table("Assembling a batch", list(rows[0]), texts)


def model_table(rows: Rows, *, ours: str = "trie", digits: int = 1) -> Table:
    """Return our side (called `ours`) next to the dense one, without columns that no row has."""
    floors = any("floor_share" in row for row in rows)
    texts = []
    for row in rows:
        sizes = [row["dense_mib"], row["ours_mib"]]
        smaller = None if None in sizes else sizes[0] / sizes[1]
        values = [number(row["dense_ms"], digits), number(row["ours_ms"], digits), number(row["ratio"], 1, "x")]
        values += [*(number(size, 0) for size in sizes), number(smaller, 1, "x")]
        if floors:
            share = row.get("floor_share")
            values += [number(row.get("ours_busy_ms"), digits), number(share and 100 * share, 0, " %")]
        texts.append([row["workload"], row["phase"], *values])
    head = ["workload", "phase", "dense, ms", f"{ours}, ms", "faster", "dense, MiB", f"{ours}, MiB", "smaller"]
    head += ["GPU busy, ms", "of the floor"] if floors else []
    return Table("Ours and the dense formulation", head, texts, left=2)


def plain_table(rows: Rows) -> Table:
    """Return the times of plain calls on a GPU."""
    texts = []
    for row in rows:
        dense, times = row["dense_ms"], (row["plain_trie_ms"], row["plain_edge_index_ms"])
        values = [text for ms in times for text in (number(ms, 2), number(dense / ms, 1, "x"))]
        texts.append([row["workload"], row["phase"], number(dense, 2), *values, number(row["gine_ms"], 2)])
    head = ("workload", "phase", "dense, ms", "`trie=`, ms", "faster", "`edge_index`, ms", "faster", "GINE, ms")
    return Table("Plain calls", head, texts, left=2)


def user_table(rows: Rows) -> Table:
    """Return the times of a user's own loop, in the order of `WAYS`."""
    found = {(row["phase"], row["way"]): row for row in rows}
    dense, texts = found["step", "dense"]["ms"], []
    for way, title in WAYS.items():
        step, epoch = found["step", way], found.get(("epoch", way))
        ratio = None if way in ("dense", "gine") else dense / step["ms"]
        times = [number(step["ms"], 1), number(ratio, 1, "x"), number(None if epoch is None else epoch["ms"] / 1e3, 2)]
        texts.append([title, f"{step['parameters']:,}", *times])
    head = ("training on ZINC, AP", "parameters", "step, ms", "faster than dense", "epoch, s")
    return Table("Your own loop", head, texts)


TABLES: dict[str, Callable[[Any], Table]] = {
    "compare": compare_table,
    "memory": memory_table,
    "scale": scale_table,
    "gpu": gpu_table,
    "rows": batch_table,
    "workloads": model_table,
    "user_loop": user_table,
}
"""The table of each part of a result."""


def result_tables(result: Result) -> list[Table]:
    """Return the tables of a result, as the command line prints them."""
    return [make(result[part]) for part, make in TABLES.items() if part in result]


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    return markdown_table(table.head, table.rows)


def _section(template: str) -> Callable[[Result], str]:
    """Return the function that fills a template with the tables of a result."""

    def section(result: Result) -> str:
        tables = {f"{part}_table": markdown(make(result[part])) for part, make in TABLES.items() if part in result}
        counts = {name: f"{count:,}" for name, count in result.get("gpu", {}).items() if isinstance(count, int)}
        return fill(f"bench/{template}", **result, **counts, **tables)

    return section


def _model(template: str, **options: Any) -> Callable[[Result], str]:
    def section(result: Result) -> str:
        rows = result["workloads"]
        text = fill(f"bench/{template}", table=markdown(model_table(rows, **options))) + _errors(result)
        plain = [row for row in rows if "gine_ms" in row]
        text += fill("bench/plain_calls", table=markdown(plain_table(plain))) if plain else ""
        if "user_loop" not in result:
            return text
        step, epoch = (next(row for row in result["user_loop"] if row["phase"] == phase) for phase in ("step", "epoch"))
        about = {"data": step["workload"].partition(", ")[2], "batch": step["graphs"], "graphs": f"{epoch['graphs']:,}"}
        return text + fill("bench/user_loop", **about, table=markdown(user_table(result["user_loop"])))

    return section


def _runtime(result: Result) -> str:
    text = fill("bench/runtime_gpu", table=markdown_table(RUNTIME, runtime_texts(result["rows"])))
    return text if any(row["model"] == "gin" for row in result["rows"]) else text + fill("bench/runtime_no_gin")


def _errors(result: Result) -> str:
    """Say how exact the results are, where it was measured."""
    rows = [("float64", row) for row in result.get("exactness", [])]
    rows += [("float32", row) for row in result["workloads"] if "error" in row and row["phase"] == "train"]
    texts = [{name: f"{value:.1e}" if "error" in name else value for name, value in row.items()} for _, row in rows]
    return "".join(fill(f"bench/{name}_errors", **text) for (name, _), text in zip(rows, texts, strict=True))


def number(value: float | None, digits: int, unit: str = "") -> str:
    """Format a number for a table, or give a dash.

    >>> number(1234.5, 1, "x"), number(None, 1)
    ('1,234.5x', '—')
    """
    return "—" if value is None else f"{value:,.{digits}f}{unit}"


def _origin(result: Result, name: str) -> str:
    versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items() if version)
    rows = [row for part in result.values() if isinstance(part, list) for row in part]
    commits = dict.fromkeys([result["commit"], *(row["commit"] for row in rows if "commit" in row)])
    where = {"device": result["device"], "time": result["time"], "commit": ", ".join(commits)}
    return fill("bench/origin", **where, versions=versions, name=name)


SECTIONS: dict[str, Callable[[Result], str]] = {
    "extract-cpu.json": _section("extract_cpu"),
    "extract-gpu.json": _section("extract_gpu"),
    "batch-cpu.json": _section("batch_cpu"),
    "model-cpu.json": _model("model_cpu"),
    "model-gpu.json": _model("model_gpu", ours="`pathnn train`", digits=2),
    "epoch-gpu.json": _model("epoch_gpu", ours="`pathnn train`"),
    "runtime.jsonl": _runtime,
}


BEGIN, END = "<!-- speed: written by pathnn bench --report -->", "<!-- end of speed -->"
USER_WAYS = {  # of pathnn_reproduction.bench.user_loop
    "pathnn train": "one step of `pathnn train`",
    "trie": "one step of your own loop, `trie=` (`AddPaths`)",
    "edge_index": "one step of your own loop, `edge_index`",
}


def headline(folder: Path) -> str:
    """Return the README's table as Markdown, and the sentences below it, from the result files in `folder`."""
    loops = [_read(folder / name) for name in ("model-gpu.json", "model-cpu.json")]
    extraction = next(
        row for row in _read(folder / "extract-cpu.json")["compare"]
        if (row["workload"], row["collection"], row["threads"]) == ("zinc", "ap", 1)
    )  # fmt: skip
    times = [number(extraction[name], 0, " ms") for name in ("igraph_ms", "trie_ms")]
    last = ["the paths of 1000 molecules, against igraph", "one core", *times, f"{extraction['trie_ratio']:.0f}x", "—"]
    head = ("training on ZINC, AP, batches of 128", "where", "path by path", "pathnn", "faster", "PyG's GINE")
    table = markdown_table(head, [*(row for result in loops for row in _user_rows(result)), last])
    return "\n\n".join([table, *map(_epochs, loops)])


def with_headline(page: str, folder: Path) -> str:
    """Return a page with the table between its two marks replaced by that of the result files."""
    return replace_block(page, (BEGIN, END), headline(folder))


def _user_rows(result: Result) -> list[list[str]]:
    steps = {row["way"]: row["ms"] for row in result["user_loop"] if row["phase"] == "step"}
    lines = []
    for way, title in USER_WAYS.items():
        dense, ours, gine = (number(steps[name], 1, " ms") for name in ("dense", way, "gine"))
        lines.append([title, _device(result), dense, ours, f"{steps['dense'] / steps[way]:.1f}x", gine])
    return lines


def _epochs(result: Result) -> str:
    """Return a sentence with the time of an epoch of each loop."""
    rows = {row["way"]: row for row in result["user_loop"] if row["phase"] == "epoch"}
    times = {way.replace(" ", "_"): number(row["ms"] / 1e3, 2, " s") for way, row in rows.items()}
    graphs = f"{rows['gine']['graphs']:,}"
    return fill("bench/readme_epochs", graphs=graphs, device=_device(result), **times).strip()


def _device(result: Result) -> str:
    return str(result["device"]).removeprefix("x86_64, ")
