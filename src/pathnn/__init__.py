"""Path neural networks for PyTorch Geometric."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn import data as data
    from pathnn import evaluation as evaluation
    from pathnn import explain as explain
    from pathnn import inference as inference
    from pathnn import nn as nn
    from pathnn import paths as paths
    from pathnn import plots as plots
    from pathnn import testing as testing
    from pathnn import theory as theory
    from pathnn import training as training
    from pathnn.estimators import PathClassifier as PathClassifier
    from pathnn.estimators import PathRegressor as PathRegressor
    from pathnn.nn import PathConv as PathConv
    from pathnn.nn import PathLayer as PathLayer
    from pathnn.nn import PathLSTM as PathLSTM
    from pathnn.nn import PathNN as PathNN
    from pathnn.paths import PathExplosionError as PathExplosionError
    from pathnn.paths import PathTrie as PathTrie
    from pathnn.paths import count_paths as count_paths
    from pathnn.paths import extract_paths as extract_paths
    from pathnn.paths import list_paths as list_paths
    from pathnn.paths.options import Collection as Collection
    from pathnn.paths.options import PathOptions as PathOptions
    from pathnn.transforms import AddPaths as AddPaths

__version__ = "0.2.0"

EXPORTS = {
    "estimators": ("PathClassifier", "PathRegressor"),
    "nn": ("PathConv", "PathLSTM", "PathLayer", "PathNN"),
    "paths": ("PathExplosionError", "PathTrie", "count_paths", "extract_paths", "list_paths"),
    "paths.options": ("Collection", "PathOptions"),
    "transforms": ("AddPaths",),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
