"""Compute the representations of graphs by untrained networks, for tests of isomorphism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from pathnn.checks import check_choice
from pathnn.data.paths import graph_ranges
from pathnn.nn import PathNN, paper_config
from pathnn.nn.backends.base import Budget
from pathnn.nn.path_nn import PhiName
from pathnn.paths import count_paths, extract_paths
from pathnn.paths.options import Collection
from pathnn.theory.fingerprints import PathAnnotations
from pathnn.theory.graphs import Graph, disjoint_union
from pathnn.theory.merged import merged_embeddings

UntrainedPhi = Literal["identity", "relu", "tanh", "mlp"]
BYTES_PER_NUMBER = 8
NUMBERS_PER_ENTRY = 6
"""Numbers per channel that the backend stores for a trie entry: gates, hidden and cell state."""


def untrained_models(
    *,
    collection: Collection,
    k: int,
    seeds: int = 5,
    hidden_channels: int = 16,
    distances: bool | None = None,
    extend: bool = False,
    phi: UntrainedPhi = "identity",
) -> list[PathNN]:
    """Build the paper's network for isomorphism tests, in float64 and without a head, for each seed 0, 1, ...

    `phi` follows each layer: `"identity"` in the paper's text, `"relu"` in the released implementation. Two other
    choices distinguish more graphs: `"tanh"`, BatchNorm and tanh, and `"mlp"`, the MLP of the paper for
    molecules. Their BatchNorm replaces the division by the Euclidean norm and uses the vertices of all graphs.

    >>> [model.config.hidden_channels for model in untrained_models(collection="ap", k=4, seeds=2)]
    [16, 16]
    """
    config = paper_config("sr", collection=collection, k=k, hidden_channels=hidden_channels)
    distances = config.distances if distances is None else distances
    name: PhiName = "identity" if phi == "tanh" else check_choice("phi", phi, get_args(UntrainedPhi))
    euclidean = phi in ("identity", "relu")
    config = replace(config, distances=distances, extend=extend, phi=name, normalize=euclidean)
    models = []
    with torch.random.fork_rng(devices=[]):
        for seed in range(seeds):
            torch.manual_seed(seed)
            model = PathNN.from_config(config)
            if phi == "tanh":
                for conv in model.convs:
                    conv.phi = nn.Sequential(nn.BatchNorm1d(hidden_channels), nn.Tanh())
            models.append(model.double())
    return models


def embeddings(
    models: Sequence[PathNN],
    graphs: Sequence[Graph],
    *,
    merge: bool = True,
    memory: int = 2**30,
    device: str | torch.device = "cpu",
    annotations: Sequence[PathAnnotations] | None = None,
) -> Tensor:
    """Compute each model's representation of each graph, with ones as features: `[models, graphs, hidden_channels]`.

    Args:
        models: networks that differ in their weights only.
        graphs: `(edge_index, num_nodes)` pairs.
        merge: read each different token sequence once (see `pathnn.theory.merged`) instead of every path. Required by
            a BatchNorm, which needs all graphs at once.
        memory: approximate limit of the network, in bytes.
        device: where the network runs.
        annotations: the result of `hashed_annotations` with the options of the models, if known already.
    """
    config = models[0].config
    models = [model.to(device) for model in models]
    entries = max(1, memory // (BYTES_PER_NUMBER * NUMBERS_PER_ENTRY * config.hidden_channels))
    if merge:
        return merged_embeddings(models, graphs, max_sequences=entries, device=device, annotations=annotations)
    if any(isinstance(module, nn.BatchNorm1d) for module in models[0].modules()):
        raise ValueError("a BatchNorm needs all graphs at once: expected merge=True.")
    sizes = [int(count_paths(*graph, collection=config.collection, k=config.k).sum()) for graph in graphs]
    chunks = graph_ranges(torch.tensor(sizes, dtype=torch.long), entries)
    rows = [_embed(models, graphs[start:stop], entries, device) for start, stop in chunks]
    return torch.cat(rows, dim=1) if rows else torch.zeros(len(models), 0, config.hidden_channels).double()


@torch.no_grad()
def _embed(models: Sequence[PathNN], graphs: Sequence[Graph], entries: int, device: str | torch.device) -> Tensor:
    config = models[0].config
    edge_index, num_nodes, batch = disjoint_union(graphs)
    batch = batch.to(device)
    trie = extract_paths(
        edge_index.to(device), num_nodes, collection=config.collection, k=config.k, distances=bool(config.distances),
        extend=config.extend, max_paths=None, batch=batch,
    )  # fmt: skip
    ones = torch.ones(num_nodes, 1, dtype=torch.float64, device=device)
    rows = []
    for model in models:
        rows.append(model.embed(ones, trie=trie, batch=batch, batch_size=len(graphs), budget=Budget(entries)))
    return torch.stack(rows)
