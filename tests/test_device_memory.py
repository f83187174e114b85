"""Free memory in a container: its limit, less what is used and would not be given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathnn import device as memory


def test_what_the_kernel_keeps_of_files_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (
        ("memory.max", f"{8 * 2**30}\n"),
        ("memory.current", f"{7 * 2**30}\n"),
        ("memory.stat", f"anon 5\ninactive_file {5 * 2**30}\nactive_file {2**30}\n"),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "_meminfo", lambda: 100 * 2**30)
    assert memory.free_memory("cpu") == 7 * 2**30
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory("cpu") == 100 * 2**30
