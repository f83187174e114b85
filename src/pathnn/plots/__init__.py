"""Pictures: graphs, the paths from a vertex, and its trees side by side. Needs matplotlib (`pathnn[plot]`).

Every drawing is a `matplotlib.figure.Figure`; save it with `figure.savefig("out.svg")`. No function opens a
window or changes matplotlib's global settings.
"""

from pathnn.plots.graphs import draw_graphs as draw_graphs
from pathnn.plots.layout import graph_layout as graph_layout
from pathnn.plots.paths import draw_paths as draw_paths
from pathnn.plots.trees import draw_tree_list as draw_tree_list
from pathnn.plots.trees import draw_trees as draw_trees
from pathnn.plots.trees import tree_layout as tree_layout
