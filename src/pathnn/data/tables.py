"""Tables of numbers as text."""

from __future__ import annotations

import io
import warnings

import numpy as np
from numpy.typing import NDArray


def parse_numbers(text: str) -> NDArray[np.float64]:
    """Rows of numbers separated by commas, `[rows, columns]`; `ValueError` says which row is none.

    >>> parse_numbers("1, 2\\n3, 4\\n").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a table without rows is a table
        return np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.float64, ndmin=2)
