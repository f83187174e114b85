"""One training step and one inference: the trie engine against the dense formulation, same weights, same batches.

    python benchmarks/model.py --json
    PATHNN_MIRROR=../shared/data python benchmarks/model.py --workload zinc-ap

Batches are real where PATHNN_MIRROR (or ../shared/data) has the data set, else random graphs of its shape; the name of
the workload says which. Times are medians of interleaved rounds; memory is the peak above what was in use before the
step, each measured in a process of its own.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from pathnn.nn import PathNN
from pathnn.paths.extract import extract_paths
from pathnn.paths.trie import PathTrie

WORKLOADS = ("zinc-ap", "zinc-sp", "dd-ap")
ENGINES = ("dense", "trie")
PHASES = ("train", "inference")


class Batch(NamedTuple):
    """A batch of graphs, its tries and its labels."""

    x: torch.Tensor
    edge_index: torch.Tensor
    edge_attr: torch.Tensor | None
    batch: torch.Tensor
    y: torch.Tensor
    trie: PathTrie
    origin: str


def mirror() -> Path:
    return Path(os.environ.get("PATHNN_MIRROR", Path(__file__).parents[2] / "shared" / "data"))


def zinc_graphs(count: int) -> tuple[dict[str, Any], str]:
    file = mirror() / "molecules" / "zinc12k.npz"
    if not file.exists():
        return random_graphs(count, nodes=23, extra=3, labels=28), "random"
    with np.load(file) as data:
        nodes, edges = data["train_num_nodes"][:count], data["train_num_edges"][:count]
        n, m = int(nodes.sum()), int(edges.sum())
        starts = np.repeat(np.cumsum(nodes) - nodes, edges)
        graphs = {
            "x": torch.as_tensor(data["train_x"][:n]).long(),
            "edge_index": torch.as_tensor(data["train_edge_index"][:, :m] + starts).long(),
            "edge_attr": torch.as_tensor(data["train_edge_attr"][:m]).long(),
            "batch": torch.repeat_interleave(torch.arange(count), torch.as_tensor(nodes).long()),
        }
    return graphs, "real"


def dd_graphs(count: int) -> tuple[dict[str, Any], str]:
    file = mirror() / "tu" / "DD.zip"
    if not file.exists():
        return random_graphs(count, nodes=284, extra=430, labels=89), "random"
    with zipfile.ZipFile(file) as archive:
        names = {name.rsplit("/", 1)[-1]: name for name in archive.namelist()}

        def table(part: str) -> np.ndarray[Any, Any]:
            with archive.open(names[f"DD_{part}.txt"]) as text:
                return np.loadtxt(text, delimiter=",", dtype=np.int64)

        batch = table("graph_indicator") - 1
        edges, labels = table("A").T - 1, table("node_labels") - 1
    order = np.random.default_rng(0).permutation(int(batch.max()) + 1)[:count]
    number = np.full(int(batch.max()) + 1, -1)
    number[np.sort(order)] = np.arange(count)
    nodes = np.flatnonzero(number[batch] >= 0)
    vertex = np.full(batch.size, -1)
    vertex[nodes] = np.arange(nodes.size)
    chosen = edges[:, vertex[edges[0]] >= 0]
    return {
        "x": torch.as_tensor(labels[nodes]),
        "edge_index": torch.as_tensor(vertex[chosen]),
        "edge_attr": None,
        "batch": torch.as_tensor(number[batch[nodes]]),
    }, "real"


def random_graphs(count: int, *, nodes: int, extra: int, labels: int) -> dict[str, Any]:
    """Random trees (a vertex hangs on one of the three before it) with `extra` more edges each."""
    rng = np.random.default_rng(0)
    pairs = set()
    for graph in range(count):
        first = graph * nodes
        for v in range(1, nodes):
            pairs.add((first + v - int(rng.integers(1, min(v, 3) + 1)), first + v))
        for _ in range(extra):
            a, b = sorted(rng.choice(nodes, size=2, replace=False).tolist())
            pairs.add((first + a, first + b))
    one_way = torch.tensor(sorted(pairs)).t()
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    types = torch.as_tensor(rng.integers(1, 4, one_way.size(1)))
    return {
        "x": torch.as_tensor(rng.integers(0, labels, count * nodes)),
        "edge_index": edge_index,
        "edge_attr": torch.cat([types, types]),
        "batch": torch.arange(count).repeat_interleave(nodes),
    }


def load(workload: str, device: str) -> tuple[PathNN, Batch]:
    """The model of the paper for a workload and one batch of the paper's size."""
    torch.manual_seed(0)
    name, collection = workload.split("-")
    count = 128 if name == "zinc" else 16
    graphs, origin = zinc_graphs(count) if name == "zinc" else dd_graphs(count)
    if name == "dd":
        graphs["x"] = F.one_hot(graphs["x"], 89).float()
        graphs["edge_attr"] = None
    width = 89 if name == "dd" else None
    model = PathNN.from_paper(name, collection=collection, in_channels=width)
    trie = extract_paths(graphs["edge_index"], graphs["x"].size(0), collection=collection, k=model.config.k)
    y = torch.rand(count, 1) if name == "zinc" else torch.randint(0, 2, (count,))
    moved = {key: None if value is None else value.to(device) for key, value in graphs.items()}
    return model.to(device), Batch(**moved, y=y.to(device), trie=trie.to(device), origin=origin)


def step(model: PathNN, batch: Batch, phase: str) -> Callable[[], None]:
    """A function that does one training step, or one inference."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = {"trie": batch.trie, "batch": batch.batch, "edge_attr": batch.edge_attr, "batch_size": batch.y.size(0)}

    def train() -> None:
        optimizer.zero_grad()
        out = model(batch.x, **inputs)
        loss = F.l1_loss(out, batch.y) if batch.y.is_floating_point() else F.cross_entropy(out, batch.y)
        loss.backward()
        optimizer.step()

    @torch.inference_mode()
    def infer() -> None:
        model(batch.x, **inputs)

    model.train(phase == "train")
    return train if phase == "train" else infer


def seconds(function: Callable[[], None], device: str) -> float:
    start = time.perf_counter()
    function()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure_time(workload: str, phase: str, rounds: int, device: str) -> tuple[dict[str, float], str]:
    model, batch = load(workload, device)
    steps = {}
    for engine in ENGINES:
        twin = copy.deepcopy(model)
        twin.lstm.engine = engine
        twin.lstm.flatten_parameters()  # as nn.LSTM has them: a copy's are not
        steps[engine] = step(twin, batch, phase)
        steps[engine]()
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for _ in range(rounds):
        for engine in ENGINES:
            times[engine].append(seconds(steps[engine], device))
    return {engine: 1e3 * statistics.median(values) for engine, values in times.items()}, batch.origin


def resident_mib(field: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process, where the system says so; else the peak since its start."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_memory(workload: str, phase: str, engine: str, device: str) -> float:
    """Peak MiB of the first step of this process, after a tiny one that loads and compiles all code."""
    model, batch = load(workload, device)
    model.lstm.engine = engine
    tiny = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]], device=device)
    small = batch._replace(
        x=batch.x[:3],
        edge_index=tiny,
        edge_attr=None if batch.edge_attr is None else batch.edge_attr[:4],
        batch=torch.zeros(3, dtype=torch.long, device=device),
        y=batch.y[:1],
        trie=extract_paths(tiny, 3, collection=model.config.collection, k=model.config.k),
    )
    step(model, small, phase)()
    run = step(model, batch, phase)
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")  # Linux: the peak starts again from what is in use now
    before = resident_mib("VmRSS")
    run()
    return resident_mib("VmHWM") - before


def memory_in_subprocess(workload: str, phase: str, engine: str, options: argparse.Namespace) -> float:
    command = [sys.executable, __file__, "--memory-of", workload, phase, engine, "--device", options.device]
    command += ["--threads", str(options.threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(workload: str, phase: str, options: argparse.Namespace) -> dict[str, Any]:
    times, origin = measure_time(workload, phase, options.rounds, options.device)
    memory = {engine: memory_in_subprocess(workload, phase, engine, options) for engine in ENGINES}
    return {
        "workload": f"{workload} ({origin} graphs)",
        "phase": phase,
        "dense_ms": times["dense"],
        "ours_ms": times["trie"],
        "ratio": times["dense"] / times["trie"],
        "dense_mib": memory["dense"],
        "ours_mib": memory["trie"],
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="default: zinc-ap and dd-ap")
    parser.add_argument("--phase", choices=PHASES, action="append", help="default: both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory-of", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.allow_tf32 = False
    if options.memory_of:
        print(measure_memory(*options.memory_of, options.device))
        return
    rows = [
        measure(workload, phase, options)
        for workload in options.workload or ("zinc-ap", "dd-ap")
        for phase in options.phase or PHASES
    ]
    if options.json:
        cpu = platform.processor() or platform.machine()
        device = cpu if options.device == "cpu" else torch.cuda.get_device_name()
        print(json.dumps({"workloads": rows, "device": device, "threads": options.threads, "torch": torch.__version__}))
        return
    for row in rows:
        print(
            f"{row['workload']:24} {row['phase']:10} dense {row['dense_ms']:8.1f} ms {row['dense_mib']:7.0f} MiB   "
            f"ours {row['ours_ms']:8.1f} ms {row['ours_mib']:7.0f} MiB   {row['ratio']:5.2f}x"
        )


if __name__ == "__main__":
    main()
