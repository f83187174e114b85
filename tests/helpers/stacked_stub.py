"""In place of networks that are trained on a GPU: weights that count epochs, and scores that are made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pathnn.training import together, together_epochs
from pathnn.training.checkpoint import load_state
from pathnn.training.runs import Run
from pathnn.training.scoring import Evaluation


class StubTrainer:
    """After each epoch all numbers of a network are the number of epochs that it has been trained."""

    made: list[int]  # how many networks each trainer had
    loss: Callable[[Run], float]

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs, self.models = list(runs), len(runs)
        self.trained = [run.state.epoch for run in runs]
        for run in runs:
            numbers = {x for tensor in run.state.model.state_dict().values() for x in tensor.flatten().tolist()}
            assert run.state.epoch == 0 or numbers == {float(run.state.epoch)}
        self.made.append(self.models)

    def train_epoch(self, going: Sequence[bool]) -> list[float]:
        self.trained = [epochs + goes for epochs, goes in zip(self.trained, going, strict=True)]
        return [self.loss(run) for run in self.runs]

    def evaluate(self, part: str, which: Sequence[int]) -> dict[int, Evaluation]:
        return {i: Evaluation(1.0, 50.0, 1) for i in which}

    def weights(self, i: int) -> dict[str, Tensor]:
        state = self.runs[i].state.model.state_dict()
        return {name: torch.full_like(tensor, self.trained[i]) for name, tensor in state.items()}

    def store(self, i: int) -> None:
        self.runs[i].state.model.load_state_dict(self.weights(i))


def stub_training(monkeypatch: pytest.MonkeyPatch, loss: Callable[[Run], float] = lambda run: 1.0) -> list[int]:
    """Let `run_together` use the stub; returns the list of how many networks each trainer had."""
    made: list[int] = []
    stub = type("Stub", (StubTrainer,), {"made": made, "loss": staticmethod(loss)})
    monkeypatch.setattr(together_epochs, "StackedTrainer", stub)
    monkeypatch.setattr(together, "together_fault", lambda runs: None)
    return made


def saved_epoch(folder: Path) -> tuple[int, set[float]]:
    """The epoch that a saved state is of, and the weights in it."""
    state = load_state(folder / "last.ckpt")
    return state["epoch"], {float(x) for tensor in state["model"].values() for x in tensor.flatten().tolist()}
