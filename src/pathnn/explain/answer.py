"""Which output of a trained model is explained, and what it means."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from pathnn.training.checkpoint import TaskFacts


@dataclass(frozen=True)
class Answer:
    """An output: its number, its name, what it says in words, and how to bring it to the target's unit."""

    number: int
    name: str
    words: str
    factor: float = 1.0
    shift: float = 0.0


def choose_answer(facts: TaskFacts, outputs: Tensor, asked: str | None = None, *, networks: int = 1) -> Answer:
    """The output of a name; else the predicted class, the likeliest of several answers, or the first target. Of several
    networks the mean of their logits is explained, and their mean probability is named.

    >>> import torch
    >>> facts = TaskFacts("a", "class", 2, 3, None, "accuracy", True, 1.0, ["safe", "toxic"])
    >>> choose_answer(facts, torch.tensor([0.0, 2.0]))
    Answer(number=1, name="the logit of 'toxic'", words='a probability of 0.881', factor=1.0, shift=0.0)
    """
    names = facts.classes if len(facts.classes) == outputs.numel() else [str(i) for i in range(outputs.numel())]
    if asked is not None and asked not in names:
        raise ValueError(f"--output {asked} does not exist: expected one of {', '.join(names)}.")
    if facts.target == "regression":
        number = 0 if asked is None else names.index(asked)
        scale = facts.target_scale
        factor, shift = (scale.std[number], scale.mean[number]) if scale.mean else (1.0, 0.0)
        return Answer(number, names[number] if facts.classes else "the prediction", "", factor, shift)
    number = int(outputs.argmax()) if asked is None else names.index(asked)
    probability = outputs.softmax(dim=0) if facts.target == "class" else outputs.sigmoid()
    mean = "mean " if networks > 1 else ""
    name = f"the {mean}logit of {names[number]!r}" if facts.classes or outputs.numel() > 1 else f"the {mean}logit"
    return Answer(number, name, f"a {mean}probability of {float(probability[number]):.3g}")
