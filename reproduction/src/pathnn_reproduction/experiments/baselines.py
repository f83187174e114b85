"""Baselines in the same loop, with the optimizer, schedule, readout and dropout of the paper's run on the dataset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathnn.nn.presets import TU_SETS, paper_config
from pathnn.training.config import RunConfig
from pathnn.training.recipes import RUNS, csl, exp, tu

BASELINES = ("gin", "gcn", "mlp")


SHAPES = {
    "zinc": {"gin": (5, 174), "gcn": (16, 168)},
    "peptides-func": {"gin": (5, 170), "gcn": (5, 274)},
    "peptides-struct": {"gin": (5, 168), "gcn": (5, 270)},
    "molhiv": {"gin": (5, 144), "gcn": (5, 232)},
}
"""Layers as in the paper's tables (molhiv: five, as in OGB), and the largest even width with which the model has no
more parameters than the largest PathNN. The MLP has no layers over edges: its width is 256.
"""


def baseline_run(
    model: str, data: str, *, fold: int = 0, hidden_channels: int = 64, dropout: float = 0.0, seed: int = 0
) -> RunConfig:
    """Return the run of a baseline on a dataset of the paper; width and dropout are those of a TUDataset's grid.

    >>> baseline_run("gcn", "zinc").options["num_layers"], baseline_run("gin", "nci1").patience
    (16, 250)
    """
    options: dict[str, Any]
    if data in SHAPES:
        model_of_paper = paper_config(data, collection="sp")
        base, shape = RUNS[data]("sp"), SHAPES[data].get(model)
        options = {"num_layers": shape[0], "hidden_channels": shape[1]} if shape else {"hidden_channels": 256}
        options |= {"readout": model_of_paper.readout, "dropout": model_of_paper.dropout}
    elif data in TU_SETS:
        base = tu(data, "sp", k=2, fold=fold)
        options = {"num_layers": 4, "hidden_channels": hidden_channels, "dropout": dropout}
    else:
        base = csl("sp", fold=fold) if data == "csl" else exp("sp", fold=fold, name=data)
        plain = {"encoder_norm": False, "norm": None, "head": "linear"}
        options = {"num_layers": 4, "hidden_channels": 64, **plain}
    neutral = RunConfig(data=data)
    return replace(
        base, model=model, preset=None, options=options, collection=neutral.collection, k=neutral.k, seed=seed
    )
