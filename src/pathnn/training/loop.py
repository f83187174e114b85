"""Train a model epoch by epoch on Lightning Fabric.

`train` is the loop, `TrainState` what changes during a run, and a `Stepper` how batches are computed: operation by
operation, or on a GPU as CUDA graphs (`pathnn.training.cuda_graphs.run_steps`).
"""

from __future__ import annotations

import atexit
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.optim import Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.optim.swa_utils import AveragedModel

from pathnn.data.loader import PackedLoader
from pathnn.device import leave_processes, resolve, share_buffers, small_cublas_workspace
from pathnn.training.config import RunConfig, run_seed
from pathnn.training.errors import NotFiniteError, RunError
from pathnn.training.scoring import (
    Evaluation,
    Forward,
    Step,
    apply,
    as_targets,
    evaluate,
    measure,
    model_outputs,
    targets,
)
from pathnn.training.setup import Loaders, Model, own_share

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Epoch:
    """The losses and scores of one epoch. Scores are in the unit of the paper (percent for accuracy).

    Attributes:
        epoch: the number of the epoch, from 1.
        train_loss: the mean over the training graphs.
        test_score: None unless the validation score is the best so far.
        lr: the learning rate of the epoch.
        seconds: the wall-clock time, including evaluation.
    """

    epoch: int
    train_loss: float
    val_loss: float
    val_score: float
    test_score: float | None
    best: bool
    lr: float
    seconds: float


@dataclass(frozen=True)
class Best:
    """The best epoch so far by validation score (the later one of ties), its scores and weights."""

    epoch: int
    val_score: float
    test_score: float | None
    weights: dict[str, Tensor] = field(repr=False)


@dataclass
class TrainState:
    """A model, its optimizer and scheduler, the number of finished epochs, and the best of them.

    `step` and `optimizer` are the model and `plain_optimizer` as Fabric wraps them, and `average` holds the moving
    average of the model with `RunConfig.ema`. A checkpoint holds this state.
    """

    fabric: Fabric
    model: Model
    step: Any
    optimizer: Any
    plain_optimizer: Optimizer
    scheduler: ReduceLROnPlateau | None
    epoch: int = 0
    seconds: float = 0.0
    best: Best | None = None
    average: AveragedModel | None = None

    @staticmethod
    def start(model: Model, config: RunConfig, fabric: Fabric, *, maximize: bool) -> TrainState:
        """Return the state before the first epoch, and move the model to the device."""
        if config.precision == "64-true":
            model.double()
        on_gpu = fabric.device.type == "cuda" and config.precision != "16-mixed"
        optimizer = (AdamW if config.optimizer == "adamw" else Adam)(
            model.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True if on_gpu else None
        )
        step, fabric_optimizer = fabric.setup(Step(model), optimizer)
        scheduler = None
        if config.plateau_factor is not None and config.schedule == "plateau":
            mode: Any = "max" if maximize and config.plateau_direction == "metric" else "min"
            scheduler = ReduceLROnPlateau(optimizer, mode, config.plateau_factor, config.plateau_patience)
        average = None
        if config.ema is not None:
            mean = partial(_move_average, config.ema)
            average = AveragedModel(model, fabric.device, multi_avg_fn=mean, use_buffers=True)
        return TrainState(fabric, model, step, fabric_optimizer, optimizer, scheduler, average=average)

    @property
    def evaluated(self) -> Model:
        """Return the model to evaluate and to save: the moving average, if there is one."""
        return self.model if self.average is None else cast("Model", self.average.module)

    @property
    def lr(self) -> float:
        """Return the learning rate of the next step."""
        return float(self.plain_optimizer.param_groups[0]["lr"])

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of the parameters and buffers of the model that is evaluated."""
        return {name: tensor.detach().clone() for name, tensor in self.evaluated.state_dict().items()}

    def _parts(self) -> dict[str, Any]:
        """Return the parts that have a state of their own."""
        parts: dict[str, Any] = {"model": self.model, "optimizer": self.plain_optimizer, "scheduler": self.scheduler}
        parts |= {"precision": self.fabric.strategy.precision, "average": self.average}
        return {name: part for name, part in parts.items() if part is not None}

    def state_dict(self) -> dict[str, Any]:
        """Return everything that changes during a run, as tensors and plain values."""
        best = None if self.best is None else dict(vars(self.best))
        states = {name: part.state_dict() for name, part in self._parts().items()}
        return {"epoch": self.epoch, "seconds": self.seconds, "best": best, **states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a call of `state_dict`."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.epoch, self.seconds = state["epoch"], state["seconds"]
        if (best := state["best"]) is not None:
            weights = {name: tensor.to(self.fabric.device) for name, tensor in best["weights"].items()}
            self.best = Best(**{**best, "weights": weights})

    def stop_reason(self, config: RunConfig, *, maximize: bool) -> str | None:
        """Return why training is finished, or None."""
        best = self.best
        if self.epoch >= config.epochs:
            return f"{config.epochs} epochs"
        if best is None:
            return None
        if config.stop_at is not None and at_least_as_good(best.val_score, config.stop_at, maximize):
            return f"validation score {best.val_score:g} reached {config.stop_at:g}"
        if config.patience is not None and self.epoch - best.epoch >= config.patience:
            return f"{config.patience} epochs without a better validation score"
        if config.min_lr is not None and self.lr <= config.min_lr:
            return f"learning rate {self.lr:g} fell to {config.min_lr:g}"
        return None


@torch.no_grad()
def _move_average(decay: float, averages: Any, tensors: Any, _: Any) -> None:
    """Move averages, tensors of one type, towards those of the model; counters and indices are those of the model."""
    if tensors[0].is_floating_point():
        torch._foreach_lerp_(averages, tensors, 1 - decay)
    else:
        torch._foreach_copy_(averages, tensors)


class Stepper:
    """Compute the batches of a run operation by operation; a subclass may compute some of them in another way."""

    def __init__(self, state: TrainState, loaders: Loaders) -> None:
        assert loaders.task.loss is not None
        self.state, self.loaders = state, loaders
        self.loss = loaders.task.loss()

    def train_step(self, index: Tensor, share: float) -> Tensor:
        """Compute the gradients of a batch of training graphs, and return its loss times `share`."""
        state, loaders = self.state, self.loaders
        out = state.step(lambda: loaders.train.batch(index))
        y = loaders.scale.encode(targets(loaders.task, index))
        loss: Tensor = self.loss.to(out)(out, as_targets(y, out)) * share
        state.optimizer.zero_grad()
        # DDP takes the mean over processes; the shares are for their sum.
        state.fabric.backward(loss * state.fabric.world_size)
        return loss.detach()

    def predict(self, loader: PackedLoader, index: Tensor) -> Tensor:
        """Return the outputs for a batch of the graphs of a loader."""
        return apply(self.state.evaluated, loader.batch(index))


def make_stepper(state: TrainState, loaders: Loaders, config: RunConfig) -> Stepper:
    """Return how to compute the batches of a run: as CUDA graphs on a GPU that can, else operation by operation."""
    if state.fabric.device.type == "cuda":
        from pathnn.training.cuda_graphs.run_steps import CudaGraphStepper, can_be_captured

        if can_be_captured(state, loaders, config):
            return CudaGraphStepper(state, loaders, config)
    return Stepper(state, loaders)


def fabric_for(config: RunConfig) -> Fabric:
    """Return a launched Fabric for the device, the processes and the precision of a run; return in each process.

    Starts the other processes, unless torchrun or SLURM has started them. Fabric chooses the GPUs: `config.device` says
    only whether to use any.

    >>> fabric_for(RunConfig(data="csl", device="cpu")).device
    device(type='cpu')
    """
    from lightning_fabric import Fabric

    accelerator, precision = resolve(config.device).type, config.precision
    if accelerator == "cuda" and config.devices > torch.cuda.device_count():
        raise RunError(f"devices={config.devices}: this machine has {torch.cuda.device_count()} CUDA devices.")
    if precision == "16-mixed" and accelerator == "cpu":
        raise RunError("precision='16-mixed' needs a GPU. Use 'bf16-mixed' or '32-true' on a CPU.")
    if accelerator == "cuda":
        small_cublas_workspace()
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    several = config.devices * config.num_nodes > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1
    fabric = Fabric(
        accelerator=accelerator,
        devices=config.devices,
        num_nodes=config.num_nodes,
        strategy="ddp" if several else "auto",
        precision="32-true" if precision == "tf32" else precision,
    )
    fabric.launch()
    if several:
        atexit.register(leave_processes)
    return fabric


def train(model: Model, loaders: Loaders, config: RunConfig, *, state: TrainState | None = None) -> Iterator[Epoch]:
    """Train `model` until `config` says stop, and yield each epoch; start from `state`, and keep it up to date.

    ```python
    task, config = load_dataset("csl"), RunConfig(data="csl", collection="sp", k=2, epochs=2)
    model = build_model(config, task)
    for epoch in train(model, make_loaders(task, config, model, device="cpu"), config):
        print(epoch.val_score)                             # print, save, or break: `state` is complete here
    ```

    An epoch is better if its validation score is at least as good as the best, and always with `keep="last"`.
    `state.best` has the weights of the best epoch (with `ema`, their moving average); the model itself has those of the
    last.
    """
    maximize = loaders.task.maximize
    if state is None:
        state = TrainState.start(model, config, fabric_for(config), maximize=maximize)
    stepper = make_stepper(state, loaders, config)
    while state.stop_reason(config, maximize=maximize) is None:
        rate = scheduled_rate(config, state.epoch)
        for group in state.plain_optimizer.param_groups:
            group["lr"] = group["lr"] if rate is None else rate
        started, lr = perf_counter(), state.lr
        train_loss = train_epoch(state, loaders, config, stepper)
        share_buffers(state.fabric, state.model)
        if state.average is not None:
            share_buffers(state.fabric, state.average)
        val = validate(state.evaluated, loaders, state.fabric, forward=partial(stepper.predict, loaders.val))
        state.epoch += 1
        best = state.best
        better = best is None or config.keep == "last" or at_least_as_good(val.score, best.val_score, maximize)
        test_score = None
        if better and len(loaders.test):
            forward = partial(stepper.predict, loaders.test)
            options: dict[str, Any] = {"scale": loaders.scale, "fabric": state.fabric, "forward": forward}
            test_score = evaluate(state.evaluated, loaders.test, loaders.task, **options).score
        if better:
            state.best = Best(state.epoch, val.score, test_score, state.weights())
        if state.scheduler is not None and state.epoch > config.warmup:
            state.scheduler.step(val.score)
        seconds = perf_counter() - started
        state.seconds += seconds
        yield Epoch(state.epoch, train_loss, val.loss, val.score, test_score, better, lr, seconds)


def scheduled_rate(config: RunConfig, epoch: int) -> float | None:
    """Return the learning rate of an epoch, counted from 0; None if the validation scores determine it."""
    if epoch <= config.warmup:
        return config.lr * (epoch + 1) / (config.warmup + 1)
    if config.schedule == "plateau":
        return None
    return config.lr * (1 + math.cos(math.pi * (epoch - config.warmup) / (config.epochs - config.warmup))) / 2


def train_epoch(state: TrainState, loaders: Loaders, config: RunConfig, stepper: Stepper) -> float:
    """Train on all graphs once, with random numbers that depend on the epoch, and return the mean loss."""
    fabric = state.fabric
    torch.manual_seed(run_seed(config, loaders.data_key, "epoch", state.epoch, fabric.global_rank))
    state.model.train()
    loaders.draw(config, state.epoch)
    batches = loaders.train.indices(state.epoch)
    losses: list[Tensor] = []
    for index, share in own_share(batches, fabric.global_rank, fabric.world_size):
        losses.append(stepper.train_step(index, share))
        if config.clip is not None:
            fabric.clip_gradients(state.step, state.optimizer, max_norm=config.clip, error_if_nonfinite=False)
        state.optimizer.step()
        if state.average is not None:
            state.average.update_parameters(state.model)
    total = fabric.all_reduce(torch.stack(losses), reduce_op="sum") if losses else torch.zeros(0)
    return _mean_loss(total, batches, state.epoch + 1)


def _mean_loss(losses: Tensor, batches: list[Tensor], epoch: int) -> float:
    """Return the mean over graphs; called once per epoch, because reading a loss waits for the GPU."""
    if not batches:
        raise RunError("there is no batch to train on: all training graphs were left out.")
    wrong = (~losses.isfinite()).nonzero()
    if wrong.numel():
        raise NotFiniteError(
            f"the loss is not a finite number in epoch {epoch}, batch {int(wrong[0]) + 1} of {len(batches)}. "
            "Lower lr, set clip (--clip 1), or look for very large features. The last checkpoint is kept."
        )
    sizes = torch.tensor([batch.numel() for batch in batches], dtype=torch.float64)
    return float((losses.cpu().double() * sizes).sum() / sizes.sum())


def validate(model: Model, loaders: Loaders, fabric: Fabric, *, forward: Forward | None = None) -> Evaluation:
    """Evaluate on the validation part; the share of a kernel is set to what is best for it.

    Its graphs are in the kernel, so each is predicted by the kernel without this graph. `forward` is that of
    `model_outputs`.
    """
    task, loader, kernel = loaders.task, loaders.val, model.kernel
    if kernel is None:
        return evaluate(model, loader, task, scale=loaders.scale, fabric=fabric, forward=forward)
    kernel.share.zero_()  # the outputs of the network alone
    out = model_outputs(model, loader, fabric=fabric, forward=forward)
    own, y = kernel.left_out[-len(out) :].to(out), targets(task, loader.index).to(out.device)
    kernel.fit_share(out, own, loaders.scale.encode(y))
    return measure(out + kernel.share * (own.nan_to_num() - out), y, task, loaders.scale)


def at_least_as_good(score: float, other: float, maximize: bool) -> bool:
    """Return whether `score` is at least as good as `other`; NaN is worse than any number."""
    if math.isnan(score) or math.isnan(other):
        return not math.isnan(score)
    return score >= other if maximize else score <= other
