"""The model: an LSTM over paths, layers, encoders, presets and baselines."""

from pathnn.nn.baselines import Baseline, BaselineConfig
from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.encoders import CategoricalEncoder, MLPEncoder, OneHotEncoder
from pathnn.nn.path_conv import PathConv
from pathnn.nn.path_lstm import PathLSTM
from pathnn.nn.path_nn import PathNN, PathNNConfig
from pathnn.nn.presets import paper_config
from pathnn.nn.readout import MLPHead, Readout

__all__ = [
    "Baseline",
    "BaselineConfig",
    "CategoricalEncoder",
    "EdgeTypes",
    "MLPEncoder",
    "MLPHead",
    "OneHotEncoder",
    "PathConv",
    "PathLSTM",
    "PathNN",
    "PathNNConfig",
    "Readout",
    "paper_config",
]
