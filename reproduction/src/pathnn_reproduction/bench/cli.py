"""`pathnn bench TARGET`: ours against what a user would do otherwise, as ratios from one run."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pathnn.cli.console import print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json
from pathnn.paths.count import size_text

bench = typer.Typer(
    no_args_is_help=True,
    invoke_without_command=True,
    help="Measure this machine: ours against the usual way, as ratios from one run.",
    epilog="Example: pathnn bench batch --json",
)


ThreadCounts = Annotated[
    list[int] | None,
    typer.Option("--threads", min=1, help="Number of CPU threads, may be repeated.", show_default="1"),
]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Number of CPU threads.")]


class Device(StrEnum):
    """Where to measure."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


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


Report = Annotated[
    bool,
    typer.Option("--report", help="Measure nothing; in a clone, write docs/benchmarks.md and the README's table."),
]
SaveAs = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Also write the result, after each part of it.", show_default=False),
]


@bench.callback()
def root(context: typer.Context, report: Report = False) -> None:
    """Measure this machine: ours against the usual way, as ratios from one run."""
    if report:
        from pathnn_reproduction.bench.report import write_benchmarks

        for path in write_benchmarks(Path()):
            say(f"wrote {path}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise typer.BadParameter("expected a benchmark, or --report.")


@bench.command("extract", epilog="Example: pathnn bench extract --part compare --part memory")
def extract_command(part: Parts = None, threads: ThreadCounts = None, save: SaveAs = None, json: Json = False) -> None:
    """Extracting paths: against igraph, path by path; peak memory; a million graphs; the GPU."""
    _check_folder(save)
    parts = [p.value for p in part or [Part.compare]]
    with result_only(json):
        from pathnn.provenance import provenance
        from pathnn_reproduction.bench import extract

        _check_gpu(parts)
        measures: dict[str, Callable[[], Any]] = {
            "compare": lambda: [row for number in threads or [1] for row in extract.compare(threads=number)],
            "memory": extract.memory,
            "scale": extract.scale,
            "gpu": extract.on_gpu,
        }
        result: dict[str, Any] = {}
        with progress("measuring", total=len(parts)) as step:
            for name in dict.fromkeys(parts):
                result[name] = measures[name]()
                _saver(save, step, "cuda" if "gpu" in parts else "cpu")(result)
    if json:
        print_json({**provenance("cuda" if "gpu" in parts else "cpu"), **result})
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
    counts = " and ".join(dict.fromkeys(str(r["threads"]) for r in found))
    title = f"Milliseconds per 1000 graphs, {counts} thread(s)"
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
def batch_command(threads: Threads = 1, save: SaveAs = None, json: Json = False) -> None:
    """Assembling a ZINC batch of 128 with its AP tries, k = 4: our packed graphs against PyG's DataLoader."""
    _check_folder(save)
    with result_only(json):
        from pathnn.provenance import provenance
        from pathnn_reproduction.bench import batch

        rounds = 15
        with progress("measuring", total=rounds + 1) as step:
            result = batch.run(threads=threads, rounds=rounds, step=step)
        _saver(save, lambda: None, "cpu")(result)
    if json:
        print_json({**provenance(), **result})
        return
    rows = [(r["method"], f"{r['ms']:.3f}", f"{r['ratio']:.1f}x") for r in result["rows"]]
    print_table(("method", "ms per batch", "ours is faster"), rows, title=result["workload"])
    say(f"{result['entries_per_batch']:,.0f} trie entries per batch, {result['threads']} thread(s), "
        f"target {result['target_ratio']:.0f}x")  # fmt: skip


Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", help="zinc-ap, zinc-sp, dd-ap or (GPU) peptides-func-ap, may be repeated; default: "
                 "zinc-ap and dd-ap on a CPU, all on a GPU.", show_default=False),
]  # fmt: skip


DeviceName = Annotated[Device, typer.Option("--device", help="Where to measure.")]


@bench.command("model", epilog="Example: pathnn bench model --workload zinc-ap --json")
def model_command(
    workload: Workloads = None,
    threads: Threads = 2,
    device: DeviceName = Device.auto,
    save: SaveAs = None,
    json: Json = False,
) -> None:
    """A training step and an inference of the paper's models: the trie against the dense formulation.

    With zinc-ap also a step and an epoch of your own loop (PathNN called with `trie=` and with `edge_index`) and of
    `pathnn train`, next to PyG's GINE of the same size. On a GPU also with TF32 and bfloat16 for the first workload,
    and a batch that ran out of memory in the paper.
    """
    _check_folder(save)
    with result_only(json):
        on_gpu = _on_gpu(device)
        result = _model_gpu(workload, save) if on_gpu else _model_cpu(workload, threads, save)
    where = "a GPU" if on_gpu else f"the CPU, {threads} thread(s)"
    _show(result, title=f"One step on {where}", device="cuda" if on_gpu else "cpu", json=json)
    if "user_loop" in result and not json:
        from pathnn_reproduction.bench.report import USER_HEAD, user_rows

        print_table(USER_HEAD, user_rows(result["user_loop"]), title=f"ZINC, AP, on {where}", left=1)


@bench.command("epoch", epilog="Example: pathnn bench epoch --graphs 1280 --json")
def epoch_command(
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Epochs of ours to take the median of.")] = 5,
    graphs: Annotated[
        int | None,
        typer.Option("--graphs", min=2, help="Train on so many graphs only; default: all on a GPU, 640 on a CPU.",
                     show_default=False),
    ] = None,
    device: DeviceName = Device.auto,
    save: SaveAs = None,
    json: Json = False,
) -> None:  # fmt: skip
    """An epoch of ZINC (AP, K = 4) as `pathnn train` does it, and an evaluation: ours against the dense formulation."""
    _check_folder(save)
    with result_only(json):
        from dataclasses import replace

        from pathnn.training.recipes import zinc
        from pathnn_reproduction.bench import epoch

        on_gpu = _on_gpu(device)
        number = graphs if graphs is not None or on_gpu else 640
        with progress("measuring", total=1) as step:
            config = replace(zinc("ap"), device="cuda" if on_gpu else "cpu")
            rows = epoch.run(config, epochs=epochs, graphs=number)
            if on_gpu:
                rows += epoch.run(replace(config, precision="tf32"), epochs=epochs, graphs=number)
            _saver(save, step, "cuda" if on_gpu else "cpu")({"workloads": rows})
    title = f"An epoch of {rows[0]['graphs']:,} graphs"
    _show({"workloads": rows}, title=title, device="cuda" if on_gpu else "cpu", json=json)


def _check_folder(save: Path | None) -> None:
    if save is not None and not save.parent.is_dir():
        raise typer.BadParameter(f"the folder {save.parent} does not exist: make it first.", param_hint="--save")


def _on_gpu(device: Device) -> bool:
    import torch

    if device is Device.cuda and not torch.cuda.is_available():
        raise ValueError("--device cuda needs a CUDA device, and torch finds none: use --device cpu.")
    return torch.cuda.is_available() and device is not Device.cpu


def _model_cpu(workload: list[str] | None, threads: int, path: Path | None) -> dict[str, Any]:
    from pathnn_reproduction.bench import model

    chosen = _known(workload or ["zinc-ap", "dd-ap"], tuple(model.WORKLOADS))
    with progress("measuring", total=len(chosen)) as step:
        return model.run(chosen, threads=threads, save=_saver(path, step, "cpu"))


def _model_gpu(workload: list[str] | None, path: Path | None) -> dict[str, Any]:
    from pathnn_reproduction.bench import model_gpu
    from pathnn_reproduction.bench.model_gpu import WORKLOADS

    chosen = _known(workload or [*WORKLOADS], tuple(WORKLOADS))
    with progress("measuring", total=len(chosen)) as step:
        return model_gpu.run(chosen, large=workload is None, save=_saver(path, step, "cuda"))


def _saver(path: Path | None, step: Callable[[], None], device: str) -> Callable[[dict[str, Any]], None]:
    """What is done with the result after each part of it."""

    def save(result: dict[str, Any]) -> None:
        from pathnn_reproduction.results import write_result

        step()
        if path is not None:
            write_result(path, result, device=device)

    return save


def _known(chosen: list[str], known: tuple[str, ...]) -> list[str]:
    for name in chosen:
        if name not in known:
            raise typer.BadParameter(
                f"{name!r} is unknown: expected one of {', '.join(known)}.", param_hint="--workload"
            )
    return list(dict.fromkeys(chosen))


def _show(result: dict[str, Any], *, title: str, device: str, json: bool) -> None:
    """Rows of `dense_ms, ours_ms, ratio, dense_mib, ours_mib`, as JSON or as a table."""
    if json:
        from pathnn.provenance import provenance

        print_json({**provenance(device), **result})
        return
    from pathnn_reproduction.bench.report import number

    table = [
        (r["workload"], r["phase"], *(number(r[key], digits) for key, digits in COLUMNS.items()))
        for r in result["workloads"]
    ]
    heads = ("workload", "phase", "dense, ms", "ours, ms", "ratio", "dense, MiB", "ours, MiB")
    print_table(heads, table, title=title, left=2)


COLUMNS = {"dense_ms": 1, "ours_ms": 1, "ratio": 1, "dense_mib": 0, "ours_mib": 0}
