"""Message-passing baselines: layers of PyG between the encoders, readout and head of `PathNN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from torch import Tensor, nn

from pathnn.checks import check_choice, check_count
from pathnn.nn.encoders import EncoderName
from pathnn.nn.graph_model import GraphModel, ModelConfig
from pathnn.nn.readout import HeadName, ReadoutName

BaselineName = Literal["gin", "gcn", "gatedgcn", "gat", "graphsage", "mlp"]

READS_EDGES = ("gin", "gatedgcn", "gat")
"""Baselines whose layers read edge features; the definitions of the others have none."""

ADDS_LOOPS = ("gcn", "gat")
"""Baselines whose layers read one self-loop per vertex."""


@dataclass(frozen=True, kw_only=True)
class BaselineConfig(ModelConfig):
    """The options of a `Baseline`, which explains them."""

    name: BaselineName
    num_layers: int = 4
    residual: bool = True

    def __post_init__(self) -> None:
        check_choice("name", self.name, get_args(BaselineName))
        object.__setattr__(self, "num_layers", check_count("num_layers", self.num_layers))
        super().__post_init__()


class Baseline(GraphModel):
    r"""A message-passing network, called like `PathNN`: `h = h + dropout(relu(norm(conv(h))))` in each layer.

    Names: "gin" (GINE if there are edge features), "gcn", "gatedgcn" (`ResGatedGraphConv`), "gat", "graphsage", and
    "mlp", which reads vertices and no edges. "gcn", "graphsage" and "mlp" do not read edge features. The other options
    are those of `PathNN`; `residual=False` leaves out the `h +`.

    >>> import torch
    >>> model = Baseline("gin", 4, 16, 2)
    >>> model(torch.ones(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    torch.Size([1, 2])
    """

    config_class = BaselineConfig
    config: BaselineConfig

    def __init__(
        self,
        name: BaselineName,
        in_channels: int | tuple[int, ...],
        hidden_channels: int,
        out_channels: int | None,
        *,
        num_layers: int = 4,
        encoder: EncoderName = "mlp",
        encoder_norm: bool = True,
        edge_channels: int | tuple[int, ...] | None = None,
        norm: Literal["batch"] | None = "batch",
        residual: bool = True,
        readout: ReadoutName | None = "sum",
        head: HeadName | None = "mlp",
        dropout: float = 0.0,
        graph_channels: int = 0,
    ) -> None:
        super().__init__(BaselineConfig.of(locals()), reads_edges=name in READS_EDGES)
        self.loops = SelfLoops() if name in ADDS_LOOPS else None
        width, layers = hidden_channels, 0 if name == "mlp" else num_layers
        self.convs = nn.ModuleList(make_conv(name, width, self.edge_width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) if norm == "batch" else nn.Identity() for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self._add_head()

    def _vertices(
        self, x: Tensor, edge_index: Any, trie: Any, batch: Any, edge_attr: Any, batch_size: Any, budget: Any
    ) -> Tensor:
        if edge_index is None and len(self.convs):
            raise ValueError(f"edge_index is missing: {self.config.name} passes messages along edges.")
        edges = self._edges(edge_attr)
        if self.loops is not None:
            edge_index, edges = self.loops(edge_index, edges, x.size(0))
        features = {} if edges is None else {"edge_attr": edges}
        h: Tensor = self.encoder(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            message = self.dropout(norm(conv(h, edge_index, **features)).relu())
            h = h + message if self.config.residual else message
        return h

    def _edges(self, edge_attr: Tensor | None) -> Tensor | None:
        if self.config.edge_channels is None or self.config.name not in READS_EDGES:
            return None
        if edge_attr is None:
            raise ValueError(f"edge_attr is missing: this {self.config.name} reads edge features.")
        if self.edge_encoder is None:
            return edge_attr.unsqueeze(1) if edge_attr.dim() == 1 else edge_attr
        return self.edge_encoder(edge_attr)


class SelfLoops(nn.Module):
    """Replace self-loops by one per vertex, with the mean features of the edges to it, as PyG's layers do by default.

    With `replace=False`, for graphs without loops, shapes do not depend on values, as a CUDA graph needs it.
    """

    def __init__(self, *, replace: bool = True) -> None:
        super().__init__()
        self.replace = replace

    def forward(self, edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        """Return the edges and their features, if there are any, with loops."""
        from torch_geometric.utils import add_self_loops, remove_self_loops

        if self.replace:
            edge_index, edge_attr = remove_self_loops(edge_index, edge_attr)
        return add_self_loops(edge_index, edge_attr, fill_value="mean", num_nodes=num_nodes)


def make_conv(name: BaselineName, width: int, edge_width: int | None) -> nn.Module:
    """Return a layer of PyG, which is imported here because that takes a second."""
    from torch_geometric import nn as pyg

    if name == "gin":
        mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        return pyg.GINConv(mlp) if edge_width is None else pyg.GINEConv(mlp, edge_dim=edge_width)
    if name == "gatedgcn":
        return pyg.ResGatedGraphConv(width, width, edge_dim=edge_width)
    if name == "gat":
        return pyg.GATConv(width, width, edge_dim=edge_width, add_self_loops=False)
    return pyg.GCNConv(width, width, add_self_loops=False) if name == "gcn" else pyg.SAGEConv(width, width)
