"""Files as others publish them: pickles of ZINC, BREC's array, the text of EXP; and pickles that must be refused."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pathnn.data import DataError, DatasetNotFoundError, dataset_status, load_dataset
from pathnn.data.datasets import molecules
from pathnn.data.readers.pickles import read_npy, read_pickle, value_of

PARTS = ("train", "val", "test")


def molecule(atoms: list[int], bonds: list[tuple[int, int, int]], y: float) -> dict[str, Any]:
    """As the benchmark stores them."""
    matrix = torch.zeros(len(atoms), len(atoms), dtype=torch.int8)
    for u, v, kind in bonds:
        matrix[u, v] = matrix[v, u] = kind
    names = ("num_atom", "atom_type", "bond_type", "logP_SA_cycle_normalized")
    return dict(zip(names, (len(atoms), torch.tensor(atoms).char(), matrix, torch.tensor([y])), strict=True))


MOLECULES = [
    molecule([5, 0, 27], [(0, 1, 1), (1, 2, 3)], 0.5),
    molecule([3], [], -1.0),
    molecule([1, 2], [(0, 1, 2)], 2.0),
]
INDEX = {"train": "2,0", "val": "1", "test": "0,1"}


@pytest.fixture
def published(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with a folder `raw`, as PyG makes it, for the parts of `INDEX`."""
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr(molecules, "ZINC_SIZES", (2, 1, 2))
    folder = tmp_path / "mirror" / "zinc" / "raw"
    folder.mkdir(parents=True)
    for protocol, part in enumerate(PARTS, start=2):
        (folder / f"{part}.pickle").write_bytes(pickle.dumps(MOLECULES, protocol=protocol))
        (folder / f"{part}.index").write_text(INDEX[part] + "\n")
    return folder


def check_zinc(path: Path) -> None:
    built = molecules.build_zinc(path)
    assert built.graphs.x.flatten().tolist() == [1, 2, 5, 0, 27, 3, 5, 0, 27, 3]
    assert built.graphs.edge_index.tolist() == [[0, 1, 0, 1, 1, 2, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1, 1, 0, 2, 1]]
    assert built.graphs.edge_attr.flatten().tolist() == [2, 2, 1, 1, 3, 3, 1, 1, 3, 3]
    assert built.graphs.y.flatten().tolist() == [2.0, 0.5, -1.0, 0.5, -1.0]
    assert [part.tolist() for part in vars(built.splits[0]).values()] == [[0, 1], [2], [3, 4]]


def test_zinc_is_read_from_the_folder_of_pyg_and_from_the_zip(published: Path) -> None:
    check_zinc(published / "train.pickle")
    with zipfile.ZipFile(published / "molecules.zip", "w") as archive:
        for part in PARTS:
            archive.write(published / f"{part}.pickle", f"molecules/{part}.pickle")
            (published / f"{part}.pickle").unlink()
    check_zinc(published / "molecules.zip")


def test_a_reader_finds_what_is_published(published: Path) -> None:
    status = {one.name: one for one in dataset_status()}
    assert status["zinc"].files_at_hand
    assert "molecules.zip" in status["zinc"].source
    assert all(one.source.startswith("https://") for one in status.values() if one.name not in ("csl", "atlas"))
    with pytest.raises(DataError, match="5 graphs; expected 12000"):
        load_dataset("zinc")


def test_zinc_without_its_index_or_with_other_codes_is_refused(published: Path) -> None:
    (published / "val.index").unlink()
    with pytest.raises(DatasetNotFoundError, match=r"val\.index"):
        molecules.build_zinc(published / "train.pickle")
    (published / "val.index").write_text("1")
    (published / "val.pickle").write_bytes(pickle.dumps([MOLECULES[0], molecule([28], [], 0.0)]))
    with pytest.raises(DataError, match="codes from 0 to 27 in x, got 0 to 28"):
        molecules.build_zinc(published / "train.pickle")
    (published / "val.index").write_text("7")
    with pytest.raises(DataError, match="IndexError"):
        molecules.build_zinc(published / "train.pickle")


@pytest.mark.parametrize("kind", [object, "S2"])
@pytest.mark.parametrize("zipped", [False, True])
def test_brec_is_read_from_its_array(kind: Any, zipped: bool, tmp_path: Path, own_cache: Path, monkeypatch) -> None:
    lines = np.full(51_200, b"A?", dtype=kind)
    lines[:25_600:64] = b"A_"
    lines[1] = b"Bw" if kind == "S2" else b">>graph6<<Bw\n"
    folder = tmp_path / "BREC" / "Data" / "raw"
    folder.mkdir(parents=True)
    np.save(folder / "brec_v3.npy", lines)
    if zipped:
        with zipfile.ZipFile(folder / "BREC_data_all.zip", "w") as archive:
            archive.write(folder / "brec_v3.npy", "brec_v3.npy")
        (folder / "brec_v3.npy").unlink()
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path))
    graphs = load_dataset("brec").graphs
    assert graphs.edge_ptr.diff()[:4].tolist() == [2, 6, 2, 0]
    np.save(folder / "brec_v3.npy", lines[:-1])
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "other"))
    if not zipped:
        with pytest.raises(DataError, match="expected 51200 graphs, got 51199"):
            load_dataset("brec")


def test_exp_is_read_from_its_text(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "GNN-RNI" / "Data" / "EXP" / "raw"
    folder.mkdir(parents=True)
    (folder / "GRAPHSAT.txt").write_text("1200\n" + "".join(f"2 {i % 2}\n0 1 1\n1 1 0\n" for i in range(1200)))
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path / "GNN-RNI"))
    task = load_dataset("exp")
    assert task.graphs.y[:3].tolist() == [0, 1, 0]
    with pytest.raises(DatasetNotFoundError, match="GRAPHSAT"):
        load_dataset("cexp")
    (folder / "GRAPHSAT.txt").write_text("1200\n2 0\n0 1 1\n")
    with pytest.raises(DataError, match="ends early"):
        load_dataset("exp")


class Evil:
    """Its pickle calls `function(*arguments)`."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("inside", [lambda evil: evil, lambda evil: [{"atom_type": evil}], lambda evil: ({1: [evil]},)])
def test_a_pickle_that_calls_something_is_refused(protocol: int, inside: Callable[[Any], Any], tmp_path: Path) -> None:
    for evil in (
        Evil(os.mkdir, str(tmp_path / "hacked")),
        Evil(eval, f"__import__('os').mkdir({str(tmp_path / 'hacked')!r})"),
    ):
        with pytest.raises(pickle.UnpicklingError, match="it names"):
            read_pickle(io.BytesIO(pickle.dumps(inside(evil), protocol=protocol)))
        array = np.empty(1, dtype=object)
        array[0] = evil
        file = io.BytesIO()
        np.save(file, array)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="it names"):
            read_npy(file)
    assert not (tmp_path / "hacked").exists()


def test_a_storage_that_calls_something_is_refused(tmp_path: Path) -> None:
    """A tensor's pickle has the bytes of another pickle, which torch reads."""
    inner = io.BytesIO()
    torch.save(Evil(os.mkdir, str(tmp_path / "hacked")), inner)
    found = read_pickle(io.BytesIO(pickle.dumps(torch.ones(2))))
    found.args[0].args = (inner.getvalue(),)
    with pytest.raises(pickle.UnpicklingError):
        value_of(found)
    assert not (tmp_path / "hacked").exists()


def test_functions_in_a_pickle_cannot_be_changed() -> None:
    change = b"\x80\x02cnumpy\ndtype\n}X\x04\x00\x00\x00nameX\x01\x00\x00\x00asb."
    with pytest.raises(pickle.UnpicklingError, match="it changes dtype"):
        read_pickle(io.BytesIO(change))


@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_arrays_and_numbers_come_back(protocol: int) -> None:
    matrix = torch.arange(12).view(3, 4)
    given = [matrix[1:, ::2], matrix.t(), torch.tensor(2.5), np.float32(1.5), np.arange(6.0).reshape(2, 3), 7, "text"]
    found = read_pickle(io.BytesIO(pickle.dumps({"values": given}, protocol=protocol)))["values"]
    for before, after in zip(given, map(value_of, found), strict=True):
        assert type(after) is type(before)
        assert np.array_equal(np.asarray(after), np.asarray(before))
