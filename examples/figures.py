"""Draw the figures of docs/theory.md again: `python examples/figures.py [FOLDER]` (default: docs/figures)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pathnn.plots import draw_graphs, draw_paths, draw_tree_list, draw_trees
from pathnn.theory import path_tree, wl_tree
from pathnn.theory.examples import figure_graph, hexagon, open_triplet, path_of_five, triangle, two_triangles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = ["$v_{1}$", "$v_{2}$", "$v_{3}$", "$v_{4}$", "$v_{5}$"]


def triplet_and_triangle() -> Figure:
    graphs = [open_triplet(), triangle()]
    trees = [
        *(wl_tree(*graph, source=0, height=2) for graph in graphs),
        *(path_tree(*graph, source=0, collection="sp+", k=2) for graph in graphs),
    ]
    captions = [
        "WL-tree, open triplet",
        "WL-tree, triangle",
        "SP- and SP$^+$-tree, open triplet",
        "SP- and SP$^+$-tree, triangle",
    ]
    return draw_tree_list(trees, captions=captions, labels=LABELS)


def triangle_and_path() -> Figure:
    graphs = [triangle(), path_of_five()]
    trees = [
        *(path_tree(*graph, source=0, collection="ap", k=3) for graph in graphs),
        *(wl_tree(*graph, source=0, height=3) for graph in graphs),
    ]
    captions = ["AP-tree, triangle", "AP-tree, path", "WL-tree, triangle", "WL-tree, path"]
    return draw_tree_list(trees, captions=captions, labels=LABELS)


def figures() -> dict[str, Figure]:
    """Name and figure of each picture."""
    return {
        "paths": draw_paths(*figure_graph(), source=0, k=(2, 2, 3)),
        "trees": draw_trees(*figure_graph(), source=0, k=(3, 2, 2, 3)),
        "wl_pair": draw_graphs([hexagon(), two_triangles()], captions=["a hexagon", "two triangles"]),
        "triplet_triangle": draw_graphs(
            [open_triplet(), triangle()], captions=["an open triplet", "a triangle"], sources=[0, 0]
        ),
        "triplet_triangle_trees": triplet_and_triangle(),
        "triangle_path": draw_graphs(
            [triangle(), path_of_five()], captions=["a triangle", "a path of five"], sources=[0, 0]
        ),
        "triangle_path_trees": triangle_and_path(),
    }


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures().items():
        # Without the software's version in it, the file changes only when the picture does.
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
        print(f"wrote {name}.png")


if __name__ == "__main__":
    main()
