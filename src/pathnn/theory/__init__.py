"""Section 3.2 of the paper, executable: WL colours, WL-trees, Path-Trees and annotated path sets.

The modules `exact` and `trees` use canonical forms without hashes: they cannot collide, but are slow and meant for
small graphs. `fingerprints` computes the same for many graphs of real size, and `isomorphism_test` compares both with
untrained networks.
"""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.theory.exact import annotated_path_sets as annotated_path_sets
    from pathnn.theory.exact import path_trees_distinguish as path_trees_distinguish
    from pathnn.theory.exact import paths_distinguish as paths_distinguish
    from pathnn.theory.exact import wl_colors as wl_colors
    from pathnn.theory.exact import wl_distinguishes as wl_distinguishes
    from pathnn.theory.isomorphism import IsomorphismTest as IsomorphismTest
    from pathnn.theory.isomorphism import isomorphism_test as isomorphism_test
    from pathnn.theory.trees import ColorTable as ColorTable
    from pathnn.theory.trees import Tree as Tree
    from pathnn.theory.trees import path_tree as path_tree
    from pathnn.theory.trees import path_trees as path_trees
    from pathnn.theory.trees import wl_tree as wl_tree
    from pathnn.theory.trees import wl_trees as wl_trees

EXPORTS = {
    "exact": ("annotated_path_sets", "path_trees_distinguish", "paths_distinguish", "wl_colors", "wl_distinguishes"),
    "isomorphism": ("IsomorphismTest", "isomorphism_test"),
    "trees": ("ColorTable", "Tree", "path_tree", "path_trees", "wl_tree", "wl_trees"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
