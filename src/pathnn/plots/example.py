"""Two vertices or two graphs that show what a test of section 3.2 can or cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathnn.plots.graphs import draw_graphs
from pathnn.theory.compare import Example
from pathnn.theory.graphs import edges_to_index

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_example(example: Example) -> Figure:
    """Draw the graph or graphs of an example, its vertices dark.

    >>> from pathnn.theory.compare import Example
    >>> figure = draw_example(Example((3, 1), 2, ((1, ()), (2, ((0, 1),))), (0, 0)))
    >>> len(figure.axes)
    2
    """
    graphs = [(edges_to_index(edges), num_nodes) for num_nodes, edges in example.graphs]
    names = [f"$v_{{{v + 1}}}$" for v in example.vertices]
    height = f"height {example.height}"
    if not names:
        return draw_graphs(graphs, captions=[f"{word} graph, {height}" for word in ("first", "second")[: len(graphs)]])
    if len(graphs) == 1:
        return draw_graphs(graphs, captions=[f"{' and '.join(names)}, {height}"], sources=[example.vertices])
    return draw_graphs(graphs, captions=[f"{name}, {height}" for name in names], sources=example.vertices)
