"""The Python of docs/training.md runs."""

from __future__ import annotations

import re
from pathlib import Path

from engine_tasks import one_thread as one_thread

DOC = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def test_the_code_of_the_docs_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    blocks = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(DOC), "exec"), {})
