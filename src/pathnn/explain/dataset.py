"""Explain runs: a graph, or all graphs of a dataset by the paths that raise or lower the prediction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pathnn import __version__
from pathnn.explain.attribution import WeightedBatch, explain_graphs, reference_inputs
from pathnn.explain.explanation import Explanation, PathScore
from pathnn.explain.subject import (
    ExplainedGraph,
    ExplainedOutput,
    choose_answer,
    output_names,
    read_reference,
    read_subjects,
)  # fmt: skip
from pathnn.files import write_csv
from pathnn.inference.predictor import load_runs
from pathnn.nn import PathNN
from pathnn.plots.page import LINES
from pathnn.training.ensemble import combine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 32
"""The number of graphs that are explained at once."""

EXAMPLES, SAMPLE = 3, 40
"""The number of examples of each pattern, and of graphs for which faithfulness is measured."""

FRACTIONS = tuple(i / 10 for i in range(11))
KINDS = ("path scores", "gradient", "random")
"""The orders of the paths in the curves of `faithfulness`."""


@dataclass
class Pattern:
    """The scores of equal paths of all graphs. An example, one per graph, is a graph and a path."""

    text: str
    length: int
    graphs: int = 0
    occurrences: int = 0
    total: float = 0.0
    squares: float = 0.0
    raising: list[tuple[ExplainedGraph, PathScore]] = field(default_factory=list)
    lowering: list[tuple[ExplainedGraph, PathScore]] = field(default_factory=list)

    @property
    def examples(self) -> list[tuple[ExplainedGraph, PathScore]]:
        """Return the examples with the largest scores if the mean is positive, otherwise with the smallest."""
        return self.raising if self.mean > 0 else self.lowering

    @property
    def mean(self) -> float:
        """Return the mean score of an occurrence."""
        return self.total / self.occurrences

    @property
    def std(self) -> float:
        """Return the standard deviation of the scores."""
        return math.sqrt(max(self.squares / self.occurrences - self.mean**2, 0.0))

    def add(self, graph: ExplainedGraph, paths: Sequence[PathScore]) -> None:
        """Add the occurrences in one graph."""
        self.graphs += 1
        self.occurrences += len(paths)
        self.total += sum(path.score for path in paths)
        self.squares += sum(path.score**2 for path in paths)
        for examples, highest in ((self.raising, True), (self.lowering, False)):
            examples.append((graph, (max if highest else min)(paths, key=lambda path: path.score)))
            examples.sort(key=lambda one: one[1].score, reverse=highest)
            del examples[EXAMPLES:]


@dataclass
class OutputSummary:
    """The explanations of one output for all graphs.

    `atoms` has the scores of vertices, the shares of all paths through them, `descriptors` the mean absolute score of
    all descriptors together, `rest` the largest numerical error, and `curves` the result of `faithfulness`.
    """

    output: ExplainedOutput
    baseline: float = math.nan
    graphs: int = 0
    rest: float = 0.0
    patterns: dict[str, Pattern] = field(default_factory=dict)
    atoms: dict[str, Pattern] = field(default_factory=dict)
    descriptors: float = 0.0
    curves: Tensor = field(default_factory=lambda: torch.zeros(0))

    def add(self, graph: ExplainedGraph, found: Explanation) -> None:
        """Add the explanation of one graph."""
        self.graphs, self.baseline = self.graphs + 1, found.baseline
        self.rest = max(self.rest, abs(found.rest))
        self.descriptors += (abs(found.descriptors) - self.descriptors) / self.graphs
        atoms = [PathScore((v,), share) for v, share in enumerate(found.vertex_scores().tolist())]
        for known, scores in ((self.patterns, found.ranked()), (self.atoms, atoms)):
            groups: dict[str, list[PathScore]] = {}
            for path in scores:
                groups.setdefault(graph.picture.pattern(path), []).append(path)
            for text, paths in groups.items():
                known.setdefault(text, Pattern(text, paths[0].length)).add(graph, paths)

    def ranked(self, patterns: dict[str, Pattern]) -> list[Pattern]:
        """Return the patterns that occur in at least two graphs and 1 % of them, the largest mean score first."""
        least = min(self.graphs, max(2, self.graphs / 100))
        return sorted((one for one in patterns.values() if one.graphs >= least), key=lambda one: -one.mean)

    def extremes(self, top: int) -> list[Pattern]:
        """Return the `top` paths that raise the output most, and the `top` paths that lower it most."""
        ranked = self.ranked(self.patterns)
        return ranked if len(ranked) <= 2 * top else [*ranked[:top], *ranked[-top:]]

    def areas(self) -> dict[str, tuple[float, float]]:
        """Return the mean areas under the deletion curve (smaller is better) and the insertion curve, by `KINDS`."""
        mean = torch.trapezoid(self.curves.mean(dim=0), torch.tensor(FRACTIONS).double(), dim=-1)
        return {kind: (float(row[0]), float(row[1])) for kind, row in zip(KINDS, mean, strict=True)}


def explain_dataset(
    models: Sequence[PathNN],
    graphs: Iterable[ExplainedGraph],
    outputs: Sequence[ExplainedOutput],
    reference: Sequence[ExplainedGraph],
    *,
    device: str = "cpu",
) -> list[OutputSummary]:
    """Explain the mean output of some networks for each graph, in batches; return a summary of each output."""
    models = [model.to(device) for model in models]
    references = inputs_of(models, reference, device)
    summaries, random, count = [OutputSummary(output) for output in outputs], Random(0), 0
    stream, sample = iter(graphs), list[ExplainedGraph]()
    while batch := list(islice(stream, BATCH)):
        data = [one.data.to(device) for one in batch]
        for summary in summaries:
            output = summary.output
            for graph, found in zip(batch, explain_mean(models, data, output.number, references), strict=True):
                summary.add(graph, found.rescaled(output.factor, output.shift).renumbered(graph.order))
        for graph in batch:  # every graph is in the sample with the same probability
            count += 1
            if len(sample) < SAMPLE:
                sample.append(graph)
            elif (place := random.randrange(count)) < SAMPLE:
                sample[place] = graph
    for summary in summaries if sample else ():
        curves = faithfulness(models, [one.data.to(device) for one in sample], references, summary.output.number)
        summary.curves = summary.output.factor * curves + summary.output.shift
    return summaries


class RunExplainer:
    """Explain the mean output of the networks of a run; `problems` has the rows of `data` that cannot be read."""

    def __init__(self, run: Path, data: str, *, smiles: str | None = None, device: str = "cpu") -> None:
        self.trained, self.run, self.data, self.smiles, self.device = load_runs(run), run, data, smiles, device
        self.models = [one.model for one in self.trained.members if isinstance(one.model, PathNN)]
        if not self.models:
            kind = self.trained.config.model
            raise ValueError(f"{run} is a {kind}, whose paths cannot be explained: expected a PathNN.")
        self.networks, self.problems = len(self.models), list[str]()
        self.several = f"; the mean of {self.networks} networks" if self.networks > 1 else ""
        self.made_by = f"{run}{self.several}; explained by pathnn {__version__}"

    def explain(self, subject: ExplainedGraph, output: str | None = None) -> tuple[ExplainedOutput, Explanation, str]:
        """Return an output, its explanation in its unit, and the meaning of the reference value in words."""
        signature, (first, *_) = self.trained.signature, self.trained.members
        outputs = torch.stack([subject.outputs(one) for one in self.trained.members])
        together = combine(outputs.unsqueeze(1), signature.target)[0]
        answer = choose_answer(signature, together, output, networks=self.networks)
        others, reference = read_reference(first, self.run, self.data, smiles=self.smiles)
        models = [model.to(self.device) for model in self.models]
        inputs = inputs_of(models, others, self.device)
        (found,) = explain_mean(models, [subject.data.to(self.device)], answer.number, inputs)
        return answer, found.rescaled(answer.factor, answer.shift).renumbered(subject.order), reference

    def explain_all(self, output: str | None = None) -> tuple[list[OutputSummary], str]:
        """Return summaries of one or all outputs for all graphs, and the meaning of the reference value in words."""
        signature, (first, *_) = self.trained.signature, self.trained.members
        names, none = output_names(signature) if output is None else [output], torch.zeros(signature.out_channels)
        answers = [choose_answer(signature, none, name, networks=self.networks) for name in names]
        others, reference = read_reference(first, self.run, self.data, smiles=self.smiles)

        def readable() -> Iterator[ExplainedGraph]:
            for one in read_subjects(first, self.data, smiles=self.smiles):
                if isinstance(one, str):
                    self.problems.append(one)
                else:
                    yield one

        found = explain_dataset(self.models, readable(), answers, others, device=self.device)
        if not found[0].graphs:
            why = (self.problems or ["it is empty"])[0]
            raise ValueError(f"{self.data} has no graph that can be explained: {why}")
        return found, reference


def inputs_of(
    models: Sequence[PathNN], reference: Sequence[ExplainedGraph], device: str = "cpu"
) -> list[Tensor | None]:
    """Return the result of `reference_inputs` of each model, or None for each model without reference graphs."""
    graphs = [one.data.to(device) for one in reference]
    return [reference_inputs(model, graphs) if graphs else None for model in models]


def explain_mean(
    models: Sequence[PathNN], graphs: Sequence[Any], output: int, references: Sequence[Tensor | None]
) -> list[Explanation]:
    """Explain the mean output of several networks; each has its own reference."""
    pairs = zip(models, references, strict=True)
    found = [explain_graphs(model, graphs, output=output, reference=inputs) for model, inputs in pairs]
    return [Explanation.mean(each) for each in zip(*found, strict=True)]


@torch.no_grad()
def faithfulness(
    models: Sequence[PathNN], graphs: Sequence[Any], references: Sequence[Tensor | None], output: int, seed: int = 0
) -> Tensor:
    """Delete paths, then insert them, from the highest score to the lowest: `[graphs, kinds, 2, fractions]`.

    The rows of each kind are the mean outputs without a fraction of the paths, and with only this fraction. With a
    reference, vertices are paths of length 0. All descriptors of a graph are deleted together.
    """
    pairs = zip(models, references, strict=True)
    batches = [WeightedBatch(model, graphs, inputs) for model, inputs in pairs]
    gradients = sum(one.gradient(one.weights(1.0), output) for one in batches)
    rank, number = _ranks(batches[0], explain_mean(models, graphs, output, references), gradients, seed)
    curves = torch.zeros(len(graphs), len(KINDS), 2, len(FRACTIONS), dtype=torch.float64)
    for kind, (i, fraction) in product(range(len(KINDS)), enumerate(FRACTIONS)):
        chosen = rank[kind] < (fraction * number).round()
        for mode, kept in enumerate((~chosen, chosen)):
            for batch in batches:
                out = batch.outputs(batch.weights(kept))[:, output]
                curves[:, kind, mode, i] += out.cpu().double() / len(batches)
    return curves


def _ranks(batch: WeightedBatch, explained: Sequence[Explanation], gradients: Any, seed: int) -> tuple[Tensor, Tensor]:
    """Return the rank of each weight in its graph by `KINDS`, `[kinds, weights]`, and the number of ranks there."""
    owners, first = batch.owners(), 0 if batch.reference is None else 1
    rank, number = torch.zeros(len(KINDS), len(owners)), torch.zeros(len(owners), dtype=torch.float64)
    for g, one in enumerate(explained):
        mine = (owners == g).nonzero().flatten()
        mine = mine if first else mine[one.num_nodes :]  # without reference, vertices have no scores
        scores = torch.cat([*one.scores[:first], one.descriptor_scores, *one.scores[first:]])
        size = torch.ones(first * one.num_nodes + 1 + sum(map(len, one.scores[first:])), dtype=torch.long)
        size[first * one.num_nodes] = len(one.descriptor_scores)  # they have the same rank
        item = torch.arange(len(size)).repeat_interleave(size)
        random = torch.rand(1, len(size), generator=torch.Generator().manual_seed(seed)).double()
        sums = torch.zeros(2, len(size)).double().index_add(1, item, torch.stack([scores, gradients[mine]]))
        order = torch.cat([sums, random]).argsort(dim=1, descending=True)
        rank[:, mine], number[mine] = order.argsort(dim=1)[:, item].float(), float(len(size))
    return rank, number


def write_patterns(path: Path, summaries: Sequence[OutputSummary]) -> None:
    """Write a CSV with the patterns of all outputs, the largest mean score first."""
    names = ("output", "path", "length", "graphs", "occurrences", "mean", "std", "total", "example")
    rows = []
    for summary in summaries:
        for one in sorted(summary.patterns.values(), key=lambda one: -one.mean):
            numbers = (f"{value:.6g}" for value in (one.mean, one.std, one.total))
            place = one.examples[0][0].place
            rows.append((summary.output.name, one.text, one.length, one.graphs, one.occurrences, *numbers, place))
    write_csv(path, names, rows)


def draw_curves(summary: OutputSummary) -> Figure:
    """Draw the mean deletion and insertion curves of one output."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.8), layout="constrained", facecolor="white")
    mean = summary.curves.mean(dim=0).tolist()
    for mode, name in enumerate(("deleted", "inserted")):
        axes = figure.add_subplot(1, 2, mode + 1)
        for kind, color in zip(range(len(KINDS)), LINES, strict=False):
            axes.plot(FRACTIONS, mean[kind][mode], color=color, label=KINDS[kind])
        axes.set_xlabel(f"fraction of the paths {name}, highest first")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("mean output")
    figure.axes[0].legend(frameon=False)
    return figure
