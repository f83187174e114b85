"""The options that `PathNN` and the baselines share, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal, Self

from pathnn.checks import check_count, check_dropout, check_flag, check_widths
from pathnn.nn.encoders import EncoderName
from pathnn.nn.readout import HeadName, ReadoutName


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Options of any model; `PathNN` explains them. Options of a subclass that are `bool` are checked as flags."""

    in_channels: int | tuple[int, ...]
    hidden_channels: int
    out_channels: int | None
    encoder: EncoderName = "mlp"
    encoder_norm: bool = True
    edge_channels: int | tuple[int, ...] | None = None
    norm: Literal["batch"] | None = "batch"
    readout: ReadoutName | None = "sum"
    head: HeadName | None = "mlp"
    dropout: float = 0.0
    graph_channels: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type == "bool":
                object.__setattr__(self, field.name, check_flag(field.name, self.__dict__[field.name]))
        if self.out_channels is not None:
            object.__setattr__(self, "out_channels", check_count("out_channels", self.out_channels))
        for name in ("in_channels", "edge_channels"):
            object.__setattr__(self, name, check_widths(name, self.__dict__[name]))
        if isinstance(self.in_channels, tuple) and self.encoder == "mlp":
            object.__setattr__(self, "encoder", "categorical")
        object.__setattr__(self, "hidden_channels", check_count("hidden_channels", self.hidden_channels))
        if self.graph_channels:
            object.__setattr__(self, "graph_channels", check_count("graph_channels", self.graph_channels))
            if self.readout is None or self.head is None:
                raise ValueError(
                    f"graph_channels={self.graph_channels}: the head reads features of graphs next to the readout; "
                    "expected a model with a readout and a head."
                )
        check_dropout(self.dropout)
        object.__setattr__(self, "dropout", float(self.dropout))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON or YAML (which store tuples as lists)."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the config of `to_dict`; raise `ValueError` for unknown names. Lists are read as tuples."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"{cls.__name__}: unknown options {unknown}. Was it written by another version of pathnn?")
        missing = sorted(field.name for field in fields(cls) if field.default is MISSING and field.name not in values)
        if missing:
            raise ValueError(f"{cls.__name__}: options {missing} are missing.")
        return cls(**values)
