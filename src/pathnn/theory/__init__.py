"""Test which graphs a PathNN distinguishes, with Path-Trees, WL-trees and fingerprints of annotated path sets.

`pathnn_reproduction.theory` computes section 3.2 of the paper without hashes, for small graphs.
"""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.theory.fingerprints import hashed_annotations as hashed_annotations
    from pathnn.theory.fingerprints import wl_fingerprints as wl_fingerprints
    from pathnn.theory.isomorphism import IsomorphismTest as IsomorphismTest
    from pathnn.theory.isomorphism import isomorphism_test as isomorphism_test
    from pathnn.theory.trees import Tree as Tree
    from pathnn.theory.trees import path_tree as path_tree
    from pathnn.theory.trees import wl_tree as wl_tree

EXPORTS = {
    "fingerprints": ("hashed_annotations", "wl_fingerprints"),
    "isomorphism": ("IsomorphismTest", "isomorphism_test"),
    "trees": ("Tree", "path_tree", "wl_tree"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
