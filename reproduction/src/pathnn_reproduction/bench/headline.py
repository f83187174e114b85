"""The few figures of speed that the README shows, from the result files of the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pathnn_reproduction.bench.report import number
from pathnn_reproduction.markdown import between, table

Result = dict[str, Any]

BEGIN, END = "<!-- speed: written by python benchmarks/report.py -->", "<!-- end of speed -->"
HEAD = ("training on ZINC, AP, batches of 128", "where", "path by path", "pathnn", "faster", "PyG's GINE")
USER_WAYS = {  # of pathnn_reproduction.bench.user_loop
    "pathnn train": "one step of `pathnn train`",
    "trie": "one step of your own loop, `trie=` (`AddPaths`)",
    "edge_index": "one step of your own loop, `edge_index`",
}
NOT_ON_A_GPU = (
    "On a GPU, `pathnn train` runs a step as a CUDA graph; a plain call in your own loop is slower. A whole step of\n"
    "your own loop, which also makes the trie of each batch or extracts its paths, has not been measured there yet."
)


def headline(folder: Path) -> str:
    """The README's table as Markdown, from the result files in `folder`, and what must be said with it."""
    gpu, cpu = _read(folder, "model-gpu"), _read(folder, "model-cpu")
    rows = [*_gpu_rows(gpu), *_user_rows(cpu), _extraction(_read(folder, "extract-cpu"))]
    words = [_epochs(result) for result in (gpu, cpu) if "user_loop" in result]
    if "user_loop" not in gpu:
        words.append(NOT_ON_A_GPU)
    return "\n\n".join([table(HEAD, rows), *words])


def with_headline(page: str, folder: Path) -> str:
    """A page with the table between its two marks replaced by that of the result files."""
    return between(page, BEGIN, END, headline(folder))


def _gpu_rows(result: Result) -> list[list[str]]:
    """A user's own loop if it was measured; otherwise our own loop and a plain call whose tries are ready."""
    if "user_loop" in result:
        return _user_rows(result)
    row = next(row for row in result["workloads"] if (row["workload"], row["phase"]) == ("zinc-ap", "train"))
    plain = "one plain call and its gradients, tries ready"
    return [
        _row(USER_WAYS["pathnn train"], result, row["dense_ms"], row["ours_ms"]),
        _row(plain, result, row["dense_ms"], row["ours_eager_ms"]),
    ]


def _user_rows(result: Result) -> list[list[str]]:
    steps = {row["way"]: row["ms"] for row in result["user_loop"] if row["phase"] == "step"}
    return [_row(title, result, steps["dense"], steps[way], steps["gine"]) for way, title in USER_WAYS.items()]


def _row(title: str, result: Result, dense: float, ours: float, gine: float | None = None) -> list[str]:
    times = [number(ms, 1, " ms") for ms in (dense, ours)]
    return [title, _device(result), *times, f"{dense / ours:.1f}x", number(gine, 1, " ms")]


def _extraction(result: Result) -> list[str]:
    row = next(r for r in result["compare"] if (r["workload"], r["collection"], r["threads"]) == ("zinc", "ap", 1))
    times = [number(row[name], 0, " ms") for name in ("igraph_ms", "trie_ms")]
    return ["the paths of 1000 molecules, against igraph", "one core", *times, f"{row['trie_ratio']:.0f}x", "—"]


def _epochs(result: Result) -> str:
    """An epoch of each loop, in a sentence."""
    rows = {row["way"]: row for row in result["user_loop"] if row["phase"] == "epoch"}
    times = {way: number(row["ms"] / 1e3, 2, " s") for way, row in rows.items()}
    return (
        f"An epoch of {rows['gine']['graphs']:,} molecules on {_device(result)}, with PyG's `DataLoader` in your own\n"
        f"loop: GINE of the same size {times['gine']}, PathNN with `trie=` {times['trie']}, with `edge_index` "
        f"{times['edge_index']}.\n`pathnn train`: {times['pathnn train']}."
    )


def _device(result: Result) -> str:
    device: str = result["device"]
    return device.removeprefix("x86_64, ")


def _read(folder: Path, name: str) -> Result:
    result: Result = json.loads((folder / f"{name}.json").read_text())
    return result
