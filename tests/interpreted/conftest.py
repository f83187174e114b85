from __future__ import annotations

import pytest

from triton_on_cpu import MISSING, Interpreted, install


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Interpreted:
    """The kernels of the GPU, in Triton's interpreter."""
    if MISSING is not None:
        pytest.skip(MISSING)
    return install(monkeypatch)
