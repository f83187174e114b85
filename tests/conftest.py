"""What all tests share: where the reference data is, one thread per process when there are several processes, and
Triton's interpreter where there is no GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # for tests/interpreted; Triton reads it when it is imported, by whomever
MIRROR = Path(os.environ.get("PATHNN_MIRROR") or ROOT.parent / "shared" / "data").resolve()


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the reference data, which `PATHNN_MIRROR` then names."""
    if not (MIRROR / "SHA256SUMS").is_file():
        pytest.skip("the reference data is not at hand: set PATHNN_MIRROR to its folder")
    monkeypatch.setenv("PATHNN_MIRROR", str(MIRROR))
    return MIRROR
