"""Molecules are split by scaffolds, or as a column says, and by nothing else when that was asked for."""

from __future__ import annotations

import pytest
import torch

from pathnn.data import load_data
from pathnn.data.errors import DataError
from pathnn.data.readers.table import Table
from pathnn.data.splits import column_split, scaffold_split, scaffolds

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

RINGS = ("c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCCC1", "c1ccoc1", "c1ccsc1", "C1CC1", "C1CCC1")
MOLECULES = [f"{'C' * n}{ring}" for n in range(1, 6) for ring in RINGS] + ["CCO", "CCN", "CCC"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "molecules.csv"
    rows = [f"{smiles},{len(smiles)}.5" for smiles in MOLECULES]
    path.write_text("\n".join(["smiles,size", *rows]) + "\n")
    return path


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_no_scaffold_is_in_two_parts(table, seed):
    task = load_data(table, targets=["size"], split_by="scaffold", split_seed=seed)
    (split,) = task.splits
    parts = (split.train, split.val, split.test)
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(MOLECULES)))
    names = scaffolds(task.graphs.names)
    found = [{names[i] for i in part.tolist()} for part in parts]
    assert sum(map(len, found)) == len(set(names))
    assert split.train.numel() > split.val.numel() > 0 < split.test.numel()


def test_seeds_make_other_splits():
    groups = ["large"] * 20 + [str(i // 2) for i in range(40)]
    tests = [scaffold_split(groups, seed=seed).test.tolist() for seed in range(4)]
    assert len({tuple(test) for test in tests}) > 1
    assert scaffold_split(groups, seed=2).test.tolist() == tests[2]
    assert all(min(test) >= 20 for test in tests), "what is large is for training"


def test_the_rarest_scaffolds_are_for_testing():
    groups = ["a"] * 40 + ["b"] * 30 + ["c"] * 10 + ["d"] * 10 + [f"rare {i}" for i in range(10)]
    split = scaffold_split(groups)
    assert split.test.tolist() == list(range(90, 100))
    assert split.val.tolist() == list(range(80, 90))


def test_what_is_left_is_shared_by_validation_and_test():
    split = scaffold_split(["acyclic"] * 89 + [str(i) for i in range(11)])
    assert (split.train.numel(), split.val.numel(), split.test.numel()) == (89, 6, 5)
    few = scaffold_split(["acyclic"] * 95 + [str(i) for i in range(5)])
    assert (few.val.numel(), few.test.numel()) == (3, 2)


def test_seeds_make_other_splits_of_few_molecules():
    tests = {tuple(scaffold_split([str(i) for i in range(12)], seed=seed).test.tolist()) for seed in range(10)}
    assert len(tests) > 3


def test_shares_are_met_where_groups_are_small():
    split = scaffold_split([str(i // 2) for i in range(1000)], seed=3)
    assert (split.train.numel(), split.val.numel(), split.test.numel()) == (800, 100, 100)


@pytest.mark.parametrize("groups", [["a"] * 100, ["a"] * 99 + ["b"], ["a"]])
def test_too_few_scaffolds_are_refused(groups):
    with pytest.raises(DataError, match=r"cannot be split by scaffolds.*random split"):
        scaffold_split(groups)


def test_a_column_says_it(tmp_path):
    path = tmp_path / "parts.csv"
    words = ["train", "Training", " TRAIN ", "val", "valid", "Validation", "dev", "test", "TESTING"]
    path.write_text("\n".join(["smiles,y,part", *(f"{'C' * (i + 1)},{i}.5,{word}" for i, word in enumerate(words))]))
    (split,) = load_data(path, targets=["y"], split_by="part").splits
    assert [part.tolist() for part in (split.train, split.val, split.test)] == [[0, 1, 2], [3, 4, 5, 6], [7, 8]]


def test_rows_that_are_left_out_do_not_shift_it(tmp_path):
    path = tmp_path / "parts.csv"
    path.write_text("smiles,y,part\nC,1.5,train\nnonsense,2.5,what\nCC,3.5,val\nCCC,4.5,test\n")
    (split,) = load_data(path, targets=["y"], split_by="part", skip_invalid=True).splits
    assert [part.tolist() for part in (split.train, split.val, split.test)] == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["train", "val", "tset"], r"row 3: 'tset' in the column 'part'.*expected train, val or test"),
        (["train", "", "test"], r"row 2: '' in the column"),
        (["train", "test", "test"], "has no val"),
        (["val", "test", "test"], "has no train"),
    ],
)
def test_a_column_that_does_not_say_it_is_refused(cells, message):
    table = Table("my.csv", ("smiles", "part"), tuple(("C", cell) for cell in cells))
    with pytest.raises(DataError, match=message):
        column_split(table, "part", [1, 2, 3])


def test_without_targets_there_is_nothing_to_split(table):
    assert load_data(table, targets=[], split_by="scaffold").splits == ()


@pytest.mark.parametrize("data", ["csl", "graphs.g6"])
def test_other_data_has_no_such_split(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graphs.g6").write_text("Bw\nBo\n")
    with pytest.raises(DataError, match=r"cannot be split by 'scaffold': that is for \.csv files"):
        load_data(data, split_by="scaffold")


def test_mirror_images_have_one_scaffold():
    cis, trans = "C1CC[C@@H]2CCCC[C@H]2C1", "C1CC[C@H]2CCCC[C@H]2C1"
    assert scaffolds([cis, trans]) == ["C1CCC2CCCCC2C1"] * 2
