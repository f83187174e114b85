"""How exact a step on a GPU is: against float64, and what TF32 and bfloat16 bring."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pathnn.training.cuda_graphs.capture import CudaGraphForward, CudaGraphStep
from pathnn_reproduction.bench.gpu_sides import Bench


def set_tf32(allowed: bool) -> None:
    """Let both sides, or neither, use TF32."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def predictions(bench: Bench) -> Tensor:
    """What the model says about the first batch."""
    forward = CudaGraphForward(bench.twin("auto"), bench.graphs, capacity=bench.capacity, autocast=bench.autocast)
    return forward(bench.batches[0])


def gradients(bench: Bench) -> Tensor:
    """The gradients of all parameters for the first batch, one after the other."""
    model = bench.twin("auto")
    arguments = model, bench.graphs, bench.loss
    CudaGraphStep(*arguments, capacity=bench.capacity, autocast=bench.autocast)(bench.batches[0])
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def measure_exactness(name: str, bench: Bench) -> dict[str, Any]:
    """How far our float32 gradients, and those of the dense formulation, are from float64's."""
    batch = bench.graphs.select(bench.batches[0])
    found = {}
    for backend, dtype in (("auto", torch.float32), ("dense", torch.float32), ("dense", torch.float64)):
        model = bench.twin(backend).to(dtype).train()
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
