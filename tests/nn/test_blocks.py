"""Files of kernels are not searched for examples, because Triton need not be there; this one does without it."""

from __future__ import annotations

import doctest

from pathnn.nn.backends.triton.kernels import blocks


def test_examples() -> None:
    found = doctest.testmod(blocks)
    assert found.attempted > 3
    assert found.failed == 0
