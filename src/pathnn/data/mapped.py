"""A safetensors file as tensors that live in the file: pages are read when they are touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.errors import DataError

DTYPES: dict[str, Any] = {
    "I32": np.int32,
    "I64": np.int64,
    "F32": np.float32,
    "U8": np.uint8,
    "I16": np.int16,
}


def map_safetensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, mapped copy-on-write: no memory until read, never written back."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        return {name: _map(path, 8 + length, entry) for name, entry in header.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} cannot be mapped as safetensors: {error!r}.") from error


def _map(path: Path, start: int, entry: dict[str, Any]) -> Tensor:
    dtype, shape, (begin, end) = DTYPES[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
    if begin == end:
        return torch.from_numpy(np.empty(shape, dtype=dtype))
    return torch.from_numpy(np.memmap(path, dtype=dtype, mode="c", offset=start + begin, shape=shape))
