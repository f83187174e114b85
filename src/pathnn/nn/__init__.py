"""Path neural networks: the LSTM over paths, layers, encoders, presets and baselines."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.nn.backends.base import EdgeTypes as EdgeTypes
    from pathnn.nn.baselines import Baseline as Baseline, BaselineConfig as BaselineConfig
    from pathnn.nn.blocks import AllLengths as AllLengths, PathBlock as PathBlock
    from pathnn.nn.cells import PathCell as PathCell
    from pathnn.nn.deep_path_nn import DeepPathNN as DeepPathNN, DeepPathNNConfig as DeepPathNNConfig
    from pathnn.nn.encoders import (
        CategoricalEncoder as CategoricalEncoder,
        MLPEncoder as MLPEncoder,
        OneHotEncoder as OneHotEncoder,
    )
    from pathnn.nn.path_lstm import PathLSTM as PathLSTM, PathRNN as PathRNN
    from pathnn.nn.path_nn import (
        PathConv as PathConv,
        PathLayer as PathLayer,
        PathNN as PathNN,
        PathNNConfig as PathNNConfig,
    )
    from pathnn.nn.presets import paper_config as paper_config, plus_config as plus_config
    from pathnn.nn.readout import MLPHead as MLPHead, Readout as Readout

__all__, __getattr__, __dir__ = exports(__name__)
