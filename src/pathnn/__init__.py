"""Path neural networks for PyTorch Geometric."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathnn.nn import PathConv as PathConv
    from pathnn.nn import PathLSTM as PathLSTM
    from pathnn.nn import PathNN as PathNN
    from pathnn.paths import PathExplosionError as PathExplosionError
    from pathnn.paths import PathTrie as PathTrie
    from pathnn.paths import count_paths as count_paths
    from pathnn.paths import extract_paths as extract_paths
    from pathnn.paths import list_paths as list_paths
    from pathnn.paths.options import Collection as Collection
    from pathnn.transforms import AddPaths as AddPaths

__version__ = "0.1.0"

__all__ = [
    "AddPaths", "Collection", "PathConv", "PathExplosionError", "PathLSTM", "PathNN", "PathTrie",
    "count_paths", "extract_paths", "list_paths",
]  # fmt: skip

HOMES = {
    "pathnn.paths.options": ("Collection",),
    "pathnn.nn": ("PathConv", "PathLSTM", "PathNN"),
    "pathnn.paths": ("PathExplosionError", "PathTrie", "count_paths", "extract_paths", "list_paths"),
    "pathnn.transforms": ("AddPaths",),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `pathnn --help` needs neither torch nor PyG."""
    for module, names in HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'pathnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
