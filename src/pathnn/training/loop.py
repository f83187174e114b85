"""The training loop: visible, on Lightning Fabric, one record an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor, nn

from pathnn.training.config import RunConfig, seed_torch
from pathnn.training.cuda_graphs.run_steps import CudaGraphSteps, make_cuda_graph_steps
from pathnn.training.devices import make_fabric, share_buffers
from pathnn.training.errors import NotFiniteError, RunError
from pathnn.training.scoring import Evaluation, Handle, as_targets, evaluate, targets
from pathnn.training.setup import Loaders, Model, batch_indices, own_share
from pathnn.training.state import Best, TrainState, at_least_as_good


@dataclass(frozen=True)
class Epoch:
    """What happened in one epoch. Scores are in the unit of the paper (percent for accuracy).

    Attributes:
        epoch: its number, from 1.
        train_loss: mean over the graphs trained on.
        test_score: only where the validation score is the best so far; None elsewhere.
        lr: the learning rate it was trained with.
        seconds: its wall-clock time, evaluation included.
    """

    epoch: int
    train_loss: float
    val_loss: float
    val_score: float
    test_score: float | None
    best: bool
    lr: float
    seconds: float


def train(model: Model, loaders: Loaders, config: RunConfig, *, state: TrainState | None = None) -> Iterator[Epoch]:
    """Train `model`, epoch by epoch, until `config` says stop; `state` is where to begin, and is kept up to
    date.

    ```python
    task, config = load_dataset("csl"), RunConfig(data="csl", collection="sp", k=2, epochs=2)
    model = build_model(config, task)
    for epoch in train(model, make_loaders(task, config, model, device="cpu"), config):
        print(epoch.val_score)                             # print, save, or break: `state` is whole here
    ```

    An epoch is better when its validation score is at least as good as the best. The weights of the best
    epoch are in `state.best`; the model itself holds those of the last.
    """
    maximize = loaders.task.maximize
    if state is None:
        state = TrainState.start(model, config, make_fabric(config), maximize=maximize)
    graphed = make_cuda_graph_steps(state, loaders, config)
    while state.stop_reason(config, maximize=maximize) is None:
        started, lr = perf_counter(), state.lr
        train_loss = train_epoch(state, loaders, config, graphed)
        share_buffers(state.fabric, state.model)
        val = _evaluate(state, loaders, "val", graphed)
        state.epoch += 1
        better = state.best is None or at_least_as_good(val.score, state.best.val_score, maximize)
        test_score = _evaluate(state, loaders, "test", graphed).score if better and len(loaders.test) else None
        if better:
            state.best = Best(state.epoch, val.score, test_score, state.weights())
        if state.scheduler is not None:
            state.scheduler.step(val.score)
        seconds = perf_counter() - started
        state.seconds += seconds
        yield Epoch(state.epoch, train_loss, val.loss, val.score, test_score, better, lr, seconds)


def train_epoch(state: TrainState, loaders: Loaders, config: RunConfig, graphed: CudaGraphSteps | None = None) -> float:
    """One pass over the training graphs; returns the mean loss. The random numbers are those of the epoch.

    Batches go through the CUDA graphs of `graphed` where they fit one.
    """
    fabric, task = state.fabric, loaders.task
    if task.loss is None:
        raise RunError(f"{task.name} has no targets to train on.")
    loss_function = task.loss().to(fabric.device)
    seed_torch(config, loaders.data_key, "epoch", state.epoch, fabric.global_rank)
    state.model.train()
    batches = batch_indices(loaders.train, state.epoch)
    losses: list[Tensor] = []
    for index, share in own_share(batches, fabric.global_rank, fabric.world_size):
        loss = None if graphed is None else graphed.step(index)
        if loss is None:
            loss = _single_step(state, loaders, loss_function, index, share)
        if config.clip is not None:
            fabric.clip_gradients(state.step, state.optimizer, max_norm=config.clip, error_if_nonfinite=False)
        state.optimizer.step()
        losses.append(loss)
    total = fabric.all_reduce(torch.stack(losses), reduce_op="sum") if losses else torch.zeros(0)
    return _mean_loss(total, batches, state.epoch + 1)


def _single_step(state: TrainState, loaders: Loaders, loss_function: nn.Module, index: Tensor, share: float) -> Tensor:
    """Gradients of one batch, operation by operation; its loss, of which no graph of autograd is left."""
    out = state.step(Handle(loaders.train.batch(index)))
    y = loaders.scale.encode(targets(loaders.task, index))
    loss: Tensor = loss_function(out, as_targets(y, out)) * share
    state.optimizer.zero_grad()
    # DDP takes the mean over processes; the shares are for their sum.
    state.fabric.backward(loss * state.fabric.world_size)
    return loss.detach()


def _mean_loss(losses: Tensor, batches: list[Tensor], epoch: int) -> float:
    """The mean over graphs. Looked at once an epoch, because every look waits for the GPU."""
    if not batches:
        raise RunError("there is no batch to train on: all training graphs were left out.")
    wrong = (~losses.isfinite()).nonzero()
    if wrong.numel():
        raise NotFiniteError(
            f"the loss is not a finite number in epoch {epoch}, batch {int(wrong[0]) + 1} of {len(batches)}. "
            "Lower lr, set clip (--clip 1), or look for very large features; what was saved before is kept."
        )
    sizes = torch.tensor([batch.numel() for batch in batches], dtype=torch.float64)
    return float((losses.cpu().double() * sizes).sum() / sizes.sum())


def _evaluate(state: TrainState, loaders: Loaders, part: str, graphed: CudaGraphSteps | None) -> Evaluation:
    loader = loaders.val if part == "val" else loaders.test
    forward = None if graphed is None else graphed.forward(part)
    return evaluate(state.model, loader, loaders.task, scale=loaders.scale, fabric=state.fabric, forward=forward)
