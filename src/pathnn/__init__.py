"""Path neural networks for PyTorch Geometric."""

from pathnn.collection import Collection as Collection
from pathnn.nn import PathConv as PathConv
from pathnn.nn import PathLSTM as PathLSTM
from pathnn.nn import PathNN as PathNN
from pathnn.paths import PathExplosionError as PathExplosionError
from pathnn.paths import PathTrie as PathTrie
from pathnn.paths import count_paths as count_paths
from pathnn.paths import extract_paths as extract_paths
from pathnn.paths import list_paths as list_paths
from pathnn.transforms import AddPaths as AddPaths

__version__ = "0.1.0"

__all__ = [
    "AddPaths", "Collection", "PathConv", "PathExplosionError", "PathLSTM", "PathNN", "PathTrie",
    "count_paths", "extract_paths", "list_paths",
]  # fmt: skip
