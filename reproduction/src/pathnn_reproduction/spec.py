"""Run specs, experiments, and `--only`: the runs behind a table, and which of them are missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pathnn.training.config import RunConfig
from pathnn_reproduction.paper import maximizes
from pathnn_reproduction.results import Results, Row, config_hash, v1_options
from pathnn_reproduction.worker import Settings, train_run

if TYPE_CHECKING:
    from pathnn_reproduction.tables import Table

Value = str | int | None


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One row of a results file: what identifies it (`key`), and the function that computes it.

    The key of a training run has model ("pathnn", "pathnn-released" for the authors' code where it differs from the
    text, or a baseline), dataset, collection and k (None for a baseline), fold, seed and config_hash.
    """

    target: str  # the experiment, such as "zinc"
    key: Mapping[str, Value]
    run: Callable[[RunSpec, Settings], Row] = train_run  # a function of a module, since it is pickled
    config: RunConfig | None = None  # of a training run
    grid: str = ""  # the point of a hyperparameter grid, such as "hidden=32,dropout=0.5"
    assess: bool = False  # run only if its grid point won its fold by validation score
    needs: Mapping[str, Value] | None = None  # the key of a row that must exist before the run starts

    @property
    def dataset(self) -> str:
        """The name of the data that the run needs."""
        return str(self.key.get("dataset") or self.key.get("family") or self.target)

    @property
    def entry(self) -> tuple[Value, ...]:
        """The entry of a table that the run belongs to: dataset, model, collection and k."""
        return tuple(self.key.get(name) for name in ("dataset", "model", "collection", "k"))

    @property
    def slot(self) -> tuple[Any, ...]:
        """The place in the protocol that the run fills; runs that assess different grid points share one."""
        if self.config is None:
            return tuple(self.key.items())
        return (*self.entry, self.key["fold"], self.key["seed"], None if self.assess else self.grid)

    @property
    def name(self) -> str:
        """The name of the run in messages.

        >>> from pathnn_reproduction.experiments import get_experiment
        >>> get_experiment("zinc").specs[23].name
        'zinc-ap-k4-s3'
        """
        key = self.key
        if self.config is None:
            words = [str(value) if isinstance(value, str) else f"{name}{value}" for name, value in key.items()]
            return "-".join(word for word, value in zip(words, key.values(), strict=True) if value is not None)
        model = [key["model"]] if key["collection"] is None else [key["collection"], f"k{key['k']}"]
        model += ["released"] if key["model"] == "pathnn-released" else []
        grid = [self.grid.replace("=", "").replace(",", "-")] if self.grid else []
        fold = [f"f{key['fold']}"] if key["fold"] else []
        return "-".join(map(str, [key["dataset"], *model, *fold, *grid, f"s{key['seed']}"]))

    @property
    def folder(self) -> str:
        """The name of the run folder: `name` with the hash of the config, so that another config has another."""
        return f"{self.name}-{str(self.key['config_hash'])[:8]}"


def training_spec(
    target: str, config: RunConfig, *, dataset: str | None = None, model: str | None = None, **options: Any
) -> RunSpec:
    """Return the spec of a run that `config` describes; `options` are other fields of `RunSpec`."""
    pathnn = config.model == "pathnn"
    key: dict[str, Value] = {
        "model": model or config.model,
        "dataset": dataset or config.data,
        "collection": config.collection if pathnn else None,
        "k": config.k if pathnn else None,
        "fold": config.fold,
        "seed": config.seed,
        "config_hash": config_hash(v1_options(config)),
    }
    return RunSpec(target=target, key=key, config=config, **options)


@dataclass(frozen=True)
class Experiment:
    """A target of `pathnn reproduce`."""

    name: str
    title: str  # what it repeats
    specs: tuple[RunSpec, ...]  # every run that may be needed
    tables: Callable[[Experiment, Sequence[RunSpec], Results], list[Table]]  # of some specs, from the rows
    alone: bool = False  # one run at a time, because the runs measure time

    @cached_property
    def _grids(self) -> dict[tuple[object, ...], list[RunSpec]]:
        """By entry and fold, the runs that choose the grid point."""
        grids: dict[tuple[object, ...], list[RunSpec]] = defaultdict(list)
        for spec in self.specs:
            if not spec.assess:
                grids[(spec.entry, spec.key.get("fold"))].append(spec)
        return grids

    def winner(self, spec: RunSpec, results: Results) -> str | None:
        """Return the grid point with the best validation score on the fold of `spec`; None while a run is missing.

        Of equal ones, the first in the order of the grid wins.
        """
        found = [(choice.grid, results.find(choice.key)) for choice in self._grids[(spec.entry, spec.key["fold"])]]
        if any(row is None for _, row in found):
            return None
        sign = 1 if maximizes(spec.dataset) else -1
        scores = {grid: sign * row["val"] for grid, row in found if row is not None}
        return max(scores, key=lambda grid: scores[grid])

    def wanted(self, specs: Iterable[RunSpec], results: Results) -> list[RunSpec]:
        """Return the specs that the protocol asks for now, without those that wait for other runs or lost a grid."""
        return [
            spec
            for spec in specs
            if (spec.needs is None or results.find(spec.needs) is not None)
            and (not spec.assess or self.winner(spec, results) == spec.grid)
        ]

    def missing(self, specs: Iterable[RunSpec], results: Results) -> list[RunSpec]:
        """Return the specs that are wanted and have no row."""
        return [spec for spec in self.wanted(specs, results) if results.find(spec.key) is None]

    def done(self, specs: Iterable[RunSpec], results: Results) -> list[tuple[RunSpec, Row]]:
        """Return the specs that are wanted and have a row, with that row."""
        found = [(spec, results.find(spec.key)) for spec in self.wanted(specs, results)]
        return [(spec, row) for spec, row in found if row is not None]

    def left(self, specs: Iterable[RunSpec], results: Results) -> list[RunSpec]:
        """Return a spec for each slot that no row fills, also for runs that wait for others."""
        filled = {spec.slot for spec, _ in self.done(specs, results)}
        return list({spec.slot: spec for spec in reversed(list(specs)) if spec.slot not in filled}.values())[::-1]


def slots(specs: Sequence[RunSpec]) -> int:
    """Return the number of runs that the protocol asks for."""
    return len({spec.slot for spec in specs})


class SelectionError(ValueError):
    """A selection that names something unknown, or leaves no run."""


def select(specs: Sequence[RunSpec], only: str | None) -> list[RunSpec]:
    """Return the specs that `only` names, in order; None names all.

    `only` has words and `field=value`, separated by commas. A field is a part of the key, a word is a value of one of
    them, and a value may be a range, `seed=0-4`. Of several values for one field, any may hold; all fields must hold.

    >>> from pathnn_reproduction.experiments import get_experiment
    >>> [spec.name for spec in select(get_experiment("zinc").specs, "ap,sp,seed=3")]
    ['zinc-sp-k4-s3', 'zinc-ap-k4-s3']
    >>> select(get_experiment("zinc").specs, "bp")
    Traceback (most recent call last):
    ...
    pathnn_reproduction.spec.SelectionError: 'bp' is unknown: expected model pathnn, gin, gcn, mlp; ...
    """
    exists: dict[str, list[str]] = defaultdict(list)
    for name, text in dict.fromkeys((name, _text(value)) for spec in specs for name, value in spec.key.items()):
        if name != "config_hash" and text != "none":
            exists[name].append(text)
    wanted: dict[str, set[str]] = defaultdict(set)
    for term in filter(None, (part.strip().lower() for part in (only or "").split(","))):
        name, values = _parse(term, exists)
        wanted[name] |= values
    chosen = [spec for spec in specs if all(_text(spec.key.get(name)) in values for name, values in wanted.items())]
    if not chosen:
        raise SelectionError(f"--only {only} leaves no run: {_what_exists(exists)}.")
    return chosen


def _text(value: Value) -> str:
    return str(value).lower()


def _parse(term: str, exists: Mapping[str, list[str]]) -> tuple[str, set[str]]:
    """Return the field of a term, and its values."""
    name, equals, value = term.partition("=")
    if not equals:
        field = next((field for field, values in exists.items() if term in values and not term.isdigit()), None)
        if field is None:
            raise SelectionError(f"{term!r} is unknown: expected {_what_exists(exists)}.")
        return field, {term}
    if name not in exists:
        raise SelectionError(f"the field {name!r} is unknown: expected one of {', '.join(exists)}.")
    first, _, last = value.partition("-")
    numbers = range(int(first), int(last) + 1) if first.isdigit() and last.isdigit() else ()
    values = {value, *map(str, numbers)} & set(exists[name])
    if not values:
        raise SelectionError(f"{name}={value} does not exist: expected one of {', '.join(exists[name])}.")
    return name, values


def _what_exists(exists: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{name} {', '.join(values)}" for name, values in exists.items())
