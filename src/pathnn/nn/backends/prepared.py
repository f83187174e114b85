"""What all layers of a network read alike: worked out once per step, where each layer would do it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from pathnn.nn.edge_types import EdgeTypes

if TYPE_CHECKING:
    from pathnn.nn.backends.triton.products import SplitWeight
    from pathnn.nn.backends.triton.shared_gradients import SharedGradients


class Prepared(NamedTuple):
    """Edges together with the parts of the LSTM's input that do not change from layer to layer.

    `edges` are the features as they came; `edge` and `distance` their projected tables (see `ProjectedInputs`);
    `split_weight` (with `bias`) and `split_hh` are the weight of the vertices and `W_hh` as the products read them. The
    gradients of all these are `collected`, and reach them through `anchor`. `recompute`: the backward pass computes
    again what it can, which takes less memory.
    """

    edges: Tensor | EdgeTypes | None
    bias: Tensor
    edge: Tensor | None
    distance: Tensor | None
    split_weight: SplitWeight
    split_hh: SplitWeight
    collected: SharedGradients
    anchor: Tensor
    recompute: bool = True


Edges = Tensor | EdgeTypes | Prepared | None
"""The edges that a layer reads."""
