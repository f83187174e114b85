"""Trained models are found by name, in folders and on the Hub; a model that is saved is loaded as it was."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from pathnn import PathNN, hub
from pathnn.nn import Baseline

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


RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def small_model(**options: Any) -> PathNN:
    torch.manual_seed(0)
    return PathNN(3, 8, 2, collection="ap", k=2, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cell": "gru", "aggregation": "attention", "extend": True, "distances": False},
        {"edge_channels": (4, 2), "readout": "mean", "norm": None, "graph_channels": 2},
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_saved_model_is_loaded_as_it_was(tmp_path: Path, options: dict[str, Any], dtype: torch.dtype) -> None:
    model = small_model(**options).to(dtype)
    model.save_pretrained(tmp_path / "a" / "b")
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["config.json", "model.safetensors"]
    again = PathNN.from_pretrained(tmp_path / "a" / "b")
    assert again.config == model.config
    assert not again.training
    assert again.state_dict().keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value)
        assert again.state_dict()[name].dtype == value.dtype


def test_a_folder_comes_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_model().save_pretrained("me/model")
    assert PathNN.from_pretrained("me/model").config == small_model().config


def fake_hub(monkeypatch: pytest.MonkeyPatch, download: Any) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=download))


def test_a_repository_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_model().save_pretrained(tmp_path / "remote")
    (tmp_path / "remote" / "pytorch_model.bin").write_bytes(b"a pickle")
    asked = []

    def download(repository: str, *, allow_patterns: list[str]) -> str:
        asked.append(repository)
        (tmp_path / "snapshot").mkdir()
        for name in allow_patterns:
            shutil.copy(tmp_path / "remote" / name, tmp_path / "snapshot" / name)
        return str(tmp_path / "snapshot")

    fake_hub(monkeypatch, download)
    model = PathNN.from_pretrained("someone/a.model-1")
    assert asked == ["someone/a.model-1"]
    assert torch.equal(model.lstm.weight_hh_l0, small_model().lstm.weight_hh_l0)
    assert not (tmp_path / "snapshot" / "pytorch_model.bin").exists()


def test_names_and_paths_are_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_hub(monkeypatch, lambda *args, **options: pytest.fail("a download"))
    monkeypatch.chdir(tmp_path)
    for source in ("mnist", "a/b/c", "../x", str(tmp_path / "none"), tmp_path / "none", Path("runs/none")):
        with pytest.raises(ValueError, match="no trained model"):
            PathNN.from_pretrained(source)


def test_a_repository_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(repository: str, *, allow_patterns: list[str]) -> str:
        raise OSError("401: no such repository")

    fake_hub(monkeypatch, download)
    with pytest.raises(ValueError, match="gives no model: 401"):
        PathNN.from_pretrained("someone/model")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"pip install 'pathnn\[hub\]'"):
        PathNN.from_pretrained("someone/model")


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    small_model().save_pretrained(tmp_path / "one")
    small_model(cell="gru").save_pretrained(tmp_path / "two")
    shutil.copy(tmp_path / "two" / "model.safetensors", tmp_path / "one" / "model.safetensors")
    with pytest.raises(ValueError, match="its checksum differs"):
        PathNN.from_pretrained(tmp_path / "one")
    file = tmp_path / "two" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match="its checksum is wrong"):
        PathNN.from_pretrained(tmp_path / "two")
    (tmp_path / "two" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="does not exist"):
        PathNN.from_pretrained(tmp_path / "two")


def test_a_damaged_config_is_refused(tmp_path: Path) -> None:
    small_model().save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    assert json.loads(config.read_text())["config"]["collection"] == "ap"
    for text in ("{", "[]", "{}"):
        config.write_text(text)
        with pytest.raises(ValueError, match="damaged"):
            PathNN.from_pretrained(tmp_path)


def test_what_a_config_cannot_describe_is_not_saved(tmp_path: Path) -> None:
    from torch_geometric.nn import MedianAggregation

    model = small_model()
    model.head = nn.Linear(8, 2)
    for custom in (model, small_model(aggregation=MedianAggregation())):
        with pytest.raises(ValueError, match="does not describe it"):
            custom.save_pretrained(tmp_path / "custom")
    assert not (tmp_path / "custom").exists()


def test_a_baseline_is_not_a_path_nn(tmp_path: Path) -> None:
    from pathnn.nn.model_file import save_pretrained

    save_pretrained(Baseline("gin", 3, 8, 2), tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is a Baseline, not a PathNN"):
        PathNN.from_pretrained(tmp_path)
