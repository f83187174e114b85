"""Trained models are found by name, from a clone of the repository and in the user's cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pathnn import PathNN, hub

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))


def test_the_models_of_a_clone_are_found() -> None:
    shipped = sorted(path.stem for path in (ROOT / "models").glob("*.safetensors"))
    assert shipped
    assert hub.pretrained_names() == shipped
    assert hub.pretrained_file(shipped[0]).resolve() == ROOT / "models" / f"{shipped[0]}.safetensors"
    assert not PathNN.from_pretrained(shipped[0]).training


def test_the_cache_comes_first(tmp_path: Path) -> None:
    name = hub.pretrained_names()[0]
    file = tmp_path / "models" / f"{name}.safetensors"
    file.parent.mkdir()
    shutil.copy(hub.pretrained_file(name), file)
    assert hub.pretrained_file(name) == file


def test_a_licence_that_keeps_a_model_out_of_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hub, "model_folders", lambda: [tmp_path])
    for name in hub.NON_COMMERCIAL:
        with pytest.raises(ValueError, match="CC BY-NC"):
            hub.pretrained_file(name)
    with pytest.raises(ValueError, match="none is installed"):
        hub.pretrained_file("zinc-ap")


def test_a_damaged_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="damaged"):
        PathNN.from_pretrained("mine")
