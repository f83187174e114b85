"""ZINC12K, ogbg-molhiv and Peptides (tables 5, 4 and 3): several seeds of each PathNN and of each baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from pathnn.paths.options import COLLECTIONS, Collection
from pathnn.training import recipes
from pathnn.training.config import RunConfig
from pathnn_reproduction.experiments.baselines import BASELINES, baseline_run
from pathnn_reproduction.spec import RunSpec, training_spec
from pathnn_reproduction.tables import accuracy_tables

tables = accuracy_tables


def zinc() -> Iterator[RunSpec]:
    """Yield the runs of table 5: ten seeds."""
    return _seeds("zinc", recipes.zinc, 10)


def molhiv() -> Iterator[RunSpec]:
    """Yield the runs of table 4: ten seeds."""
    return _seeds("molhiv", recipes.molhiv, 10)


def peptides() -> Iterator[RunSpec]:
    """Yield the runs of table 3: four seeds; Peptides-func also with the released scheduler."""
    yield from _seeds("peptides", recipes.peptides_func, 4)
    for collection, seed in product(COLLECTIONS, range(4)):
        config = replace(recipes.peptides_func(collection, released=True), seed=seed)
        yield training_spec("peptides", config, released=True)
    yield from _seeds("peptides", recipes.peptides_struct, 4)


def _seeds(target: str, make: Callable[[Collection], RunConfig], count: int) -> Iterator[RunSpec]:
    """Yield every collection, then every baseline, with `count` seeds each."""
    for collection, seed in product(COLLECTIONS, range(count)):
        yield training_spec(target, replace(make(collection), seed=seed))
    data = make("sp").data
    for model, seed in product(BASELINES, range(count)):
        yield training_spec(target, baseline_run(model, data, seed=seed))
