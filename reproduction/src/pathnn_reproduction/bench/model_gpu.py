"""A training step and a prediction on a GPU: the trie backends as one CUDA graph against cuDNN's LSTM over every path.

    PATHNN_MIRROR=... python -m pathnn_reproduction.bench.model_gpu --json result.json

Both sides have the same weights, the same batches of real graphs, the same fused Adam, and TF32 off. The dense side
gets its batches ready made; ours assembles them on the GPU within the step. Times are of several steps in a row, one
wait at their end; memory is the peak above the resident dataset.
"""

from __future__ import annotations

import argparse
import logging
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pathnn.data.datasets.registry import load_dataset
from pathnn.device import small_cublas_workspace
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget
from pathnn_reproduction.bench import user_loop
from pathnn_reproduction.bench.gpu_exactness import gradients, measure_exactness, predictions, set_tf32
from pathnn_reproduction.bench.gpu_sides import WORKLOADS, Bench, adam, eager_steps, graphed_steps
from pathnn_reproduction.bench.gpu_timing import floor_ms, measured, milliseconds
from pathnn_reproduction.bench.model import USER_WORKLOAD, Save, prepare_datasets
from pathnn_reproduction.result_file import write_result

log = logging.getLogger(__name__)

LARGE = "imdb-binary"
"""The dataset of `measure_large`."""


def measure(name: str, phase: str, bench: Bench, *, rounds: int = 5) -> dict[str, Any]:
    """One row of the result."""
    ours = measured(lambda: graphed_steps(bench, phase), 3 * rounds)
    eager = measured(lambda: eager_steps(bench, "auto", phase), rounds)
    dense = measured(lambda: eager_steps(bench, "dense", phase), max(rounds // 2, 1))
    floor = floor_ms(bench, phase)
    log.info("%s %s: dense %.2f ms, ours %.2f ms, busy %.2f", name, phase, dense["ms"], ours["ms"], ours["busy_ms"])
    for ms, count, kernel in ours["kernels"]:
        log.debug("    %.3f ms x%d %s", ms, count, kernel[:110])
    return {
        "workload": name, "phase": phase, "dense_ms": dense["ms"], "ours_ms": ours["ms"],
        "ratio": dense["ms"] / ours["ms"], "dense_mib": dense["mib"], "ours_mib": ours["mib"],
        "dense_busy_ms": dense["busy_ms"], "ours_busy_ms": ours["busy_ms"], "floor_ms": floor,
        "floor_share": floor / ours["ms"], "ours_eager_ms": eager["ms"], "ours_eager_mib": eager["mib"],
    }  # fmt: skip


def measure_large(*, max_entries: int = 2_000_000, limit_gib: float = 16.0) -> dict[str, Any]:
    """One training step on the 32 graphs of IMDB-BINARY with the most edges, AP, K = 3, within `limit_gib`."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit_gib * 2**30 / total))
    torch.cuda.reset_peak_memory_stats()
    task = load_dataset(LARGE)
    assert task.loss is not None
    assert task.graphs.x is not None
    largest = task.graphs.edge_ptr.diff().sort(descending=True).indices[:32]
    graphs = task.graphs.subset(largest).with_paths(collection="ap", k=3, max_paths=10**9)
    batch = graphs.select(torch.arange(32)).to("cuda")
    assert batch.trie is not None
    model = PathNN.from_paper(LARGE, collection="ap", k=3, in_channels=task.graphs.x.size(1)).cuda()
    optimizer, loss = adam(model), task.loss()

    def step() -> None:
        optimizer.zero_grad()
        out = model(batch.x, trie=batch.trie, batch=batch.batch, batch_size=32, budget=Budget(max_entries))
        loss(out, batch.y).backward()
        optimizer.step()

    step()
    ms = milliseconds([step], 3)
    peak = torch.cuda.max_memory_allocated() / 2**20
    torch.cuda.set_per_process_memory_fraction(1.0)
    return {
        "workload": f"{LARGE}-ap (the 32 largest graphs)", "phase": "train", "dense_ms": None, "ours_ms": ms,
        "ratio": None, "dense_mib": None, "ours_mib": peak, "paths": batch.trie.num_paths, "limit_gib": limit_gib,
    }  # fmt: skip


def measure_reduced(name: str, precision: str, bench: Bench, *, rounds: int = 5) -> list[dict[str, Any]]:
    """Rows with "TF32" or "bf16" (`torch.autocast`) on both sides, and the error that it brings to our predictions and
    gradients: norm of the difference over norm."""
    exact = predictions(bench), gradients(bench)
    set_tf32(precision == "TF32")
    bench.autocast = precision == "bf16"
    errors = [
        float((value - truth).norm() / truth.norm())
        for value, truth in zip((predictions(bench), gradients(bench)), exact, strict=True)
    ]
    rows = [measure(f"{name}, {precision}", phase, bench, rounds=rounds) for phase in ("train", "inference")]
    set_tf32(False)
    bench.autocast = False
    return [{**row, "error": errors[0], "gradient_error": errors[1]} for row in rows]


def run(names: list[str], *, rounds: int = 5, large: bool = True, save: Save = lambda _: None) -> dict[str, Any]:
    """All rows for some workloads; the first one also with TF32 and bfloat16, and against float64; `zinc-ap` also in a
    user's own loop. The result so far is given to `save` after each workload and at the end. All datasets are made
    available before anything is measured."""
    prepare_datasets([*(WORKLOADS[name].dataset for name in names), *([LARGE] if large else [])], required=True)
    set_tf32(False)
    small_cublas_workspace()
    rows: list[dict[str, Any]] = []
    exactness: list[dict[str, Any]] = []
    result: dict[str, Any] = {"workloads": rows, "exactness": exactness}
    for name in names:
        bench = Bench(WORKLOADS[name])
        rows += [measure(name, phase, bench, rounds=rounds) for phase in ("train", "inference")]
        if name == names[0]:
            exactness.append(measure_exactness(name, bench))
            for precision in ("TF32", "bf16"):
                rows += measure_reduced(name, precision, bench, rounds=rounds)
        del bench
        save(result)
    if large:
        rows.append(measure_large())
        log.info("%s", rows[-1])
        save(result)
    if USER_WORKLOAD in names:
        result["user_loop"] = user_loop.run(device="cuda", graphs=10_000, batches=4, rounds=rounds)
        save(result)
    return result


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True, help="where to write the result")
    parser.add_argument("--workload", choices=[*WORKLOADS, "large"], action="append", help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kernels", action="store_true", help="also log where the GPU's time goes")
    options = parser.parse_args()
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.DEBUG if options.kernels else logging.INFO)
    chosen = options.workload or [*WORKLOADS, "large"]
    names = [name for name in chosen if name != "large"]
    run(names, rounds=options.rounds, large="large" in chosen, save=partial(write_result, options.json, device="cuda"))


if __name__ == "__main__":
    main()
