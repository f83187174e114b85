"""Return the configs of the paper's runs (section 5 and appendix D), and the defaults for a user's data.

`pathnn.nn.paper_config` has the models of the paper; here are the data, the optimizer and when to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pathnn.data.load import find_data
from pathnn.data.task import Categorical, Task
from pathnn.nn.presets import TU_SETS, paper_config
from pathnn.paths.options import Collection
from pathnn.training.config import RunConfig

PLATEAU = {"plateau_factor": 0.5, "plateau_patience": 20}

PAPER: dict[str, Any] = {
    "lr": 1e-3, "weight_decay": 0.0, "optimizer": "adam", "schedule": "plateau", "ema": None, "clip": None,
    "loss": None, "class_weights": False, "standardize": False, "variant": "paper",
}  # fmt: skip
"""Options of all runs of the paper, unless a run changes them; written out, so that no default changes a run."""


def zinc(collection: Collection = "ap") -> RunConfig:
    """Table 5: K = 4, ten seeds, 500K parameters; stops when the learning rate is down to 1e-5."""
    return _paper("zinc", collection, batch_size=128, epochs=1000, min_lr=1e-5, **PLATEAU)


def molhiv(collection: Collection = "ap") -> RunConfig:
    """Table 4: K = 2, ten seeds, dropout 0.5, no scheduler."""
    return _paper("molhiv", collection, batch_size=128, epochs=200, lr=5e-4, patience=50)


def peptides_func(collection: Collection = "ap", *, released: bool = False) -> RunConfig:
    """Table 3: K = 8 (AP: 7), four seeds; the `released` scheduler takes a lower average precision for better."""
    direction = "released" if released else "metric"
    return _paper("peptides-func", collection, **_PEPTIDES, plateau_direction=direction)


def peptides_struct(collection: Collection = "ap") -> RunConfig:
    """Table 3: K = 4, four seeds, the mean over paths."""
    return _paper("peptides-struct", collection, **_PEPTIDES)


_PEPTIDES: dict[str, Any] = {"batch_size": 128, "epochs": 200, "patience": 50, **PLATEAU}


def csl(collection: Collection = "ap", *, fold: int = 0) -> RunConfig:
    """Table 1: K = 11 (AP: 5), five folds."""
    return _paper("csl", collection, fold=fold, batch_size=8 if collection == "ap" else 32, **_SYNTHETIC)


def exp(collection: Collection = "ap", *, fold: int = 0, name: str = "cexp") -> RunConfig:
    """Table 1, EXP-Class: K = 10 (AP: 5), four splits. The text says EXP, the authors' code reads CEXP."""
    return _paper(name, collection, fold=fold, batch_size=16 if collection == "ap" else 32, **_SYNTHETIC)


_SYNTHETIC: dict[str, Any] = {"epochs": 200, "patience": 200}


def tu(
    name: str,
    collection: Collection = "ap",
    *,
    k: int = 2,
    fold: int = 0,
    hidden_channels: int = 64,
    dropout: float = 0.0,
) -> RunConfig:
    """Table 2: ten folds; hidden size from 32 and 64 and dropout from 0 and 0.5 are chosen per fold."""
    options = {"hidden_channels": hidden_channels, "dropout": dropout}
    batch_size = 16 if (name, collection, k) == ("dd", "ap", 2) else 32
    return _paper(name, collection, k=k, fold=fold, batch_size=batch_size, epochs=500, patience=250, options=options)


RUNS: dict[str, Callable[[Collection], RunConfig]] = {
    "zinc": zinc,
    "molhiv": molhiv,
    "peptides-func": peptides_func,
    "peptides-struct": peptides_struct,
    "csl": csl,
    "exp": partial(exp, name="exp"),
    "cexp": exp,
    **{name: partial(tu, name) for name in TU_SETS},
}
"""The paper's run for each dataset."""


def paper_run(data: str, collection: Collection = "ap") -> RunConfig | None:
    """Return the paper's run on a dataset, or None if the paper trains nothing on it."""
    make = RUNS.get(data.lower())
    return None if make is None else make(collection)


def _paper(name: str, collection: Collection, **options: Any) -> RunConfig:
    k = options.pop("k", None) or paper_config(name, collection=collection).k
    return RunConfig(**{**PAPER, "data": name, "preset": name, "collection": collection, "k": k, **options})


MOLECULES: dict[str, Any] = {
    "k": 4, "options": {"hidden_channels": 64, "phi": "mlp", "readout": "mean"},
    "epochs": 30, "schedule": "cosine", "warmup": 2, "keep": "last",
}  # fmt: skip
"""Chosen by cross-validation on training parts of ESOL, ADME and MoleculeACE (`benchmarks/results/defaults.jsonl`)."""

OTHERS: dict[str, Any] = {
    "k": 2, "options": {"hidden_channels": 64},
    "epochs": 200, "patience": 50, "plateau_factor": 0.5, "plateau_patience": 15,
}  # fmt: skip


MOST_COMPARED = 5_000
"""With more molecules, a kernel takes long, and a network needs no help."""


def default_options(task: Task) -> dict[str, Any]:
    """Return the default options of a `RunConfig` for a user's data.

    Molecules (categorical vertices and edges) get the paper's model for ZINC at half its width, with the mean over
    atoms, and 30 epochs in which the learning rate falls along a cosine. Other graphs get its model for the TUDatasets
    with short paths, since dense graphs have very many long ones.

    ```python
    task = load_data("molecules.csv", targets="logS")
    config = RunConfig.from_dict({"data": "molecules.csv", "target": "logS", **default_options(task)})
    ```
    """
    molecules = isinstance(task.node_features, Categorical) and isinstance(task.edge_features, Categorical)
    compared = task.target == "regression" and task.descriptors is not None and len(task.graphs) <= MOST_COMPARED
    return {
        **(MOLECULES if molecules else OTHERS),
        "collection": "ap",
        "batch_size": 32,
        "standardize": task.target == "regression",
        "kernel": "ridge" if compared else None,
    }


def add_descriptors(data: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen options with standard descriptors for a table of molecules, unless they name others or none."""
    if "descriptors" in chosen or find_data(data).kind != "table":
        return dict(chosen)
    return {**chosen, "descriptors": "standard"}


def fill_in(data: str, task: Task, chosen: Mapping[str, Any], options: Mapping[str, Any]) -> RunConfig:
    """Return the config of a new run: the paper's or the defaults, then `chosen` fields and `options` of the model."""
    paper = paper_run(data, chosen.get("collection", "ap"))
    base = {"data": data, **default_options(task)} if paper is None else paper.to_dict()
    model = chosen.get("model", "pathnn")
    if model != "pathnn":
        # The options and the preset are those of a PathNN; other models share only some with it.
        shared = ("hidden_channels", "dropout", "readout") if model == "pathnn+" else ("hidden_channels", "dropout")
        base["preset"] = None
        base["options"] = {k: v for k, v in base["options"].items() if k in shared}
    if chosen.get("schedule", "cosine") != "cosine" or chosen.get("patience") is not None:
        base["keep"] = "best"  # the last epoch is good at the end of a cosine
    return RunConfig.from_dict({**base, **chosen, "data": data, "options": {**base["options"], **options}})
