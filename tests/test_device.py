"""One function resolves the names of devices."""

from __future__ import annotations

import pytest
import torch

from pathnn.device import default_max_entries, device_name, is_first_process, resolve


def test_names_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(resolve(name)) for name in ("auto", "cpu", "cuda", "cuda:1")] == ["cuda", "cpu", "cuda", "cuda:1"]
    with pytest.raises(ValueError, match="2 CUDA devices"):
        resolve("cuda:2")


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert str(resolve("auto")) == "cpu"
    for name in ("cuda", "cuda:0"):
        with pytest.raises(ValueError, match="no CUDA device"):
            resolve(name)


def test_a_single_process_on_a_cpu() -> None:
    assert device_name(torch.device("cpu")) == "cpu"
    assert is_first_process()
    assert default_max_entries("cpu", hidden_channels=64) >= 2 * default_max_entries("cpu", hidden_channels=512)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "mps", "cpu:0", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown: expected auto, cpu, cuda or cuda:N"):
        resolve(name)
