"""Path neural networks for PyTorch Geometric."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn import (
        data as data,
        evaluation as evaluation,
        explain as explain,
        inference as inference,
        nn as nn,
        paths as paths,
        plots as plots,
        testing as testing,
        theory as theory,
        training as training,
    )
    from pathnn.estimators import PathClassifier as PathClassifier, PathRegressor as PathRegressor
    from pathnn.nn import PathConv as PathConv, PathLayer as PathLayer, PathLSTM as PathLSTM, PathNN as PathNN
    from pathnn.paths import (
        PathExplosionError as PathExplosionError,
        PathTrie as PathTrie,
        count_paths as count_paths,
        extract_paths as extract_paths,
        list_paths as list_paths,
    )
    from pathnn.paths.options import Collection as Collection, PathOptions as PathOptions
    from pathnn.transforms import AddPaths as AddPaths

__version__ = "0.2.0"

__all__, __getattr__, __dir__ = exports(__name__)
