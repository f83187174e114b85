"""Random graphs for properties; apart from `nn_graphs`, so that GPU machines need no hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st
from torch import Tensor

from nn_graphs import both_directions


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> tuple[Tensor, int]:
    n = draw(st.integers(1, most))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return both_directions(chosen), n
