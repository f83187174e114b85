"""Where a training run stands: all that a checkpoint must hold to go on as if nothing had happened."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from lightning.fabric import Fabric
from torch import Tensor
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from pathnn.training.config import RunConfig
from pathnn.training.scoring import Step
from pathnn.training.setup import Model


@dataclass(frozen=True)
class Best:
    """The best epoch so far by validation score (ties go to the later), its scores and weights."""

    epoch: int
    val_score: float
    test_score: float | None
    weights: dict[str, Tensor] = field(repr=False)


@dataclass
class TrainState:
    """A model, its optimizer and scheduler, the number of epochs done, and the best of them.

    `step` and `optimizer` are what Fabric made of the model and of `plain_optimizer`.
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

    @staticmethod
    def start(model: Model, config: RunConfig, fabric: Fabric, *, maximize: bool) -> TrainState:
        """The state before the first epoch; moves the model to Fabric's device."""
        if config.precision == "64-true":
            model.double()
        on_gpu = fabric.device.type == "cuda" and config.precision != "16-mixed"
        optimizer = Adam(
            model.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True if on_gpu else None
        )
        step, fabric_optimizer = fabric.setup(Step(model), optimizer)
        scheduler = None
        if config.plateau_factor is not None:
            upwards = maximize and config.plateau_direction == "metric"
            scheduler = ReduceLROnPlateau(
                optimizer,
                mode="max" if upwards else "min",
                factor=config.plateau_factor,
                patience=config.plateau_patience,
            )
        return TrainState(fabric, model, step, fabric_optimizer, optimizer, scheduler)

    @property
    def lr(self) -> float:
        """The learning rate of the next step."""
        return float(self.plain_optimizer.param_groups[0]["lr"])

    def weights(self) -> dict[str, Tensor]:
        """A copy of the model's parameters and buffers."""
        return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes during a run, as tensors and plain values."""
        best = self.best
        return {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "model": self.model.state_dict(),
            "optimizer": self.plain_optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "precision": self.fabric.strategy.precision.state_dict(),
            "best": None if best is None else dict(vars(best)),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to where `state_dict` was called."""
        self.model.load_state_dict(state["model"])
        self.plain_optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        self.epoch, self.seconds = state["epoch"], state["seconds"]
        best = state["best"]
        if best is not None:
            device = self.fabric.device
            weights = {name: tensor.to(device) for name, tensor in best["weights"].items()}
            self.best = Best(**{**best, "weights": weights})

    def stop_reason(self, config: RunConfig, *, maximize: bool) -> str | None:
        """Why training is over, or None."""
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


def at_least_as_good(score: float, other: float, maximize: bool) -> bool:
    """Whether `score` is as good as `other` or better; NaN is worse than everything.

    >>> at_least_as_good(0.5, 0.5, True), at_least_as_good(float("nan"), 0.1, False)
    (True, False)
    >>> at_least_as_good(0.1, float("nan"), True)
    True
    """
    if math.isnan(score) or math.isnan(other):
        return not math.isnan(score)
    return score >= other if maximize else score <= other
