"""Pictures: graphs, the paths from a vertex, and its trees side by side. Needs matplotlib (`pathnn[plot]`).

Every drawing is a `matplotlib.figure.Figure`; save it with `figure.savefig("out.svg")`. No function opens a
window or changes matplotlib's global settings.
"""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.plots.graphs import graph_layout as graph_layout
    from pathnn.plots.paths import draw_paths as draw_paths
    from pathnn.plots.trees import draw_trees as draw_trees, tree_layout as tree_layout

__all__, __getattr__, __dir__ = exports(__name__)
