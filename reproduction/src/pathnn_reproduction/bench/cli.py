"""`pathnn bench TARGET`: ours against what a user would do otherwise, as ratios from one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pathnn.cli.console import print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json

bench = typer.Typer(no_args_is_help=True, invoke_without_command=True, epilog="Example: pathnn bench batch --json")

Device = StrEnum("Device", ["auto", "cpu", "cuda"])
Part = StrEnum("Part", ["compare", "memory", "scale", "gpu"])

ThreadCounts = Annotated[
    list[int] | None,
    typer.Option("--threads", min=1, help="Number of CPU threads, may be repeated.", show_default="1"),
]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Number of CPU threads.")]
Parts = Annotated[
    list[Part] | None,
    typer.Option("--part", help="What to measure, may be repeated; default: compare.", show_default=False),
]
Report = Annotated[
    bool,
    typer.Option("--report", help="Measure nothing; in a clone, write docs/benchmarks.md and the README's table."),
]
DeviceName = Annotated[Device, typer.Option("--device", help="Where to measure.")]


def _folder_exists(path: Path | None) -> Path | None:
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"the folder {path.parent} does not exist: make it first.")
    return path


SaveAs = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Also write the result, after each part of it.", show_default=False,
                 callback=_folder_exists),
]  # fmt: skip
Save = Callable[[dict[str, Any]], None]


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
    """Measure the extraction of paths: against igraph, path by path; peak memory; a million graphs; the GPU."""
    from pathnn_reproduction.bench import extract

    parts = list(dict.fromkeys(part or [Part.compare]))
    on_gpu = _on_gpu("cuda" if "gpu" in parts else "cpu")
    measures: dict[str, Callable[[], Any]] = {
        "compare": lambda: [row for number in threads or [1] for row in extract.compare(threads=number)],
        "memory": extract.memory,
        "scale": extract.scale,
        "gpu": extract.on_gpu,
    }

    def measure(save: Save) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name in parts:
            result[name.value] = measures[name]()
            save(result)
        return result

    _measure(measure, save=save, gpu=on_gpu, json=json)


@bench.command("batch", epilog="Example: pathnn bench batch --json")
def batch_command(threads: Threads = 1, save: SaveAs = None, json: Json = False) -> None:
    """Measure the assembly of a ZINC batch of 128 with its AP tries, k = 4, against PyG's DataLoader."""
    from pathnn_reproduction.bench import batch

    _measure(lambda save: batch.run(threads=threads), save=save, gpu=False, json=json)


Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", help="zinc-ap, zinc-sp, dd-ap or (GPU) peptides-func-ap, may be repeated; default: "
                 "zinc-ap and dd-ap on a CPU, all on a GPU.", show_default=False),
]  # fmt: skip


@bench.command("model", epilog="Example: pathnn bench model --workload zinc-ap --json")
def model_command(
    workload: Workloads = None,
    threads: Threads = 2,
    device: DeviceName = Device.auto,
    save: SaveAs = None,
    json: Json = False,
) -> None:
    """Measure a training step and an inference of the paper's models: the trie against the dense formulation.

    With zinc-ap also a step and an epoch of your own loop (PathNN called with `trie=` and with `edge_index`) and of
    `pathnn train`, next to PyG's GINE of the same size. On a GPU also with TF32 and bfloat16 for the first workload,
    and a batch that ran out of memory in the paper.
    """
    on_gpu = _on_gpu(device)
    if on_gpu:
        from pathnn_reproduction.bench import model_gpu

        chosen = _known(workload or [*model_gpu.WORKLOADS], model_gpu.WORKLOADS)
        run = partial(model_gpu.run, chosen, large=workload is None)
    else:
        from pathnn_reproduction.bench import model

        run = partial(model.run, _known(workload or ["zinc-ap", "dd-ap"], model.WORKLOADS), threads=threads)
    _measure(lambda keep: run(save=keep), save=save, gpu=on_gpu, json=json, keep_others=True)


Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Epochs of ours to take the median of.")]
Graphs = Annotated[
    int | None,
    typer.Option("--graphs", min=2, help="Train on this many graphs only; default: all on a GPU, 640 on a CPU.",
                 show_default=False),
]  # fmt: skip


@bench.command("epoch", epilog="Example: pathnn bench epoch --graphs 1280 --json")
def epoch_command(
    epochs: Epochs = 5,
    graphs: Graphs = None,
    device: DeviceName = Device.auto,
    save: SaveAs = None,
    json: Json = False,
) -> None:
    """Measure an epoch of ZINC (AP, K = 4) by `pathnn train`, and an evaluation, against the dense formulation."""
    from pathnn.training.recipes import zinc
    from pathnn_reproduction.bench import epoch

    on_gpu = _on_gpu(device)
    config = replace(zinc("ap"), device="cuda" if on_gpu else "cpu")
    configs = [config, replace(config, precision="tf32")] if on_gpu else [config]
    number = graphs if graphs is not None or on_gpu else 640

    def measure(save: Save) -> dict[str, Any]:
        return {"workloads": [row for one in configs for row in epoch.run(one, epochs=epochs, graphs=number)]}

    _measure(measure, save=save, gpu=on_gpu, json=json)


def _on_gpu(device: str) -> bool:
    if device == "cpu":
        return False
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("this needs a CUDA device, and torch finds none: use --device cpu, or leave --part gpu out.")
    return torch.cuda.is_available()


def _known(chosen: list[str], known: Any) -> list[str]:
    for name in chosen:
        if name not in known:
            raise typer.BadParameter(
                f"{name!r} is unknown: expected one of {', '.join(known)}.", param_hint="--workload"
            )
    return list(dict.fromkeys(chosen))


def _measure(
    measure: Callable[[Save], dict[str, Any]], *, save: Path | None, gpu: bool, json: bool, keep_others: bool = False
) -> None:
    """Measure, write the result so far after each part and at the end, and print it.

    With `keep_others`, rows of a file that is there stay if their workload was not measured again.
    """
    device = "cuda" if gpu else "cpu"
    with result_only(json), progress("measuring"):
        from pathnn_reproduction.results import provenance, with_other_workloads, write_result

        def keep(result: dict[str, Any]) -> None:
            if save is not None:
                write_result(save, with_other_workloads(save, result) if keep_others else result, device=device)

        result = measure(keep)
        keep(result)
    if json:
        print_json({**provenance(device), **result})
        return
    from pathnn_reproduction.bench.report import result_tables

    for table in result_tables(result):
        print_table(table.head, table.rows, title=table.title, left=table.left)
