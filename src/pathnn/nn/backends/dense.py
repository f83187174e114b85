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
    rows = list(zip(trie.levels, trie.ancestors(), strict=True))
    vertex = torch.cat([level.vertex[entry] for level, entry in rows])
    # index_select and embedding have fast gradients; indexing with a tensor sorts all indices first
    parts = [h.index_select(0, torch.where(vertex < 0, trie.num_nodes, vertex))]
    if distances is not None:
        distance = [level.distance[entry] for level, entry in rows if level.distance is not None]
        parts.append(nn.functional.embedding(torch.cat(distance), distances))
    if features is not None:
        edge = [level.edge[entry] for level, entry in rows if level.edge is not None]
        parts.append(_edge_inputs(features, torch.cat(edge), trie.num_paths))
    steps = torch.cat(parts, dim=1)
    return _last_hidden(lstm, steps.view(len(rows), trie.num_paths, steps.size(1)))


def _last_hidden(lstm: nn.LSTM, steps: Tensor) -> Tensor:
    """What `nn.LSTM.forward` does, except that in evaluation, too, gradients can be had: cuDNN refuses them there.

    The flag that says so changes nothing else, as there is no dropout between layers.
    """
    start = steps.new_zeros(1, steps.size(1), lstm.hidden_size)
    differentiable = lstm.training or torch.is_grad_enabled()
    # not `_flat_weights`: functional_call and parametrizations replace the attributes alone
    weights = [lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0, lstm.bias_hh_l0]
    options = (lstm.bias, lstm.num_layers, 0.0, differentiable, lstm.bidirectional, lstm.batch_first)
    _, last, _ = torch.lstm(steps, (start, start), weights, *options)  # type: ignore[arg-type]
    return last[0]


def _edge_inputs(features: Tensor, edge: Tensor, num_paths: int) -> Tensor:
    """Zeros for the first token of each path, and for tokens next to a dummy."""
    none = features.new_zeros(1, features.size(1))
    first = edge.new_full((num_paths,), features.size(0))
    rows = torch.cat([first, torch.where(edge < 0, features.size(0), edge)])
    return torch.cat([features, none]).index_select(0, rows)
