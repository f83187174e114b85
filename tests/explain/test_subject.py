"""The graph that is explained, as the trained model reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pathnn.data import load_data
from pathnn.data.task import TargetScale
from pathnn.explain import explain_paths
from pathnn.explain.explanation import Explanation, PathScore
from pathnn.explain.page import explanation_page
from pathnn.explain.subject import ExplainedOutput, read_subject
from pathnn.paths.options import Collection
from pathnn.training import RunConfig, build_model
from pathnn.training.checkpoint import TaskSignature, TrainedModel

FOUND = Explanation(2.0, 0.5, (torch.tensor([[0, 1]]),), (torch.tensor([1.5]),), 3)
THREE = {
    "A": "1,2\n2,1\n3,4\n4,3\n5,6\n6,5\n",
    "graph_indicator": "1\n1\n2\n2\n3\n3\n",
    "graph_labels": "0\n1\n1\n",
    "node_labels": "5\n7\n9\n5\n5\n5\n",
    "edge_labels": "1\n1\n3\n3\n1\n1\n",
}
ONE = {"A": "1,2\n2,1\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n"}


def tu_folder(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for part, text in files.items():
        (folder / f"X_{part}.txt").write_text(text)
    return folder


def test_labels_of_another_file_are_numbered_as_in_training(tmp_path: Path) -> None:
    task = load_data(tu_folder(tmp_path / "whole", **THREE))
    config = RunConfig(data="whole", collection="sp", k=1, options={"hidden_channels": 8})
    trained = TrainedModel(build_model(config, task), config, TaskSignature.of(task, TargetScale()), 1, 0.0, {})
    part = tu_folder(tmp_path / "part", **ONE, node_labels="9\n5\n", edge_labels="3\n3\n")
    there, here = read_subject(trained, str(tmp_path / "whole"), graph=1), read_subject(trained, str(part))
    assert torch.equal(here.data.x, there.data.x)
    assert torch.equal(here.data.edge_attr, there.data.edge_attr)
    assert torch.equal(here.outputs(trained), there.outputs(trained))


@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_atoms_have_the_numbers_of_the_users_smiles(tmp_path: Path, collection: Collection) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    table = tmp_path / "serine.csv"
    table.write_text("smiles,y\nOC[C@H](N)C(=O)O,1.5\nN[C@@H](CO)C(O)=O,2.5\n")
    to_second = [3, 2, 1, 0, 4, 6, 5]  # the number of each atom of the first in the second
    config = RunConfig(data=str(table), collection=collection, k=3, options={"hidden_channels": 8})
    task = load_data(table)
    trained = TrainedModel(build_model(config, task), config, TaskSignature.of(task, TargetScale()), 1, 0.0, {})
    found = []
    for row, elements in ((1, "OCCNCOO"), (2, "NCCOCOO")):
        subject = read_subject(trained, str(table), row=row)
        assert [{6: "C", 7: "N", 8: "O"}[int(x)] for x in subject.data.x[subject.order.argsort(), 0]] == [*elements]
        assert subject.picture.words(PathScore((0, 1), 0.0)) == f"{elements[0]}0–{elements[1]}1"
        inner = explain_paths(trained.model, subject.data.x, subject.data.edge_index, edge_attr=subject.data.edge_attr)
        found.append(inner.renumbered(subject.order))
    first, second = ({path.vertices: path.score for path in one.ranked()} for one in found)
    assert len(first) == len(second) > 10
    for vertices, score in first.items():
        there = tuple(to_second[vertex] for vertex in vertices)
        assert second[min(there, there[::-1])] == pytest.approx(score, abs=1e-6)
    assert torch.allclose(found[1].vertex_scores()[to_second], found[0].vertex_scores(), atol=1e-6)


@pytest.mark.parametrize(
    ("header", "title"),
    [("smiles,y,Name", "serine: OCC"), ("smiles,y,Compound ID", "serine: OCC"), ("smiles,y,source", "OCC")],
)
def test_the_title_has_the_name_of_the_molecule(tmp_path: Path, header: str, title: str) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    table = tmp_path / "serine.csv"
    table.write_text(f"{header}\nOCC,1.5, serine\nOC,2.5\n")
    config = RunConfig(data=str(table), collection="sp", k=1, options={"hidden_channels": 8})
    task = load_data(table, targets=["y"])
    trained = TrainedModel(build_model(config, task), config, TaskSignature.of(task, TargetScale()), 1, 0.0, {})
    first, second = (read_subject(trained, str(table), row=row) for row in (1, 2))
    assert (first.title, second.title) == (title, "OC"), "a row without a name has its SMILES alone"
    page = explanation_page(first, ExplainedOutput(0, "y", ""), FOUND, "", "")
    assert f"<title>{title}</title>" in page
    assert "one of the atoms" in page


def test_the_smiles_column_is_that_of_training(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    table = tmp_path / "two.csv"
    table.write_text("smiles,mol,y\nC,CCO,1.5\nC,CCCN,2.5\n")
    config = RunConfig(data=str(table), smiles="mol", collection="sp", k=1, options={"hidden_channels": 8})
    task = load_data(table, smiles="mol", targets="y")
    trained = TrainedModel(build_model(config, task), config, TaskSignature.of(task, TargetScale()), 1, 0.0, {})
    assert read_subject(trained, str(table), row=2).title == "CCCN"
    assert read_subject(trained, str(table), row=2, smiles="smiles").title == "C"
