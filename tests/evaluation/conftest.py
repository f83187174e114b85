from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from molecule_runs import write_molecules

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_molecules(tmp_path_factory.mktemp("data") / "molecules.csv")
