"""The few figures of speed that the README shows, from the result files of the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pathnn.bench.report import number
from pathnn.markdown import between, table

BEGIN, END = "<!-- speed: written by python benchmarks/report.py -->", "<!-- end of speed -->"
HEAD = ("what", "where", "path by path", "pathnn", "faster", "less memory")
STEPS = (  # the title, the result file, the start of the workload's name, the phase
    ("one training step, ZINC, AP", "model-gpu", "zinc-ap", "train"),
    ("predicting a batch, ZINC, AP", "model-gpu", "zinc-ap", "inference"),
    ("one training step, Peptides, AP", "model-gpu", "peptides-func-ap", "train"),
    ("one training step, ZINC, AP", "model-cpu", "zinc-ap", "train"),
)


def headline(folder: Path) -> str:
    """The README's table as Markdown, from the result files in `folder`."""
    rows = [_step(folder, *step) for step in STEPS]
    extracted = _read(folder, "extract-cpu")
    found = next(
        row for row in extracted["compare"] if (row["workload"], row["collection"], row["threads"]) == ("zinc", "ap", 1)
    )
    times = [f"{number(found[name], 0)} ms" for name in ("igraph_ms", "trie_ms")]
    rows.append(["paths of 1000 molecules, AP", "one core", *times, f"{found['trie_ratio']:.0f}x", "—"])
    return table(HEAD, rows)


def with_headline(page: str, folder: Path) -> str:
    """A page with the table between its two marks replaced by that of the result files."""
    return between(page, BEGIN, END, headline(folder))


def _step(folder: Path, title: str, file: str, workload: str, phase: str) -> list[str]:
    result = _read(folder, file)
    names = (workload, f"{workload}, real graphs")
    row = next(
        row for row in result["workloads"] if row["phase"] == phase and row["workload"].split(", 2 threads")[0] in names
    )
    times = [f"{number(row[name], 1)} ms" for name in ("dense_ms", "ours_ms")]
    device = result["device"].removeprefix("x86_64, ")
    return [title, device, *times, f"{row['ratio']:.1f}x", f"{row['dense_mib'] / row['ours_mib']:.1f}x"]


def _read(folder: Path, name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return result
