"""1-WL and 3-WL as fingerprints, for all pairs of many graphs.

3-WL is run in its folklore form, 2-FWL, which is as strong: it colours pairs of vertices, and a round gives (u, v) the
multiset, over all vertices w, of the colours of (u, w) and (w, v). As a polynomial (see `field.py`) that multiset is an
entry of a product of two matrices.

Each graph is refined until its partition is stable, and the colours of the round that showed it are compared. Two
graphs that no round tells apart get there in the same round. If the multisets of those colours agree, then the step to
them was the same in both graphs, and so will be all later ones: the comparison is complete.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathnn.paths.csr import to_csr
from pathnn.theory.graphs import Graph
from pathnn.theory.hashed import Lanes, in_threads, stack_lanes, start_levels
from pathnn.theory.wl_kernels import refine_pairs, refine_vertices

MOST_VERTICES = 64
"""What `folklore_fingerprints` takes by default: its time grows with the third power, and the rounds on top."""


def wl_fingerprints(graphs: Sequence[Graph], *, initial: Sequence[Sequence[int]] | None = None) -> Lanes:
    """The stable 1-WL colours of each graph as two integers, `[graphs, 2]`: equal where 1-WL sees no difference.

    >>> from pathnn.theory.examples import hexagon, open_triplet, two_triangles
    >>> first, second, third = wl_fingerprints([hexagon(), two_triangles(), open_triplet()])
    >>> bool((first == second).all()), bool((first == third).all())
    (True, False)
    """

    def one(index: int) -> Lanes:
        edge_index, num_nodes = graphs[index]
        csr = to_csr(edge_index, num_nodes)
        colors = start_levels(num_nodes, 0, None if initial is None else initial[index])[0]
        return refine_vertices(csr.rowptr.numpy(), csr.col.numpy(), colors)

    return stack_lanes(in_threads(one, range(len(graphs))), (2,))


def folklore_fingerprints(graphs: Sequence[Graph], *, most_vertices: int = MOST_VERTICES) -> Lanes:
    """The stable 2-FWL colours of each graph as two integers, `[graphs, 2]`: equal where 3-WL sees no difference.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> first, second = folklore_fingerprints([hexagon(), two_triangles()])
    >>> bool((first == second).all())
    False
    """
    largest = max((num_nodes for _, num_nodes in graphs), default=0)
    if largest > most_vertices:
        raise ValueError(
            f"a graph has {largest} vertices: expected at most {most_vertices}, as a round takes their third power. "
            "Leave 3-WL out, or raise most_vertices."
        )

    def one(index: int) -> Lanes:
        edge_index, num_nodes = graphs[index]
        kind = np.zeros((num_nodes, num_nodes), np.int64)
        kind[tuple(edge_index.numpy())] = 1
        np.fill_diagonal(kind, 2)
        return refine_pairs(kind)

    return stack_lanes(in_threads(one, range(len(graphs))), (2,))
