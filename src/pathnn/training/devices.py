"""Lightning Fabric for a run: device, precision and processes."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from lightning.fabric import Fabric
from torch import nn

from pathnn.training.config import RunConfig
from pathnn.training.errors import RunError

T = TypeVar("T")


def make_fabric(config: RunConfig) -> Fabric:
    """A launched Fabric: with several processes this returns in each of them.

    The other processes are started here, unless torchrun or SLURM has started them.

    >>> make_fabric(RunConfig(data="csl", device="cpu")).device
    device(type='cpu')
    """
    cuda = torch.cuda.is_available()
    if config.device == "cuda" and not cuda:
        raise RunError("device='cuda': there is no CUDA device here. Use device='cpu' or 'auto'.")
    accelerator = "cuda" if cuda and config.device != "cpu" else "cpu"
    if accelerator == "cuda" and config.devices > torch.cuda.device_count():
        raise RunError(f"devices={config.devices}: this machine has {torch.cuda.device_count()} CUDA devices.")
    if config.precision == "16-mixed" and accelerator == "cpu":
        raise RunError("precision='16-mixed' needs a GPU. Use 'bf16-mixed' or '32-true' on a CPU.")
    if accelerator == "cuda":
        small_cublas_workspace()
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = config.precision == "tf32"
    precision: Any = "32-true" if config.precision == "tf32" else config.precision
    several = config.devices * config.num_nodes > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1
    fabric = Fabric(
        accelerator=accelerator,
        devices=config.devices,
        num_nodes=config.num_nodes,
        strategy="ddp" if several else "auto",
        precision=precision,
    )
    fabric.launch()
    if several:
        atexit.register(leave_processes)
    return fabric


def leave_processes() -> None:
    """Part from the other processes, if there are any. Without it the end of a process can meet threads of theirs
    that still run, and becomes a crash after all work was done.
    """
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def small_cublas_workspace() -> None:
    """Let cuBLAS have 8 MiB instead of 32, unless the environment says otherwise or it has them already. It is also
    what NVIDIA asks for where the same run is to give the same bits.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8")


def is_first_process() -> bool:
    """Whether this process is the one that speaks for all.

    >>> is_first_process()
    True
    """
    distributed = torch.distributed
    return not (distributed.is_available() and distributed.is_initialized()) or distributed.get_rank() == 0


def on_first(fabric: Fabric, function: Callable[[], T]) -> T:
    """What `function` returns in the first process, in all of them; an error there is an error in all."""
    if fabric.world_size == 1:
        return function()
    answer: tuple[Any, Exception | None] = (None, None)
    if fabric.is_global_zero:
        try:
            answer = (function(), None)
        except (ValueError, OSError) as error:
            answer = (None, error)
    result, failure = fabric.broadcast(answer)
    if failure is not None:
        raise failure
    return result


def share_buffers(fabric: Fabric, model: nn.Module) -> None:
    """Give every process the buffers (BatchNorm's statistics) of the first, which are the ones that are
    saved.
    """
    if fabric.world_size > 1:
        for buffer in model.buffers():
            torch.distributed.broadcast(buffer, src=0)
