"""What a PathNN is, as plain values: written into checkpoints, read back from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pathnn.checks import check_count, check_dropout, check_flag, check_widths
from pathnn.nn.encoders import EncoderName
from pathnn.nn.head import HeadName
from pathnn.nn.path_conv import NormName, PhiName
from pathnn.nn.path_lstm import Aggregation
from pathnn.nn.readout import ReadoutName
from pathnn.paths.options import Collection, check_collection, check_length


@dataclass(frozen=True, kw_only=True)
class PathNNConfig:
    """The options of a `PathNN`; they are explained there.

    >>> config = PathNNConfig(in_channels=(28,), hidden_channels=8, out_channels=1, collection="ap", k=4)
    >>> config.distances
    True
    >>> PathNNConfig.from_dict(config.to_dict()) == config
    True
    """

    in_channels: int | tuple[int, ...]
    hidden_channels: int
    out_channels: int | None
    collection: Collection
    k: int
    encoder: EncoderName = "mlp"
    encoder_norm: bool = True
    edge_channels: int | tuple[int, ...] | None = None
    distances: bool | None = None
    extend: bool = False
    norm: NormName | None = "batch"
    normalize: bool = False
    phi: PhiName = "relu"
    aggregation: Aggregation = "sum"
    readout: ReadoutName | None = "sum"
    head: HeadName | None = "mlp"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_collection(self.collection)
        object.__setattr__(self, "k", check_length(self.k))
        if self.distances is None:
            object.__setattr__(self, "distances", self.collection == "ap")
        for name in ("distances", "extend", "normalize", "encoder_norm"):
            object.__setattr__(self, name, check_flag(name, self.__dict__[name]))
        if self.out_channels is not None:
            object.__setattr__(self, "out_channels", check_count("out_channels", self.out_channels))
        for name in ("in_channels", "edge_channels"):
            value = check_widths(name, self.__dict__[name])
            object.__setattr__(self, name, value)
        if isinstance(self.in_channels, tuple) and self.encoder == "mlp":
            object.__setattr__(self, "encoder", "categorical")
        object.__setattr__(self, "hidden_channels", check_count("hidden_channels", self.hidden_channels))
        check_dropout(self.dropout)
        object.__setattr__(self, "dropout", float(self.dropout))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON or YAML (tuples become lists there)."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PathNNConfig:
        """The inverse of `to_dict`; lists are read as tuples, names that do not exist are refused."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"PathNNConfig: unknown options {unknown}. Was it written by another version of pathnn?")
        missing = sorted({"in_channels", "hidden_channels", "out_channels", "collection", "k"} - set(values))
        if missing:
            raise ValueError(f"PathNNConfig: options {missing} are missing.")
        return cls(**values)
