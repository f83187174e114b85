"""Read the trained models of the authors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any

import torch
from torch import Tensor

from pathnn.nn.path_lstm import Aggregation
from pathnn.nn.path_nn import PathNN, PathNNConfig
from pathnn.nn.readout import ReadoutName
from pathnn.paths.options import Collection

StateDict = Mapping[str, Tensor]

_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"lstm\.(.+)", r"lstm.\1"),  # again as convs.{i}.rnn.*
    (r"distance_encoder\.weight", r"lstm.distance_encoder.weight"),  # AP
    (r"(linear[12]\..+)", r"head.\1"),  # if trained
    (r"feature_encoder\.(\d+\..+)", r"encoder.\1"),  # TUDatasets, and synthetic graphs
    (r"feature_encoder\.weight", r"encoder.embeddings.0.weight"),  # ZINC
    (r"feature_encoder\.atom_embedding_list\.(\d+)\.weight", r"encoder.embeddings.\1.weight"),
    (r"bond_encoder\.weight", r"edge_encoder.embeddings.0.weight"),
    (r"bond_encoder\.bond_embedding_list\.(\d+)\.weight", r"edge_encoder.embeddings.\1.weight"),
    (r"convs\.(\d+)\.bn\.(.+)", r"convs.\1.norm.\2"),
    (r"convs\.(\d+)\.nn\.(\d+)\.(.+)", lambda m: f"convs.{m[1]}.phi.{int(m[2]) + 1}.{m[3]}"),  # phi begins with dropout
)
"""The names of the authors' tensors, and ours."""


def load_released(
    source: StateDict | str | PathLike[str],
    *,
    collection: Collection,
    aggregation: Aggregation = "sum",
    readout: ReadoutName = "sum",
    normalize: bool = False,
) -> PathNN:
    """Return the released model in `source`, in evaluation mode.

    `source` is a `state_dict`, or a file with `{"epoch", "state_dict"}`, which is read without executing code
    (`weights_only=True`). K, the widths and the encoder follow from names and shapes; `collection`, `aggregation`,
    `readout` and `normalize` (whether h is divided by its norm) do not. Dropout is not stored: it is 0 in the result.
    """
    theirs = _read(source)
    _check_lstm(theirs)
    options = _options(theirs, collection, aggregation)
    config = PathNNConfig(**options, collection=collection, readout=readout, normalize=normalize)
    model = PathNN.from_config(config).to(theirs["lstm.weight_hh_l0"].dtype)
    ours = {_our_name(name): value for name, value in theirs.items() if ".rnn." not in name}
    try:
        model.load_state_dict(ours)
    except RuntimeError as error:
        raise ValueError(f"the tensors are not those of a released model: {error}") from error
    return model.eval()


def _read(source: StateDict | str | PathLike[str]) -> StateDict:
    if isinstance(source, str | PathLike):
        name = fspath(source)
        try:
            source = torch.load(source, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise
        except Exception as error:  # torch.load raises many exceptions for a damaged or unsafe file
            raise ValueError(f"{name}: torch cannot load this file safely (weights_only=True): {error}") from error
    if isinstance(source, Mapping) and isinstance(source.get("state_dict"), Mapping):
        source = source["state_dict"]  # type: ignore[assignment]
    if not isinstance(source, Mapping) or not all(isinstance(value, Tensor) for value in source.values()):
        raise ValueError("expected a state_dict (names to tensors), or a file with {'epoch', 'state_dict'}.")
    return source


def _our_name(name: str) -> str:
    for pattern, ours in _RULES:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, ours, name)
    raise ValueError(f"{name!r} is in none of the authors' released models: expected names as in pathnn.nn.released.")


def _check_lstm(theirs: StateDict) -> None:
    """Raise `ValueError` if the shared LSTM is missing, or if a layer has another one."""
    for part in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        if f"lstm.{part}" not in theirs:
            raise ValueError(f"'lstm.{part}' is missing: expected the state_dict of a released PathNN.")
    for name, value in theirs.items():
        match = re.fullmatch(r"convs\.\d+\.rnn\.(.+)", name)
        if match and not (f"lstm.{match[1]}" in theirs and torch.equal(value, theirs[f"lstm.{match[1]}"])):
            raise ValueError(f"{name!r} differs from 'lstm.{match[1]}': released models share one LSTM.")


def _options(theirs: StateDict, collection: Collection, aggregation: Aggregation) -> dict[str, Any]:
    """Return the options of a `PathNN` that follow from names and shapes."""
    layers = {int(match[1]) for name in theirs if (match := re.match(r"convs\.(\d+)\.", name))}
    k = len(layers)
    if not layers or layers != set(range(k)):
        raise ValueError(f"layers 'convs.{{i}}': expected i = 0, 1, ..., got {sorted(layers)}.")
    table = "distance_encoder.weight" in theirs
    if table != (collection == "ap"):
        has = "has a" if table else "has no"
        raise ValueError(f"collection={collection!r}, but the model {has} 'distance_encoder': only those for 'ap' do.")
    atoms = _embedding_sizes(theirs, "feature_encoder", "atom_embedding_list")
    norm = any(re.fullmatch(r"convs\.\d+\.bn\.weight", name) for name in theirs)
    if atoms and norm != (aggregation == "sum"):
        raise ValueError(
            f"aggregation={aggregation!r}, but this model has {'a' if norm else 'no'} BatchNorm after the sum of "
            f"paths. Pass aggregation={'sum' if norm else 'mean'!r}."
        )
    if not atoms and "feature_encoder.0.weight" not in theirs:
        raise ValueError("'feature_encoder' is missing: expected a Linear or an embedding, as in the released models.")
    head = "linear2.weight" in theirs
    return {
        "in_channels": atoms or theirs["feature_encoder.0.weight"].size(1),
        "encoder_norm": bool(atoms) or "feature_encoder.3.weight" in theirs,
        "edge_channels": _embedding_sizes(theirs, "bond_encoder", "bond_embedding_list") or None,
        "hidden_channels": theirs["lstm.weight_hh_l0"].size(1),
        "out_channels": theirs["linear2.weight"].size(0) if head else None,
        "head": "mlp" if head else None,
        "k": k,
        "norm": "batch" if norm else None,
        "phi": "mlp" if atoms else "relu",
        "aggregation": aggregation,
    }


def _embedding_sizes(theirs: StateDict, encoder: str, listed: str) -> tuple[int, ...]:
    """Return the rows of the embedding, or of each embedding of the list; empty if there is none."""
    if f"{encoder}.weight" in theirs:
        return (theirs[f"{encoder}.weight"].size(0),)
    count = sum(name.startswith(f"{encoder}.{listed}.") for name in theirs)
    names = [f"{encoder}.{listed}.{j}.weight" for j in range(count)]
    return tuple(theirs[name].size(0) for name in names if name in theirs)
