"""The benchmark page of the docs and the README's table of speed, written from the result files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pathnn_reproduction.pages import replace_block, write_pages
from pathnn_reproduction.tables import markdown_table as table

Result = dict[str, Any]

INTRO = """# Benchmarks

This page is written by `pathnn bench --report` from `benchmarks/results/*.json`; each section says where and when
its numbers were measured. Ratios are within one run on one machine. `benchmarks/NOTES.md` tells how the code got there.
"""


CPU = """
Both get their batches and tries ready made: `model(x, trie=trie, ...)`. The time in your own loop is below.
"""

GPU = """
**These are times of our own loop.** "`pathnn train`" is one CUDA graph per step, its batch assembled on the GPU within
the step (phase "inference": its evaluations); "faster" and "smaller" compare it with the dense side, which gets its
batches ready made. A plain call in your own loop on a GPU is slower. "Plain call" is the same step operation by
operation, `model(x, trie=trie, ...)`, with its tries ready on the GPU.

TF32 is off on both sides unless the row says otherwise. Memory is above the resident dataset. "GPU busy" is the
time in kernels of one of our training steps or predictions, by the profiler: where it is as long as the step, nothing
waits for the host (it is longer where two streams work at once). The floor is the time that counting operations and
bytes of the LSTM gives (67 TFLOP/s in float32, 4.8 TB/s). The last row is of a cell that ran out of memory in the
paper.
"""

GPU_EPOCH = """
Both sides run in our own loop (`pathnn train`), ours as CUDA graphs: an epoch in a user's own loop is slower.
"""

NO_USER_LOOP = """
**Not measured on a GPU yet:** a whole step of your own loop, which makes the trie of each batch (`PathTrie.from_data`)
or extracts its paths in the call (`edge_index`), and an epoch of it with PyG's `DataLoader`.
"""

WAYS = {
    "dense": "`nn.LSTM` over every path, tries ready",
    "edge_index": "PathNN in your own loop, `model(x, edge_index, ...)`: paths extracted in the call",
    "trie": "PathNN in your own loop, `trie=PathTrie.from_data(batch)`: paths of `AddPaths`",
    "pathnn train": "PathNN in our own loop, `pathnn train`",
    "gine": "PyG's GINE in your own loop",
}
"""What the rows of `pathnn_reproduction.bench.user_loop` are called, in the order of the table."""

USER_HEAD = ("training on ZINC, AP", "parameters", "step, ms", "faster than dense", "epoch, s")


def write_benchmarks(root: Path) -> list[Path]:
    """Write `docs/benchmarks.md` and the README's table of a clone at `root`; return what was written."""
    results, page, readme = root / "benchmarks" / "results", root / "docs" / "benchmarks.md", root / "README.md"
    if not (results.is_dir() and page.parent.is_dir() and readme.exists()):
        raise ValueError("benchmarks/results, docs and README.md are not all here: run --report in a clone of pathnn.")
    return write_pages({page: benchmark_page(results), readme: with_headline(readme.read_text(), results)})


def benchmark_page(folder: Path) -> str:
    """The page as Markdown, from the result files in `folder`; a file that is not there has no section."""
    parts = [INTRO]
    for name, section in SECTIONS.items():
        path = folder / f"{name}.json"
        if path.exists():
            result = json.loads(path.read_text())
            parts.append(section(result) + _origin(result, path.name))
    return "\n".join(parts)


def _extract_cpu(result: Result) -> str:
    rows = [
        [
            row["workload"], row["collection"].upper(), str(row["k"]), str(row["threads"]), f"{row['igraph_ms']:,.0f}",
            f"{row['list_ms']:.1f}", f"{row['trie_ms']:.1f}", f"{row['list_ratio']:.0f}x", f"{row['trie_ratio']:.0f}x",
        ]
        for row in result["compare"]
    ]  # fmt: skip
    head = ["graphs like", "paths", "K", "cores", "igraph, ms", "list, ms", "trie, ms", "list", "trie"]
    memory = [
        [row["workload"], row["collection"].upper(), f"{row['result_bytes'] / 2**20:.1f}", f"{row['ratio']:.2f}"]
        for row in result["memory"]
    ]
    scale = [
        [f"{row['graphs']:,}", f"{row['paths']:,}", f"{row['seconds']:.1f}", f"{row['us_per_graph']:.1f}",
         f"{row['peak_process_bytes'] / 2**20:.0f}"]
        for row in result["scale"]
    ]  # fmt: skip
    return f"""## Extraction on a CPU

Against igraph, path by path in Python, lists to tensors, as the released implementation does it; milliseconds per 1000
graphs. "List" is enumeration alone (`list_paths`), "trie" is `extract_paths`, for AP with distances.

{table(head, rows)}

Peak memory of `extract_paths` over the size of its result:

{table(["graphs like", "paths", "result, MiB", "peak / result"], memory)}

Molecules like ZINC's, AP, K = 4, extracted in chunks of 10,000:

{table(["molecules", "paths", "seconds", "µs per molecule", "process peak, MiB"], scale)}
"""


def _extract_gpu(result: Result) -> str:
    gpu = result["gpu"]
    rows = [
        [
            name.upper(),
            f"{gpu[f'{name}_entries']:,}",
            f"{gpu[f'{name}_ms']:.1f}",
            str(gpu[f"{name}_equal_to_cpu"]).lower(),
        ]
        for name in ("sp", "sp+", "ap")
    ]
    return f"""## Extraction on a GPU

{gpu["graphs"]:,} molecules like ZINC's, K = {gpu["k"]}, as one batch, trie included.

{table(["paths", "entries", "ms", "equal to the CPU's, entry for entry"], rows)}
"""


def _batch(result: Result) -> str:
    rows = [[f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()] for row in result["rows"]]
    return f"""## Assembling a batch

{result["about"]}

{table(list(result["rows"][0]), rows)}
"""


def _model(title: str, about: str = "", *, ours: str = "trie", digits: int = 1) -> Callable[[Result], str]:
    """A section on our side (called `ours`) against the dense one; columns that no row has are left out."""

    def section(result: Result) -> str:
        floors = any("floor_share" in row for row in result["workloads"])
        plain = any("ours_eager_ms" in row for row in result["workloads"])
        rows = []
        for row in result["workloads"]:
            sizes = [row["dense_mib"], row["ours_mib"]]
            smaller = None if None in sizes else sizes[0] / sizes[1]
            cells = [number(row["dense_ms"], digits), number(row["ours_ms"], digits), number(row["ratio"], 1, "x")]
            cells += [*(number(size, 0) for size in sizes), number(smaller, 1, "x")]
            share = row.get("floor_share")
            cells += [number(row.get("ours_eager_ms"), digits)] if plain else []
            if floors:
                cells += [number(row.get("ours_busy_ms"), digits), number(share and 100 * share, 0, " %")]
            rows.append([row["workload"], row["phase"], *cells])
        head = ["workload", "phase", "dense, ms", f"{ours}, ms", "faster", "dense, MiB", f"{ours}, MiB", "smaller"]
        head += ["plain call, ms"] if plain else []
        head += ["GPU busy, ms", "of the floor"] if floors else []
        return f"""## {title}

The trie backend against the dense formulation (`nn.LSTM` over every path), same weights, same batches.
{about}
{table(head, rows)}
{_errors(result)}{_user_loop(result, on_gpu=floors)}"""

    return section


def _user_loop(result: Result, *, on_gpu: bool) -> str:
    """The part on a user's own loop, or the words that it has not been measured."""
    rows = result.get("user_loop")
    if rows is None:
        return NO_USER_LOOP if on_gpu else ""
    step, epoch = (next(row for row in rows if row["phase"] == phase) for phase in ("step", "epoch"))
    return f"""
### In your own loop

{step["workload"].partition(", ")[2]} in batches of {step["graphs"]}, as a PyG user trains. A step takes a batch that is
collated and on the device; an epoch is {epoch["graphs"]:,} molecules, PyG's `DataLoader` included. All are medians from
one run. The step of `pathnn train` is its epoch divided by the number of steps, so it includes assembling the batches.

{table(USER_HEAD, user_rows(rows))}
"""


def user_rows(rows: Sequence[Result]) -> list[list[str]]:
    """The rows of a user's own loop, in the order of `USER_HEAD`."""
    found = {(row["phase"], row["way"]): row for row in rows}
    dense = found["step", "dense"]["ms"]
    lines = []
    for way, title in WAYS.items():
        step, epoch = found["step", way], found.get(("epoch", way))
        ratio = None if way in ("dense", "gine") else dense / step["ms"]
        seconds = None if epoch is None else epoch["ms"] / 1e3
        lines.append(
            [title, f"{step['parameters']:,}", number(step["ms"], 1), number(ratio, 1, "x"), number(seconds, 2)]
        )
    return lines


def runtime_cells(row: Result) -> list[str]:
    """A line of the table of running times: dataset, model, K, then paper and ours of each time."""
    paper = row["paper"]
    model = row["model"].upper() if row["collection"] is None else f"PathNN-{row['collection'].upper()}"
    paths = row["preprocessing"] if paper["preprocessing"] is not None else None
    return [
        row["dataset"].upper(), model, str(row["k"]), number(paper["preprocessing"], 2), number(paths, 2),
        number(paper["epoch"], 2), f"{row['epoch']:.3f} ± {row['epoch_std']:.3f}", number(paper["inference"], 2),
        f"{row['inference']:.3f} ± {row['inference_std']:.3f}",
    ]  # fmt: skip


RUNTIME = ("dataset", "model", "K", "paths: paper", "ours", "epoch: paper", "ours", "inference: paper", "ours")


NO_GIN = """The rows of GIN were removed: they were measured before our loop ran GIN as a CUDA graph, as it does now, so
a comparison with PathNN's rows would not be fair. GIN has not been measured again yet."""


def _runtime(result: Result) -> str:
    gin = "" if any(row["model"] == "gin" for row in result["runtime"]) else f"\n{NO_GIN}\n"
    return f"""## The paper's running times

The appendix's table, in seconds: extracting the paths of all graphs, an epoch of training, predicting the test graphs
(`pathnn reproduce runtime`). The paper's are of an NVIDIA Tesla T4; ours of our own loop (`pathnn train`) on the
machine below, paths on its CPU.

{table(RUNTIME, [runtime_cells(row) for row in result["runtime"]])}
{gin}"""


def _errors(result: Result) -> str:
    """How exact the results are, where it was measured."""
    lines = []
    for row in result.get("exactness", []):
        lines.append(
            f"Against float64, {row['workload']}: outputs of ours are off by {row['ours_output_error']:.1e} (dense in "
            f"float32: {row['dense_output_error']:.1e}), gradients by {row['ours_gradient_error']:.1e} "
            f"({row['dense_gradient_error']:.1e}); norm of the difference over norm, one step of the whole network."
        )
    for row in result["workloads"]:
        if "error" in row and row["phase"] == "train":
            lines.append(
                f"{row['workload']}: outputs differ from our float32's by {row['error']:.1e}, gradients by "
                f"{row['gradient_error']:.1e}."
            )
    return "".join(f"\n{line}\n" for line in lines)


def number(value: float | None, digits: int, unit: str = "") -> str:
    """A number for a table, or a dash.

    >>> number(1234.5, 1, "x"), number(None, 1)
    ('1,234.5x', '—')
    """
    return "—" if value is None else f"{value:,.{digits}f}{unit}"


def _origin(result: Result, name: str) -> str:
    versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items() if version)
    return f"\n*{result['device']}, {result['time']}, commit {result['commit']}, {versions} (`{name}`).*\n"


SECTIONS: dict[str, Callable[[Result], str]] = {
    "extract-cpu": _extract_cpu,
    "extract-gpu": _extract_gpu,
    "batch-cpu": _batch,
    "model-cpu": _model("A training step on two cores", CPU),
    "model-gpu": _model("A training step of `pathnn train` on a GPU", GPU, ours="`pathnn train`", digits=2),
    "epoch-gpu": _model("An epoch of `pathnn train` on a GPU", GPU_EPOCH, ours="`pathnn train`"),
    "runtime-gpu": _runtime,
}


BEGIN, END = "<!-- speed: written by pathnn bench --report -->", "<!-- end of speed -->"
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
    return replace_block(page, (BEGIN, END), headline(folder))


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
