"""The experiments of the paper: `pathnn reproduce TARGET`, one module per table or family of tables."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathnn_reproduction.spec import Experiment

TARGETS = {
    "zinc": "ZINC12K (table 5)",
    "molhiv": "ogbg-molhiv (table 4)",
    "peptides": "Peptides (table 3)",
    "tu": "TUDatasets (table 2)",
    "synthetic": "CSL and EXP (table 1)",
}
"""The tables of accuracies, by the name of their target, with their titles."""

MODULES = dict.fromkeys(("zinc", "molhiv", "peptides"), "molecules") | {"tu": "tu", "synthetic": "synthetic"}


@cache
def get_experiment(name: str) -> Experiment:
    """Return the experiment of a target.

    >>> get_experiment("zinc").title
    'ZINC12K (table 5)'
    >>> get_experiment("mnist")
    Traceback (most recent call last):
    ...
    ValueError: 'mnist' is no target: expected one of zinc, molhiv, peptides, tu, synthetic.
    """
    if name not in TARGETS:
        raise ValueError(f"{name!r} is no target: expected one of {', '.join(TARGETS)}.")
    module = import_module(f"pathnn_reproduction.experiments.{MODULES[name]}")
    experiment: Experiment = getattr(module, name)()
    return experiment
