"""Draw graphs, the paths from a vertex, and its trees, with matplotlib (`pathnn[plot]`).

Each drawing is a `matplotlib.figure.Figure`, which `figure.savefig("out.svg")` saves. No function opens a window or
changes the global settings of matplotlib.
"""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.plots.graphs import graph_layout as graph_layout
    from pathnn.plots.paths import draw_paths as draw_paths
    from pathnn.plots.trees import draw_trees as draw_trees, tree_layout as tree_layout

__all__, __getattr__, __dir__ = exports(__name__)
