"""What `PathNN` and the baselines share: their common options, encoders, readout and head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast, get_args

from torch import Tensor, nn

from pathnn.checks import check_choice, check_count, check_dropout, check_flag, check_widths
from pathnn.nn.encoders import CategoricalEncoder, EncoderName, check_features, make_encoder
from pathnn.nn.kernel_regression import KernelRegression
from pathnn.nn.readout import GraphScale, HeadName, MLPHead, Readout, ReadoutName, join_graph_attr, make_head
from pathnn.paths.storage import KEY, is_packed
from pathnn.paths.trie import PathTrie

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from pathnn.nn.backends.base import Budget


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
    kernel: tuple[int, ...] | None = None
    """The sizes of the `KernelRegression` of the head, which `GraphModel.fit_kernel` sets."""

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
        object.__setattr__(self, "kernel", None if self.kernel is None else tuple(map(int, self.kernel)))
        check_choice("norm", self.norm, ("batch", None))
        check_choice("readout", self.readout, (*get_args(ReadoutName), None))
        check_dropout(self.dropout)
        object.__setattr__(self, "dropout", float(self.dropout))

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the config of a model from the arguments of its `__init__`, which have the names of the options."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls) if field.name != "kernel"})

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


class GraphModel(nn.Module):
    """A network with encoders before its layers, and a readout and a head after them; a subclass has the layers."""

    config_class: ClassVar[type[ModelConfig]]
    config: ModelConfig
    cuda_graphs = True
    """Whether calls on a GPU may be replayed as CUDA graphs; see `pathnn.nn.cuda_graphs.calls`."""

    def __init__(self, config: ModelConfig, *, reads_edges: bool = True) -> None:
        super().__init__()
        self.config, width = config, config.hidden_channels
        self.encoder = make_encoder(config.encoder, config.in_channels, width, norm=config.encoder_norm)
        edges = config.edge_channels if reads_edges else None
        self.edge_encoder: nn.Module | None = CategoricalEncoder(edges, width) if isinstance(edges, tuple) else None
        self.edge_width = width if isinstance(edges, tuple) else edges

    def _add_head(self) -> None:
        """Make what follows the layers, whose weights are drawn first."""
        config = self.config
        self.readout: nn.Module | None = None if config.readout is None else Readout(config.readout)
        graphs = config.graph_channels
        self.graph_scale: nn.Module | None = GraphScale(graphs) if graphs else None
        self.head = make_head(
            config.head, config.hidden_channels, config.out_channels, graph_channels=graphs, dropout=config.dropout
        )

    def forward(
        self,
        x: Tensor | Data,
        edge_index: Tensor | None = None,
        *,
        trie: PathTrie | None = None,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
        graph_attr: Tensor | None = None,
        batch_size: int | None = None,
        budget: Budget | None = None,
        random_walk_pe: Tensor | None = None,
    ) -> Tensor:
        """Predict `[num_graphs, out_channels]`, or `[num_nodes, out_channels]` with `readout=None`.

        Give the `trie` of the whole batch, or `edge_index`, from which each call extracts the paths; baselines read
        `edge_index`. `batch_size`, the number of graphs, is computed from `batch` if it is None; `budget` limits the
        memory for paths (default: `max_entries` of the model). `graph_attr` has the features of the graphs,
        `[num_graphs, graph_channels]`, and `random_walk_pe` the random walks that a `DeepPathNN` reads. All of these
        can come from a PyG `Data` or `Batch`: `model(data)` reads the paths that `AddPaths` has added, or extracts
        them, and of the features those that the model reads.
        """
        if not isinstance(x, Tensor) and isinstance(getattr(x, "edge_index", None), Tensor):
            return self(**self._inputs_of(x), budget=budget)
        x = cast("Tensor", x)
        inputs: dict[str, Any] = {
            "edge_index": edge_index, "trie": trie, "batch": batch, "edge_attr": edge_attr, "batch_size": batch_size
        }  # fmt: skip
        if budget is None and self.cuda_graphs and isinstance(x, Tensor):
            out = self._replay(x, graph_attr, inputs)
            if out is not None:
                return out
        if random_walk_pe is not None:  # other models refuse it
            inputs["random_walk_pe"] = random_walk_pe
        h = self.embed(x, **inputs, budget=budget)
        return self.head(join_graph_attr(h, graph_attr, self.graph_scale))

    def _replay(self, x: Tensor, graph_attr: Tensor | None, inputs: dict[str, Any]) -> Tensor | None:
        """Return the output of a call that is replayed as a CUDA graph; `inputs`, which `embed` reads, get its trie."""
        return None

    def _inputs_of(self, data: Any) -> dict[str, Any]:
        """Return what the model reads of PyG data as arguments of `forward`."""
        with_trie = isinstance(getattr(data, "trie", None), PathTrie) or is_packed(getattr(data, KEY, None))
        batch = getattr(data, "batch", None)
        return {
            "x": data.x,
            "edge_index": data.edge_index,
            "trie": PathTrie.from_data(data) if with_trie else None,
            "batch": batch,
            "edge_attr": None if self.config.edge_channels is None else getattr(data, "edge_attr", None),
            "graph_attr": getattr(data, "graph_attr", None) if self.config.graph_channels else None,
            "batch_size": None if batch is None else getattr(data, "num_graphs", None),
        }

    def embed(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        *,
        trie: PathTrie | None = None,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch_size: int | None = None,
        budget: Budget | None = None,
        **more: Any,
    ) -> Tensor:
        """Return the input of the head: one representation per graph (or vertex), `[num_graphs, hidden_channels]`.

        The arguments are those of `forward`; `more` are those that only some models read (`random_walk_pe`).
        """
        check_features(x)
        h = self._vertices(x, edge_index, trie, batch, edge_attr, batch_size, budget, **more)
        return h if self.readout is None else read_out(self.readout, h, batch, batch_size)

    def _vertices(
        self, x: Tensor, edge_index: Any, trie: Any, batch: Any, edge_attr: Any, batch_size: Any, budget: Any
    ) -> Tensor:
        """Return the representations of all vertices after the last layer; the arguments are those of `embed`."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        from torch_geometric.nn.inits import reset  # takes a second

        for part in self.children():
            reset(part)

    @property
    def kernel(self) -> KernelRegression | None:
        """Return the kernel regression that the head averages with its output, or None."""
        return getattr(self.head, "kernel", None)

    def fit_kernel(self, graph_attr: Tensor, y: Tensor, *, counts: int = 0) -> None:
        """Add a `KernelRegression` to the head, for the features and targets `y` of training graphs.

        The first `counts` features are logarithms of 1 + a count. Call `graph_scale.fit` before. Until
        `kernel.fit_share`, the prediction stays that of the network.

        >>> import torch
        >>> from pathnn import PathNN
        >>> model = PathNN(2, 8, 1, collection="sp", k=2, graph_channels=3)
        >>> features = torch.rand(5, 3)
        >>> model.graph_scale.fit(features)
        >>> model.fit_kernel(features, features.sum(dim=1, keepdim=True))
        >>> model.kernel(model.graph_scale(features)).shape
        torch.Size([5, 1])
        """
        if not isinstance(self.graph_scale, GraphScale) or not isinstance(self.head, MLPHead):
            raise ValueError("a kernel compares features of graphs: expected a model with graph_channels, head='mlp'.")
        if y.dim() != 2 or y.shape != (len(graph_attr), self.config.out_channels):
            raise ValueError(f"y: expected shape {(len(graph_attr), self.config.out_channels)}, got {tuple(y.shape)}.")
        inputs, factor = self.graph_scale(graph_attr), float(self.graph_scale.factor[0])
        self._add_kernel(KernelRegression.fitted(inputs, y, counts=counts, factor=factor if counts else 1.0))

    def _add_kernel(self, kernel: KernelRegression) -> None:
        cast(MLPHead, self.head).kernel = kernel
        self.config = replace(self.config, kernel=kernel.sizes)

    @classmethod
    def from_config(cls, config: ModelConfig | Mapping[str, Any], **options: Any) -> Self:
        """Return the untrained model of a config or its `to_dict`; `options` are those that no config has."""
        config = config if isinstance(config, ModelConfig) else cls.config_class.from_dict(config)
        values = config.to_dict()
        sizes = values.pop("kernel")
        model = cls(**values, **options)
        if sizes is not None:
            graphs, columns, counts, features = sizes
            model._add_kernel(KernelRegression(graphs, columns, counts, features, config.out_channels or 1))
        return model


def read_out(readout: nn.Module, h: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
    """Call a readout, an aggregation of PyG, or a custom module, with `batch_size=` if it takes that."""
    kind = getattr(readout, "_orig_mod", readout)  # what torch.compile has wrapped
    sizes: dict[str, int | None] = {"batch_size": batch_size}
    if not isinstance(kind, Readout):
        from torch_geometric.nn import Aggregation

        takes = signature(kind.forward).parameters.values()
        if isinstance(kind, Aggregation):
            sizes = {"dim_size": 1 if batch is None else batch_size}
        elif not any(one.name == "batch_size" or one.kind is one.VAR_KEYWORD for one in takes):
            sizes = {}
    return readout(h, batch, **sizes)
