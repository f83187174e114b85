"""When the Triton backend can be used."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    pass


@cache
def _triton_at_hand() -> bool:
    return find_spec("triton") is not None


def on_triton(like: Tensor) -> bool:
    """Whether this engine works with such a tensor: float32 on an NVIDIA GPU, and Triton is installed.

    `PATHNN_TRITON=0` in the environment turns it off; then kernels of torch do the same.
    """
    wanted = os.environ.get("PATHNN_TRITON") != "0"
    return wanted and like.is_cuda and like.dtype == torch.float32 and torch.version.hip is None and _triton_at_hand()
