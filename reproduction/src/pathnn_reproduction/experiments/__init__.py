"""The experiments of the paper: `pathnn reproduce TARGET`, one module per table or family of tables."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathnn_reproduction.spec import Experiment

TABLES = {
    "zinc": "ZINC12K (table 5)",
    "molhiv": "ogbg-molhiv (table 4)",
    "peptides": "Peptides (table 3)",
    "tu": "TUDatasets (table 2)",
    "synthetic": "CSL and EXP (table 1)",
}
"""The accuracy tables, by the name of their target, with their titles."""

TARGETS = {
    **TABLES,
    "sr": "Strongly regular graphs (a figure): pairs that PathNN-AP, the exact test and WL confuse",
    "brec": "BREC: pairs that the exact test, WL and BREC's own protocol distinguish",
    "counts": "Average number of paths per graph (appendix)",
    "plus": "PathNN+ (not in the paper): ZINC12K, Peptides-func and ogbg-molhiv, controls and ablations",
    "runtime": "Running time (appendix): the paper's on a Tesla T4, ours on this machine",
}
"""All experiments with rows, with their titles."""


@cache
def get_experiment(name: str) -> Experiment:
    """Return the experiment of a target.

    >>> get_experiment("zinc").title
    'ZINC12K (table 5)'
    >>> get_experiment("mnist")
    Traceback (most recent call last):
    ...
    ValueError: 'mnist' is no target: expected one of zinc, molhiv, peptides, tu, synthetic, sr, brec, counts, ...
    """
    from pathnn_reproduction.spec import Experiment

    if name not in TARGETS:
        raise ValueError(f"{name!r} is no target: expected one of {', '.join(TARGETS)}.")
    # a module has `tables`, and a function with the name of the target, which yields its specs
    module = import_module(f"pathnn_reproduction.experiments.{'accuracy' if name in TABLES else name}")
    alone = name == "runtime"  # it measures time
    return Experiment(name, TARGETS[name], tuple(getattr(module, name)()), module.tables, alone=alone)
