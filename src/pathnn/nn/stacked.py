"""Several networks of one shape as one: their weights lie side by side, and every operation does all of them.

What depends on weights (linear layers, embeddings, BatchNorm, the LSTM, dropout) takes each row to its own network's
(`stacked_layers`); everything else does not notice.
"""

from __future__ import annotations

import copy
from itertools import pairwise

from torch import Tensor, nn

from pathnn.nn.backends.triton.lookup import MOST_ROWS
from pathnn.nn.baselines import Baseline, before_relu
from pathnn.nn.encoders import CategoricalEncoder
from pathnn.nn.fixed_gin import EdgeKinds, FixedGIN
from pathnn.nn.neighbours import SharedNeighbours
from pathnn.nn.path_lstm import PathLSTM
from pathnn.nn.path_nn import PathNN
from pathnn.nn.stack import Stack
from pathnn.nn.stacked_layers import (
    StackedDropout,
    StackedEmbedding,
    StackedGCN,
    StackedLinear,
    StackedLSTM,
    StackedNorm,
)


def stacked_twin(model: PathNN | Baseline, stack: Stack, valid: Tensor) -> PathNN | Baseline:
    """A network like `model` that does what all networks of `stack` do, each for its rows; `valid`, `[models]`, int32,
    is how many of them are no padding."""
    fault = stack_fault(model)
    if fault is not None:
        raise ValueError(fault)
    linear, gcn = _pyg_layers(model)
    twin, shared = copy.deepcopy(model), SharedNeighbours()
    for prefix, parent in list(twin.named_modules()):
        modules = parent._modules
        following = dict(pairwise(modules)) if isinstance(parent, nn.Sequential) else {}
        for key, child in list(modules.items()):
            name = f"{prefix}.{key}" if prefix else key
            if isinstance(child, PathLSTM):
                modules[key] = StackedLSTM(stack, name, child)
            elif isinstance(child, gcn):
                modules[key] = StackedGCN(stack, name, child, shared)
            elif isinstance(child, (nn.Linear, *linear)):
                modules[key] = StackedLinear(stack, name, child)
            elif isinstance(child, nn.Embedding):
                modules[key] = StackedEmbedding(stack, name)
            elif isinstance(child, nn.Dropout):
                modules[key] = StackedDropout(stack)
            elif isinstance(child, nn.BatchNorm1d):
                relu = key in following and isinstance(modules[following[key]], nn.ReLU)
                modules[key] = StackedNorm(stack, name, child, valid, relu=relu or before_relu(twin, parent))
                if relu:
                    modules[following[key]] = nn.Identity()
    if isinstance(twin, Baseline) and twin.config.name == "gin":
        twin.convs = nn.ModuleList(FixedGIN(conv, shared, stack.models) for conv in twin.convs)
        if isinstance(twin.edge_encoder, CategoricalEncoder):
            twin.edge_encoder = EdgeKinds(twin.edge_encoder, stack.models)
    return twin


def stack_fault(model: nn.Module) -> str | None:
    """Why networks like `model` cannot be stacked, or None."""
    if not isinstance(model, PathNN | Baseline):
        return "only PathNN and the baselines can be stacked: train other models one by one."
    if isinstance(model, PathNN) and model.config.edge_channels is not None:
        return "PathNNs with edge features cannot be stacked: train them one by one."
    if isinstance(model, PathNN) and (
        model.config.extend or getattr(model.lstm, "backend", None) not in ("auto", "triton")
    ):
        return "networks with dummy tokens or the dense backend cannot be stacked: train them one by one."
    linear, gcn = _pyg_layers(model)
    known = (nn.Linear, nn.BatchNorm1d, nn.Embedding, PathLSTM, *linear, *gcn)
    for name, module in model.named_modules():
        own = list(module.parameters(recurse=False))
        if isinstance(module, nn.Embedding) and module.num_embeddings > MOST_ROWS and not name.startswith("lstm."):
            return f"{name} has {module.num_embeddings} rows, too many to be stacked: train the models one by one."
        if own and not isinstance(module, known) and not name.startswith("lstm."):
            return f"{name} ({type(module).__name__}) cannot be stacked: train the models one by one."
    return None


def _pyg_layers(model: nn.Module) -> tuple[tuple[type[nn.Module], ...], tuple[type[nn.Module], ...]]:
    """PyG's linear layer and GCN layer, where the model may have some: importing them takes a second."""
    if not isinstance(model, Baseline):
        return (), ()
    from torch_geometric import nn as pyg

    return (pyg.Linear,), (pyg.GCNConv,)
