"""The restructuring changes no number, no weight, no trie and no key of a JSON document.

If a change is intended, run `python tests/helpers/write_golden.py NAME` and say why in the commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import write_golden

STORED: dict[str, Any] = {
    name: json.loads((Path(__file__).parent / f"{name}.json").read_text()) for name in write_golden.GOLDEN
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Two threads that wait for each other on a busy machine take 50 times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_outputs_and_gradients_of_the_shipped_models(dtype: torch.dtype, tolerance: float) -> None:
    found = write_golden.models(dtype)
    assert list(found) == list(STORED["models"])
    for name, expected in STORED["models"].items():
        out = torch.tensor(expected["out"])
        torch.testing.assert_close(
            torch.tensor(found[name]["out"]), out, rtol=0, atol=tolerance * float(out.abs().max())
        )
        assert list(found[name]["gradients"]) == list(expected["gradients"])
        largest = max(norm for norm, _ in expected["gradients"].values())
        for key, (norm, product) in expected["gradients"].items():
            close = pytest.approx([norm, product], rel=0, abs=tolerance * max(norm, 1e-3 * largest))
            assert found[name]["gradients"][key] == close, (name, key)


@pytest.mark.parametrize("name", ["weights", "tries"])
def test_hashes(name: str) -> None:
    assert write_golden.GOLDEN[name]() == STORED[name]


def test_keys_of_json_documents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mirror: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))
    found = write_golden.json_keys()
    assert list(found) == list(STORED["json_keys"])
    for command, keys in STORED["json_keys"].items():
        assert found[command] == keys, command
