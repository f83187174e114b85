"""What all layers of a network read alike: projected once per step, where each layer would do it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from pathnn.nn.edge_types import EdgeTypes

if TYPE_CHECKING:
    from pathnn.nn.engines.cuda_product import SplitWeight


class Prepared(NamedTuple):
    """Edges together with the parts of the LSTM's input that do not change from layer to layer.

    `edges` are the features as they came; `edge` and `distance` their projected tables (see `engines.level.Tables`);
    `weight` and `bias` project the vertices; `split` is `W_hh` as the products read it.
    """

    edges: Tensor | EdgeTypes | None
    weight: Tensor
    bias: Tensor
    edge: Tensor | None
    distance: Tensor | None
    split: SplitWeight


Edges = Tensor | EdgeTypes | Prepared | None
"""The edges that a layer reads."""
