"""Which graphs PathNNs distinguish: Path-Trees, WL-trees, fingerprints of annotated path sets, isomorphism tests.

`pathnn_reproduction.theory` has the objects of section 3.2 of the paper without hashes, for small graphs.
"""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.theory.fingerprints import hashed_annotations as hashed_annotations, wl_fingerprints as wl_fingerprints
    from pathnn.theory.isomorphism import IsomorphismTest as IsomorphismTest, isomorphism_test as isomorphism_test
    from pathnn.theory.trees import Tree as Tree, path_tree as path_tree, wl_tree as wl_tree

__all__, __getattr__, __dir__ = exports(__name__)
