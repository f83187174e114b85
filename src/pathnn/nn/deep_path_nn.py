"""PathNN+: blocks that read paths of all lengths, with message passing and random walks next to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from pathnn._lazy import not_compiled
from pathnn.checks import check_choice, check_count
from pathnn.nn.backends.base import EdgeTypes
from pathnn.nn.baselines import make_conv
from pathnn.nn.blocks import ACTIVATIONS, ActivationName, AllLengths, PathBlock, VirtualNode, make_feed_forward
from pathnn.nn.encoders import EncoderName
from pathnn.nn.path_lstm import PathLSTM
from pathnn.nn.path_nn import PathModel, PathModelConfig
from pathnn.nn.readout import HeadName, ReadoutName
from pathnn.paths.options import Collection
from pathnn.paths.prefixes import JOINED, is_joined, join_lengths
from pathnn.paths.random_walks import random_walk_pe as encode_walks
from pathnn.paths.trie import PathTrie


@dataclass(frozen=True, kw_only=True)
class DeepPathNNConfig(PathModelConfig):
    """The options of a `DeepPathNN`, which explains them."""

    num_layers: int = 4
    read_paths: bool = True
    message_passing: bool = True
    feed_forward: bool = True
    virtual_node: bool = False
    walk_length: int = 20
    activation: ActivationName = "relu"
    prefixes: bool = False

    def __post_init__(self) -> None:
        if self.prefixes:
            check_choice("collection", self.collection, JOINED)
            if self.distances or self.extend:
                raise ValueError("prefixes=True: expected distances=None, and no extend: distances are to the far end.")
            object.__setattr__(self, "distances", False)
        super().__post_init__()
        check_choice("activation", self.activation, tuple(ACTIVATIONS))
        for name in ("num_layers", "walk_length") if self.walk_length else ("num_layers",):
            object.__setattr__(self, name, check_count(name, self.__dict__[name]))
        if not (self.read_paths or self.message_passing):
            raise ValueError("read_paths=False, message_passing=False: expected a model that reads one of both.")


class DeepPathNN(PathModel):
    r"""PathNN+: a network of `PathBlock`s, called like `PathNN`.

    Each block reads the paths of all lengths 1 to `k` with its own LSTM, and passes messages between neighbours. Before
    the first block, the encoding of random walks is added to the vertices. Every part can be left out or replaced.

    Args:
        num_layers: the number of blocks.
        read_paths: whether blocks read paths; without them, `collection` and `k` are not used.
        message_passing: whether blocks have PyG's `GINEConv` (`GINConv` without edge features).
        feed_forward: whether blocks have a feed-forward layer of twice the width.
        virtual_node: whether vertices exchange a vector per graph before each block.
        walk_length: the steps of the random walks, which PyG's `AddRandomWalkPE` describes; 0 for no encoding.
        activation: "relu" or "gelu", in blocks.
        prefixes: whether paths of all lengths share states, in a third of the time: tokens then have the distance to
            the far end of the path instead of the source. For "ap" and "sp+".
        dropout: the rate in blocks and in the head.

    The other options are those of `PathNN`. `random_walk_pe` in a call has the encoding of the vertices,
    `[num_nodes, walk_length]`; without it, each call computes it from `edge_index`.

    >>> import torch
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> model = DeepPathNN(4, 16, 2, collection="ap", k=2, walk_length=4)
    >>> model(torch.ones(3, 4), edge_index).shape
    torch.Size([1, 2])
    """

    config_class = DeepPathNNConfig
    config: DeepPathNNConfig

    def __init__(
        self,
        in_channels: int | tuple[int, ...],
        hidden_channels: int,
        out_channels: int | None,
        *,
        collection: Collection,
        k: int,
        num_layers: int = 4,
        read_paths: bool = True,
        message_passing: bool = True,
        feed_forward: bool = True,
        virtual_node: bool = False,
        walk_length: int = 20,
        activation: ActivationName = "relu",
        prefixes: bool = False,
        encoder: EncoderName = "mlp",
        encoder_norm: bool = True,
        edge_channels: int | tuple[int, ...] | None = None,
        distances: bool | None = None,
        extend: bool = False,
        directed: bool = False,
        norm: Literal["batch"] | None = "batch",
        readout: ReadoutName | None = "sum",
        head: HeadName | None = "mlp",
        dropout: float = 0.0,
        graph_channels: int = 0,
        backend: str = "auto",
        max_entries: int | None = None,
        max_paths_per_source: int | None = None,
        seed: int | None = None,
    ) -> None:
        config = DeepPathNNConfig.of(locals())
        if prefixes and max_paths_per_source is not None:
            raise ValueError("prefixes=True: expected max_paths_per_source=None, a sample lacks prefixes of its paths.")
        super().__init__(config, max_paths_per_source=max_paths_per_source, seed=seed)
        self.reads_paths = config.read_paths
        width, steps = config.hidden_channels, config.walk_length
        self.walk_encoder: nn.Module | None = None
        if steps:
            scale = nn.Identity() if norm is None else nn.BatchNorm1d(steps)
            self.walk_encoder = nn.Sequential(scale, nn.Linear(steps, width))
        self.virtual_node = VirtualNode(width) if config.virtual_node else None
        reader: dict[str, Any] = {**self._reader_options, "backend": backend, "max_entries": max_entries}
        if config.prefixes:
            reader["distances"] = config.k + 1
        common: dict[str, Any] = {"activation": activation, "dropout": config.dropout}
        self.blocks = nn.ModuleList(
            PathBlock(
                width,
                paths=AllLengths(PathLSTM(width, **reader), config.k, prefixes=config.prefixes)
                if config.read_paths
                else None,
                message_passing=make_conv("gin", width, self.edge_width) if config.message_passing else None,
                feed_forward=make_feed_forward(width, **common) if config.feed_forward else None,
                norm=norm,
                **common,
            )
            for _ in range(config.num_layers)
        )
        self._add_head()

    def _vertices(
        self, x: Tensor, edge_index: Any, trie: Any, batch: Any, edge_attr: Any, batch_size: Any, budget: Any,
        random_walk_pe: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        config = self.config
        needs_edges = config.message_passing or (config.walk_length and random_walk_pe is None)
        if needs_edges and edge_index is None:
            raise ValueError("edge_index is missing: this model reads the edges, also if the trie is given.")
        paths = self._paths(x, edge_index, trie, batch, edge_attr) if config.read_paths else None
        edges = self._edges(edge_attr, edge_index.size(1) if paths is None else paths.num_edges)
        features: dict[str, Any] = {"edges": edges, "budget": budget}
        if config.message_passing:
            features["edge_attr"] = edges.expand() if isinstance(edges, EdgeTypes) else edges
        h: Tensor = self.encoder(x)
        if self.walk_encoder is not None:
            h = h + self.walk_encoder(self._walks(random_walk_pe, edge_index, x.size(0)).to(h.dtype))
        vector: Tensor | None = None
        for block in self.blocks:
            if self.virtual_node is not None:
                h, vector = self.virtual_node(h, vector, batch, batch_size)
            h = block(h, paths, edge_index, **features)
        return h

    def _paths(self, x: Tensor, edge_index: Any, trie: PathTrie | None, batch: Any, edge_attr: Any) -> PathTrie:
        """Return the trie that the blocks read."""
        padded = trie is not None and trie.plans is not None
        if self.config.prefixes and trie is not None and (padded or is_joined(trie)):
            return trie
        edge_index = None if padded else edge_index  # the paths of padding go through no edges
        found = self._trie(x, edge_index, trie, batch, edge_attr)
        return join_lengths(found) if self.config.prefixes else found

    def _inputs_of(self, data: Any) -> dict[str, Any]:
        return {**super()._inputs_of(data), "random_walk_pe": getattr(data, "random_walk_pe", None)}

    @not_compiled
    def _walks(self, given: Tensor | None, edge_index: Tensor | None, num_nodes: int) -> Tensor:
        """Return the encoding of random walks, computed from `edge_index` if it is not given."""
        steps = self.config.walk_length
        if given is None and edge_index is not None:
            given = encode_walks(edge_index, num_nodes, steps)
        if given is None or given.dim() != 2 or given.size(0) != num_nodes or given.size(1) < steps:
            came = None if given is None else tuple(given.shape)
            raise ValueError(f"random_walk_pe: expected shape [{num_nodes}, {steps}] (walk_length), got {came}.")
        return given[:, :steps]
