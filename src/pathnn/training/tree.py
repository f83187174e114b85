"""Nested states (of optimizers, schedulers) as named tensors and JSON, and back: no pickle."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

TENSOR, DICT, TUPLE = "$tensor", "$dict", "$tuple"


def flatten(tree: Any, prefix: str, tensors: dict[str, Tensor]) -> Any:
    """The tree as what JSON can hold; its tensors are put into `tensors` under names that begin with
    `prefix`.

    >>> tensors = {}
    >>> flatten({0: (1.5, torch.ones(2))}, "state", tensors)
    {'$dict': [[0, {'$tuple': [1.5, {'$tensor': 'state.0.1'}]}]]}
    >>> list(tensors)
    ['state.0.1']
    """
    if isinstance(tree, Tensor):
        tensors[prefix] = tree
        return {TENSOR: prefix}
    if isinstance(tree, dict):
        return {DICT: [[key, flatten(value, f"{prefix}.{key}", tensors)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        entries = [flatten(value, f"{prefix}.{i}", tensors) for i, value in enumerate(tree)]
        return {TUPLE: entries} if isinstance(tree, tuple) else entries
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(f"{prefix}: a {type(tree).__name__} cannot be saved; expected tensors and plain values.")


def unflatten(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """The inverse of `flatten`.

    >>> unflatten({"$dict": [[0, {"$tensor": "a"}]]}, {"a": torch.tensor(2)})
    {0: tensor(2)}
    """
    if isinstance(tree, list):
        return [unflatten(value, tensors) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if TENSOR in tree:
        return tensors[tree[TENSOR]]
    if TUPLE in tree:
        return tuple(unflatten(value, tensors) for value in tree[TUPLE])
    return {key: unflatten(value, tensors) for key, value in tree[DICT]}


def to_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Separate, contiguous copies on the CPU, as the safetensors format wants them."""
    return {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
