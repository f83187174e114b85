"""PathNN+ on ZINC12K, Peptides-func and ogbg-molhiv, with controls that read no paths, and ablations on ZINC12K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pathnn.nn.presets import PLUS
from pathnn.training.config import RunConfig
from pathnn_reproduction.paper import TABLES
from pathnn_reproduction.results import Results, Row
from pathnn_reproduction.spec import Experiment, RunSpec, training_spec
from pathnn_reproduction.tables import NOT_MEASURED, Table, measure, score_text

SCHEDULES: dict[str, dict[str, Any]] = {
    "zinc": {"batch_size": 100, "epochs": 2000, "warmup": 50, "lr": 1e-3},
    "peptides-func": {"batch_size": 16, "epochs": 300, "warmup": 5, "lr": 1e-3},
    "molhiv": {"batch_size": 32, "epochs": 100, "warmup": 5, "lr": 1e-4},
}
SHORT = {"epochs": 300, "warmup": 10}
"""The schedule of the ablations."""

SEEDS = {"zinc": 10, "peptides-func": 4, "molhiv": 10}
ABLATION_SEEDS = 3

CONTROLS: dict[str, dict[str, Any]] = {
    "zinc": {"read_paths": False, "num_layers": 12, "hidden_channels": 75},
    "peptides-func": {"read_paths": False, "num_layers": 4, "hidden_channels": 126},
    "molhiv": {"read_paths": False, "num_layers": 4, "hidden_channels": 126},
}
"""Message passing alone, with layers and a width that give about as many parameters."""

ABLATIONS: dict[str, dict[str, Any]] = {
    "pathnn+-short": {},
    "control-short": CONTROLS["zinc"],
    "without-message-passing": {"message_passing": False},
    "without-random-walks": {"walk_length": 0},
    "without-feed-forward": {"feed_forward": False},
    "with-virtual-node": {"virtual_node": True, "hidden_channels": 71},
    "with-prefixes": {"prefixes": True},
    "with-prefixes-small-batches": {"prefixes": True},
    "with-prefixes-averaged": {"prefixes": True},
}
"""Changes of PathNN+ on ZINC12K; its other parts stay the same."""

TRAINING: dict[str, dict[str, Any]] = {
    "with-prefixes-small-batches": {"batch_size": 32},
    "with-prefixes-averaged": {"ema": 0.999},
}
"""Changes of the training of some ablations."""


def plus_run(data: str, *, seed: int = 0, changes: Any = None, schedule: Any = None) -> RunConfig:
    """Return a run of PathNN+ with some options of the model and of the schedule changed.

    >>> plus_run("zinc", changes={"walk_length": 0}).options["walk_length"]
    0
    """
    fitting = ("in_channels", "edge_channels", "out_channels")  # the data determines them
    options = {name: value for name, value in PLUS[data].items() if name not in fitting}
    return RunConfig(**{
        "data": data, "model": "pathnn+", "options": {**options, **(changes or {})}, "collection": "ap", "k": 6,
        "optimizer": "adamw", "weight_decay": 1e-5, "schedule": "cosine", "seed": seed,
        **SCHEDULES[data], **(schedule or {}),
    })  # fmt: skip


def plus() -> Iterator[RunSpec]:
    """Yield the runs of the table: ten seeds (Peptides-func four), and three for each ablation."""
    for data, seeds in SEEDS.items():
        for model, changes in (("pathnn+", {}), ("control", CONTROLS[data])):
            for seed in range(seeds):
                yield training_spec("plus", plus_run(data, seed=seed, changes=changes), model=model)
    for model, changes in ABLATIONS.items():
        for seed in range(ABLATION_SEEDS):
            schedule = {**SHORT, **TRAINING.get(model, {})}
            yield training_spec("plus", plus_run("zinc", seed=seed, changes=changes, schedule=schedule), model=model)


HEAD = ("dataset", "model", "mean", "seeds", "parameters")


def tables(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> list[Table]:
    """Return the table of `specs`; what is not measured yet is None in its values."""
    values, rows = [], []
    for dataset, model, *_ in dict.fromkeys(spec.entry for spec in specs):
        runs = [spec for spec in experiment.specs if spec.entry[:2] == (dataset, model)]
        found, text, parameters = measure(experiment, runs, results), NOT_MEASURED, ""
        value: Row = {"mean": None, "deviation": None, "seeds": 0, "parameters": None}
        if found is not None:
            value = {"mean": found.mean, "deviation": found.std, "seeds": found.count, "parameters": found.parameters}
            text = score_text(found.mean, found.std, TABLES[str(dataset)].decimals + 1)
            parameters = "" if found.parameters is None else f"{found.parameters:,}"
        values.append({"dataset": dataset, "model": model, **value})
        rows.append([str(dataset), str(model), text, f"{value['seeds']} of {len(runs)}", parameters])
    return [Table("PathNN+: test scores", HEAD, rows, values, 2)]
