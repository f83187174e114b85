"""ZINC as PyG has it, saved for use here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from pathnn.data import DataError, DatasetNotFoundError, load_dataset, save_zinc
from pathnn.data.datasets import molecules

EDGES = torch.tensor([[0, 1], [1, 0]])


def molecule(atom: int = 5, *, bond: int = 1, y: float = 0.5) -> Data:
    """As `torch_geometric.datasets.ZINC` has them."""
    return Data(
        x=torch.tensor([[atom], [0]]), edge_index=EDGES, edge_attr=torch.tensor([bond, bond]), y=torch.tensor([y])
    )


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path / "no-mirror"))
    monkeypatch.setattr(molecules, "ZINC_SIZES", (3, 2, 1))


@pytest.mark.usefixtures("_own_cache")
def test_a_small_set_comes_back(monkeypatch: pytest.MonkeyPatch):
    path = save_zinc([molecule(i, y=i) for i in range(3)], [molecule(bond=3)] * 2, [molecule(27)])
    built = molecules.build_zinc(path)
    assert built.graphs.x.flatten().tolist() == [0, 0, 1, 0, 2, 0, 5, 0, 5, 0, 27, 0]
    assert built.graphs.y.flatten().tolist() == [0.0, 1.0, 2.0, 0.5, 0.5, 0.5]
    assert built.graphs.edge_attr.flatten().tolist() == [1] * 6 + [3] * 4 + [1] * 2
    split = built.splits[0]
    assert [part.tolist() for part in (split.train, split.val, split.test)] == [[0, 1, 2], [3, 4], [5]]
    monkeypatch.setattr(molecules, "ZINC_SIZES", (4, 2, 1))
    with pytest.raises(DataError, match=r"expected \(4, 2, 1\) graphs"):
        molecules.build_zinc(path)


@pytest.mark.usefixtures("_own_cache")
def test_the_whole_way(monkeypatch: pytest.MonkeyPatch):
    """What `load_dataset` says without the file, and that it reads what was saved."""
    with pytest.raises(DatasetNotFoundError, match="save_zinc"):
        load_dataset("zinc")
    parts = [molecule() for _ in range(10_000)], [molecule(1)] * 1000, [molecule(2)] * 1000
    monkeypatch.setattr(molecules, "ZINC_SIZES", (10_000, 1_000, 1_000))
    save_zinc(*parts)
    task = load_dataset("zinc")
    assert len(task.graphs) == 12_000
    assert task.graphs.x[-2:].flatten().tolist() == [2, 0]


@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([molecule()] * 4, "train: expected 3 graphs, got 4. Give ZINC"),
        ([molecule(28)] * 3, "train: expected codes from 0 to 27 in x, got 0 to 28"),
        ([molecule(bond=4)] * 3, "train: expected codes from 0 to 3 in edge_attr, got 4 to 4"),
        (
            [Data(x=torch.tensor([[1]]), edge_index=EDGES[:, :0], y=torch.tensor([0.0]))] * 3,
            "with x .atom types",
        ),
    ],
)
def test_other_graphs_are_refused(wrong: list[Data], message: str):
    with pytest.raises(ValueError, match=message):
        save_zinc(wrong, [molecule()] * 2, [molecule()])


@pytest.mark.usefixtures("_own_cache")
def test_single_atoms_and_damaged_files():
    """Molecules without bonds are none the worse; a file that was cut off, or holds other codes, is named."""
    atom = Data(x=torch.tensor([[3]]), edge_index=EDGES[:, :0], edge_attr=EDGES[0, :0], y=torch.tensor([1.0]))
    path = save_zinc([atom] * 3, [atom] * 2, [atom])
    assert molecules.build_zinc(path).graphs.num_edges == 0
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"no archive"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="Put a whole copy in its place"):
            molecules.build_zinc(path)
    path.write_bytes(whole)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, "val_x": arrays["val_x"] + 30})
    with pytest.raises(DataError, match=r"pyg\.npz: expected codes from 0 to 27 in x, got 3 to 33"):
        molecules.build_zinc(path)


def test_the_reference_data_survives_the_detour(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    expected = load_dataset("zinc")
    split = expected.splits[0]
    path = save_zinc(*(list(expected.graphs.subset(part)) for part in (split.train, split.val, split.test)))
    graphs = molecules.build_zinc(path).graphs
    for name in ("x", "edge_index", "edge_attr", "y", "node_ptr", "edge_ptr"):
        assert torch.equal(getattr(graphs, name).long(), getattr(expected.graphs, name).long()), name
    assert torch.equal(graphs.y, expected.graphs.y)
