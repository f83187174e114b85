"""The graph that is explained, as the trained model reads it."""

from __future__ import annotations

from pathlib import Path

import torch

from pathnn.data import load_data
from pathnn.engine import RunConfig, build_model
from pathnn.engine.checkpoint import Trained
from pathnn.engine.facts import TaskFacts
from pathnn.engine.scaling import TargetScale
from pathnn.explain.subject import read_subject

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
    trained = Trained(build_model(config, task), config, TaskFacts.of(task, TargetScale()), 1, 0.0, {})
    part = tu_folder(tmp_path / "part", **ONE, node_labels="9\n5\n", edge_labels="3\n3\n")
    there, here = read_subject(trained, str(tmp_path / "whole"), graph=1), read_subject(trained, str(part))
    assert torch.equal(here.x, there.x)
    assert torch.equal(here.edge_attr, there.edge_attr)
    assert torch.equal(here.outputs(trained), there.outputs(trained))
