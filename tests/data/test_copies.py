"""Copies of a molecule are found however it is written, and conflicts between their targets are counted."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pathnn.data import Copies, PackedGraphs, Split, Task, count_copies, load_data, task_from_graphs
from pathnn.data.fingerprints import copies_across, first_copies

Chem = pytest.importorskip("rdkit.Chem", reason="molecules need rdkit (extra mol)")
MOLECULES = (
    "CCO",
    "c1ccc2scnc2c1",
    "C[C@H](N)C(=O)O",
    "C[C@@H](N)C(=O)O",
    "F/C=C/Cl",
    "C1CCC2CCCCC2C1",
    "C1CCCC1C1CCCC1",
)


def table(folder: Path, rows: list[tuple[str, object]]) -> Path:
    path = folder / "my.csv"
    path.write_text("smiles,y\n" + "".join(f"{smiles},{y}\n" for smiles, y in rows))
    return path


def test_one_molecule_in_many_writings_is_one_group(tmp_path: Path) -> None:
    rows, expected = [], []
    for i, smiles in enumerate(MOLECULES):
        molecule = Chem.MolFromSmiles(smiles)
        others = {Chem.MolToSmiles(molecule, doRandom=True) for _ in range(30)}
        expected += [len(rows)] * (len(others) + 1)
        rows += [(text, i + 0.5) for text in (smiles, *sorted(others))]
    task = load_data(table(tmp_path, rows))
    assert task.groups.tolist() == expected
    sizes = [expected.count(first) for first in dict.fromkeys(expected)]
    assert count_copies(task) == Copies(len(MOLECULES), sum(sizes) - len(sizes), 0, None, "")


def own_task(groups: list[int], y: torch.Tensor) -> Task:
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = PackedGraphs.from_edges([edge] * len(groups), [2] * len(groups))
    names = tuple(f"m{i}" for i in range(len(groups)))
    task = task_from_graphs(replace(graphs, y=y, names=names), kind="regression")
    first = {}
    return replace(task, groups=torch.tensor([first.setdefault(g, i) for i, g in enumerate(groups)]))


def slow_copies(groups: list[int], y: list[list[float]]) -> tuple[int, int, int, float | None]:
    members = defaultdict(list)
    for group, row in zip(groups, y, strict=True):
        members[group].append(row)
    several = [rows for rows in members.values() if len(rows) > 1]
    spreads = []
    for rows in several:
        known = [[value for value in column if value == value] for column in zip(*rows, strict=True)]
        spreads.append(max((max(column) - min(column) for column in known if column), default=0.0))
    largest = max(spreads, default=0.0)
    return len(several), len(groups) - len(members), sum(s > 0 for s in spreads), largest or None


@given(data=st.data(), count=st.integers(1, 20), targets=st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_conflicts_are_those_of_the_slow_way(data: st.DataObject, count: int, targets: int) -> None:
    groups = data.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    values = st.sampled_from([0.0, 0.5, -2.0, 4.25] + [float("nan")] * (targets > 1))
    y = data.draw(st.lists(st.lists(values, min_size=targets, max_size=targets), min_size=count, max_size=count))
    found = count_copies(own_task(groups, torch.tensor(y, dtype=torch.float64)))
    assert (found.molecules, found.rows, found.conflicts, found.largest) == slow_copies(groups, y)


def test_classes_in_conflict_have_no_difference(tmp_path: Path) -> None:
    rows = [("CCO", "low"), ("OCC", "high"), ("CC", "low"), ("C-C", "low"), ("C", "high")]
    assert count_copies(load_data(table(tmp_path, rows), targets="y")) == Copies(2, 2, 1, None, "CCO")


def test_the_largest_difference_names_its_molecule(tmp_path: Path) -> None:
    rows = [("CCO", 1.5), ("OCC", 2.5), ("CC", 1.0), ("C-C", 9.0)]
    assert count_copies(load_data(table(tmp_path, rows))) == Copies(2, 2, 2, 8.0, "CC")


def test_data_that_is_no_table_has_no_copies() -> None:
    task = replace(own_task([0, 0], torch.zeros(2, 1)), groups=None)
    assert count_copies(task) == Copies()
    assert copies_across(task, Split(torch.tensor([0]), torch.tensor([1]), torch.tensor([]))) == 0


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_targets_on_a_gpu_are_counted_too() -> None:
    task = own_task([0, 0, 1], torch.tensor([[1.0], [3.0], [2.0]]))
    there = replace(task, graphs=task.graphs.to("cuda"))
    assert count_copies(there) == count_copies(task) == Copies(1, 1, 1, 2.0, "m0")


def test_copies_across_the_parts_of_a_column_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_text("smiles,y,part\nCCO,1.5,train\nCC,2.5,train\nOCC,3.5,val\nC-C,4.5,test\nC,5.5,test\n")
    task = load_data(path, targets="y", split_by="part")
    assert copies_across(task, task.splits[0]) == 2


def test_graphs_of_other_sizes_are_no_copies() -> None:
    none = torch.zeros(2, 0, dtype=torch.int64)
    assert first_copies(PackedGraphs.from_edges([none] * 3, [1, 2, 1])).tolist() == [0, 1, 0]
