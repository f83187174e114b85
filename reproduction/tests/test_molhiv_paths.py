"""What the results page says about the paths of ogbg-molhiv."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pathnn.data import load_dataset

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_shortest_paths_up_to_length_two_are_almost_all_single(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))
    graphs = load_dataset("molhiv").graphs
    collections: list[Any] = ["sp", "sp+", "ap"]
    sp, sp_plus, ap = (graphs.with_paths(collection=name, k=2).tries.sizes for name in collections)
    note = " ".join((ROOT / "docs" / "results.md").read_text().split())
    assert f"all but {int((sp != sp_plus).any(dim=1).sum())} of the {len(graphs):,} molecules" in note
    assert f"SP⁺ and AP in all but {int((sp_plus != ap).any(dim=1).sum())}" in note
    lengths = [int(sizes[:, -1].sum()) for sizes in (sp, sp_plus, ap)]
    assert f"of the {lengths[0] / 1e6:.1f} million paths" in note
    for fewer, more in pairwise(lengths):
        assert f"{(more - fewer) / fewer:.1%}" in note.replace(" %", "%")
