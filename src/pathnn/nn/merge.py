"""Compute equal prefixes of paths once for all graphs of a batch.

Two vertices are equal after layer k if they were equal before it and if equal paths of length k end at them: equal
vertices, edges and distances, in order. Equal vertices have equal representations, and equal prefixes equal states,
for all values of the parameters: the gradient of a shared state is the sum of the gradients of its copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from pathnn.nn.encoders import CategoricalEncoder, MLPEncoder, OneHotEncoder
from pathnn.nn.path_lstm import PathLSTM
from pathnn.paths.trie import LengthTrie, PathTrie, TrieLevel

if TYPE_CHECKING:
    from pathnn.nn.path_nn import PathNN

Array = np.ndarray[Any, Any]


def can_merge(model: PathNN, x: Tensor, edge_attr: Tensor | None, trie: PathTrie, edges: Any) -> bool:
    """Return whether equal vertices stay equal: features are categories, on a CPU, and modules in training are known.

    In evaluation, nothing with gradients is merged: they may be wanted for single vertices.
    """
    numbers = x.is_floating_point() or (edge_attr is not None and edge_attr.is_floating_point())
    if numbers or trie.extended or x.device.type != "cpu":
        return False
    if not model.training:
        return not torch.is_grad_enabled()
    return _equal_in_training(model) and edges.backend.name != "dense"


def _equal_in_training(model: PathNN) -> bool:
    """Return whether the encoders and layers draw no random numbers, and no hook reads their rows."""
    from pathnn.nn.path_nn import PathConv

    known = (CategoricalEncoder, OneHotEncoder, MLPEncoder, PathConv, PathLSTM, nn.Embedding, nn.Linear,
             nn.BatchNorm1d, nn.ReLU, nn.Identity, nn.Dropout, nn.Sequential, nn.ModuleList)  # fmt: skip
    parts = [part for part in (model.encoder, model.edge_encoder, model.lstm, model.convs) if part is not None]
    plain = all(
        type(module) in known
        and getattr(module, "p", 0) == 0
        and not (module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
        for part in parts
        for module in part.modules()
    )
    return plain and model.lstm.input_dropout == 0


def merged_vertices(model: PathNN, x: Tensor, edge_attr: Tensor | None, trie: PathTrie, edges: Any) -> Tensor:
    """Return the representations of all vertices after the last layer; `edges` are prepared.

    In training only the LSTM reads merged vertices, since BatchNorm reads all of them.
    """
    vertices, first = merge_rows(x)
    types = None if edge_attr is None else merge_rows(edge_attr)[0]
    lengths = merge_lengths(trie, model.config.k, vertices, types)
    h: Tensor = model.encoder(x if model.training else x[torch.from_numpy(first)])
    for conv, merged in zip(model.convs, lengths, strict=True):
        if model.training:
            h = conv(h, partial(_read_merged, model.lstm, merged), merged.trie, edges)
        else:
            h = conv(h[merged.before], model.lstm, merged.trie, edges)
    return h if model.training else h[merged.after]


def _read_merged(lstm: PathLSTM, merged: MergedLength, h: Tensor, trie: LengthTrie, edges: Any) -> Tensor:
    """Return what `lstm` returns for all paths of a length."""
    out: Tensor = lstm(h.index_select(0, merged.chosen), trie, edges)
    return out.index_select(0, merged.after)


def merge_rows(rows: Tensor) -> tuple[Array, Array]:
    """Return the class of each row of integers, numbered from 0, and the first row of each class."""
    keys = np.zeros(len(rows), dtype=np.int64)
    for column in (rows if rows.dim() == 2 else rows[:, None]).t().numpy():
        keys = _pairs(keys, column - column.min(initial=0))
    return _classes(keys)


class MergedLength(NamedTuple):
    """Paths that end at a vertex of each class, `chosen`: its class `before`, and those of all vertices `after`."""

    chosen: Tensor
    before: Tensor
    trie: LengthTrie
    after: Tensor


def merge_lengths(trie: PathTrie, k: int, vertices: Array, edges: Array | None) -> Iterator[MergedLength]:
    """Yield the merged paths of lengths 1 to k, from the classes of the features of vertices and edges."""
    for length in range(1, k + 1):
        *inner, last = trie.length(length).levels
        kept = list[tuple[TrieLevel, Array, Array | None]]()
        classes: Array | None = None
        for level in inner:
            parent = None if classes is None else classes[_array(level.parent)]
            classes, first = _classes(_tokens(level, parent, vertices, edges))
            above: Array | None = None if parent is None else parent[first]
            if above is not None:  # entries are sorted by their parents
                order = np.argsort(above, kind="stable")
                rank = np.empty_like(order)
                rank[order] = np.arange(len(order))
                classes, first, above = rank[classes], first[order], above[order]
            kept.append((level, first, above))
        assert classes is not None
        parent, source = classes[_array(last.parent)], _array(last.vertex)
        sums = _sum_paths(source, _classes(_tokens(last, parent, vertices, edges))[0], len(vertices))
        after, chosen = _classes(_pairs(vertices, _classes(sums.view(np.int64))[0]))
        place = np.full(len(vertices), -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen))
        row = np.zeros(len(vertices), dtype=np.int32)
        row[vertices[chosen]] = place[chosen]  # a chosen vertex of each class before the layer
        ends = np.flatnonzero(place[source] >= 0)
        ends = ends[np.argsort(parent[ends], kind="stable")]
        levels = [_level(level, row[vertices[_array(level.vertex)[at]]], at, above) for level, at, above in kept]
        levels.append(_level(last, place[source[ends]], ends, parent[ends]))
        before = torch.from_numpy(vertices[chosen])
        at = torch.from_numpy(chosen)
        yield MergedLength(at, before, LengthTrie(tuple(levels), len(chosen)), torch.from_numpy(after))
        vertices = after


def _tokens(level: TrieLevel, parent: Array | None, vertices: Array, edges: Array | None) -> Array:
    """Return a key for each entry, the same for equal prefixes."""
    keys = vertices[_array(level.vertex)]
    if level.distance is not None:
        keys = _pairs(keys, _array(level.distance))
    if parent is None:
        return keys
    return _pairs(parent, keys if edges is None else _pairs(keys, edges[_array(level.edge)]))


def _pairs(a: Array, b: Array) -> Array:
    """Return a key for each pair of numbers from 0."""
    size = int(b.max(initial=0)) + 1
    if (int(a.max(initial=0)) + 1) * size >= 2**63:
        a, _ = _classes(a)
    return a.astype(np.int64, copy=False) * size + b


def _level(level: TrieLevel, vertex: Array, index: Array, parent: Array | None) -> TrieLevel:
    """Return some entries of a level with other vertices and parents."""
    at = torch.from_numpy(index)
    distance, edge = (None if rows is None else rows[at] for rows in (level.distance, level.edge))
    above = None if parent is None else torch.from_numpy(parent.astype(np.int32))
    return TrieLevel(torch.from_numpy(vertex), distance, above, edge)


def _array(tensor: Tensor | None) -> Array:
    assert tensor is not None
    return tensor.numpy()


@njit(cache=True, nogil=True)
def _classes(keys: Array) -> tuple[Array, Array]:
    """Number equal keys in the order of their first places; return the number of each key, and these places."""
    bits = 4
    while (1 << bits) < 2 * keys.size:
        bits += 1
    table, mask = np.full(1 << bits, -1, np.int32), (1 << bits) - 1
    classes, first = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
    count = 0
    for i in range(keys.size):
        slot = np.int64((np.uint64(keys[i]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits))
        while table[slot] >= 0 and keys[first[table[slot]]] != keys[i]:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            first[count] = i
            count += 1
        classes[i] = table[slot]
    return classes, first[:count].copy()


@njit(cache=True, nogil=True)
def _sum_paths(source: Array, classes: Array, count: int) -> Array:
    """Return the sum of a 64-bit hash of each path at its source: equal for equal paths, in any order."""
    sums = np.zeros(count, np.uint64)
    for i in range(source.size):
        x = np.uint64(classes[i]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        sums[source[i]] += x ^ (x >> np.uint64(31))
    return sums
