"""Epochs of several runs at once: training and predictions of networks that differ in weights, split and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from pathnn.data.loader import PackedLoader
from pathnn.nn import PathNN
from pathnn.nn.stack import Stack
from pathnn.training.cuda_graphs.padded_batch import PaddedShape, graph_sizes
from pathnn.training.cuda_graphs.padded_edges import with_room
from pathnn.training.runs import Run
from pathnn.training.scoring import Evaluation, as_targets, measure, targets
from pathnn.training.setup import batch_indices, seed_torch
from pathnn.training.stacked_steps import StackedAdam, StackedSteps, plan_of


class StackedTrainer:
    """Trains the networks of some runs of one model and dataset side by side; `store` brings a network back to its run.

    Each does the steps that it would do alone, on the same batches, up to rounding (with dropout: with other random
    numbers).
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        first = self.runs[0]
        model, loader = first.state.model, first.loaders.train
        self._paths = isinstance(model, PathNN)
        self._model, self._graphs, self._size = model, loader.graphs, first.config.batch_size
        self.stack = Stack([run.state.model for run in self.runs])
        self.adam = StackedAdam(self.stack, weight_decay=first.config.weight_decay)
        self._load_optimizers()
        self._sizes = graph_sizes(loader.graphs, paths=self._paths)
        self._pool = torch.cuda.graph_pool_handle()
        chosen = self._sizes[torch.cat([run.loaders.train.index for run in self.runs])]
        self._steps = [self._make_steps(shape) for shape in PaddedShape.shapes(chosen, self._size, models=self.models)]
        self._plans: dict[str, tuple[Tensor, list[StackedSteps]]] = {}
        self._targets: dict[tuple[int, str], Tensor] = {}
        self._metric = None if first.loaders.task.metric is None else first.loaders.task.metric()

    @property
    def models(self) -> int:
        """How many networks there are."""
        return self.stack.models

    def train_epoch(self, going: Sequence[bool]) -> list[float]:
        """One pass over the training graphs for the runs that are `going`; the mean loss of each, 0 of the others."""
        batches = [
            batch_indices(run.loaders.train, run.state.epoch) if goes else []
            for run, goes in zip(self.runs, going, strict=True)
        ]
        plan = plan_of(batches, self._sizes, self._size)
        chosen = self._choose(plan)
        count = plan[:, :, -1, -1]
        pace = self.adam.paces(count > 0, lrs=[run.state.lr for run in self.runs])
        plan, pace = self._send(plan), self._send(pace)
        leader = self.runs[list(going).index(True)]
        seed_torch(leader.config, leader.loaders.data_key, "epoch", leader.state.epoch)
        for steps in self._steps:
            steps.total.zero_()
        todo = list(zip(plan, pace, chosen, strict=True))
        fresh = [one for one in todo if not one[2].recorded]
        for own_plan, own_pace, steps in sorted(fresh, key=lambda one: one[2].capacity.amount, reverse=True):
            steps.prepare(own_plan, own_pace)  # the largest first: others then find room in its memory
        for own_plan, own_pace, steps in todo:
            steps.step(own_plan, own_pace)
        total = torch.stack([steps.total for steps in self._steps]).sum(dim=0).cpu()
        return (total / count.sum(dim=0).clamp(min=1)).tolist()

    def evaluate(self, part: str, which: Sequence[int]) -> dict[int, Evaluation]:
        """Loss and score of some networks on their validation or test graphs."""
        if part not in self._plans:
            batches = [batch_indices(self._loader(i, part), 0) for i in range(self.models)]
            plan = plan_of(batches, self._sizes, self._size)
            self._plans[part] = self._send(plan), self._choose(plan)
        plan, chosen = self._plans[part]
        out = torch.stack([steps.predict(own).clone() for own, steps in zip(plan, chosen, strict=True)])
        out = out.transpose(0, 1).flatten(1, 2).cpu()
        return {i: self._measure(i, part, out[i]) for i in which}

    def store(self, i: int) -> None:
        """Write the weights, statistics and Adam's state of network `i` into its run."""
        state, steps = self.runs[i].state, self.adam.steps[i]
        weights = self.stack.weights_of(i)
        counts = {name: torch.tensor(steps) for name, _ in state.model.named_buffers() if name not in weights}
        state.model.load_state_dict({**weights, **counts})
        if not steps:
            return
        mean, square = self.stack.views(self.adam.mean), self.stack.views(self.adam.square)
        for name, parameter in state.model.named_parameters():
            state.plain_optimizer.state[parameter] = {
                "step": torch.tensor(float(steps), device=parameter.device),
                "exp_avg": mean[name][i].clone(),
                "exp_avg_sq": square[name][i].clone(),
            }

    def weights(self, i: int) -> dict[str, Tensor]:
        """A copy of network `i`'s parameters and buffers, as of `TrainState.weights`."""
        counts = torch.tensor(self.adam.steps[i])
        own, names = self.stack.weights_of(i), self.runs[i].state.model.state_dict()
        return {name: own[name] if name in own else counts.to(old.device) for name, old in names.items()}

    def _load_optimizers(self) -> None:
        mean, square = self.stack.views(self.adam.mean), self.stack.views(self.adam.square)
        for i, run in enumerate(self.runs):
            known = run.state.plain_optimizer.state
            for name, parameter in run.state.model.named_parameters():
                if parameter in known:
                    mean[name][i] = known[parameter]["exp_avg"]
                    square[name][i] = known[parameter]["exp_avg_sq"]
                    self.adam.steps[i] = int(known[parameter]["step"])

    def _make_steps(self, capacity: PaddedShape) -> StackedSteps:
        task = self.runs[0].loaders.task
        assert task.loss is not None
        loss = task.loss()
        loss.reduction = "none"  # type: ignore[assignment]
        capacity = capacity if self._paths else with_room(capacity)
        return StackedSteps(
            self._model, self.stack, self.adam, self._graphs, partial(_loss, loss), capacity=capacity, pool=self._pool
        )

    def _choose(self, plan: Tensor) -> list[StackedSteps]:
        """For each step of a plan the smallest shape that holds its batches; those that fit none get a new one, with
        some room."""
        totals = plan[:, :, -1, :-1].long()
        chosen: list[StackedSteps | None] = [None] * plan.size(0)
        for steps in self._steps:
            fits = steps.capacity.holds_each(totals).flatten(1).all(dim=1).tolist()
            chosen = [before or (steps if fit else None) for before, fit in zip(chosen, fits, strict=True)]
        left = [i for i, steps in enumerate(chosen) if steps is None]
        if left:
            largest = totals[left].flatten(0, 1).amax(dim=0)
            self._steps.append(self._make_steps(PaddedShape.holding(largest + largest // 20, self._size)))
            return self._choose(plan)
        return [steps for steps in chosen if steps is not None]

    def _send(self, values: Tensor) -> Tensor:
        return values.pin_memory().to(self._graphs.device, non_blocking=True)

    def _loader(self, i: int, part: str) -> PackedLoader:
        loaders = self.runs[i].loaders
        return loaders.val if part == "val" else loaders.test

    def _measure(self, i: int, part: str, out: Tensor) -> Evaluation:
        task, index = self.runs[i].loaders.task, self._loader(i, part).index
        if (i, part) not in self._targets:
            self._targets[i, part] = targets(task, index).cpu()
        scale = self.runs[i].loaders.scale
        return measure(out[: index.numel()], self._targets[i, part], task, scale, metric=self._metric)


def _loss(function: nn.Module, out: Tensor, y: Tensor) -> Tensor:
    loss: Tensor = function(out, as_targets(y, out))
    return loss
