"""Path neural networks: the LSTM over paths, layers, encoders, presets and baselines."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.nn.backends.base import EdgeTypes as EdgeTypes
    from pathnn.nn.baselines import Baseline as Baseline
    from pathnn.nn.baselines import BaselineConfig as BaselineConfig
    from pathnn.nn.blocks import AllLengths as AllLengths
    from pathnn.nn.blocks import PathBlock as PathBlock
    from pathnn.nn.cells import PathCell as PathCell
    from pathnn.nn.deep_path_nn import DeepPathNN as DeepPathNN
    from pathnn.nn.deep_path_nn import DeepPathNNConfig as DeepPathNNConfig
    from pathnn.nn.encoders import CategoricalEncoder as CategoricalEncoder
    from pathnn.nn.encoders import MLPEncoder as MLPEncoder
    from pathnn.nn.encoders import OneHotEncoder as OneHotEncoder
    from pathnn.nn.path_lstm import PathLSTM as PathLSTM
    from pathnn.nn.path_lstm import PathRNN as PathRNN
    from pathnn.nn.path_nn import PathConv as PathConv
    from pathnn.nn.path_nn import PathLayer as PathLayer
    from pathnn.nn.path_nn import PathNN as PathNN
    from pathnn.nn.path_nn import PathNNConfig as PathNNConfig
    from pathnn.nn.presets import paper_config as paper_config
    from pathnn.nn.presets import plus_config as plus_config
    from pathnn.nn.readout import MLPHead as MLPHead
    from pathnn.nn.readout import Readout as Readout

EXPORTS = {
    "backends.base": ("EdgeTypes",),
    "baselines": ("Baseline", "BaselineConfig"),
    "blocks": ("AllLengths", "PathBlock"),
    "cells": ("PathCell",),
    "deep_path_nn": ("DeepPathNN", "DeepPathNNConfig"),
    "encoders": ("CategoricalEncoder", "MLPEncoder", "OneHotEncoder"),
    "path_lstm": ("PathLSTM", "PathRNN"),
    "path_nn": ("PathConv", "PathLayer", "PathNN", "PathNNConfig"),
    "presets": ("paper_config", "plus_config"),
    "readout": ("MLPHead", "Readout"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
