"""Every test of the data has the cache of its session and no network; `mirror` (see above) is the reference data."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_strategies import complete
from pathnn.data import PackedGraphs


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pathnn-cache")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch, session_cache: Path) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(session_cache))
    monkeypatch.setenv("PATHNN_OFFLINE", "1")
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache that no other test has touched."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PATHNN_DATA", str(folder))
    return folder


@pytest.fixture
def graphs() -> PackedGraphs:
    """Seven complete graphs with their paths."""
    sizes = [3, 4, 5, 4, 3, 5, 4]
    return PackedGraphs.from_edges([complete(n) for n in sizes], sizes).with_paths(collection="ap", k=3)
