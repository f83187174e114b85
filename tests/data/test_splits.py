"""Molecules are split by scaffolds, or as a column says, and by nothing else when that was asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pathnn.data import PackedGraphs, Split, Task, load_data, random_split, task_from_graphs
from pathnn.data.errors import DataError
from pathnn.data.readers.table import Table
from pathnn.data.splits import (
    CUTOFF,
    butina_clusters,
    column_split,
    fold_splits,
    group_split,
    random_task_split,
    read_split,
    scaffolds,
    split_groups,
    write_split,
)

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

RINGS = ("c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCCC1", "c1ccoc1", "c1ccsc1", "C1CC1", "C1CCC1")
MOLECULES = [f"{'C' * n}{ring}" for n in range(1, 6) for ring in RINGS] + ["CCO", "CCN", "CCC"]


def numbered(groups: list[str]) -> torch.Tensor:
    return torch.tensor([groups.index(name) for name in groups])


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
    tests = [group_split(numbered(groups), seed=seed).test.tolist() for seed in range(4)]
    assert len({tuple(test) for test in tests}) > 1
    assert group_split(numbered(groups), seed=2).test.tolist() == tests[2]
    assert all(min(test) >= 20 for test in tests), "what is large is for training"


def test_the_rarest_scaffolds_are_for_testing():
    groups = ["a"] * 40 + ["b"] * 30 + ["c"] * 10 + ["d"] * 10 + [f"rare {i}" for i in range(10)]
    split = group_split(numbered(groups))
    assert split.test.tolist() == list(range(90, 100))
    assert split.val.tolist() == list(range(80, 90))


def test_what_is_left_is_shared_by_validation_and_test():
    split = group_split(numbered(["acyclic"] * 89 + [str(i) for i in range(11)]))
    assert (split.train.numel(), split.val.numel(), split.test.numel()) == (89, 6, 5)
    few = group_split(numbered(["acyclic"] * 95 + [str(i) for i in range(5)]))
    assert (few.val.numel(), few.test.numel()) == (3, 2)


def test_seeds_make_other_splits_of_few_molecules():
    tests = {tuple(group_split(numbered([str(i) for i in range(12)]), seed=seed).test.tolist()) for seed in range(10)}
    assert len(tests) > 3


def test_shares_are_met_where_groups_are_small():
    split = group_split(numbered([str(i // 2) for i in range(1000)]), seed=3)
    assert (split.train.numel(), split.val.numel(), split.test.numel()) == (800, 100, 100)


@pytest.mark.parametrize("groups", [["a"] * 100, ["a"] * 99 + ["b"], ["a"]])
def test_too_few_scaffolds_are_refused(groups):
    with pytest.raises(DataError, match=r"cannot be split into three parts.*random split"):
        group_split(numbered(groups))


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
        column_split(table, "part", task_of(torch.arange(len(cells)) + 0.5))


def test_without_targets_there_is_nothing_to_split(table):
    assert load_data(table, targets=[], split_by="scaffold").splits == ()


@pytest.mark.parametrize("data", ["csl", "graphs.g6"])
def test_other_data_has_no_such_split(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graphs.g6").write_text("Bw\nBo\n")
    with pytest.raises(DataError, match=r"cannot be split by 'scaffold': that is for tables of molecules"):
        load_data(data, split_by="scaffold")


def test_mirror_images_have_one_scaffold():
    cis, trans = "C1CC[C@@H]2CCCC[C@H]2C1", "C1CC[C@H]2CCCC[C@H]2C1"
    assert scaffolds([cis, trans]) == ["C1CCC2CCCCC2C1"] * 2


def parts_of(split: Split) -> list[list[int]]:
    return [split.train.tolist(), split.val.tolist(), split.test.tolist()]


def task_of(y: torch.Tensor, groups: torch.Tensor | None = None) -> Task:
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = PackedGraphs.from_edges([edge] * len(y), [2] * len(y))
    return replace(task_from_graphs(replace(graphs, y=y)), groups=groups)


def old_random_split(count: int, seed: int) -> list[list[int]]:
    """Cut a random order into three."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()
    tenth = round(count / 10)
    cuts = [order[: count - 2 * tenth], order[count - 2 * tenth : count - tenth], order[count - tenth :]]
    return [sorted(part) for part in cuts]


@given(count=st.integers(1, 200), seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_without_copies_a_random_split_is_the_one_without_groups(count: int, seed: int) -> None:
    expected = old_random_split(count, seed)
    assert parts_of(random_split(count, seed=seed)) == expected
    assert parts_of(random_split(count, seed=seed, groups=torch.arange(count) * 3)) == expected


GROUPED = st.lists(st.integers(0, 30), min_size=12, max_size=120).filter(lambda groups: len(set(groups)) > 8)


@given(groups=GROUPED, seed=st.integers(0, 99), kind=st.sampled_from(["regression", "class"]))
@settings(max_examples=60, deadline=None)
def test_no_split_separates_a_group(groups: list[int], seed: int, kind: str) -> None:
    y = torch.arange(len(groups)) % 3
    task = task_of(y if kind == "class" else y + 0.5, torch.tensor(groups))
    for split in (random_task_split(task, seed=seed), *fold_splits(task, folds=4, seed=seed)):
        parts = parts_of(split)
        assert sorted(chain(*parts)) == list(range(len(groups)))
        found = [{groups[i] for i in part} for part in parts]
        assert sum(map(len, found)) == len(set(groups))


@given(sizes=st.lists(st.integers(1, 60), min_size=2, max_size=5), folds=st.integers(2, 5), seed=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_folds_are_stratified_and_each_graph_is_tested_once(sizes: list[int], folds: int, seed: int) -> None:
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    if len(y) < 12:
        y = torch.cat([y] * 12)
    splits = fold_splits(task_of(y), folds=folds, seed=seed)
    assert torch.equal(torch.cat([split.test for split in splits]).sort().values, torch.arange(len(y)))
    for split in splits:
        assert sorted(chain(*parts_of(split))) == list(range(len(y)))
        assert split.val.numel() > 0 or len(y) < 40  # a class may be too small for a tenth
        for k in range(len(sizes)):
            all_of_class = int((y == k).sum())
            assert abs(int((y[split.test] == k).sum()) - all_of_class / folds) < 2
            assert abs(int((y[split.val] == k).sum()) - (all_of_class - all_of_class / folds) / 10) < 2


def test_other_seeds_make_other_folds():
    tests = [fold_splits(task_of(torch.arange(40) / 7), folds=4, seed=seed)[0].test.tolist() for seed in (0, 1, 0)]
    assert tests[0] == tests[2] != tests[1]


@pytest.mark.parametrize("folds", [1, 20, 99])
def test_folds_without_graphs_are_refused(folds):
    with pytest.raises(DataError, match=rf"folds={folds}: expected a number from 2 to 19"):
        fold_splits(task_of(torch.arange(20) / 7), folds=folds)


def test_small_classes_do_not_empty_the_validation_part():
    task = task_of(torch.arange(25).repeat(4), torch.arange(100))
    split = random_task_split(task)
    assert split.val.numel() > 4
    assert split.test.numel() > 4


def test_the_classes_of_a_users_table_are_stratified(tmp_path):
    task = task_of(torch.tensor([0] * 90 + [1] * 10), torch.arange(100))
    split = random_task_split(task, seed=3)
    assert [int(task.graphs.y[part].sum()) for part in (split.train, split.val, split.test)] == [8, 1, 1]


def test_clusters_are_those_of_rdkit():
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator
    from rdkit.ML.Cluster import Butina

    smiles = [*MOLECULES, "CC(=O)Oc1ccccc1C(=O)O", "CC(=O)Nc1ccc(O)cc1", "COC(=O)c1ccccc1O", "O=C(O)c1ccccc1O"]
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    prints = [generator.GetFingerprint(Chem.MolFromSmiles(text)) for text in smiles]
    far = [1 - DataStructs.TanimotoSimilarity(prints[i], prints[j]) for i in range(len(prints)) for j in range(i)]
    expected = Butina.ClusterData(far, len(prints), CUTOFF, isDistData=True)
    cluster = butina_clusters(smiles).tolist()
    found = {frozenset(i for i, number in enumerate(cluster) if number == one) for one in cluster}
    assert found == {frozenset(members) for members in expected}
    assert 1 < len(found) < len(smiles)


def test_too_many_molecules_to_cluster_are_refused(monkeypatch):
    monkeypatch.setattr("pathnn.data.splits.MOST_CLUSTERED", 3)
    with pytest.raises(DataError, match=r"4 different molecules are too many.*Split by scaffold"):
        butina_clusters(["C", "CC", "CCC", "CCCC"])


@pytest.mark.parametrize("split_by", [None, "random", "scaffold", "butina"])
def test_copies_and_salts_stay_together(tmp_path, split_by):
    from rdkit import Chem

    acids = [f"{smiles}C(=O)O" for smiles in MOLECULES]
    salts = [f"{text[:-1]}[O-].[K+]" for text in acids]
    rows = [*acids, *salts, *(Chem.MolToSmiles(Chem.MolFromSmiles(text), rootedAtAtom=1) for text in acids)]
    path = tmp_path / "copies.csv"
    path.write_text("smiles,y\n" + "".join(f"{text},{i}.5\n" for i, text in enumerate(rows)))
    for seed in (0, 1):
        task = load_data(path, clean="salts", split_by=split_by, split_seed=seed)
        assert task.groups.unique().numel() == len(MOLECULES)
        groups = split_groups(task, split_by, "salts")
        for split in (*task.splits, *fold_splits(task, folds=3, groups=groups, seed=seed)):
            for numbers in (task.groups, groups):
                found = [set(numbers[part].tolist()) for part in (split.train, split.val, split.test)]
                assert all(found)
                assert sum(map(len, found)) == numbers.unique().numel()


def with_column(words: list[str]) -> Table:
    return Table("my.csv", ("smiles", "part"), tuple(("C", word) for word in words))


def test_without_val_a_tenth_of_the_training_part_validates():
    words, task = ["train"] * 40 + ["test"] * 10, task_of(torch.arange(50) + 0.5, torch.arange(50) // 2)
    splits = [column_split(with_column(words), "part", task, seed=seed) for seed in (None, 0, 1)]
    for split in splits:
        assert split.test.tolist() == list(range(40, 50))
        assert split.val.numel() == 4
        assert sorted(chain(split.train.tolist(), split.val.tolist())) == list(range(40))
        assert not set((split.train // 2).tolist()) & set((split.val // 2).tolist())
    assert splits[0].val.tolist() == splits[1].val.tolist() != splits[2].val.tolist()


@given(days=st.lists(st.dates(), min_size=10, max_size=60).filter(lambda days: len(set(days)) > 1))
@settings(max_examples=30, deadline=None)
def test_the_newest_molecules_are_for_testing(days):
    task = task_of(torch.arange(len(days)) + 0.5)
    split = column_split(with_column([day.isoformat() for day in days]), "part", task)
    train, val, test = ([days[i] for i in part] for part in parts_of(split))
    assert max(train) <= min(val)
    assert max(val) <= min(test)
    assert len(val) == len(test) == round(len(days) / 10)


def test_years_months_and_times_are_dates():
    words = ["2001", "2001-02", "2001-03-04T10:00:00+02:00", *map(str, range(2002, 2010))]
    split = column_split(with_column(words), "part", task_of(torch.arange(len(words)) + 0.5))
    assert parts_of(split) == [list(range(9)), [9], [10]]


@pytest.mark.parametrize(
    ("words", "seed", "message"),
    [
        (["2001", "2002", "train"], None, "both dates and words"),
        (["2001"] * 20, None, "20 dates, which cannot be split"),
        (["2001", "2002"], None, "2 dates, which cannot be split"),
        ([str(2000 + i) for i in range(20)], 3, r"leave out split_seed=3"),
        (["train", "val", "test"], 3, r"leave out split_seed=3"),
        (["2001", "soon"], None, "row 2: 'soon' in the column 'part'.*or a date such as"),
    ],
)
def test_columns_that_are_not_clear_are_refused(words, seed, message):
    with pytest.raises(DataError, match=message):
        column_split(with_column(words), "part", task_of(torch.arange(len(words)) + 0.5), seed=seed)


def test_a_split_is_written_and_read(table, tmp_path):
    task, file = load_data(table, split_by="scaffold", split_seed=2), tmp_path / "split.csv"
    write_split(file, task, task.splits[0])
    assert file.read_text().splitlines()[:2] == ["row,smiles,split", f"1,{MOLECULES[0]},train"]
    again = load_data(table, splits=file)
    assert parts_of(again.splits[0]) == parts_of(task.splits[0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1,Cc1ccccc1,", "1,CCc1ccccc1,", "other data: row 1 of molecules.csv is 'Cc1ccccc1', and 'CCc1ccccc1' there"),
        ("\n2,", "\n99,", "other data: row 2 of molecules.csv is '.*', and None there"),
        ("row,smiles,split\n", "row,smiles,split\n99,C,train\n", "it has 1 rows that molecules.csv does not have"),
        ("train", "sometimes", "the split of row [0-9]+ is 'sometimes': expected train, val or test"),
        ("split\n", "part\n", "no column 'split'"),
    ],
)
def test_the_split_of_other_data_is_refused(table, tmp_path, old, new, message):
    task, file = load_data(table), tmp_path / "split.csv"
    write_split(file, task, task.splits[0])
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_split(file, task)


def test_skipped_rows_are_not_in_the_file_of_a_split(tmp_path):
    path, file = tmp_path / "my.csv", tmp_path / "split.csv"
    path.write_text("smiles,y\nC(,1.5\n" + "".join(f"{text},{i}.5\n" for i, text in enumerate(MOLECULES)))
    task = load_data(path, skip_invalid=True)
    write_split(file, task, task.splits[0])
    assert file.read_text().splitlines()[1].startswith(f"2,{MOLECULES[0]},")
    assert parts_of(load_data(path, skip_invalid=True, splits=file).splits[0]) == parts_of(task.splits[0])


@pytest.mark.parametrize(
    ("groups", "message"),
    [([0, 0], "at least 3"), ([0, 1, 2, 2], "from 2 to 2: .* 3 groups, and a group .copies of a molecule")],
)
def test_the_message_for_wrong_folds_names_what_is_possible(groups: list[int], message: str) -> None:
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = PackedGraphs.from_edges([edge] * len(groups), [2] * len(groups))
    task = task_from_graphs(replace(graphs, y=torch.rand(len(groups), 1)))
    with pytest.raises(DataError, match=message):
        fold_splits(task, folds=5, groups=torch.tensor(groups))
