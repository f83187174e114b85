"""Find the pairs of graphs that untrained networks, annotated path sets and WL confuse."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from pathnn.checks import check_choice
from pathnn.data.packed import PackedGraphs
from pathnn.nn import PathNN, paper_config
from pathnn.nn.path_nn import PhiName
from pathnn.paths.options import Collection
from pathnn.theory.fingerprints import (
    Lanes,
    PathAnnotations,
    classes,
    folklore_fingerprints,
    hashed_annotations,
    wl_fingerprints,
)  # fmt: skip
from pathnn.theory.graphs import Graph
from pathnn.theory.merged import merged_embeddings

UntrainedPhi = Literal["identity", "relu", "tanh", "mlp"]

THRESHOLD = 1e-5
"""The threshold of the paper: a pair is confused if the distance of its representations is smaller."""

MOST_PAIRS = 20_000_000
CHUNK = 1_000_000  # pairs whose distances are computed at once
SHOWN = 10  # confused pairs that a result lists
MOST_VERTICES = 64  # of graphs that 3-WL is run for: a round takes the third power of this number
TESTS = ("exact", "sum", "wl1", "wl3")


def as_graphs(graphs: PackedGraphs | Sequence[Graph], index: Sequence[int] | None = None) -> list[Graph]:
    """Return the graphs with the given numbers (default: all) as `(edge_index, num_nodes)` pairs."""
    index = range(len(graphs)) if index is None else index
    if not isinstance(graphs, PackedGraphs):
        return [graphs[i] for i in index]
    chosen = (graphs.chunk(i, i + 1) for i in index)
    return [(one.edge_index.long(), one.num_nodes) for one in chosen]


def all_pairs(num_graphs: int) -> Tensor:
    """Return all pairs of graphs, `[pairs, 2]`; raise `ValueError` for more than 20 million pairs."""
    count = num_graphs * (num_graphs - 1) // 2
    if count > MOST_PAIRS:
        raise ValueError(
            f"{num_graphs:,} graphs have {count:,} pairs: expected at most {MOST_PAIRS:,}. Pass pairs, or fewer graphs."
        )
    return torch.combinations(torch.arange(num_graphs)).view(-1, 2)


def check_pairs(pairs: Tensor, num_graphs: int) -> Tensor:
    """Return `pairs` if they are numbers of graphs, `[pairs, 2]`; raise `ValueError` otherwise."""
    if pairs.dim() != 2 or pairs.size(1) != 2 or pairs.is_floating_point():
        raise ValueError(f"pairs: expected integers of shape [pairs, 2], got {pairs.dtype} {list(pairs.shape)}.")
    if pairs.numel() and (int(pairs.min()) < 0 or int(pairs.max()) >= num_graphs):
        raise ValueError(f"pairs: expected numbers from 0 to {num_graphs - 1}, got {pairs.aminmax()}.")
    return pairs.long()


def confused_pairs(rows: Tensor, pairs: Tensor, threshold: float = THRESHOLD) -> Tensor:
    """Return whether the representations of each pair are closer than the threshold, `[pairs]`, bool."""
    return torch.cat([rows[some].diff(dim=1).norm(dim=2).flatten() < threshold for some in torch.split(pairs, CHUNK)])


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
    """Build the network of the paper for isomorphism tests, in float64 and without a head, for seeds 0, 1, ...

    `phi` follows each layer: `"identity"` in the text of the paper, `"relu"` in the released implementation. Two other
    choices distinguish more graphs: `"tanh"` (BatchNorm and tanh), and `"mlp"` (the MLP of the paper for molecules).
    Their BatchNorm replaces the division by the Euclidean norm and uses the vertices of all graphs.
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


@dataclass(frozen=True)
class IsomorphismTest:
    """The fraction of pairs of graphs that each test confuses; None for a test that was not run.

    `failure_rate` has one entry for each seed of the untrained network. `exact_failure_rate` is the lowest rate that
    any PathNN with these options can reach, and `sum_failure_rate` is the lowest rate if the last layer and the readout
    are sums, as in the paper. `confused` has the first pairs that the exact test confuses, and `confused_by_network`
    the first pairs that the network of seed 0 confuses.
    """

    graphs: int
    pairs: int
    failure_rate: tuple[float, ...]
    exact_failure_rate: float | None
    sum_failure_rate: float | None
    wl1_failure_rate: float | None
    wl3_failure_rate: float | None
    seconds: float
    exact_seconds: float
    network_seconds: float
    confused: tuple[tuple[int, int], ...] = ()
    confused_by_network: tuple[tuple[int, int], ...] = ()


def isomorphism_test(
    graphs: PackedGraphs | Sequence[Graph],
    pairs: Tensor | None = None,
    *,
    collection: Collection = "ap",
    k: int = 4,
    seeds: int = 5,
    hidden_channels: int = 16,
    distances: bool | None = None,
    extend: bool = False,
    residual: bool = True,
    phi: UntrainedPhi = "identity",
    threshold: float = THRESHOLD,
    memory: int = 2**30,
    device: str | torch.device = "cpu",
    max_steps: int = 2_000_000_000,
) -> IsomorphismTest:
    """Find out which pairs of graphs untrained networks and other tests confuse.

    The other tests are the exact test by annotated path sets, 1-WL and 3-WL. All vertices have the same features.
    The defaults are those of the paper. 3-WL is not run for graphs of more than 64 vertices.

    Args:
        graphs: the graphs, packed or as `(edge_index, num_nodes)` pairs.
        pairs: the numbers of graphs, `[pairs, 2]`; None for all pairs.
        collection: `"sp"` (it may distinguish relabelled copies of a graph), `"sp+"` or `"ap"`.
        k: the largest path length, in edges.
        seeds: the number of untrained networks; 0 for none.
        hidden_channels: their width.
        distances: whether tokens include their distance to the source; None for only with `"ap"`.
        extend: whether dummy tokens extend paths that no other continues.
        residual: whether an annotation includes that of the previous level; the network always does this.
        phi: the function after each layer, see `untrained_models`; `"tanh"` distinguishes as much as the exact test.
        threshold: a pair is confused if the distance of its representations is smaller.
        memory, device: see `pathnn.theory.merged.merged_embeddings`.
        max_steps: the largest number of steps of the exact test for one graph.

    Raises:
        PathExplosionError: a graph takes more steps, or has too many kinds of tokens for the networks.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> found = isomorphism_test([hexagon(), two_triangles()], k=2, seeds=2)
    >>> found.failure_rate, found.exact_failure_rate, found.wl1_failure_rate, found.wl3_failure_rate
    ((0.0, 0.0), 0.0, 1.0, 0.0)
    """
    begin = time.perf_counter()
    pairs = all_pairs(len(graphs)) if pairs is None else check_pairs(pairs, len(graphs))
    used, local = torch.unique(pairs, return_inverse=True)
    chosen = as_graphs(graphs, used.tolist())
    options: dict[str, Any] = {"collection": collection, "k": k, "extend": extend, "distances": distances}
    annotations = hashed_annotations(chosen, residual=residual, max_steps=max_steps, **options)
    exact_seconds = time.perf_counter() - begin
    rows = _fingerprints(chosen, annotations, residual)
    ids = {name: torch.from_numpy(classes(own)) for name, own in rows.items()}
    same = {name: own[local[:, 0]] == own[local[:, 1]] for name, own in ids.items()}
    start = time.perf_counter()
    close: list[Tensor] = []
    if seeds and len(pairs):
        models = untrained_models(seeds=seeds, hidden_channels=hidden_channels, phi=phi, **options)
        known = annotations if residual else None
        found = merged_embeddings(models, chosen, memory=memory, device=device, annotations=known)
        close = [confused_pairs(rows, local, threshold) for rows in found.cpu()]
    rates = {f"{name}_failure_rate": _rate(same[name]) if name in same else None for name in TESTS}
    return IsomorphismTest(
        graphs=len(graphs),
        pairs=len(pairs),
        failure_rate=tuple(_rate(hits) for hits in close),
        **rates,
        seconds=time.perf_counter() - begin,
        exact_seconds=exact_seconds,
        network_seconds=time.perf_counter() - start,
        confused=_named(pairs, same["exact"]),
        confused_by_network=_named(pairs, close[0]) if close else (),
    )


def _fingerprints(graphs: Sequence[Graph], annotations: Sequence[PathAnnotations], residual: bool) -> dict[str, Lanes]:
    """Return a row for each graph and each test of `TESTS`; a test confuses graphs with equal rows."""
    found = {"exact": np.array([one.fingerprints()[-1] for one in annotations], np.uint64).reshape(-1, 2)}
    if residual:
        found["sum"] = np.array([one.total() for one in annotations], np.uint64).reshape(-1, 2)
    found["wl1"] = wl_fingerprints(graphs)
    if max((n for _, n in graphs), default=0) <= MOST_VERTICES:
        found["wl3"] = folklore_fingerprints(graphs)
    return found


def _rate(hits: Tensor) -> float:
    return float(hits.double().mean()) if len(hits) else 0.0


def _named(pairs: Tensor, hits: Tensor) -> tuple[tuple[int, int], ...]:
    return tuple((a, b) for a, b in pairs[hits][:SHOWN].tolist())
