"""An untrained PathNN on many alike graphs: equal tokens merged, multiplicities carried along. Exact up to rounding.

Vertices with equal annotations (`pathnn.theory.hashed`) have equal representations, whatever the weights. So a layer
needs one vertex of each annotation, and of its paths only the different sequences of annotations (and distances), with
the number of times each occurs. Strongly regular graphs look alike everywhere up to paths of length 3, and then 10^8
paths of a family are a few dozen sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from pathnn.experiments.sequences import MergedLevel, SequenceFinder, Sequences, merged_levels
from pathnn.nn import PathNN
from pathnn.nn.config import PathNNConfig
from pathnn.nn.path_conv import PathConv
from pathnn.paths.trie import LengthTrie, TrieLevel
from pathnn.theory.graphs import Graph
from pathnn.theory.hashed import PathAnnotations, hashed_annotations


def merged_embeddings(
    models: Sequence[PathNN],
    graphs: Sequence[Graph],
    *,
    max_sequences: int = 1_000_000,
    max_paths_per_source: int | None = None,
    device: str | torch.device = "cpu",
    annotations: Sequence[PathAnnotations] | None = None,
    step: Callable[[], None] = lambda: None,
) -> Tensor:
    """What each model's readout gives for each graph with ones as features, `[models, graphs, hidden_channels]`.

    The models must have the same options and no dropout, read no edges and sum up paths. A BatchNorm in training mode
    takes its statistics over the vertices of all graphs.

    Args:
        models: networks that differ in their weights only; sequences are found once for all.
        graphs: `(edge_index, num_nodes)` pairs.
        max_sequences: so many sequences are worked on at once; a vertex with more is worked on alone.
        max_paths_per_source: refuse with `PathExplosionError` where more would have to be written down.
        device: where the LSTM runs.
        annotations: of the graphs, by `hashed_annotations` with the models' options, where they are known already.
        step: called after each layer.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> model = PathNN.from_paper("sr", collection="ap").double().eval()
    >>> first, second = merged_embeddings([model], [hexagon(), two_triangles()])[0]
    >>> bool((first - second).norm() < 1e-5)
    False
    """
    config = _check_models(models)
    if annotations is None:
        annotations = hashed_annotations(
            graphs, collection=config.collection, k=config.k, extend=config.extend, distances=bool(config.distances)
        )
    ptr = list(accumulate((n for _, n in graphs), initial=0))
    finder = SequenceFinder(graphs, ptr, config, max_paths_per_source)
    levels = list(enumerate(merged_levels(annotations, config.k), start=1))
    for length, level in levels:
        finder.check(level, length)  # all of them before the first is worked on
    dtype = next(models[0].parameters()).dtype
    states = [model.encoder(torch.ones(1, 1, dtype=dtype, device=device)).detach() for model in models]
    for length, level in levels:
        states = _layer(models, states, level, length, finder, max_sequences)
        step()
    graph = torch.repeat_interleave(torch.tensor([n for _, n in graphs], device=device))
    rows = torch.from_numpy(level.after).to(device)
    return torch.stack([h.new_zeros(len(graphs), h.size(1)).index_add_(0, graph, h[rows]) for h in states])


@torch.no_grad()
def _layer(
    models: Sequence[PathNN], states: list[Tensor], level: MergedLevel, length: int, finder: SequenceFinder, most: int
) -> list[Tensor]:
    convs = [_conv(model, length) for model in models]
    read = [conv.scale(h) for conv, h in zip(convs, states, strict=True)]
    device = read[0].device
    sums = [h.new_zeros(len(level.chosen), h.size(1)) for h in read]
    for found in finder.batches(level, length, most):
        trie, entry = merged_trie(found, finder.width, states[0].size(0), finder.dummy, device)
        owner, count = found.owner.to(device), found.count.to(device)
        for model, h, total in zip(models, read, sums, strict=True):
            paths = model.lstm.path_representations(h, trie)
            total.index_add_(0, owner, paths[entry] * count.to(paths.dtype).unsqueeze(1))
    rows, chosen, after = (
        torch.from_numpy(ids).to(device) for ids in (level.before[level.chosen], level.chosen, level.after)
    )
    out = []
    for conv, h, total in zip(convs, read, sums, strict=True):
        # all vertices again, as a BatchNorm counts each of them
        out.append(conv.phi(conv.norm((h[rows] + total)[after]))[chosen])
    return out


def _conv(model: PathNN, length: int) -> PathConv:
    conv = model.convs[length - 1]
    assert isinstance(conv, PathConv)
    return conv


def merged_trie(
    found: Sequences, width: int, num_classes: int, dummy: int, device: str | torch.device
) -> tuple[LengthTrie, Tensor]:
    """The trie of the sequences, far ends first, and the entry of its last level that each sequence ends in."""
    tokens = found.tokens.to(device)
    most = num_classes * width + 1
    levels: list[TrieLevel] = []
    at = torch.zeros(tokens.size(0), dtype=torch.long, device=device)
    for position in range(tokens.size(1) - 1, -1, -1):
        keys, at = torch.unique(at * most + tokens[:, position] + 1, return_inverse=True)
        token = keys % most - 1
        vertex = torch.where(token < 0, -1, torch.div(token, width, rounding_mode="floor"))
        distance = torch.where(token < 0, dummy, token % width)
        parent = torch.div(keys, most, rounding_mode="floor").int() if levels else None
        levels.append(TrieLevel(vertex.int(), distance.int(), parent, None))
    return LengthTrie(tuple(levels), num_classes), at


def _check_models(models: Sequence[PathNN]) -> PathNNConfig:
    if not models:
        raise ValueError("no models: expected at least one.")
    config = models[0].config
    if any(model.config != config for model in models):
        raise ValueError("the models have different options: expected networks that differ in their weights only.")
    if config.dropout:
        raise ValueError(f"the models have dropout={config.dropout}: equal tokens get different masks. Expected 0.")
    if config.edge_channels is not None or config.in_channels != 1 or config.aggregation != "sum":
        raise ValueError("merging is for models of one input channel that read no edges and sum up paths.")
    if config.readout != "sum":
        raise ValueError(f"the models have readout={config.readout!r}: merging adds up vertices. Expected 'sum'.")
    return config
