"""Sources that are no vertices."""

from __future__ import annotations

import pytest
import torch

from pathnn.theory.graphs import check_source
from pathnn.theory.trees import wl_tree


def test_a_graph_without_vertices_has_no_source():
    with pytest.raises(ValueError, match="source=0 is not a vertex: the graph has no vertices"):
        wl_tree(torch.empty(2, 0, dtype=torch.int64), 0, source=0, height=1)


@pytest.mark.parametrize("source", [-1, 3, True, 1.0])
def test_what_is_no_source(source):
    with pytest.raises(ValueError, match="expected an integer from 0 to 2"):
        check_source(source, 3)
