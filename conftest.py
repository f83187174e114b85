"""What all tests share: where the reference data is, one thread per process when there are several processes, and
Triton's interpreter where there is no GPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from pathnn.cli.app import app

ROOT = Path(__file__).resolve().parents[0]
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


@pytest.fixture(scope="session")
def cli_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pathnn-cli-cache")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, cli_cache: Path) -> None:
    """A cache of the tests, and no download."""
    monkeypatch.setenv("PATHNN_DATA", str(cli_cache))
    monkeypatch.setenv("PATHNN_OFFLINE", "1")
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    monkeypatch.delenv("PATHNN_TRACEBACK", raising=False)


@pytest.fixture
def cli() -> Callable[..., Any]:
    """Runs `pathnn` with some arguments in this process."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])
