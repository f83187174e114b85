"""The models of the paper's experiments (section 5 and appendix D), and those of PathNN+."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathnn.checks import check_choice
from pathnn.nn.deep_path_nn import DeepPathNNConfig
from pathnn.nn.path_nn import PathNNConfig
from pathnn.paths.options import Collection, check_collection

OGB_ATOMS = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Sizes of OGB's nine categorical atom features."""

OGB_BONDS = (5, 6, 2)
"""Sizes of OGB's three categorical bond features."""

ZINC_ATOMS, ZINC_BONDS = (28,), (4,)

TU_SETS: dict[str, tuple[int, int]] = {
    "dd": (82, 2),
    "proteins": (3, 2),
    "nci1": (37, 2),
    "enzymes": (21, 6),
    "imdb-binary": (65, 2),
    "imdb-multi": (59, 3),
}
"""The width of the input (a column per label or degree; ENZYMES has 18 attributes more) and the number of classes."""


def paper_config(name: str, *, collection: Collection, variant: str = "paper", **changes: Any) -> PathNNConfig:
    """Return the options of the paper's model for `name`.

    Names: "zinc", "molhiv", "peptides-func", "peptides-struct"; "csl", "exp", "cexp" (classification), "exp-iso", "sr"
    (untrained, without a head, for float64); "dd", "proteins", "nci1", "enzymes", "imdb-binary", "imdb-multi", for
    which the paper chooses hidden_channels from 32 and 64 and dropout from 0 and 0.5, and reports k = 1, 2, 3.

    Other options of `PathNNConfig`, such as `k`, replace those of the paper if they are not None.
    `variant="released"` follows the authors' code where it differs from the text: on CSL, EXP and SR, a ReLU after each
    layer and a head of two layers.

    >>> paper_config("zinc", collection="sp").hidden_channels
    152
    """
    check_collection(collection)
    check_choice("variant", variant, ("paper", "released"))
    if name not in PRESETS:
        raise ValueError(f"{name!r} is not an experiment of the paper: expected one of {', '.join(PRESETS)}.")
    options = PRESETS[name] | (_AP.get(name, {}) if collection == "ap" else {})
    options |= _RELEASED.get(name, {}) if variant == "released" else {}
    config = PathNNConfig(collection=collection, **options)
    return replace(config, **{option: value for option, value in changes.items() if value is not None})


_OGB: dict[str, Any] = {"in_channels": OGB_ATOMS, "edge_channels": OGB_BONDS}
_ZINC: dict[str, Any] = {"in_channels": ZINC_ATOMS, "edge_channels": ZINC_BONDS, "out_channels": 1}

_EXP: dict[str, Any] = {"in_channels": 1, "encoder_norm": False, "norm": None, "hidden_channels": 64, "out_channels": 2,
                        "k": 10, "phi": "identity", "head": "linear"}  # fmt: skip
_UNTRAINED: dict[str, Any] = {**_EXP, "hidden_channels": 16, "out_channels": None, "head": None, "normalize": True}
"""Vertices of the synthetic graphs have no features; untrained networks normalise h, and have no head."""

PRESETS: dict[str, dict[str, Any]] = {
    "zinc": {**_ZINC, "hidden_channels": 152, "k": 4, "phi": "mlp"},
    "molhiv": {**_OGB, "hidden_channels": 128, "out_channels": 1, "k": 2, "phi": "mlp", "readout": "mean",
               "dropout": 0.5},
    "peptides-func": {**_OGB, "hidden_channels": 128, "out_channels": 10, "k": 8, "phi": "mlp", "readout": "mean"},
    "peptides-struct": {**_OGB, "hidden_channels": 144, "out_channels": 11, "k": 4, "phi": "mlp", "norm": None,
                        "aggregation": "mean"},
    "csl": {**_EXP, "k": 11, "out_channels": 10},
    "exp": _EXP,
    "cexp": _EXP,
    "exp-iso": _UNTRAINED,
    "sr": {**_UNTRAINED, "k": 4},
    **{name: {"in_channels": width, "hidden_channels": 64, "out_channels": classes, "k": 2}
       for name, (width, classes) in TU_SETS.items()},
}  # fmt: skip
"""The options of each experiment with SP and SP⁺."""

_AP: dict[str, dict[str, Any]] = {
    "zinc": {"hidden_channels": 140},
    "peptides-func": {"hidden_channels": 122, "k": 7},
    "peptides-struct": {"hidden_channels": 136},
    **{name: {"k": 5, "normalize": True} for name in ("csl", "exp", "cexp", "exp-iso")},
}
"""The options that differ with AP."""

_RELEASED: dict[str, dict[str, Any]] = {
    **{name: {"phi": "relu", "head": "mlp"} for name in ("csl", "exp", "cexp")},
    **{name: {"phi": "relu"} for name in ("exp-iso", "sr")},
}
"""The options that differ in the authors' code."""

PLUS: dict[str, dict[str, Any]] = {
    "zinc": {**_ZINC, "hidden_channels": 72},
    "peptides-func": {**_OGB, "out_channels": 10, "hidden_channels": 80, "num_layers": 3, "walk_length": 32,
                      "activation": "gelu", "dropout": 0.2, "readout": "mean"},
    "molhiv": {**_OGB, "out_channels": 1, "hidden_channels": 70, "walk_length": 16, "dropout": 0.1, "readout": "mean"},
}  # fmt: skip
"""The options of PathNN+ for each dataset, with at most 500,000 parameters; paths are those of AP with K = 6."""


def plus_config(name: str, **changes: Any) -> DeepPathNNConfig:
    """Return the options of PathNN+ for "zinc", "peptides-func" or "molhiv", with other options changed.

    >>> plus_config("zinc", k=4).num_layers
    4
    """
    check_choice("name", name, tuple(PLUS))
    return DeepPathNNConfig(**{"collection": "ap", "k": 6, **PLUS[name], **changes})
