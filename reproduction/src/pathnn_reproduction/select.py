"""`--only ap,seed=3`: some of an experiment's runs, by words and by fields."""

from __future__ import annotations

from collections.abc import Sequence

from pathnn_reproduction.planned import RunSpec

WORDS = ("model", "dataset", "collection")
"""Fields whose values are words of their own."""

FIELDS = (*WORDS, "k", "fold", "seed")


class SelectionError(ValueError):
    """A filter that names something that does not exist, or leaves nothing."""


def select(runs: Sequence[RunSpec], only: str | None) -> list[RunSpec]:
    """The runs that `only` names, in order; None names all.

    `only` is words and `field=value` with commas between. A word is a model, a dataset or a collection; a value
    may be a range, `seed=0-4`. Of several for one field, any may hold; all fields must.

    >>> from pathnn_reproduction.experiments.targets import experiment
    >>> [run.name for run in select(experiment("zinc").runs, "ap,sp,seed=3")]
    ['zinc-sp-k4-s3', 'zinc-ap-k4-s3']
    >>> select(experiment("zinc").runs, "bp")
    Traceback (most recent call last):
    ...
    pathnn_reproduction.select.SelectionError: 'bp' is unknown: expected model pathnn, gin, gcn, mlp; ...
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
