"""Targets far from zero: what is learned, measured and written does not depend on their mean and unit."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import networkx
import pytest
import torch
from typer.testing import CliRunner

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.cli.app import make_app
from pathnn.data import Task, from_networkx, from_pyg, task_from_graphs
from pathnn.inference import prediction_columns, score
from pathnn.training import Ensemble, RunConfig, RunError, load_model, predict, run, score_ensemble


def task_of(factor: float, offset: float, dtype: torch.dtype = torch.float64) -> Task:
    """The tiny task with other targets, of which there are many different ones."""
    task = tiny_task(60)
    noise = torch.randn(60, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert task.graphs.y is not None
    y = (task.graphs.y.double() + noise) * factor + offset
    return task_from_graphs(replace(task.graphs, y=y.to(dtype)), name="tiny")


def config_of(**changes) -> RunConfig:
    """With the seeds of a dataset's name: those of own data would be others for other targets."""
    return tiny_config(data="zinc", epochs=10, lr=0.01, standardize=True, **changes)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    torch.set_num_threads(1)
    return run(config_of(), tmp_path_factory.mktemp("plain") / "run", task=task_of(1, 0))


@pytest.mark.parametrize(("factor", "offset"), [(1, 1e7), (1, -1e9), (1e6, 0), (1e-6, 0), (1e6, 1e13), (1e-30, 1e-24)])
def test_the_error_does_not_depend_on_mean_and_unit(plain, tmp_path, factor, offset):
    task = task_of(factor, offset)
    found = run(config_of(), tmp_path / "run", task=task)
    for part in ("val_score", "test_score"):
        assert found[part] / factor == pytest.approx(plain[part], rel=1e-3), part
    trained, test = load_model(tmp_path / "run" / "model.safetensors"), task.splits[0].test
    assert score(trained, task, test).score == pytest.approx(found["test_score"], rel=1e-6)
    wrong = trained.signature.target_scale.decode(predict(trained, task, test)) - task.graphs.y[test]
    assert float(wrong.abs().mean()) == pytest.approx(found["test_score"], rel=1e-6)


def test_several_targets_are_measured_alike(tmp_path):
    """One of them far from zero: the scores of each, and their mean."""
    near, far = task_of(1, 0).graphs, task_of(1, 1e7).graphs
    task = task_from_graphs(replace(near, y=torch.cat([near.y, far.y], dim=1)), name="two")
    run(config_of(), tmp_path / "run", task=task)
    ensemble = Ensemble((load_model(tmp_path / "run" / "model.safetensors"),))
    found = score_ensemble(ensemble, task)
    assert sum(found.together.targets.values()) / 2 == pytest.approx(found.together.score, rel=1e-9)
    out = ensemble.signature.target_scale.decode(predict(ensemble.members[0], task))
    errors = (out - task.graphs.y).abs().mean(dim=0).tolist()
    assert [*found.together.targets.values()] == pytest.approx(errors, rel=1e-6)


def test_columns_have_the_digits_that_differ(tmp_path):
    run(config_of(), tmp_path / "run", task=task_of(1, 1e7))
    trained = load_model(tmp_path / "run" / "model.safetensors")
    out = predict(trained, task_of(1, 1e7))
    (mean,), (std,) = trained.signature.target_mean, trained.signature.target_std
    written = prediction_columns(out, trained.signature)["prediction"]
    assert [(value - mean) / std for value in written] == pytest.approx(out[:, 0].tolist(), abs=1e-6)
    assert all(len(repr(value)) <= 17 for value in written), "and none that the network does not have"


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (task_of(1, 1e7), {"standardize": False}, r"float32 rounds it by 0\.596: too coarse .* Standardize it"),
        (task_of(1e-60, 0), {"standardize": False}, r"float32 rounds it by .* Standardize it"),
        (
            task_of(1, 1e7, torch.float32),
            {},
            r"around 1000000\d\.\d+, and float32 rounds .* Give the targets as float64",
        ),
        (task_of(1, 1e16), {}, r"float64 rounds it by .*: too coarse .* Subtract a constant"),
        (task_of(1e-300, 0), {}, r"float64 rounds it by .* or give it in another unit"),
    ],
)
def test_targets_that_cannot_be_represented_are_refused(tmp_path, task, changes, message):
    with pytest.raises(RunError, match=f"the target number 0 of tiny varies by .*{message}"):
        run(replace(config_of(), **changes), tmp_path / "run", task=task)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        (task_of(1, 1e7), {"standardize": False, "precision": "64-true"}),
        (task_of(1, 1e4, torch.float32), {"standardize": False}),
        (task_of(1, 1e4, torch.float32), {}),
        (task_of(1, 1e12), {}),
    ],
)
def test_others_are_not(tmp_path, task, changes):
    assert run(replace(config_of(), epochs=1, **changes), tmp_path / "run", task=task)["epochs"] == 1


def test_numbers_of_python_keep_their_digits():
    from torch_geometric.data import Data

    edge = torch.tensor([[0, 1], [1, 0]])
    values = [1e7 + 0.125 * i for i in range(12)]
    pyg = from_pyg([Data(edge_index=edge, num_nodes=2, y=value) for value in values])
    listed = from_pyg([Data(edge_index=edge, num_nodes=2, y=[value]) for value in values])
    nx = from_networkx([networkx.path_graph(2) for _ in values])
    graphs = [networkx.Graph(networkx.path_graph(2), y=value) for value in values]
    for packed in (pyg, listed, from_networkx(graphs)):
        assert task_from_graphs(packed).graphs.y.flatten().tolist() == values
    assert nx.y is None
    whole = task_from_graphs(replace(pyg, y=torch.arange(12) + 2**24), kind="regression")
    assert whole.graphs.y.flatten().tolist() == [2**24 + i for i in range(12)]


def test_a_table_keeps_its_digits(tmp_path: Path) -> None:
    """From the CSV to the CSV."""
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    rows = [("C" * n + tail, 1e7 + n + 0.125 * i) for n in range(1, 9) for i, tail in enumerate(("O", "N", "Cl"))]
    path = tmp_path / "mol.csv"
    path.write_text("smiles,y\n" + "".join(f"{smiles},{y!r}\n" for smiles, y in rows))
    options = ["--epochs", "150", "--hidden", "16", "--k", "2", "--lr", "0.01", "--device", "cpu"]
    for arguments in (
        ["train", str(path), "--out", str(tmp_path / "run"), *options],
        ["predict", str(tmp_path / "run"), str(path), "-o", str(tmp_path / "out.csv")],
    ):
        done = CliRunner().invoke(make_app(), arguments)
        assert done.exit_code == 0, done.stderr
    with (tmp_path / "out.csv").open() as file:
        found = [float(row["predicted_y"]) for row in csv.DictReader(file)]
    truth = [y for _, y in rows]
    assert sum(abs(a - b) for a, b in zip(found, truth, strict=True)) / len(rows) < 0.3 * stdev(truth)
    assert any(value != round(value) for value in found)
