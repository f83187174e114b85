"""A cache of its own, no network, and a runner that keeps standard output and standard error apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pathnn.cli.app import app


@pytest.fixture(scope="session")
def cli_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pathnn-cli-cache")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch, cli_cache: Path) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(cli_cache))
    monkeypatch.setenv("PATHNN_OFFLINE", "1")
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    monkeypatch.delenv("PATHNN_TRACEBACK", raising=False)


@pytest.fixture
def cli() -> Callable[..., Any]:
    """Runs `pathnn` with some arguments in this process."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])
