"""`pathnn bench TARGET`: ours against what a user would do otherwise, as ratios from one run."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from pathnn.cli.console import print_json, print_table, result_only, say, size_text
from pathnn.cli.options import Json
from pathnn.cli.progress import progress

bench = typer.Typer(
    no_args_is_help=True,
    help="Measure this machine: ours against the usual way, as ratios from one run.",
    epilog="Example: pathnn bench batch --json",
)

Threads = Annotated[int, typer.Option("--threads", min=1, help="Number of CPU threads.")]


class Part(StrEnum):
    """What the extraction benchmark measures."""

    compare = "compare"
    memory = "memory"
    scale = "scale"
    gpu = "gpu"


Parts = Annotated[
    list[Part] | None,
    typer.Option("--part", help="What to measure, may be repeated; default: compare.", show_default=False),
]


@bench.callback()
def root() -> None:
    """Measure this machine: ours against the usual way, as ratios from one run."""


@bench.command("extract", epilog="Example: pathnn bench extract --part compare --part memory")
def extract_command(part: Parts = None, threads: Threads = 1, json: Json = False) -> None:
    """Extracting paths: against igraph, path by path; peak memory; a million graphs; the GPU."""
    parts = [p.value for p in part or [Part.compare]]
    with result_only(json):
        from pathnn.bench import extract
        from pathnn.bench.record import provenance

        _check_gpu(parts)
        measures: dict[str, Callable[[], Any]] = {
            "compare": lambda: extract.compare(threads=threads),
            "memory": extract.memory,
            "scale": extract.scale,
            "gpu": extract.on_gpu,
        }
        result: dict[str, Any] = {}
        with progress("measuring", total=len(parts)) as step:
            for name in dict.fromkeys(parts):
                result[name] = measures[name]()
                step()
    if json:
        print_json({**provenance(), **result})
        return
    for name, found in result.items():
        PRINT[name](found)


def _check_gpu(parts: list[str]) -> None:
    import torch

    if "gpu" in parts and not torch.cuda.is_available():
        raise ValueError("--part gpu needs a CUDA device, and torch finds none: leave it out.")


def _print_compare(found: list[dict[str, Any]]) -> None:
    columns = ("workload", "collection", "k", "igraph", "list", "trie", "list ratio", "trie ratio")
    rows = [
        (r["workload"], r["collection"].upper(), str(r["k"]), f"{r['igraph_ms']:,.0f}", f"{r['list_ms']:.2f}",
         f"{r['trie_ms']:.2f}", f"{r['list_ratio']:.0f}x", f"{r['trie_ratio']:.0f}x")
        for r in found
    ]  # fmt: skip
    title = f"Milliseconds per 1000 graphs, {found[0]['threads']} thread(s)"
    print_table(columns, rows, title=title, left=2)


def _print_memory(found: list[dict[str, Any]]) -> None:
    columns = ("workload", "collection", "result", "peak", "ratio")
    rows = [
        (r["workload"], r["collection"].upper(), size_text(r["result_bytes"]), size_text(r["peak_bytes"]),
         f"{r['ratio']:.2f}x")
        for r in found
    ]  # fmt: skip
    print_table(columns, rows, title="Peak memory over the size of the result", left=2)


def _print_scale(found: list[dict[str, Any]]) -> None:
    columns = ("graphs", "seconds", "us per graph", "process")
    rows = [
        (f"{r['graphs']:,}", f"{r['seconds']:.2f}", f"{r['us_per_graph']:.1f}", size_text(r["peak_process_bytes"]))
        for r in found
    ]
    print_table(columns, rows, title="ZINC-shaped, AP, k = 4", left=0)


def _print_gpu(found: dict[str, Any]) -> None:
    print_table(("on the GPU", "value"), [(key, str(value)) for key, value in found.items()])


PRINT: dict[str, Callable[[Any], None]] = {
    "compare": _print_compare,
    "memory": _print_memory,
    "scale": _print_scale,
    "gpu": _print_gpu,
}


@bench.command("batch", epilog="Example: pathnn bench batch --json")
def batch_command(threads: Threads = 1, json: Json = False) -> None:
    """Assembling a ZINC batch of 128 with its AP tries, k = 4: our packed graphs against PyG's DataLoader."""
    with result_only(json):
        from pathnn.bench import batch
        from pathnn.bench.record import provenance

        rounds = 15
        with progress("measuring", total=rounds + 1) as step:
            result = batch.run(threads=threads, rounds=rounds, step=step)
    if json:
        print_json({**provenance(), **result})
        return
    rows = [(r["method"], f"{r['ms']:.3f}", f"{r['ratio']:.1f}x") for r in result["rows"]]
    print_table(("method", "ms per batch", "ours is faster"), rows, title=result["workload"])
    say(f"{result['entries_per_batch']:,.0f} trie entries per batch, {result['threads']} thread(s), "
        f"target {result['target_ratio']:.0f}x")  # fmt: skip


Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", help="zinc-ap, zinc-sp or dd-ap, may be repeated; default: zinc-ap and dd-ap.",
                 show_default=False),
]  # fmt: skip


@bench.command("model", epilog="Example: pathnn bench model --workload zinc-ap --json")
def model_command(workload: Workloads = None, threads: Threads = 2, json: Json = False) -> None:
    """A training step and an inference of the paper's models on the CPU: the trie against the dense formulation."""
    with result_only(json):
        from pathnn.bench import model
        from pathnn.bench.record import provenance

        chosen = tuple(dict.fromkeys(workload or ("zinc-ap", "dd-ap")))
        for name in chosen:
            if name not in model.WORKLOADS:
                known = ", ".join(model.WORKLOADS)
                raise typer.BadParameter(f"{name!r} is unknown: expected one of {known}.", param_hint="--workload")
        rows: list[dict[str, Any]] = []
        with progress("measuring", total=len(chosen)) as step:
            for name in chosen:
                rows += model.run((name,), threads=threads)
                step()
    if json:
        print_json({**provenance(), "workloads": rows})
        return
    table = [
        (r["workload"], r["phase"], f"{r['dense_ms']:.1f}", f"{r['ours_ms']:.1f}", f"{r['ratio']:.1f}x",
         f"{r['dense_mib']:.0f}", f"{r['ours_mib']:.0f}")
        for r in rows
    ]  # fmt: skip
    columns = ("workload", "phase", "dense, ms", "ours, ms", "ratio", "dense, MiB", "ours, MiB")
    print_table(columns, table, title=f"One step on the CPU, {threads} thread(s)", left=2)
