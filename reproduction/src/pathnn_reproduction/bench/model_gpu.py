"""Measure a step and a prediction on a GPU: ours against cuDNN's LSTM over every path.

All sides have the same batches of real graphs, the same fused Adam, and TF32 off; those of PathNN the same weights.
Ours is the loop of `pathnn train`: one CUDA graph, which assembles batches on the GPU within the step. The others are
plain calls on batches that are on the GPU: the dense one and PathNN with tries, PathNN with `edge_index` (which
extracts the paths in the call), and PyG's GINE of the paper's tables. Times are of several steps in a row, one wait
at their end; memory is the peak above the resident dataset.
"""

from __future__ import annotations

import copy
import gc
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pathnn.data.datasets.registry import load_dataset
from pathnn.data.packed import PackedGraphs
from pathnn.device import small_cublas_workspace
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget
from pathnn.nn.cuda_graphs.padded_copies import PaddedShape
from pathnn.paths.options import Collection
from pathnn.training.cuda_graphs.capture import CudaGraphForward, CudaGraphStep
from pathnn.training.setup import Model, build_model
from pathnn_reproduction.bench import user_loop
from pathnn_reproduction.bench.model import USER_WORKLOAD, Save, prepare_datasets, step_of
from pathnn_reproduction.bench.timing import seconds
from pathnn_reproduction.bench.user_loop import twin
from pathnn_reproduction.experiments.baselines import baseline_run

Step = Callable[[], Any]


@dataclass(frozen=True)
class Workload:
    """A model of the paper and batches of its dataset; `graphs` of them are loaded."""

    dataset: str
    collection: Collection
    k: int
    batch_size: int
    graphs: int


WORKLOADS = {
    "zinc-ap": Workload("zinc", "ap", 4, 128, 4096),
    "zinc-sp": Workload("zinc", "sp", 4, 128, 4096),
    "dd-ap": Workload("dd", "ap", 2, 16, 512),
    "peptides-func-ap": Workload("peptides-func", "ap", 7, 128, 1024),
}


class Bench:
    """The resident dataset, the model and a few batches of a workload; `autocast` is for bfloat16."""

    autocast = False

    def __init__(self, workload: Workload, *, batches: int = 4) -> None:
        torch.manual_seed(0)
        task = load_dataset(workload.dataset)
        chosen = task.splits[0].train[: workload.graphs]
        self.graphs = task.graphs.subset(chosen).with_paths(collection=workload.collection, k=workload.k).to("cuda")
        width = None if self.graphs.edge_attr is not None or self.graphs.x is None else self.graphs.x.size(1)
        self.model = PathNN.from_paper(
            workload.dataset, collection=workload.collection, k=workload.k, in_channels=width
        ).cuda()
        assert task.loss is not None
        self.loss, self._gine = task.loss(), build_model(baseline_run("gin", workload.dataset), task)
        order = torch.randperm(len(self.graphs), generator=torch.Generator().manual_seed(0))
        self.batches = list(torch.split(order, workload.batch_size))[:batches]
        self.capacity = capacity_for(self.graphs, self.batches)

    def gine(self) -> Model:
        """Return PyG's GINE (GIN for graphs without edge features) of the paper's tables on this dataset."""
        return copy.deepcopy(self._gine).cuda()


def capacity_for(graphs: PackedGraphs, batches: list[Tensor]) -> PaddedShape:
    """Return the smallest shape of training that holds all these batches."""
    from pathnn.training.cuda_graphs.padded_batch import graph_sizes

    sizes = graph_sizes(graphs)
    for capacity in PaddedShape.shapes(sizes, batches[0].numel()):
        if all(capacity.holds(sizes[index].sum(dim=0)) for index in batches):
            return capacity
    raise ValueError("no shape holds these batches: expected random batches of one size.")


def plain_steps(bench: Bench, model: Model, phase: str, *, tries: bool = True) -> list[Step]:
    """Return a function per batch that calls a model as a user does, on batches on the GPU, with tries or without."""
    run = step_of(model, phase, bench.loss, autocast=bench.autocast)
    batches = [bench.graphs.select(index) for index in bench.batches]
    steps: list[Step] = [
        partial(run, one, **({"trie": one.trie} if tries else {"edge_index": one.edge_index})) for one in batches
    ]
    for step in steps:
        for _ in range(2):
            step()  # from the fourth call on, calls of a PathNN are replayed
    return steps


def graphed_steps(bench: Bench, phase: str) -> list[Step]:
    """Return a function per batch that assembles and computes it in one launch."""
    model = twin(bench.model, "auto").train(phase == "train")
    if phase != "train":
        predict = CudaGraphForward(model, bench.graphs, capacity=bench.capacity, autocast=bench.autocast)
        return [partial(predict, index) for index in bench.batches]
    step = CudaGraphStep(model, bench.graphs, bench.loss, capacity=bench.capacity, autocast=bench.autocast)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def train(index: Tensor) -> None:
        step(index)
        optimizer.step()

    return [partial(train, index) for index in bench.batches]


FLOPS, BYTES = 67e12, 4.8e12
"""Float operations and bytes of memory traffic per second of an H200, by its data sheet."""


def milliseconds(steps: list[Step], rounds: int) -> float:
    """Return the median time per step over `rounds` passes over the batches, with one wait per pass."""

    def work() -> None:
        for step in steps:
            step()

    return 1e3 * statistics.median(seconds(work, rounds)) / len(steps)


def busy_ms(steps: list[Step]) -> float:
    """Return the milliseconds in kernels per step."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        for step in steps:
            step()
        torch.cuda.synchronize()
    kernels = [
        event.self_device_time_total
        for event in profiler.key_averages()
        if event.device_type.name == "CUDA" and not event.key.startswith("ProfilerStep")
    ]
    return float(sum(kernels)) / 1e3 / len(steps)


def measured(make: Callable[[], list[Step]], rounds: int) -> dict[str, float]:
    """Return time, GPU work and peak memory (MiB above what was allocated) of the steps of `make`."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()  # each side's own count as its memory
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    steps = make()
    for step in steps:
        step()
    ms = milliseconds(steps, rounds)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20
    return {"ms": ms, "busy_ms": busy_ms(steps), "mib": peak}


def floor_ms(bench: Bench, phase: str) -> float:
    """Return the least time of the LSTM's work on an H200 at its full rates, in plain float32.

    Operations: W_hh times h once per inner entry, W_ih once per vertex and layer, three times that in training.
    Bytes: tokens and tables read once, h and c of the inner entries written (in training also read) once.
    """
    d, total = bench.model.config.hidden_channels, 0.0
    for index in bench.batches:
        trie = bench.graphs.select(index).trie
        assert trie is not None
        inner = sum(sum(levels[:-1]) for levels in trie.sizes)
        rows = inner + trie.k * trie.num_nodes
        factor = 3 if phase == "train" else 1
        flops = factor * 2 * 4 * d * d * rows
        traffic = factor * (trie.nbytes + 4 * (2 * d * inner + 5 * d * trie.k * trie.num_nodes))
        total += max(flops / FLOPS, traffic / BYTES)
    return 1e3 * total / len(bench.batches)


def set_tf32(allowed: bool) -> None:
    """Allow TF32 on both sides, or on none."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def computed(bench: Bench) -> list[Tensor]:
    """Return the predictions for the first batch, and the gradients of all parameters, as one vector."""
    options: Any = {"capacity": bench.capacity, "autocast": bench.autocast}
    predicted = CudaGraphForward(twin(bench.model, "auto"), bench.graphs, **options)(bench.batches[0])
    model = twin(bench.model, "auto")
    CudaGraphStep(model, bench.graphs, bench.loss, **options)(bench.batches[0])
    return [predicted, torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])]


def measure_exactness(name: str, bench: Bench) -> dict[str, Any]:
    """Compare our float32 gradients, and those of the dense formulation, with float64."""
    batch = bench.graphs.select(bench.batches[0])
    found = {}
    for backend, dtype in (("auto", torch.float32), ("dense", torch.float32), ("dense", torch.float64)):
        model = twin(bench.model, backend).to(dtype).train()
        x = batch.x.to(dtype) if batch.x is not None and batch.x.is_floating_point() else batch.x
        out = model(x, trie=batch.trie, batch=batch.batch, edge_attr=batch.edge_attr, batch_size=batch.num_graphs)
        y = batch.y.to(dtype) if batch.y is not None and batch.y.is_floating_point() else batch.y
        bench.loss(out, y).backward()
        grads = torch.cat([p.grad.flatten().double() for p in model.parameters() if p.grad is not None])
        found[backend, dtype] = out.detach().double(), grads
    truth = found["dense", torch.float64]
    row: dict[str, Any] = {"workload": name}
    for backend, label in (("auto", "ours"), ("dense", "dense")):
        for what, value, exact in zip(("output", "gradient"), found[backend, torch.float32], truth, strict=True):
            row[f"{label}_{what}_error"] = float((value - exact).norm() / exact.norm())
    return row


LARGE = "imdb-binary"
"""The dataset of `measure_large`."""


def measure(name: str, phase: str, bench: Bench, *, rounds: int = 5) -> dict[str, Any]:
    """Return one row of the result."""
    ours = measured(lambda: graphed_steps(bench, phase), 3 * rounds)
    trie = measured(lambda: plain_steps(bench, twin(bench.model, "auto"), phase), rounds)
    edges = measured(lambda: plain_steps(bench, twin(bench.model, "auto"), phase, tries=False), rounds)
    gine = measured(lambda: plain_steps(bench, bench.gine(), phase, tries=False), rounds)
    dense = measured(lambda: plain_steps(bench, twin(bench.model, "dense"), phase), max(rounds // 2, 1))
    floor = floor_ms(bench, phase)
    return {
        "workload": name, "phase": phase, "dense_ms": dense["ms"], "ours_ms": ours["ms"],
        "ratio": dense["ms"] / ours["ms"], "dense_mib": dense["mib"], "ours_mib": ours["mib"],
        "dense_busy_ms": dense["busy_ms"], "ours_busy_ms": ours["busy_ms"], "floor_ms": floor,
        "floor_share": floor / ours["ms"], "plain_trie_ms": trie["ms"], "plain_trie_mib": trie["mib"],
        "plain_edge_index_ms": edges["ms"], "gine_ms": gine["ms"],
    }  # fmt: skip


def measure_large(*, max_entries: int = 2_000_000, limit_gib: float = 16.0) -> dict[str, Any]:
    """Measure a training step on the 32 graphs of IMDB-BINARY with the most edges, AP, K = 3, in `limit_gib`."""
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
    step = partial(step_of(model, "train", task.loss()), batch, trie=batch.trie, budget=Budget(max_entries))
    step()
    ms = milliseconds([step], 3)
    peak = torch.cuda.max_memory_allocated() / 2**20
    torch.cuda.set_per_process_memory_fraction(1.0)
    return {
        "workload": f"{LARGE}-ap (the 32 largest graphs)", "phase": "train", "dense_ms": None, "ours_ms": ms,
        "ratio": None, "dense_mib": None, "ours_mib": peak, "paths": batch.trie.num_paths, "limit_gib": limit_gib,
    }  # fmt: skip


def measure_reduced(name: str, precision: str, bench: Bench, *, rounds: int = 5) -> list[dict[str, Any]]:
    """Return rows with "TF32" or "bf16" (`torch.autocast`) on both sides, and the errors of our outputs and gradients.

    An error is the norm of the difference from float32, divided by the norm.
    """
    exact = computed(bench)
    set_tf32(precision == "TF32")
    bench.autocast = precision == "bf16"
    pairs = zip(computed(bench), exact, strict=True)
    errors = [float((value - truth).norm() / truth.norm()) for value, truth in pairs]
    rows = [measure(f"{name}, {precision}", phase, bench, rounds=rounds) for phase in ("train", "inference")]
    set_tf32(False)
    bench.autocast = False
    return [{**row, "error": errors[0], "gradient_error": errors[1]} for row in rows]


def run(names: list[str], *, rounds: int = 5, large: bool = True, save: Save = lambda _: None) -> dict[str, Any]:
    """Return all rows of some workloads; all datasets are made available before anything is measured.

    The first workload is also measured with TF32 and bfloat16, and compared with float64; `zinc-ap` also in a user's
    own loop. `save` gets the result so far after each workload and at the end.
    """
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
        save(result)
    if USER_WORKLOAD in names:
        result["user_loop"] = user_loop.run(device="cuda", graphs=10_000, batches=4, rounds=rounds)
        save(result)
    return result
