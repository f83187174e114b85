"""The Python of docs/training.md, docs/model.md and docs/your-own.md runs, block by block."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine_tasks import one_thread as one_thread

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["training.md", "model.md", "your-own.md"])
def test_the_code_of_the_docs_runs(monkeypatch, tmp_path, page):
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}  # a block may go on from the one before
    for block in blocks:
        if "Predictor(" in block and find_spec("rdkit") is None:
            continue  # it reads SMILES (extra mol)
        exec(compile(block, page, "exec"), names)
