"""Run specs, experiments, and `--only`: which runs a table is made of, and which of them are missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from pathnn.nn.presets import PRESETS, paper_config
from pathnn.paths.options import Collection
from pathnn.training.config import RunConfig
from pathnn.training.cuda_graphs.capture import FIXED
from pathnn.training.together import common
from pathnn_reproduction.paper import maximizes
from pathnn_reproduction.results import Key, Line, Results, config_hash, v1_options

Kind = Literal["train", "isomorphism"]
"""What a run does: train a model, or count the pairs of graphs that an untrained one confuses."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A run that can be done on its own, anywhere, at any time.

    Attributes:
        target: the experiment, such as "zinc".
        model: "pathnn", "pathnn-released" (the authors' code where it departs from the text), or a baseline's name.
        collection, k: of a PathNN; None for a baseline.
        grid: the point of a hyperparameter grid, such as "hidden=32,dropout=0.5"; "" where there is none.
        assess: whether the run waits until its grid point has won its fold by validation score.
        config: everything that training needs.
    """

    target: str
    model: str
    dataset: str
    collection: Collection | None
    k: int | None
    fold: int = 0
    seed: int = 0
    grid: str = ""
    assess: bool = False
    kind: Kind = "train"
    config: RunConfig

    @property
    def cell(self) -> tuple[str, str, str | None, int | None]:
        """The cell of the table that the run belongs to."""
        return (self.dataset, self.model, self.collection, self.k)

    @cached_property
    def key(self) -> Key:
        """What tells it apart from the other runs of its target."""
        chosen = config_hash(v1_options(self.config))
        return (self.model, self.dataset, self.collection, self.k, self.fold, self.seed, chosen)

    @property
    def slot(self) -> tuple[Any, ...]:
        """The place in the protocol that the run fills: of runs that differ in the winning grid point alone, one
        is needed.
        """
        return (*self.cell, self.fold, self.seed, None if self.assess else self.grid)

    @property
    def name(self) -> str:
        """A name for people and folders.

        >>> from pathnn.training.recipes import zinc
        >>> run = RunSpec(target="zinc", model="pathnn", dataset="zinc", collection="ap", k=4, seed=3, config=zinc())
        >>> run.name
        'zinc-ap-k4-s3'
        """
        model = [self.model] if self.collection is None else [self.collection, f"k{self.k}"]
        model += ["released"] if self.model == "pathnn-released" else []
        grid = [self.grid.replace("=", "").replace(",", "-")] if self.grid else []
        return "-".join([self.dataset, *model, *([f"f{self.fold}"] if self.fold else []), *grid, f"s{self.seed}"])

    @property
    def folder(self) -> str:
        """The name of its run folder: `name` with the hash of the config, so that another config has another."""
        return f"{self.name}-{self.key[-1][:8]}"


def pathnn_spec(target: str, config: RunConfig, *, grid: str = "", assess: bool = False) -> RunSpec:
    """Return the run of a PathNN that `config` describes."""
    return RunSpec(
        target=target, model="pathnn", dataset=config.data, collection=config.collection, k=config.k,
        fold=config.fold, seed=config.seed, grid=grid, assess=assess, config=config,
    )  # fmt: skip


def as_released(run: RunSpec) -> RunSpec:
    """Return a run by the authors' code, where it departs from the text, as a model of its own."""
    return replace(run, model="pathnn-released")


def baseline_spec(target: str, config: RunConfig, *, grid: str = "", assess: bool = False) -> RunSpec:
    """Return the run of a baseline that `config` describes."""
    run = pathnn_spec(target, config, grid=grid, assess=assess)
    return replace(run, model=config.model, collection=None, k=None)


def together_key(run: RunSpec) -> str | None:
    """Runs with the same key can be trained together on a GPU (`training.together`): they differ in fold, seed and
    dropout alone. None for a run that has to be trained alone.

    >>> from pathnn.training.recipes import tu, zinc
    >>> runs = [
    ...     RunSpec(target="tu", model="pathnn", dataset="nci1", collection="sp", k=2, fold=fold,
    ...                config=tu("nci1", "sp", fold=fold))
    ...     for fold in (0, 1)
    ... ]
    >>> together_key(runs[0]) == together_key(runs[1])
    True
    >>> together_key(
    ...     RunSpec(target="zinc", model="pathnn", dataset="zinc", collection="ap", k=4, config=zinc())
    ... ) is None
    True
    """
    if run.kind != "train" or not _can_be_stacked(run):
        return None
    return f"{run.cell} {config_hash(v1_options(common(run.config)))}"


def _can_be_stacked(run: RunSpec) -> bool:
    """Whether networks of this kind can be trained as one; see `pathnn.nn.stacked`."""
    if run.collection is None:
        return run.config.model in FIXED
    preset = run.config.preset
    return preset in PRESETS and paper_config(preset, collection=run.collection).edge_channels is None


@dataclass(frozen=True)
class Experiment:
    """A target of `pathnn reproduce`.

    Attributes:
        name: the target.
        title: what it repeats.
        runs: every run that may be needed; those that assess a grid point are done for the winner alone.
    """

    name: str
    title: str
    runs: tuple[RunSpec, ...]

    @cached_property
    def _grids(self) -> dict[tuple[object, ...], list[RunSpec]]:
        """By cell and fold, the runs that choose the grid point."""
        grids: dict[tuple[object, ...], list[RunSpec]] = defaultdict(list)
        for run in self.runs:
            if not run.assess:
                grids[(run.cell, run.fold)].append(run)
        return grids

    def winner(self, run: RunSpec, results_file: Results) -> str | None:
        """The grid point that won the fold of `run`, by the best validation score; None while one is missing.

        Ties go to the first in the order of the grid.
        """
        found = [(choice.grid, results_file.find(choice)) for choice in self._grids[(run.cell, run.fold)]]
        if any(line is None for _, line in found):
            return None
        sign = 1 if maximizes(run.dataset) else -1
        scores = {grid: sign * line["val"] for grid, line in found if line is not None}
        return max(scores, key=lambda grid: scores[grid])

    def wanted(self, runs: Iterable[RunSpec], results_file: Results) -> list[RunSpec]:
        """Of some runs, those that the protocol asks for now: all but those that wait for a grid, or have lost."""
        return [run for run in runs if not run.assess or self.winner(run, results_file) == run.grid]

    def missing(self, runs: Iterable[RunSpec], results_file: Results) -> list[RunSpec]:
        """Of some runs, those that are wanted and not done."""
        return [run for run in self.wanted(runs, results_file) if results_file.find(run) is None]

    def done(self, runs: Iterable[RunSpec], results_file: Results) -> list[tuple[RunSpec, Line]]:
        """Of some runs, those that are wanted and done, with their results."""
        found = [(run, results_file.find(run)) for run in self.wanted(runs, results_file)]
        return [(run, line) for run, line in found if line is not None]


def slots(runs: Sequence[RunSpec]) -> int:
    """How many trainings the protocol asks for."""
    return len({run.slot for run in runs})


WORDS = ("model", "dataset", "collection")
"""Fields whose values are words of their own."""

FIELDS = (*WORDS, "k", "fold", "seed")


class SelectionError(ValueError):
    """A filter that names something that does not exist, or leaves nothing."""


def select(runs: Sequence[RunSpec], only: str | None) -> list[RunSpec]:
    """The runs that `only` names, in order; None names all.

    `only` is words and `field=value` with commas between. A word is a model, a dataset or a collection; a value
    may be a range, `seed=0-4`. Of several for one field, any may hold; all fields must.

    >>> from pathnn_reproduction.experiments import get_experiment
    >>> [run.name for run in select(get_experiment("zinc").runs, "ap,sp,seed=3")]
    ['zinc-sp-k4-s3', 'zinc-ap-k4-s3']
    >>> select(get_experiment("zinc").runs, "bp")
    Traceback (most recent call last):
    ...
    pathnn_reproduction.spec.SelectionError: 'bp' is unknown: expected model pathnn, gin, gcn, mlp; ...
    """
    if not only:
        return list(runs)
    exists = {name: _values(runs, name) for name in FIELDS}
    wanted: dict[str, set[str]] = {}
    for term in filter(None, (part.strip().lower() for part in only.split(","))):
        name, values = _parse(term, exists)
        wanted.setdefault(name, set()).update(values)
    chosen = [run for run in runs if all(_text(run, name) in values for name, values in wanted.items())]
    if not chosen:
        raise SelectionError(f"--only {only} leaves no run: {_what_exists(exists)}.")
    return chosen


def _parse(term: str, exists: dict[str, list[str]]) -> tuple[str, list[str]]:
    name, equals, value = term.partition("=")
    if not equals:
        field = next((field for field in WORDS if term in exists[field]), None)
        if field is None:
            raise SelectionError(f"{term!r} is unknown: expected {_what_exists(exists)}.")
        return field, [term]
    if name not in FIELDS:
        raise SelectionError(f"the field {name!r} is unknown: expected one of {', '.join(FIELDS)}.")
    values = _range(value)
    unknown = [one for one in values if one not in exists[name]]
    if unknown:
        raise SelectionError(f"{name}={unknown[0]} does not exist: expected one of {', '.join(exists[name])}.")
    return name, values


def _range(value: str) -> list[str]:
    first, dash, last = value.partition("-")
    if dash and first.isdigit() and last.isdigit():
        return [str(number) for number in range(int(first), int(last) + 1)]
    return [value]


def _text(run: RunSpec, name: str) -> str:
    return str(vars(run)[name])


def _values(runs: Sequence[RunSpec], name: str) -> list[str]:
    return list(dict.fromkeys(_text(run, name) for run in runs if vars(run)[name] is not None))


def _what_exists(exists: dict[str, list[str]]) -> str:
    return "; ".join(f"{name} {', '.join(values)}" for name, values in exists.items())
