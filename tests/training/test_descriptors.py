"""Models with descriptors: trained, saved, resumed, joined and explained as other models are."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from engine_tasks import one_thread as one_thread
from molecule_runs import small_config, write_molecules
from pathnn.cli.app import app
from pathnn.data import load_data
from pathnn.evaluation import cross_validate
from pathnn.explain import explain_paths
from pathnn.explain.subject import read_subject
from pathnn.inference import load_runs, predict_table
from pathnn.nn.kernel_regression import RIDGES
from pathnn.training import MismatchError, RunConfig, load_model, load_task, predict, predict_each, run, run_ensemble

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")


@pytest.fixture
def table(tmp_path):
    return write_molecules(tmp_path / "molecules.csv")


def call(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result.output if code else result.stdout


def test_the_config_reads_names_and_columns():
    for given, expected in (
        ("rdkit", "rdkit"), ("morgan", "morgan"), ("a, b", ("a", "b")), (["a,b"], ("a,b",)), (None, None), ("", None),
        ("none", None),
    ):  # fmt: skip
        config = RunConfig(data="a.csv", descriptors=given)
        assert config.descriptors == expected
        assert RunConfig.from_yaml(config.to_yaml()) == config


@pytest.mark.parametrize("kind", ["standard", "rdkit", "morgan", "twice,active"])
def test_a_saved_model_predicts_as_in_training(table, tmp_path, kind):
    config = small_config(table, descriptors=kind, split_by="part")
    result = run(config, tmp_path / "run")
    trained, task = load_model(tmp_path / "run" / "model.safetensors"), load_task(config)
    split = task.splits[0]
    values = task.graphs.graph_attr[split.train]
    scaled = trained.model.graph_scale(values)
    counts = task.descriptors.counts
    assert torch.equal(scaled[:, :counts], 0.1 * values[:, :counts])
    assert (
        counts == scaled.size(1) or scaled[:, counts:].mean(dim=0).abs().max() < 0.1
    )  # clipped values and missing ones move it a little
    out = call("evaluate", tmp_path / "run", table, "--json")
    assert json.loads(out)["score"] == pytest.approx(result["test_score"])
    header, rows, *_ = predict_table(load_runs(tmp_path / "run"), str(table))
    decoded = trained.signature.target_scale.decode(predict(trained, task))[:, 0]
    column = header.index("predicted_size")
    assert [row[column] for row in rows] == pytest.approx(decoded.tolist(), abs=1e-5)
    other = replace(task, graphs=replace(task.graphs, graph_attr=task.graphs.graph_attr + 1))
    assert not torch.allclose(predict(trained, other), predict(trained, task))


def test_a_stopped_run_resumes_with_the_same_scale(table, tmp_path):
    config = small_config(table, descriptors="rdkit", split_by="part", epochs=3)
    whole = run(config, tmp_path / "whole")
    run(replace(config, epochs=1), tmp_path / "parts")
    parts = run(config, tmp_path / "parts", resume=True)
    assert whole["test_score"] == parts["test_score"]


def test_ensembles_and_folds_read_descriptors(table, tmp_path):
    config = small_config(table, descriptors=("twice",), split_by="part", epochs=1)
    run_ensemble(config, tmp_path / "two", 2)
    cross_validate(config, tmp_path / "folds", 2)
    task = load_task(config)
    for folder in ("two", "folds"):
        ensemble = load_runs(tmp_path / folder)
        each = [predict(one, task) for one in ensemble.members]
        assert torch.equal(predict_each(ensemble, task), torch.stack(each))
    first, second = (one.model.graph_scale.mean for one in load_runs(tmp_path / "folds").members)
    assert not torch.equal(first, second)  # each fold has the scale of its training part


@pytest.mark.parametrize(("given", "expected"), [((), "standard"), (("--descriptors", "none"), None)])
def test_a_table_of_molecules_has_standard_descriptors_unless_told_otherwise(table, tmp_path, given, expected):
    out = tmp_path / "run"
    call("train", table, "--target", "size", "--epochs", 1, "--hidden", 8, "--device", "cpu", "--out", out, *given)
    trained = load_model(out / "model.safetensors")
    assert trained.config.descriptors == expected
    assert (trained.model.config.graph_channels > 0) == (expected is not None)
    call("train", table, "--target", "size", "--epochs", 1, "--hidden", 8, "--device", "cpu", "--out", out, "--resume")


def test_missing_columns_are_an_error(table, tmp_path):
    call("train", table, "--target", "size", "--descriptors", "twice,active", "--epochs", 1, "--out", tmp_path / "run",
         "--device", "cpu", "--hidden", 8, "-k", 2)  # fmt: skip
    rows = list(csv.DictReader(table.read_text().splitlines()))
    bare = tmp_path / "bare.csv"
    bare.write_text("smiles,active\n" + "".join(f"{row['smiles']},{row['active']}\n" for row in rows))
    for command in ("predict", "explain"):
        text = " ".join(call(command, tmp_path / "run", bare, code=1).split())
        assert "has no column 'twice'" in text
        assert "Traceback" not in text
    text = " ".join(call("train", "csl", "--descriptors", "rdkit", "--out", tmp_path / "csl", code=2).split())
    assert "--descriptors" in text
    trained = load_model(tmp_path / "run" / "model.safetensors")
    for other in (None, "rdkit"):
        with pytest.raises(MismatchError, match="the columns 'twice', 'active' as descriptors"):
            predict(trained, load_data(table, targets=[], descriptors=other))


def test_baselines_and_moving_averages_read_descriptors(table, tmp_path):
    for name, options in (("gin", {"model": "gin"}), ("ema", {"ema": 0.5})):
        config = small_config(table, descriptors="rdkit", epochs=1, **options)
        run(config, tmp_path / name)
        model = load_model(tmp_path / name / "model.safetensors").model
        assert model.config.graph_channels > 200
        assert torch.equal(model.graph_scale.limit, torch.tensor(6.0))


def test_an_explanation_adds_up(table, tmp_path):
    config = small_config(table, descriptors="rdkit", split_by="part", standardize=False)
    run(config, tmp_path / "run")
    document = json.loads(call("explain", tmp_path / "run", table, "--row", 13, "--top", 1000, "--json"))
    paths = sum(path["score"] for path in document["paths"])
    total = document["baseline"] + document["descriptors"] + paths + document["rest"]
    assert document["prediction"] == pytest.approx(total, abs=1e-5)
    assert abs(document["rest"]) < 0.02 * sum(abs(path["score"]) for path in document["paths"])
    trained, task = load_model(tmp_path / "run" / "model.safetensors"), load_task(config)
    out = predict(trained, task)
    assert document["prediction"] == pytest.approx(float(out[12, 0]), abs=1e-4)
    data = task.graphs[12]
    missing, alone = torch.full_like(data.graph_attr, torch.nan), {"edge_attr": data.edge_attr[:0]}
    with torch.no_grad():
        mean = trained.model(data.x, data.edge_index[:, :0], graph_attr=missing, **alone)
    assert document["baseline"] == pytest.approx(float(out.mean()), abs=1e-4), "the mean prediction for the table"
    assert document["descriptors"] == pytest.approx(sum(document["descriptor_parts"].values())) != 0
    features = {"edge_attr": data.edge_attr, "graph_attr": data.graph_attr}
    found = explain_paths(trained.model, data.x, data.edge_index, **features)  # without a reference
    assert found.baseline == pytest.approx(float(mean[0, 0]), abs=1e-4)
    scored = found.descriptors + sum(path.score for path in found.ranked()) + found.rest
    assert found.baseline + scored == pytest.approx(float(out[12, 0]), abs=1e-4)
    assert len(found.descriptor_scores) == data.graph_attr.size(1)
    text = call("explain", tmp_path / "run", table, "--row", 13, "-o", tmp_path / "why.html")
    assert "descriptors" in text
    assert "descriptors" in (tmp_path / "why.html").read_text()
    with pytest.raises(ValueError, match="graph_attr is missing"):
        explain_paths(trained.model, data.x, data.edge_index, edge_attr=data.edge_attr)


def kernel_config(table, **options):
    return small_config(table, descriptors="standard", split_by="part", kernel="ridge", **options)


def test_a_kernel_is_averaged_with_the_network(table, tmp_path):
    result = run(kernel_config(table, epochs=2), tmp_path / "run")
    trained, task = load_model(tmp_path / "run" / "model.safetensors"), load_task(kernel_config(table))
    (share,), kernel = result["kernel_share"], trained.model.kernel
    assert 0 < share < 1
    assert float(kernel.share) == pytest.approx(share)
    split = task.splits[0]
    assert kernel.sizes[0] == len(split.train) + len(split.val)
    whole = predict(trained, task)
    own = kernel(trained.model.graph_scale(task.graphs.graph_attr)).detach()
    kernel.share.zero_()
    torch.testing.assert_close(whole, torch.lerp(predict(trained, task), own, share))
    y = trained.signature.target_scale.encode(task.graphs.y)
    known = split.train
    assert (own - y)[known].abs().mean() < y[known].abs().mean()  # it has learned something
    call("evaluate", tmp_path / "run", table, "--json")


def test_a_stopped_run_resumes_with_the_same_kernel(table, tmp_path):
    config = kernel_config(table, epochs=3)
    whole = run(config, tmp_path / "whole")
    run(replace(config, epochs=1), tmp_path / "parts")
    parts = run(config, tmp_path / "parts", resume=True)
    assert {name: whole[name] for name in ("test_score", "val_score", "kernel_share")} == {
        name: parts[name] for name in ("test_score", "val_score", "kernel_share")
    }
    assert run(config, tmp_path / "parts", resume=True)["test_score"] == whole["test_score"]


def test_folds_and_moving_averages_have_kernels(table, tmp_path):
    config = kernel_config(table, epochs=1)
    cross_validate(replace(config, split_by=None), tmp_path / "folds", 2)
    task = load_task(config)
    (alone, joined) = (load_model(tmp_path / "folds" / "fold-1" / "model.safetensors"), load_runs(tmp_path / "folds"))
    scale = joined.members[1].signature.target_scale
    assert scale != alone.signature.target_scale  # the members have one scale, and so has the kernel
    torch.testing.assert_close(
        scale.decode(predict(joined.members[1], task)), alone.signature.target_scale.decode(predict(alone, task)),
        rtol=1e-5, atol=1e-5,
    )  # fmt: skip
    run(replace(config, ema=0.5, epochs=2), tmp_path / "ema")
    run(replace(config, epochs=2), tmp_path / "plain")
    average, plain = (load_model(tmp_path / name / "model.safetensors").model.kernel for name in ("ema", "plain"))
    for name in ("columns", "members", "features", "weight", "bias", "factor"):
        assert torch.equal(getattr(average, name), getattr(plain, name))


def test_a_kernel_explains_too(table, tmp_path):
    run(kernel_config(table, standardize=False, epochs=2), tmp_path / "run")
    document = json.loads(call("explain", tmp_path / "run", table, "--row", 13, "--top", 1000, "--json"))
    paths = sum(path["score"] for path in document["paths"])
    total = document["baseline"] + document["descriptors"] + paths + document["rest"]
    assert document["prediction"] == pytest.approx(total, abs=1e-5)
    assert abs(document["rest"]) < 0.02 * (
        abs(document["descriptors"]) + sum(abs(p["score"]) for p in document["paths"])
    )


def test_a_kernel_is_the_default_of_regression_on_molecules_only(table, tmp_path):
    options = ["--epochs", 1, "--hidden", 8, "-k", 2, "--device", "cpu", "--overwrite", "--out", tmp_path / "run"]
    for more, expected in (
        (["--target", "size"], True),
        (["--target", "size", "--kernel", "none"], False),
        (["--target", "size", "--descriptors", "none"], False),
        (["--target", "size", "--descriptors", "twice"], True),
        (["--target", "active"], False),
    ):
        call("train", table, *more, *options)
        trained = load_model(tmp_path / "run" / "model.safetensors")
        assert (trained.model.kernel is not None) == (trained.config.kernel == "ridge") == expected


def test_a_kernel_that_cannot_be_fitted_is_an_error(table, tmp_path):
    options = ["--kernel", "ridge", "--epochs", 1, "--device", "cpu", "--out", tmp_path / "run"]
    for more, words in (
        (["--target", "active"], "regression"),
        (["--target", "size", "--descriptors", "none"], "none"),
    ):
        text = " ".join(call("train", table, *more, *options, code=1).split())
        assert "kernel" in text
        assert words in text
        assert "Traceback" not in text
        assert not (tmp_path / "run").exists()


def test_validation_molecules_are_scored_by_the_kernel_without_them(table, tmp_path):
    """The score of a run is that of a kernel for each validation molecule that has all others."""
    config = kernel_config(table, epochs=1, keep="last")
    result = run(config, tmp_path / "run")
    trained, task = load_model(tmp_path / "run" / "model.safetensors"), load_task(config)
    split, kernel, scale = task.splits[0], trained.model.kernel, trained.signature.target_scale
    inputs, y = trained.model.graph_scale(task.graphs.graph_attr), scale.encode(task.graphs.y)
    share = float(kernel.share)
    kernel.share.zero_()
    network = scale.decode(predict(trained, task))
    errors = []
    for i in split.val.tolist():
        rest = torch.cat([split.train, split.val[split.val != i]])
        mean = y[torch.cat([split.train, split.val])].mean()
        own = []
        for ridge in RIDGES:  # the penalty is that of the whole part
            similar = kernel.similarity(inputs)
            to = torch.cat([split.train, split.val]).tolist()
            columns = [to.index(j) for j in rest.tolist()]
            matrix = similar[rest][:, columns].double() + ridge * torch.eye(len(rest)).double()
            own.append(mean + similar[i, columns].double() @ torch.linalg.solve(matrix, (y[rest, 0] - mean).double()))
        found = [torch.lerp(network[i, 0].double(), scale.decode(one.reshape(1, 1))[0, 0], share) for one in own]
        errors.append([float((one - task.graphs.y[i, 0]).abs()) for one in found])
    means = torch.tensor(errors).mean(dim=0)
    assert (means - result["val_score"]).abs().min() < 1e-3 * result["val_score"]
    assert result["scores"]["val"]["mae"] == pytest.approx(result["val_score"], rel=1e-5)


def test_the_last_epoch_is_kept_if_asked(table, tmp_path):
    config = small_config(table, split_by="part", epochs=4, lr=0.5)
    best, last = run(config, tmp_path / "best"), run(replace(config, keep="last"), tmp_path / "last")
    lines = [json.loads(line) for line in (tmp_path / "last" / "metrics.jsonl").read_text().splitlines()]
    assert last["best_epoch"] == 4
    assert last["val_score"] == pytest.approx(lines[-1]["val_score"])
    assert best["val_score"] == pytest.approx(min(line["val_score"] for line in lines))


def test_substructures_are_shown_at_their_atoms(table, tmp_path):
    run(kernel_config(table, epochs=1), tmp_path / "run")
    trained = load_model(tmp_path / "run" / "model.safetensors")
    subject = read_subject(trained, str(table), row=13)
    data = subject.data
    found = explain_paths(trained.model, data.x, data.edge_index, edge_attr=data.edge_attr, graph_attr=data.graph_attr)
    parts, counts = dict(subject.descriptor_parts(found)), trained.signature.descriptors.counts
    assert sum(parts.values()) == pytest.approx(found.descriptors, abs=1e-6)
    there = data.graph_attr[0, :counts] > 0
    assert set(subject.picture.substructures) == set(there.nonzero().flatten().tolist())
    own = float(found.descriptor_scores[:counts][there].sum())
    assert sum(score for name, score in parts.items() if name.startswith("substructure ")) == pytest.approx(own)
    shares = subject.vertex_scores(found.renumbered(subject.order)) - found.renumbered(subject.order).vertex_scores()
    assert float(shares.sum()) == pytest.approx(own)
    places = {i: len(atoms) for i, (_, atoms) in subject.picture.substructures.items()}
    assert places == {i: round(float(data.graph_attr[0, i].expm1())) for i in places}


@pytest.mark.parametrize(
    ("given", "expected"),
    [((), "last"), (("--schedule", "plateau"), "best"), (("--patience", 5), "best"), (("--keep", "best"), "best")],
)
def test_the_last_epoch_of_a_cosine_is_kept(table, tmp_path, given, expected):
    options = ["--target", "size", "--epochs", 1, "--hidden", 8, "-k", 2, "--device", "cpu", "--out", tmp_path / "run"]
    call("train", table, *options, *given)
    assert load_model(tmp_path / "run" / "model.safetensors").config.keep == expected
