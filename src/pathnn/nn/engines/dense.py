"""The dense engine: `nn.LSTM` over every path separately, as the paper writes it. The oracle, and the honest
baseline."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pathnn.nn.edge_types import EdgeTypes
from pathnn.paths.trie import LengthTrie


def dense_path_states(
    lstm: nn.LSTM,
    h: Tensor,
    trie: LengthTrie,
    distances: Tensor | None,
    edges: Tensor | EdgeTypes | None,
) -> Tensor:
    """The last hidden state of each path, `[num_paths, d]`, from one call of `nn.LSTM` on concatenated
    inputs.

    `h` may have one more row than there are vertices: the dummy token's. A token without an edge (the far
    end, or next to a dummy) reads zeros in its place.
    """
    if trie.num_paths == 0:
        return h[:0]
    features = edges.expand() if isinstance(edges, EdgeTypes) else edges
    steps = []
    for level, entry in zip(trie.levels, trie.ancestors(), strict=True):
        vertex = level.vertex[entry]
        parts = [h[torch.where(vertex < 0, trie.num_nodes, vertex).long()]]
        if distances is not None and level.distance is not None:
            parts.append(distances[level.distance[entry].long()])
        if features is not None:
            parts.append(_edge_inputs(features, None if level.edge is None else level.edge[entry], len(entry)))
        steps.append(torch.cat(parts, dim=1))
    return _last_hidden(lstm, torch.stack(steps))


def _last_hidden(lstm: nn.LSTM, steps: Tensor) -> Tensor:
    """What `nn.LSTM.forward` does, except that in evaluation, too, gradients can be had: cuDNN refuses them there.

    The flag that says so changes nothing else, as there is no dropout between layers.
    """
    start = steps.new_zeros(1, steps.size(1), lstm.hidden_size)
    differentiable = lstm.training or torch.is_grad_enabled()
    options = (lstm.bias, lstm.num_layers, 0.0, differentiable, lstm.bidirectional, lstm.batch_first)
    _, last, _ = torch.lstm(steps, (start, start), lstm._flat_weights, *options)  # type: ignore[arg-type]
    return last[0]


def _edge_inputs(features: Tensor, edge: Tensor | None, num_paths: int) -> Tensor:
    if edge is None:
        return features.new_zeros(num_paths, features.size(1))
    chosen = features[edge.long().clamp(min=0)]
    return chosen * (edge >= 0).unsqueeze(1).to(chosen.dtype)
