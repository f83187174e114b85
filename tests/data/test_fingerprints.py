"""Data is known by what it holds: not by its name, nor by how its numbers are stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine_tasks import one_thread as one_thread, tiny_task
from pathnn.data import load_dataset
from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.load import same_place


def print_of(task) -> DataFingerprint:
    return DataFingerprint.of(task, task.splits[0])


def test_the_type_of_the_numbers_does_not_matter():
    task = load_dataset("csl")
    graphs, before = task.graphs, print_of(task)
    wide = replace(graphs, edge_index=graphs.edge_index.long(), node_ptr=graphs.node_ptr.long())
    assert print_of(task.with_graphs(wide)) == before
    assert print_of(task.with_graphs(graphs.with_paths(collection="sp", k=1))) == before
    ones = replace(graphs, x=graphs.x.bool())
    assert print_of(task.with_graphs(ones)) == before, "a one-hot code is read as numbers"


@pytest.mark.parametrize("part", ["x", "y", "edge_index"])
def test_any_other_number_does(part):
    task = tiny_task()
    values = getattr(task.graphs, part).clone()
    values.view(-1)[-1] += 1
    changed = task.with_graphs(replace(task.graphs, **{part: values}))
    assert print_of(task).difference(print_of(changed)) == f"its {'targets' if part == 'y' else 'graphs'} are others"


def test_more_than_a_chunk_is_read(monkeypatch):
    task = tiny_task()
    before = print_of(task)
    monkeypatch.setattr("pathnn.data.fingerprints.CHUNK", 7)
    assert print_of(task) == before


def test_a_dataset_is_no_folder_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zinc").mkdir()
    assert not same_place("zinc", "./zinc")
    assert same_place("zinc", "ZINC")
    assert same_place(str(tmp_path / "zinc"), "./zinc")
    assert not same_place("a.csv", "b.csv")


def test_the_same_numbers_in_another_shape_are_others():
    task = tiny_task()
    two = task.with_graphs(replace(task.graphs, y=task.graphs.y.expand(-1, 2).contiguous()))
    flat = task.with_graphs(replace(two.graphs, y=two.graphs.y.view(len(task.graphs), 2, 1)))
    assert print_of(two).difference(print_of(flat)) == "its targets are others"
