"""The path neural network, its layers, and its options as plain values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pathnn._lazy import not_compiled
from pathnn.checks import check_choice, check_flag
from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget, EdgeTypes, PathReader
from pathnn.nn.cells import CellName, PathCell
from pathnn.nn.encoders import EncoderName, check_features, mlp_layers
from pathnn.nn.graph_model import GraphModel, ModelConfig
from pathnn.nn.path_lstm import Aggregation, Edges, PathLSTM, PathRNN, check_rows
from pathnn.nn.readout import HeadName, ReadoutName
from pathnn.paths.count import PathExplosionError
from pathnn.paths.options import Collection, PathOptions
from pathnn.paths.trie import LengthTrie, PathTrie
from pathnn.paths.trie_checks import check_edges, check_sizes

NormName = Literal["batch"]
PhiName = Literal["identity", "relu", "mlp"]

MERGED = 1 << 22
"""Numbers of a trie's states from which a training step merges equal surroundings (`nn.merge`)."""


@dataclass(frozen=True, kw_only=True)
class PathModelConfig(ModelConfig):
    """The options of any model of paths; `PathNN` explains them."""

    collection: Collection
    k: int
    distances: bool | None = None
    extend: bool = False
    directed: bool = False

    def __post_init__(self) -> None:
        paths = self.paths
        for name in ("k", "distances", "extend", "directed"):
            object.__setattr__(self, name, paths.__dict__[name])
        super().__post_init__()

    @property
    def paths(self) -> PathOptions:
        """Return the options of the paths that the model reads."""
        return PathOptions(self.collection, self.k, self.distances, self.extend, directed=self.directed)


@dataclass(frozen=True, kw_only=True)
class PathNNConfig(PathModelConfig):
    """The options of a `PathNN`, which explains them.

    >>> config = PathNNConfig(in_channels=(28,), hidden_channels=8, out_channels=1, collection="ap", k=4)
    >>> config.distances
    True
    >>> PathNNConfig.from_dict(config.to_dict()) == config
    True
    """

    normalize: bool = False
    phi: PhiName = "relu"
    aggregation: str = "sum"
    cell: str = "lstm"


class PathModel(GraphModel):
    """What models of paths share: checks of the trie and of edges, and trained models. A subclass has the layers."""

    config: PathModelConfig
    reads_paths = True

    def __init__(
        self, config: PathModelConfig, *, max_paths_per_source: int | None = None, seed: int | None = None
    ) -> None:
        super().__init__(config)
        self.path_options = config.paths
        if max_paths_per_source is not None:
            self.path_options = replace(config.paths, max_paths_per_source=max_paths_per_source, seed=seed)
        self._warned = False  # of a trie with distances that are not read

    @property
    def _reader_options(self) -> dict[str, Any]:
        """Return the options of a `PathLSTM` that the config determines."""
        config = self.config
        rows = config.k + 1 + config.extend if config.distances else None
        return {"distances": rows, "edge_channels": self.edge_width, "extended": config.extend}

    @not_compiled
    def _trie(self, x: Tensor, edge_index: Any, trie: Any, batch: Any, edge_attr: Any) -> PathTrie:
        """Return `trie` if this model can read it, or the paths of `edge_index`."""
        if trie is not None:
            trie = self._check_trie(trie, x.size(0))
            if isinstance(edge_index, Tensor) and edge_index.dim() == 2:
                check_sizes(trie, edges=edge_index.size(1))
                check_edges(trie, edge_index, rows=self.config.edge_channels is not None)
            return trie
        if edge_index is None:
            raise ValueError(f"{type(self).__name__} needs paths: give trie=, or edge_index to extract them from.")
        from pathnn.paths.extract import extract_with

        try:
            options = self.path_options
            if options.seed is None and not self.training:
                options = replace(options, seed=0)
            return extract_with(edge_index, x.size(0), options, batch, edge_attr=edge_attr)
        except PathExplosionError as error:
            raise PathExplosionError(
                f"{error} {type(self).__name__} takes max_paths_per_source; max_paths belongs to extract_paths and "
                "AddPaths: pass their trie to the model (trie=)."
            ) from None

    def _check_trie(self, trie: Any, num_nodes: int) -> PathTrie:
        config = self.config
        if not isinstance(trie, PathTrie):
            raise ValueError(
                f"trie is a {type(trie).__name__}: expected a PathTrie of the whole batch, "
                "from extract_paths(...) or PathTrie.from_data(batch)."
            )
        for name, came, expected in (
            ("collection", trie.collection, config.collection),
            ("k", min(trie.k, config.k) if not trie.extended else trie.k, config.k),  # longer paths are not read
            ("extended", trie.extended, config.extend),
            ("num_nodes", trie.num_nodes, num_nodes),
        ):
            if came != expected:
                raise ValueError(
                    f"the trie has {name}={came!r}, but the model expected {expected!r}. "
                    f"Extract paths with collection={config.collection!r}, k={config.k}, "
                    f"extend={config.extend} for the whole batch, or make the model with the trie's options."
                )
        if config.distances and trie.distance is None:
            raise ValueError(
                "this model reads distances, but the trie has none. Extract paths with distances=True, "
                "or make the model with distances=False."
            )
        if trie.distance is not None and not config.distances and not self._warned:
            self._warned = True
            warnings.warn(
                "the trie has distances, which this model does not read: it has more entries than it needs. Extract "
                "paths with distances=False, or make the model with distances=True.",
                stacklevel=4,
            )
        reads = any(isinstance(module, PathRNN) for module in self.modules())
        if trie.vertex.device.type == "cpu" and reads:  # kernels do not check indices
            read = sum(sum(levels) for levels in trie.sizes[: config.k])
            distance = None if trie.distance is None else trie.distance[:read]
            sizes = trie.num_nodes, trie.num_edges, self._reader_options["distances"]
            check_rows((trie.vertex, trie.edge, distance), sizes, extended=config.extend)
        return trie

    def _edges(self, edge_attr: Tensor | None, num_edges: int) -> Tensor | EdgeTypes | None:
        """Return encoded edge features; raise `ValueError` if they do not match `edge_channels`."""
        expected = self.config.edge_channels
        if expected is None:
            if edge_attr is not None:
                raise ValueError(
                    "edge_attr was given, but this model reads no edges. Leave it out, or make the model "
                    "with edge_channels."
                )
            return None
        if edge_attr is None:
            raise ValueError(f"edge_attr is missing: this model reads edge features (edge_channels={expected}).")
        if not isinstance(edge_attr, Tensor) or edge_attr.dim() not in (1, 2):
            tensor = isinstance(edge_attr, Tensor)
            came = f"shape {tuple(edge_attr.shape)}" if tensor else f"a {type(edge_attr).__name__}"
            raise ValueError(f"edge_attr: expected a tensor with a row for each edge, got {came}.")
        if edge_attr.size(0) != num_edges:
            raise ValueError(
                f"edge_attr has {edge_attr.size(0)} rows, but the paths were extracted from {num_edges} edges."
            )
        if self.edge_encoder is not None:
            encode = getattr(self.edge_encoder, "edge_types", self.edge_encoder)
            encoded: Tensor | EdgeTypes = encode(edge_attr)
            if isinstance(encoded, Tensor) and encoded.size(0) != num_edges:
                raise ValueError(f"edge_encoder returned {encoded.size(0)} rows for {num_edges} edges.")
            return encoded
        features = edge_attr.unsqueeze(1) if edge_attr.dim() == 1 else edge_attr
        if not features.is_floating_point() or features.size(1) != expected:
            raise ValueError(
                f"edge_attr: expected {expected} floating point numbers per edge (edge_channels={expected}), got "
                f"{features.dtype} of shape {tuple(edge_attr.shape)}. Convert numbers with .float(); for categories, "
                "make the model with their sizes as a tuple: edge_channels=(4,) for codes from 0 to 3."
            )
        return features

    @classmethod
    def from_pretrained(cls, source: str | PathLike[str]) -> Self:
        """Return a trained model in evaluation mode; checksums are verified, and no code is executed.

        `source` is a name such as "zinc-ap", a folder that `save_pretrained` or `pathnn train` wrote, or a repository
        "owner/name" of the Hugging Face Hub, which is downloaded (extra `hub`).
        """
        from pathnn.nn.model_file import load_pretrained

        return cls._of(load_pretrained(source))

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write `model.safetensors` and `config.json` into a folder, for `from_pretrained` and for the Hub.

        Raises `ValueError` for models with custom modules, which a config cannot describe.
        """
        from pathnn.nn.model_file import save_pretrained

        save_pretrained(self, Path(folder))

    @classmethod
    def _of(cls, model: GraphModel) -> Self:
        """Return a model as an instance of this class: a subclass must take the same arguments."""
        if isinstance(model, cls):
            return model
        if not isinstance(model.config, cls.config_class):
            raise ValueError(f"the trained model is a {type(model).__name__}, not a {cls.__name__}: use load_model.")
        own = cls.from_config(model.config).to(next(model.parameters()))
        own.load_state_dict(model.state_dict())
        return own.train(model.training)


class PathNN(PathModel):
    r"""A path neural network (Michel et al., "Path Neural Networks: Expressive and Accurate Graph Neural Networks",
    ICML 2023).

    Layer i reads the paths of length exactly i, with one LSTM (or another cell) for all layers. The readout and the
    head turn the representations of the vertices after layer K into a prediction per graph, or per vertex with
    `readout=None`. Every part is an attribute (`encoder`, `edge_encoder`, `lstm`, `convs`, `readout`, `head`) and may
    be replaced by another module; docs/model.md describes how each is called.

    Args:
        in_channels: the width of the features; the number of labels with `encoder="one-hot"`; the sizes of the
            categories, as a tuple, with `encoder="categorical"`.
        hidden_channels: the width of all representations.
        out_channels: the number of outputs; None without a head.
        collection: "sp", "sp+" or "ap".
        k: the largest path length in edges, which is the number of layers.
        encoder: "mlp", "one-hot" or "categorical"; a tuple as `in_channels` implies "categorical".
        encoder_norm: whether the encoder has BatchNorm.
        edge_channels: the width of continuous edge features, the sizes of categorical ones as a tuple, or None to
            ignore edge features.
        distances: whether tokens have the distance to the source; None for the default of the collection.
        extend: whether paths are extended by dummy tokens.
        directed: whether the paths of `edge_index` follow the direction of edges; a given `trie` is read as it is.
        norm, normalize, phi: see `PathConv`.
        aggregation: "sum", "mean", "max" or "attention" over the paths of a vertex, or an aggregation of PyG.
        cell: "lstm", "gru", "mingru", a subclass of `PathCell`, or a cell. In `config`, a cell or aggregation without a
            name is "custom".
        readout: "sum" or "mean" over the vertices of a graph; None for one output per vertex.
        head: "mlp", "linear" or None.
        dropout: the rate on the input of the LSTM, before the MLP of phi, and in the head.
        graph_channels: the number of features of each graph, such as descriptors of a molecule, which the head reads
            next to the readout; `graph_scale` standardises them (`GraphScale.fit`).
        backend, max_entries: see `PathLSTM`; they do not change the function, so they are not in `config`.
        max_paths_per_source, seed: read a sample of the paths of `edge_index`, as `extract_paths` does. Without a seed,
            each call in training mode draws again, and evaluation mode uses seed 0. A given `trie` is read as it is.
            Not in `config` either: they are no part of the trained function.

    >>> import torch
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> model = PathNN(4, 16, 2, collection="sp", k=2)
    >>> model(torch.ones(3, 4), edge_index).shape
    torch.Size([1, 2])
    """

    config_class = PathNNConfig
    config: PathNNConfig

    def __init__(
        self,
        in_channels: int | tuple[int, ...],
        hidden_channels: int,
        out_channels: int | None,
        *,
        collection: Collection,
        k: int,
        encoder: EncoderName = "mlp",
        encoder_norm: bool = True,
        edge_channels: int | tuple[int, ...] | None = None,
        distances: bool | None = None,
        extend: bool = False,
        directed: bool = False,
        norm: NormName | None = "batch",
        normalize: bool = False,
        phi: PhiName = "relu",
        aggregation: Aggregation | nn.Module = "sum",
        cell: CellName | type[PathCell] | PathCell = "lstm",
        readout: ReadoutName | None = "sum",
        head: HeadName | None = "mlp",
        dropout: float = 0.0,
        graph_channels: int = 0,
        backend: str = "auto",
        max_entries: int | None = None,
        max_paths_per_source: int | None = None,
        seed: int | None = None,
    ) -> None:
        given = {**locals(), "cell": cell if isinstance(cell, str) else "custom"}
        given["aggregation"] = aggregation if isinstance(aggregation, str) else "custom"
        config = PathNNConfig.of(given)
        super().__init__(config, max_paths_per_source=max_paths_per_source, seed=seed)
        width, k, dropout = config.hidden_channels, config.k, config.dropout
        reader: dict[str, Any] = {
            **self._reader_options, "aggregation": aggregation, "backend": backend, "dropout": dropout,
            "max_entries": max_entries,
        }  # fmt: skip
        self.lstm: PathLSTM = (  # for users; with another cell, a PathRNN
            PathLSTM(width, **reader) if cell == "lstm" else PathRNN(width, cell=cell, **reader)  # type: ignore[assignment]
        )
        self.convs = nn.ModuleList(
            PathConv(width, norm=norm, normalize=config.normalize, phi=phi, dropout=dropout) for _ in range(k)
        )
        self._add_head()

    def _replay(self, x: Tensor, graph_attr: Tensor | None, inputs: dict[str, Any]) -> Tensor | None:
        if not base.on_triton(next(self.parameters())):
            return None
        from pathnn.nn.cuda_graphs.calls import replay

        check_features(x)
        inputs["trie"] = self._trie(x, *(inputs[name] for name in ("edge_index", "trie", "batch", "edge_attr")))
        return replay(self, {**inputs, "x": x, "graph_attr": graph_attr, "y": None})

    def _vertices(
        self, x: Tensor, edge_index: Any, trie: Any, batch: Any, edge_attr: Any, batch_size: Any, budget: Any
    ) -> Tensor:
        trie = self._trie(x, edge_index, trie, batch, edge_attr)
        edges = self._prepare(edge_attr, trie, budget)
        merge = budget is not None and budget.merge
        if self.training and x.device.type == "cpu" and not torch.compiler.is_compiling():
            merge = trie.num_entries * self.config.hidden_channels >= MERGED
        if merge:
            from pathnn.nn.merge import can_merge, merged_vertices  # compiles loops

            if can_merge(self, x, edge_attr, trie, edges):
                return merged_vertices(self, x, edge_attr, trie, edges)
        h: Tensor = self.encoder(x)
        for length, conv in enumerate(self.convs, start=1):
            h = conv(h, self.lstm, trie.length(length), edges)
        return h

    def path_representations(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        *,
        trie: PathTrie | None = None,
        edge_attr: Tensor | None = None,
    ) -> list[Tensor]:
        """Return the representation of every path, one tensor `[num_paths, hidden_channels]` per length.

        Rows are in the order of `trie.to_paths()`. Differentiable like `forward`.
        """
        check_features(x)
        trie = self._trie(x, edge_index, trie, None, edge_attr)
        edges = self._prepare(edge_attr, trie, None)
        h = self.encoder(x)
        representations = []
        for length, conv in enumerate(self.convs, start=1):
            if not isinstance(conv, PathConv):
                raise ValueError(
                    f"layer {length} is a {type(conv).__name__}: expected a PathConv. The input that another layer "
                    "gives to the LSTM is not known here."
                )
            representations.append(self.lstm.path_representations(conv.scale(h), trie.length(length), edges))
            h = conv(h, self.lstm, trie.length(length), edges)
        return representations

    def _prepare(self, edge_attr: Tensor | None, trie: PathTrie, budget: Budget | None) -> Edges:
        """Return the edges as the LSTM reads them; a custom module gets the features of every edge."""
        edges, lstm = self._edges(edge_attr, trie.num_edges), cast("nn.Module", self.lstm)
        if isinstance(lstm, PathReader):
            return lstm.prepare(edges, budget)
        return edges.expand() if isinstance(edges, EdgeTypes) else edges

    @classmethod
    def from_paper(cls, name: str, *, collection: Collection, variant: str = "paper", **changes: Any) -> Self:
        """Return the untrained model of an experiment of the paper; see `pathnn.nn.presets.paper_config`.

        >>> model = PathNN.from_paper("zinc", collection="ap")
        >>> sum(p.numel() for p in model.parameters())
        501061
        """
        from pathnn.nn.presets import paper_config

        return cls.from_config(paper_config(name, collection=collection, variant=variant, **changes))

    @classmethod
    def load_released(
        cls, source: Mapping[str, Tensor] | str | PathLike[str], *, collection: Collection, **options: Any
    ) -> Self:
        """Return a trained model of the authors from a `state_dict` or its file; see `pathnn.nn.released`."""
        from pathnn.nn.released import load_released

        return cls._of(load_released(source, collection=collection, **options))


class PathLayer(nn.Module):
    """The layers of a `PathNN` as one layer of PyG: with its own LSTM, without encoder, readout and head.

    It reads the paths of lengths 1 to `k`, one `PathConv` for each length, and can be a layer of
    `torch_geometric.nn.Sequential` or the local part of `GPSConv`. `options` are those of a `PathNN`, such as
    `edge_channels`, `norm`, `phi`, `dropout`, `cell` and `aggregation`.

    Shapes: `x` is `[num_nodes, channels]`; returns the same. Without `trie`, each call extracts the paths of
    `edge_index`.

    >>> import torch
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> PathLayer(8, "ap", 2)(torch.ones(3, 8), edge_index).shape
    torch.Size([3, 8])
    """

    def __init__(self, channels: int, collection: Collection, k: int, **options: Any) -> None:
        super().__init__()
        self.network = PathNN(channels, channels, None, collection=collection, k=k, readout=None, head=None, **options)
        self.network.encoder = nn.Identity()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        *,
        trie: PathTrie | None = None,
    ) -> Tensor:
        """Return the next representations of all vertices."""
        return self.network.embed(x, edge_index, edge_attr=edge_attr, trie=trie)

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        self.network.reset_parameters()


class PathConv(nn.Module):
    r"""One layer of a path neural network (Michel et al., ICML 2023, equations 2 and 3).

    $$h_v^{(k)} = \phi\big(\mathrm{NORM}(h_v^{(k-1)} + \sum_{\pi \in \mathcal{P}_v^k} \mathrm{LSTM}(\pi))\big)$$

    All layers share one LSTM, so it is an argument of the call and not a part of the layer. For vertices without a
    path the sum is zero.

    Args:
        channels: the width of the representations.
        norm: "batch" for BatchNorm, or None.
        normalize: whether to divide h by its Euclidean norm before the layer; the residual also reads the divided h.
        phi: "identity", "relu", or "mlp" (dropout, then twice Linear, BatchNorm, ReLU).
        dropout: the rate before the MLP.

    Shapes: `h` is `[num_nodes, channels]`; returns the same.

    >>> import torch
    >>> from pathnn.paths.trie import PathTrie
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> trie = PathTrie.from_paths([edge_index.t()], edge_index, 3, collection="sp")
    >>> PathConv(8)(torch.ones(3, 8), PathLSTM(8), trie.length(1)).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        channels: int,
        *,
        norm: NormName | None = "batch",
        normalize: bool = False,
        phi: PhiName = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_choice("norm", norm, (*get_args(NormName), None))
        self.norm = nn.Identity() if norm is None else nn.BatchNorm1d(channels)
        self.normalize = check_flag("normalize", normalize)
        check_choice("phi", phi, get_args(PhiName))
        self.phi: nn.Module = nn.Identity() if phi == "identity" else nn.ReLU()
        if phi == "mlp":
            self.phi = nn.Sequential(nn.Dropout(dropout), *mlp_layers([channels] * 3, norm=True))

    def forward(self, h: Tensor, lstm: nn.Module, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """Return the next representations from the paths of one length; `lstm` is called like a `PathLSTM`."""
        if isinstance(lstm, nn.LSTM) and not isinstance(lstm, PathLSTM):
            raise ValueError("lstm is an nn.LSTM, which does not read tries: expected a PathLSTM.")
        h = self.scale(h)
        return self.phi(self.norm(h + lstm(h, trie, edges)))

    def reset_parameters(self) -> None:
        """Draw all weights of the layer again."""
        from torch_geometric.nn.inits import reset  # takes a second

        for part in self.children():
            reset(part)

    def scale(self, h: Tensor) -> Tensor:
        """Return `h`, divided by its Euclidean norm if `normalize`."""
        return F.normalize(h, dim=-1) if self.normalize else h

    def extra_repr(self) -> str:
        """Return the text that `print(model)` shows."""
        return f"normalize={self.normalize}"
