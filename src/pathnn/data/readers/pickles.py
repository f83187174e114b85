"""Read pickles of tensors, arrays and plain containers, without executing anything that they name."""

from __future__ import annotations

import io
import pickle
from typing import IO, Any

import numpy as np
import torch

KNOWN = frozenset({
    "torch._utils._rebuild_tensor_v2", "torch.storage._load_from_bytes", "collections.OrderedDict", "_codecs.encode",
    "numpy.ndarray", "numpy.dtype", "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar",
})  # fmt: skip
"""The functions and classes that pickles of tensors and arrays name. None of them is imported or called."""


class Call:
    """A call in a pickle, noted and not executed, with the state set later; without arguments, the function itself."""

    __slots__ = ("args", "name", "state")

    def __init__(self, name: str, args: Any = None) -> None:
        self.name, self.args = name, args
        self.state: Any = None

    def __call__(self, *args: Any) -> Call:
        """Note a call of the function."""
        return Call(self.name, args)

    def __setstate__(self, state: Any) -> None:
        if self.args is None:
            raise pickle.UnpicklingError(f"it changes {self.name}")
        self.state = state


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in KNOWN:
            raise pickle.UnpicklingError(f"it names {module}.{name}: expected tensors, arrays and plain containers")
        return Call(name)


def read_pickle(file: IO[bytes]) -> Any:
    """Read a pickle of plain containers with tensors and arrays, which stay calls until `value_of` makes them."""
    return _Reader(file).load()


def value_of(value: Any) -> Any:
    """Return the tensor, array, list or number that a call in a pickle stands for; other values as they are."""
    if not isinstance(value, Call):
        return value
    if value.name == "encode":  # bytes, in old pickles
        return value.args[0].encode("latin1")
    if value.name == "scalar":
        return np.frombuffer(value_of(value.args[1]), value.args[0].args[0])[0]
    if value.name == "_reconstruct" and value.state is not None:
        _, shape, dtype, fortran, content = value.state
        if isinstance(content, list):  # of an array of objects
            return content
        return np.frombuffer(value_of(content), dtype.args[0]).reshape(shape, order="F" if fortran else "C")
    if value.name == "_rebuild_tensor_v2":
        storage, offset, size, stride, *_ = value.args
        content = torch.load(io.BytesIO(value_of(storage.args[0])), weights_only=True)
        if isinstance(content, torch.storage.TypedStorage):
            return torch.empty(0, dtype=content.dtype).set_(content).as_strided(size, stride, offset)
    raise TypeError(f"a {value.name} in a pickle is neither a tensor nor an array")


def read_npy(file: IO[bytes]) -> Any:
    """Return the values of an `.npy` file with one axis; objects are read as `read_pickle` does."""
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    _, _, dtype = header(file)
    return value_of(read_pickle(file)) if dtype.hasobject else np.frombuffer(file.read(), dtype)
