"""Explain the predictions of a run for the rows of a table or for other graphs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from pathnn import __version__
from pathnn.explain.dataset import OutputSummary, explain_dataset, explain_mean, inputs_of
from pathnn.explain.explanation import Explanation
from pathnn.explain.subject import (
    ExplainedGraph,
    ExplainedOutput,
    choose_answer,
    output_names,
    read_reference,
    read_subject,
    read_subjects,
)
from pathnn.inference.predictor import load_runs
from pathnn.nn import PathNN
from pathnn.training.ensemble import combine


class RunExplainer:
    """Explain the mean output of the networks of a run by the paths of graphs of `data`.

    `problems` has the rows that cannot be read, and `made_by` names the run on pages.
    """

    def __init__(self, run: Path, data: str, *, smiles: str | None = None, device: str = "cpu") -> None:
        self.trained, self.run, self.data, self.smiles, self.device = load_runs(run), run, data, smiles, device
        self.models = [one.model for one in self.trained.members if isinstance(one.model, PathNN)]
        if not self.models:
            kind = self.trained.config.model
            raise ValueError(f"{run} is a {kind}, whose paths cannot be explained: expected a PathNN.")
        number, self.problems = len(self.models), list[str]()
        self.several = f"; the mean of {number} networks" if number > 1 else ""
        self.made_by = f"{run}{self.several}; explained by pathnn {__version__}"

    def read(self, *, row: int | None = None, graph: int | None = None) -> ExplainedGraph:
        """Read a row, counted from 1, or a graph, counted from 0; by default the first."""
        return read_subject(self.trained.members[0], self.data, row=row, graph=graph, smiles=self.smiles)

    def answer(self, subject: ExplainedGraph, output: str | None = None) -> ExplainedOutput:
        """Choose the output of a graph to explain, as `choose_answer`."""
        outputs = torch.stack([subject.outputs(one) for one in self.trained.members])
        together = combine(outputs.unsqueeze(1), self.trained.signature.target)[0]
        return choose_answer(self.trained.signature, together, output, networks=len(self.models))

    def explain(self, subject: ExplainedGraph, answer: ExplainedOutput) -> tuple[Explanation, str]:
        """Return the explanation of an output in its unit, and the meaning of the reference value in words."""
        others, reference = self._reference()
        models = [model.to(self.device) for model in self.models]
        inputs = inputs_of(models, others, self.device)
        (found,) = explain_mean(models, [subject.data.to(self.device)], answer.number, inputs)
        return found.rescaled(answer.factor, answer.shift).renumbered(subject.order), reference

    def explain_all(self, output: str | None = None) -> tuple[list[OutputSummary], str]:
        """Return summaries of one or all outputs for all graphs, and the meaning of the reference value in words."""
        signature, networks = self.trained.signature, len(self.models)
        names, none = output_names(signature) if output is None else [output], torch.zeros(signature.out_channels)
        answers = [choose_answer(signature, none, name, networks=networks) for name in names]
        others, reference = self._reference()
        found = explain_dataset(self.models, self._readable(), answers, others, device=self.device)
        if not found[0].graphs:
            why = (self.problems or ["it is empty"])[0]
            raise ValueError(f"{self.data} has no graph that can be explained: {why}")
        return found, reference

    def _reference(self) -> tuple[list[ExplainedGraph], str]:
        return read_reference(self.trained.members[0], self.run, self.data, smiles=self.smiles)

    def _readable(self) -> Iterator[ExplainedGraph]:
        for one in read_subjects(self.trained.members[0], self.data, smiles=self.smiles):
            if isinstance(one, str):
                self.problems.append(one)
            else:
                yield one
