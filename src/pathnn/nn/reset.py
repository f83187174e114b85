"""Drawing the weights of a model anew, part by part, as PyG's layers can."""

from __future__ import annotations

from typing import Any

from torch import nn


def reset_parts(module: nn.Module) -> None:
    """Call `reset_parameters` of every part of a module, the outermost that has one.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2)))
    >>> _ = model[1][0].weight.data.fill_(7.0)
    >>> reset_parts(model)
    >>> model[1][0].weight.tolist()
    [1.0, 1.0]
    """
    for child in module.children():
        own: Any = getattr(child, "reset_parameters", None)
        if own is None:
            reset_parts(child)
        else:
            own()
