"""The models of the paper's experiments (section 5 and appendix D), and those of PathNN+."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

from pathnn.checks import check_choice
from pathnn.nn.deep_path_nn import DeepPathNNConfig
from pathnn.nn.path_nn import PathNNConfig
from pathnn.paths.options import Collection, check_collection

Variant = Literal["paper", "released"]

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
    check_choice("variant", variant, get_args(Variant))
    if name not in PRESETS:
        raise ValueError(f"{name!r} is not an experiment of the paper: expected one of {', '.join(PRESETS)}.")
    config = PRESETS[name](collection, variant == "released")
    return replace(config, **{option: value for option, value in changes.items() if value is not None})


def _molecules(
    collection: Collection,
    released: bool,
    *,
    hidden: tuple[int, int],
    k: tuple[int, int],
    atoms: tuple[int, ...] = OGB_ATOMS,
    bonds: tuple[int, ...] = OGB_BONDS,
    **options: Any,
) -> PathNNConfig:
    """Return a config for molecules; `hidden` and `k` are those of AP and of the other collections."""
    other = collection != "ap"
    return PathNNConfig(
        in_channels=atoms, edge_channels=bonds, hidden_channels=hidden[other], collection=collection, k=k[other],
        phi="mlp", **options,
    )  # fmt: skip


def _synthetic(
    collection: Collection, released: bool, *, k: int, k_ap: int, hidden: int = 64, classes: int | None
) -> PathNNConfig:
    """Return a config without BatchNorm for vertices without features; AP and untrained networks normalise h."""
    isomorphism = classes is None
    return PathNNConfig(
        in_channels=1, encoder_norm=False, hidden_channels=hidden, out_channels=classes,
        collection=collection, k=k_ap if collection == "ap" else k, norm=None, normalize=isomorphism or
        collection == "ap", phi="relu" if released else "identity", head=None if isomorphism else "mlp" if
        released else "linear",
    )  # fmt: skip


def _tu(name: str, collection: Collection, released: bool) -> PathNNConfig:
    width, classes = TU_SETS[name]
    return PathNNConfig(in_channels=width, hidden_channels=64, out_channels=classes, collection=collection, k=2)


PRESETS: dict[str, Callable[[Collection, bool], PathNNConfig]] = {
    "zinc": partial(_molecules, atoms=ZINC_ATOMS, bonds=ZINC_BONDS, out_channels=1, hidden=(140, 152), k=(4, 4)),
    "molhiv": partial(_molecules, out_channels=1, hidden=(128, 128), k=(2, 2), readout="mean", dropout=0.5),
    "peptides-func": partial(_molecules, out_channels=10, hidden=(122, 128), k=(7, 8), readout="mean"),
    "peptides-struct": partial(_molecules, out_channels=11, hidden=(136, 144), k=(4, 4), norm=None, aggregation="mean"),
    "csl": partial(_synthetic, k=11, k_ap=5, classes=10),
    "exp": partial(_synthetic, k=10, k_ap=5, classes=2),
    "cexp": partial(_synthetic, k=10, k_ap=5, classes=2),
    "exp-iso": partial(_synthetic, k=10, k_ap=5, hidden=16, classes=None),
    "sr": partial(_synthetic, k=4, k_ap=4, hidden=16, classes=None),
    **{name: partial(_tu, name) for name in TU_SETS},
}
"""The function that returns the options of each experiment."""


_OGB: dict[str, Any] = {"in_channels": OGB_ATOMS, "edge_channels": OGB_BONDS}

PLUS: dict[str, dict[str, Any]] = {
    "zinc": {"in_channels": ZINC_ATOMS, "edge_channels": ZINC_BONDS, "out_channels": 1, "hidden_channels": 72},
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
