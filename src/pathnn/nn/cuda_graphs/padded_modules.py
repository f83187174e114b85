"""Copy a model for padded batches: replace the modules that must ignore padding, or that can be faster on a GPU.

PyG's layers are captured as they are.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pathnn.nn import DeepPathNN, PathNN
from pathnn.nn.backends.triton.kernels.blocks import column_block, cover, power_above
from pathnn.nn.backends.triton.ops import MOST_ROWS, lookup, tall_linear
from pathnn.nn.baselines import Baseline, SelfLoops
from pathnn.nn.blocks import AllLengths, PathBlock, VirtualNode
from pathnn.nn.encoders import CategoricalEncoder
from pathnn.nn.model_file import Model
from pathnn.nn.path_lstm import PathLSTM
from pathnn.nn.path_nn import PathConv, PathModel
from pathnn.nn.readout import GraphScale, Readout

MOST_CHUNKS, ROWS = 128, 32
"""The largest number of chunks of a BatchNorm, and the rows that a program reads at a time."""

PROGRAMS, MOST_TIMES = 512, 8
"""With more than `PROGRAMS` programs, each normalises up to `MOST_TIMES` times `ROWS` rows: all read all statistics."""


def reads_paths(model: Model) -> bool:
    """Return whether a model reads tries."""
    return isinstance(model, PathModel) and model.reads_paths


def reads_edges(model: Model) -> bool:
    """Return whether a model reads `edge_index` next to a trie, or instead of it."""
    return isinstance(model, Baseline) or (isinstance(model, DeepPathNN) and model.config.message_passing)


def can_be_padded(model: Model, edge_index: Tensor | None = None, *, vertices: bool = False) -> bool:
    """Return whether a model can work on padded batches of these graphs; None for any graphs, with self-loops too.

    With `vertices`, it may predict for vertices: the caller leaves out padded rows.
    """
    if model.readout is None and not vertices:
        return False
    known: list[tuple[nn.Module | None, type[nn.Module]]] = [
        (model.readout, Readout), (model.edge_encoder, CategoricalEncoder), (model.graph_scale, GraphScale)
    ]  # fmt: skip
    if isinstance(model, PathNN):
        known += [(model.lstm, PathLSTM), *((conv, PathConv) for conv in model.convs)]
    if isinstance(model, DeepPathNN):
        from torch_geometric.nn import GINConv, GINEConv

        conv = GINConv if model.edge_width is None else GINEConv
        known += [(model.virtual_node, VirtualNode), *((block, PathBlock) for block in model.blocks)]
        blocks = [block for block in model.blocks if isinstance(block, PathBlock)]
        known += [(block.paths, AllLengths) for block in blocks]
        known += [(block.paths.lstm, PathLSTM) for block in blocks if isinstance(block.paths, AllLengths)]
        known += [(block.message_passing, conv) for block in blocks]
    for part in model.modules():
        if isinstance(part, PathLSTM) and (part.aggr is not None or part.backend not in ("auto", "triton")):
            return False
    if any(part is not None and not isinstance(part, kind) for part, kind in known):
        return False  # a custom module may wait for the GPU or read padding
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.head.modules()):
        return False  # it would also normalise the padded graph
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]
    if not all(norm.affine and norm.track_running_stats and norm.momentum is not None for norm in norms):
        return False
    if not isinstance(model, Baseline) or model.loops is None:
        return True
    return edge_index is not None and not bool((edge_index[0] == edge_index[1]).any())


def padded_copy(model: Model, valid: Tensor, *, leaves: bool = False) -> Model:
    """Return a model for padded batches with the tensors of `model`; its BatchNorms read the first `valid` rows.

    A ReLU after a BatchNorm becomes part of it. With `leaves`, parameters have the same memory but their own gradients.
    """
    shared: dict[int, Tensor] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    if leaves:
        shared |= {id(p): nn.Parameter(p.detach(), p.requires_grad) for p in model.parameters()}
    padded = copy.deepcopy(model, shared)
    for parent in [module for module in padded.modules() if not isinstance(module, PathLSTM)]:
        modules = parent._modules
        following = dict(pairwise(modules)) if isinstance(parent, nn.Sequential) else {}
        for name, child in list(modules.items()):
            if child is None or isinstance(child, PathLSTM):
                continue
            new = _replacement(child, valid)
            new.training = child.training
            if isinstance(new, PaddedBatchNorm1d) and isinstance(modules.get(following.get(name, "")), nn.ReLU):
                new.relu = True
                modules[following[name]] = nn.Identity()
            modules[name] = new
    return padded


class PaddedBatchNorm1d(nn.Module):
    """`nn.BatchNorm1d` over the first `valid` rows (`[1]`, int32, on the GPU), then ReLU if `relu`.

    The tensors are those of `norm`, which has a momentum. Other rows are normalised, to stay finite, without gradient.
    """

    def __init__(self, norm: nn.BatchNorm1d, valid: Tensor, *, relu: bool = False) -> None:
        super().__init__()
        self.norm, self.valid, self.relu = norm, valid, relu

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `[rows, channels]`."""
        norm: Any = self.norm
        if not self.training:
            out: Tensor = norm(x)
            return out.relu() if self.relu else out
        norm.num_batches_tracked.add_(1)
        out = _PaddedNorm.apply(x, norm.weight, norm.bias, norm, self.valid, self.relu)  # type: ignore[no-untyped-call]
        return out


class _PaddedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, norm: Any, valid: Tensor, relu: bool) -> Tensor:
        from pathnn.nn.cuda_graphs.kernels import chunk_statistics, normalise

        x = x.contiguous()
        (rows, width), block = x.shape, column_block(x.size(1), largest=32)
        chunk, chunks = _chunks(rows)
        partial = x.new_empty(chunks, 2, width, dtype=torch.float32)
        out, mean, scale = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        chunk_statistics[chunks, cover(width, block)](x, valid, partial, chunk, WIDTH=width, ROWS=ROWS, BLOCK=block)
        times = _times(rows, cover(width, block))
        normalise[cover(rows, ROWS * times), cover(width, block)](
            x, valid, partial, weight, bias, norm.running_mean, norm.running_var, out, mean, scale,
            rows, chunk, chunks, norm.eps, norm.momentum,
            RELU=relu, WIDTH=width, CHUNKS=power_above(chunks), ROWS=ROWS, TIMES=times, BLOCK=block,
        )  # fmt: skip
        ctx.save_for_backward(x, weight, bias, valid, mean, scale)
        ctx.relu = relu
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        from pathnn.nn.cuda_graphs.kernels import chunk_gradients, normalise_backward

        x, weight, bias, valid, mean, scale = ctx.saved_tensors
        grad = grad.contiguous()
        (rows, width), block = x.shape, column_block(x.size(1), largest=32)
        chunk, chunks = _chunks(rows)
        partial = x.new_empty(chunks, 2, width, dtype=torch.float32)
        grad_x, grad_weight, grad_bias = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        chunk_gradients[chunks, cover(width, block)](
            grad, x, valid, mean, scale, weight, bias, partial, chunk,
            RELU=ctx.relu, WIDTH=width, ROWS=ROWS, BLOCK=block,
        )  # fmt: skip
        times = _times(rows, cover(width, block))
        normalise_backward[cover(rows, ROWS * times), cover(width, block)](
            grad, x, valid, mean, scale, weight, bias, partial, grad_x, grad_weight, grad_bias, rows, chunks,
            RELU=ctx.relu, WIDTH=width, CHUNKS=power_above(chunks), ROWS=ROWS, TIMES=times, BLOCK=block,
        )  # fmt: skip
        return grad_x, grad_weight, grad_bias, None, None, None


def _times(rows: int, others: int) -> int:
    """Return how many blocks of `ROWS` rows a program normalises, a power of two; `others` programs share its rows."""
    return 1 << min(max(cover(rows, ROWS) * others // PROGRAMS, 1), MOST_TIMES).bit_length() - 1


def _chunks(rows: int) -> tuple[int, int]:
    """Return the rows per chunk, a multiple of `ROWS`, and the number of chunks, at most `MOST_CHUNKS`."""
    chunk = cover(cover(rows, MOST_CHUNKS), ROWS) * ROWS
    return chunk, cover(rows, chunk)


class SmallEmbedding(nn.Module):
    """`nn.Embedding` of at most `MOST_ROWS` rows, with the gradient of `lookup`; the weight is that of `embedding`."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding

    @property
    def weight(self) -> Tensor:
        """Return the table."""
        return self.embedding.weight

    def forward(self, index: Tensor) -> Tensor:
        """Return the rows `index`, `[n]`: `[n, d]`."""
        return lookup(self.embedding.weight, index)


class TallLinear(nn.Module):
    """`nn.Linear` for many rows (`tall_linear`); the parameters are those of `linear` itself."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        """Return `[rows, out]` for `[rows, in]`."""
        if torch.is_autocast_enabled(x.device.type):
            out: Tensor = self.linear(x)
            return out
        return tall_linear(x, self.linear.weight, self.linear.bias)


def _replacement(module: nn.Module, valid: Tensor) -> nn.Module:
    """Return the module that replaces another one in a padded batch with `valid` rows: itself if it needs no other."""
    if isinstance(module, nn.BatchNorm1d):
        return PaddedBatchNorm1d(module, valid)
    if isinstance(module, nn.Embedding) and module.num_embeddings <= MOST_ROWS:
        return SmallEmbedding(module)
    if isinstance(module, nn.Linear):
        return TallLinear(module)
    return SelfLoops(replace=False) if isinstance(module, SelfLoops) else module
