"""ZINC12K, ogbg-molhiv and Peptides (tables 5, 4 and 3): several seeds of each PathNN and of each baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from pathnn.paths.options import COLLECTIONS, Collection
from pathnn.training import recipes
from pathnn.training.config import RunConfig
from pathnn_reproduction.experiments import TARGETS
from pathnn_reproduction.experiments.baselines import BASELINES, baseline_run
from pathnn_reproduction.spec import Experiment, RunSpec, training_spec
from pathnn_reproduction.tables import accuracy_tables


def zinc() -> Experiment:
    """Return table 5: ten seeds."""
    return Experiment("zinc", TARGETS["zinc"], tuple(_seeds("zinc", recipes.zinc, 10)), accuracy_tables)


def molhiv() -> Experiment:
    """Return table 4: ten seeds."""
    return Experiment("molhiv", TARGETS["molhiv"], tuple(_seeds("molhiv", recipes.molhiv, 10)), accuracy_tables)


def peptides() -> Experiment:
    """Return table 3: four seeds; Peptides-func also with the released scheduler."""
    specs = list(_seeds("peptides", recipes.peptides_func, 4))
    for collection, seed in product(COLLECTIONS, range(4)):
        config = replace(recipes.peptides_func(collection, released=True), seed=seed)
        specs.append(training_spec("peptides", config, released=True))
    specs += _seeds("peptides", recipes.peptides_struct, 4)
    return Experiment("peptides", TARGETS["peptides"], tuple(specs), accuracy_tables)


def _seeds(target: str, make: Callable[[Collection], RunConfig], count: int) -> Iterator[RunSpec]:
    """Yield every collection, then every baseline, with `count` seeds each."""
    for collection, seed in product(COLLECTIONS, range(count)):
        yield training_spec(target, replace(make(collection), seed=seed))
    data = make("sp").data
    for model, seed in product(BASELINES, range(count)):
        yield training_spec(target, baseline_run(model, data, seed=seed))
