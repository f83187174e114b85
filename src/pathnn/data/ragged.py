"""Rows of ragged arrays: which rows belong to the chosen segments, computed without a loop over segments."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class RaggedRows:
    """The rows of some segments of a ragged array, one segment after the other.

    `rows` are rows of the flat array, `segment` is the position of each row's segment among the chosen ones,
    `ptr` (always on the CPU) is where each chosen segment begins in the result.
    """

    rows: Tensor
    segment: Tensor
    ptr: Tensor


def ragged_rows(ptr: Tensor, index: Tensor, device: torch.device | str = "cpu") -> RaggedRows:
    """The rows of the segments `index` of an array whose segment `i` is `ptr[i]` to `ptr[i + 1]`.

    `ptr` and `index` are on the CPU, so that the size of the result is known without waiting for a device.

    >>> found = ragged_rows(torch.tensor([0, 2, 5, 6]), torch.tensor([2, 0]))
    >>> found.rows.tolist(), found.segment.tolist(), found.ptr.tolist()
    ([5, 0, 1], [0, 1, 1], [0, 1, 3])
    """
    start = ptr[index]
    size = ptr[index + 1] - start
    out_ptr = offsets(size)
    total = int(out_ptr[-1])
    shift = start - out_ptr[:-1]
    size, shift = size.to(device), shift.to(device)
    segment = torch.repeat_interleave(size, output_size=total)
    return RaggedRows(torch.arange(total, device=device) + shift[segment], segment, out_ptr)


def offsets(sizes: Tensor) -> Tensor:
    """Where segments of these sizes begin, and where the last one ends: `[len(sizes) + 1]`, int64.

    >>> offsets(torch.tensor([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    ptr = torch.zeros(sizes.numel() + 1, dtype=torch.long, device=sizes.device)
    torch.cumsum(sizes, dim=0, out=ptr[1:])
    return ptr
