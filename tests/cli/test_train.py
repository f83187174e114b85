"""`pathnn train`, `evaluate` and `predict`: CSV in, CSV out, and what is in the way."""

from __future__ import annotations

import csv
import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from pathnn import PathNN
from pathnn.cli import console as epoch_line
from pathnn.cli.app import make_app
from pathnn.data.readers.smiles import pack_molecules, read_molecule
from pathnn.training import Epoch, RunFolder

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

MOLECULES = ["C" * n + tail for n in range(1, 7) for tail in ("O", "N", "c1ccccc1", "C(=O)O", "Cl")]
SMALL = ["--epochs", "2", "--hidden", "8", "--k", "2", "--device", "cpu"]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("csv") / "molecules.csv"
    rows = [f"{i},{smiles},{len(smiles) * 10.0},{i % 2}" for i, smiles in enumerate(MOLECULES)]
    path.write_text("\n".join(["id,smiles,size,active", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(molecules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    result = call("train", molecules, "--out", out, "--target", "size", *SMALL)
    assert result.exit_code == 0, result.stderr
    return out


def call(*arguments: object):
    return CliRunner().invoke(make_app(), [str(argument) for argument in arguments])


def test_train_writes_a_run_and_prints_one_document(molecules, tmp_path):
    result = call("train", molecules, "--out", tmp_path / "run", "--target", "size", "--json", *SMALL)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document == {**json.loads((tmp_path / "run" / "result.json").read_text()), "out": str(tmp_path / "run")}
    assert (document["metric"], document["epochs"]) == ("MAE", 2)
    again = call("train", molecules, "--out", tmp_path / "run", "--resume", "--json")
    assert json.loads(again.stdout) == document


def test_evaluate_agrees_with_the_run(molecules, trained):
    result = call("evaluate", trained, molecules, "--json", "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    expected = json.loads((trained / "result.json").read_text())
    assert document["split"] == "test"
    assert document["score"] == pytest.approx(expected["test_score"], rel=1e-6)
    everything = json.loads(call("evaluate", trained, molecules, "--split", "all", "--json").stdout)
    assert everything["graphs"] == len(MOLECULES)


def test_predict_keeps_columns_and_rows(trained, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text('name,smiles\n"a, b",CCO\nbad,notamolecule\nc,c1ccccc1\nshort\n')
    result = call("predict", trained, new, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "2 of 4 rows cannot be read and have no prediction, the first is row 2: 'notamolecule'" in result.stderr
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["a, b", "bad", "c", "short"]
    assert list(rows[0]) == ["name", "smiles", "predicted_size", "similarity", "error"]
    assert [row["predicted_size"] == "" for row in rows] == [False, True, False, True]
    assert [row["error"] == "" for row in rows] == [True, False, True, False]
    assert rows[1]["error"].startswith("'notamolecule' is no molecule: ")
    assert rows[3]["error"] == "the SMILES is empty"
    values = [float(rows[i]["predicted_size"]) for i in (0, 2)]
    document = json.loads(call("predict", trained, new, "--json").stdout)
    assert document["predictions"]["predicted_size"] == [values[0], None, values[1], None]
    assert document["predictions"]["similarity"] == [
        float(row["similarity"]) if row["similarity"] else None for row in rows
    ]
    assert (document["rows"], document["bad_rows"]) == (4, 2)
    assert document["errors"] == [row["error"] or None for row in rows]
    assert 0 < values[0] < 500, "in the unit of the column, not standardised"


def test_a_strict_prediction_refuses_bad_rows(trained, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("smiles\nCCO\nnotamolecule\nC\n")
    refused = call("predict", trained, new, "-o", out, "--strict")
    assert refused.exit_code == 1
    message = " ".join(refused.stderr.split())
    assert "1 of 3 rows cannot be read (row 2: 'notamolecule'" in message
    assert "Fix them, or leave out --strict." in message
    assert not out.exists()
    new.write_text("smiles\nCCO\n")
    assert call("predict", trained, new, "-o", out, "--strict").exit_code == 0


def test_a_table_without_bad_rows_has_the_same_columns(trained, tmp_path):
    (tmp_path / "new.csv").write_text("smiles,error\nCCO,mine\n")
    result = call("predict", trained, tmp_path / "new.csv")
    assert result.exit_code == 0, result.stderr
    (row,) = csv.DictReader(result.stdout.splitlines())
    assert (row["error"], row["error_"]) == ("mine", "")
    assert list(row) == ["smiles", "error", "predicted_size", "similarity", "error_"]
    assert "cannot be read" not in result.stderr
    document = json.loads(call("predict", trained, tmp_path / "new.csv", "--json").stdout)
    assert (document["bad_rows"], document["errors"]) == (0, [None])


def test_a_table_of_bad_rows_alone_is_written_too(trained, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("id,smiles\n1,C(\n2,\n")
    result = call("predict", trained, new, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "2 of 2 rows cannot be read and have no prediction" in result.stderr
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["predicted_size"] for row in rows] == ["", ""]
    assert all(row["error"] for row in rows)
    document = json.loads(call("predict", trained, new, "--json").stdout)
    assert (document["bad_rows"], document["predictions"]["predicted_size"]) == (2, [None, None])
    assert call("predict", trained, new, "--strict").exit_code == 1


def test_bad_lines_of_graph6_keep_their_place(tmp_path):
    graphs, out = tmp_path / "graphs.g6", tmp_path / "run"
    assert call("train", "csl", "--out", out, "--epochs", 1, "--k", 2, "--device", "cpu").exit_code == 0
    graphs.write_text("Bw\n\nnot a graph\nA_\n")
    result = call("predict", out, graphs)
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [(row["graph"], row["name"]) for row in rows] == [("0", "Bw"), ("1", ""), ("2", "A_")]
    assert [row["predicted_class"] == "" for row in rows] == [False, True, False]
    assert [row["error"] == "" for row in rows] == [True, False, True]
    assert "1 of 3 rows cannot be read and have no prediction, the first is row 2: " in result.stderr
    graphs.write_text("not a graph\n")
    (row,) = csv.DictReader(call("predict", out, graphs).stdout.splitlines())
    assert (row["graph"], row["predicted_class"], "predicted_class_std" in row) == ("0", "", False)


def test_predictions_do_not_need_the_target(molecules, trained, tmp_path):
    no_target = tmp_path / "no_target.csv"
    no_target.write_text("smiles\n" + "\n".join(MOLECULES) + "\n")
    one, two = (json.loads(call("predict", trained, data, "--json").stdout) for data in (molecules, no_target))
    assert one["predictions"] == two["predictions"]


def test_yes_or_no_targets_give_probabilities(molecules, tmp_path):
    out = tmp_path / "run"
    result = call("train", molecules, "--out", out, "--target", "active", "--model", "gin", "--split-seed", 3, *SMALL)
    assert result.exit_code == 0, result.stderr
    document = json.loads(call("predict", out, molecules, "--json").stdout)
    assert all(0 <= p <= 1 for p in document["predictions"]["probability_active"])


@pytest.fixture(scope="module")
def hazards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Molecules with a class in words and one in codes."""
    path = tmp_path_factory.mktemp("csv") / "hazards.csv"
    rows = [f"{smiles},{('safe', 'toxic')[i % 2]},{(9, 3, 7)[i % 3]}" for i, smiles in enumerate(MOLECULES)]
    path.write_text("\n".join(["smiles,hazard,code", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def classifiers(hazards: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    runs = tmp_path_factory.mktemp("classifiers")
    for column in ("hazard", "code"):
        result = call("train", hazards, "--out", runs / column, "--target", column, "--kind", "class", *SMALL)
        assert result.exit_code == 0, result.stderr
    return {column: runs / column for column in ("hazard", "code")}


@pytest.mark.parametrize(("column", "names"), [("hazard", ["safe", "toxic"]), ("code", ["3", "7", "9"])])
def test_classes_come_back_as_they_were(classifiers, hazards, column, names):
    found = json.loads(call("predict", classifiers[column], hazards, "--json").stdout)["predictions"]
    assert list(found) == ["predicted_class", *(f"probability_{name}" for name in names), "similarity"]
    for i, chosen in enumerate(found["predicted_class"]):
        probability = {name: found[f"probability_{name}"][i] for name in names}
        assert chosen == max(probability, key=probability.__getitem__)
        assert sum(probability.values()) == pytest.approx(1)


@pytest.mark.parametrize(("column", "spelling"), [("hazard", "{}"), ("code", "{}.0")])
def test_evaluation_knows_classes_by_name(classifiers, hazards, tmp_path, column, spelling):
    found = json.loads(call("predict", classifiers[column], hazards, "--json").stdout)["predictions"]["predicted_class"]
    rare = min(set(found), key=found.count)
    few = tmp_path / "few.csv"  # only one class, which is not the first of the model's in general
    few.write_text(f"smiles,{column}\n" + "".join(f"{smiles},{spelling.format(rare)}\n" for smiles in MOLECULES))
    result = call("evaluate", classifiers[column], few, "--split", "all", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["score"] == pytest.approx(100 * found.count(rare) / len(found))


def test_a_class_that_was_not_learned_is_refused(classifiers, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("smiles,hazard\nCCO,safe\nCCN,deadly\n")
    result = call("evaluate", classifiers["hazard"], new)
    assert result.exit_code == 1
    assert (
        "the class 'deadly', which the model was not trained on: expected the classes 'safe', 'toxic'" in result.stderr
    )


def test_evaluation_reads_the_column_as_training_did(trained, tmp_path):
    new = tmp_path / "new.csv"  # two numeric columns, and sizes that look like yes and no
    new.write_text("smiles,size,weight\nCCO,0,1\nCCN,1,2\n")
    result = call("evaluate", trained, new, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["metric"] == "MAE"


def test_config_files_and_options(molecules, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("epochs: 1\nlr: 0.01\noptions: {hidden_channels: 8, phi: relu}\ntarget: [size]\nk: 1\n")
    result = call("train", molecules, "--out", tmp_path / "run", "--config", config, "--lr", "0.02")
    assert result.exit_code == 0, result.stderr
    written = (tmp_path / "run" / "config.yaml").read_text()
    assert "lr: 0.02" in written
    assert "phi: relu" in written


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target", "mass"], 1, "no column 'mass'"),
        ([], 1, "no targets to train on"),
        (["--target", "size", "--k", "0"], 2, "k"),
        (["--target", "size", "--collection", "all"], 2, "collection"),
        (["--target", "size", "--model", "gim"], 2, "model"),
        (["--target", "size", "--fold", "3"], 1, "fold=3"),
        (["--target", "size", "--epochs", "many"], 2, "epochs"),
        (["--target", "size", "--resume", "--overwrite"], 1, "contradict"),
        (["--target", "size", "--kind", "klass"], 2, "kind='klass' is unknown"),
        (["--target", "size", "--kind", "binary"], 1, "takes targets of 0 and 1, got 20 in graph 0"),
        (["--target", "id", "--kind", "class"], 1, "30 classes for 30 graphs: expected several graphs of each"),
    ],
)
def test_bad_input_is_explained(molecules, tmp_path, arguments, code, message):
    result = call("train", molecules, "--out", tmp_path / "run", *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_run_is_not_overwritten(molecules, trained):
    before = (trained / "model.safetensors").read_bytes()
    result = call("train", molecules, "--out", trained, "--target", "size", *SMALL)
    assert result.exit_code == 1
    assert "--resume" in result.stderr
    result = call("train", molecules, "--out", trained, "--resume", "--lr", "0.5")
    assert result.exit_code == 1
    assert "began with lr" in result.stderr
    assert (trained / "model.safetensors").read_bytes() == before


def test_an_edited_config_is_refused_before_data_is_read(molecules, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    config.write_text(
        config.read_text().replace("- size", "- weight").replace("hidden_channels: 8", "hidden_channels: 4")
    )
    result = call("train", molecules, "--out", tmp_path / "run", "--resume")
    assert result.exit_code == 1
    assert "target is ['weight'] there and ['size'] in last.ckpt" in result.stderr
    assert "options.hidden_channels is 4 there and 8 in last.ckpt. Restore these values" in result.stderr
    model = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert model == (trained / "model.safetensors").read_bytes()


def test_what_is_no_run_or_no_fitting_data_is_refused(molecules, trained, tmp_path):
    for arguments, message in (
        (("evaluate", tmp_path, molecules), "no model.safetensors"),
        (("evaluate", molecules, molecules), "damaged or not a pathnn-model file"),
        (("evaluate", trained, molecules, "--target", "active"), "regression"),
        (("predict", trained, tmp_path / "missing.csv"), "missing.csv"),
        (("predict", trained, "csl"), "vertex features"),
    ):
        result = call(*arguments)
        assert result.exit_code == 1, arguments
        assert message in " ".join(result.stderr.split())
    assert call("predict", trained, molecules, "-o", molecules).exit_code == 2
    assert call("evaluate", trained, molecules, "--split", "best").exit_code == 2


def train_on(folder: Path, text: str, *arguments: object):
    (folder / "own.csv").write_text(text)
    return call("train", folder / "own.csv", "--out", folder / "run", *SMALL, *arguments)


@pytest.mark.parametrize(
    ("header", "value", "arguments", "message"),
    [
        ("smiles,y", "0", [], "all targets of own.csv are the same"),
        ("smiles,y", "a", ["--target", "y"], "only one class"),
        ("smiles;y", "1", [], "all targets of own.csv are the same"),
        ("smiles;y", "1,5", ["--target", "y"], "'y' has decimal commas (1,5): expected points (1.5)"),
        ("sep=;\nsmiles;y", "1,5", [], "'y' has decimal commas (1,5): expected points (1.5)"),
        ("smiles,y,z", "1,2", [], "no targets chosen of the columns ['y', 'z']"),
        ("smiles,y", "1", ["--target", "y", "--target", "y"], "'y' is asked for twice"),
        ("smiles,y", "1", ["--target", "y", "--batch-size", "1"], "are the same"),
        ("drug,salt,y", "CCO,1", [], "(--smiles COLUMN)"),
        ("smiles,y,y", "1,2", ["--target", "y"], "2 columns called 'y': rename"),
    ],
)
def test_tables_that_teach_nothing_are_refused(tmp_path, header, value, arguments, message):
    mark = ";" if ";" in header else ","
    rows = "".join(f"{smiles}{mark}{value}\n" for smiles in MOLECULES)
    result = train_on(tmp_path, f"{header}\n{rows}", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_measured_number_is_no_class(tmp_path):
    rows = "".join(f"{smiles},{i // 2 if i < 20 else i}.5\n" for i, smiles in enumerate(MOLECULES))
    result = train_on(tmp_path, f"smiles,y\n{rows}", "--kind", "class")
    assert result.exit_code == 1
    assert (
        f"classes for {len(MOLECULES)} graphs: expected several graphs of each class. For a measured" in result.stderr
    )


def test_yes_or_no_needs_both_to_choose_an_epoch_and_to_report(molecules, tmp_path):
    rare = "smiles,y\n" + "".join(f"{smiles},{int(i == 1)}\n" for i, smiles in enumerate(MOLECULES))
    result = train_on(tmp_path, rare, "--target", "y")
    assert result.exit_code == 1
    assert "all have the target 0: expected both 0 and 1" in result.stderr
    out = tmp_path / "active"
    assert call("train", molecules, "--out", out, "--target", "active", "--split-seed", 3, *SMALL).exit_code == 0
    (tmp_path / "no.csv").write_text("smiles,active\nCCO,0\nCCN,0\n")
    result = call("evaluate", out, tmp_path / "no.csv", "--json")
    assert json.loads(result.stdout)["score"] is None
    assert "ROC-AUC not defined on 2 graphs" in call("evaluate", out, tmp_path / "no.csv").stdout


def test_a_name_that_is_no_run_lists_the_trained_models(molecules):
    result = call("predict", "zinc-ab", molecules)
    assert result.exit_code == 1
    assert "zinc-ab does not exist: expected a folder that pathnn train has written, or the name of a" in result.stderr


def test_a_trained_model_is_a_run_by_its_name(molecules):
    result = call("predict", "zinc-ap", molecules, "--device", "cpu")
    assert result.exit_code == 1, "SMILES are not in ZINC's codes, and must not be taken for them"
    assert "models of zinc do not read SMILES" in result.stderr


def test_a_model_trained_on_ogb_s_features_reads_smiles(molecules):
    result = call("predict", "molhiv-ap", molecules, "--device", "cpu", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["predictions"]["probability"]
    assert len(found) == len(MOLECULES)
    assert all(0 < value < 1 for value in found)
    model = PathNN.from_pretrained("molhiv-ap")
    graph = pack_molecules([read_molecule(MOLECULES[0], "ogb")])[0]
    with torch.no_grad():
        assert model(graph.x, graph.edge_index, edge_attr=graph.edge_attr).sigmoid().item() == pytest.approx(found[0])


def test_a_model_of_peptides_names_what_it_predicts(tmp_path):
    (tmp_path / "peptides.csv").write_text("smiles\nCC(C)CC(N)C(=O)NCC(=O)O\n")
    result = call("predict", "peptides-func-sp+", tmp_path / "peptides.csv", "--device", "cpu", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["predictions"]
    assert max((name for name in found if name != "smiles"), key=lambda name: found[name][0]) == (
        "probability_antihypertensive"
    ), "dipeptides are, in the training data"
    assert len([name for name in found if name.startswith("probability_")]) == 10


def test_a_file_is_known_wherever_it_lies(molecules, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(molecules.parent)
    (tmp_path / "copy.csv").write_bytes(molecules.read_bytes())
    scores = [json.loads(call("evaluate", trained, path, "--json").stdout)
              for path in (molecules, "molecules.csv", "./molecules.csv", tmp_path / "copy.csv")]  # fmt: skip
    assert [score["split"] for score in scores] == ["test"] * 4
    assert len({score["score"] for score in scores}) == 1
    for name in ("./molecules.csv", tmp_path / "copy.csv"):
        result = call("train", name, "--out", trained, "--resume", "--json")
        assert result.exit_code == 0, result.stderr


def test_a_file_that_was_changed_is_noticed(molecules, tmp_path):
    own, out = tmp_path / "own.csv", tmp_path / "run"
    own.write_bytes(molecules.read_bytes())
    plateau = ("--schedule", "plateau")  # a cosine does not allow other epochs
    assert call("train", own, "--out", out, "--target", "size", *plateau, *SMALL).exit_code == 0
    own.write_text(molecules.read_text() + "30,CCCl,1.0,0\n")
    for command, message in (
        (("evaluate", out, own), "--skip-invalid): it had 30 graphs, and has 31 now"),
        (("evaluate", out, own, "--split", "test"), "has changed since the model was trained"),
        (("train", own, "--out", out, "--resume", "--epochs", 3), "reads it differently: it had 30"),
    ):
        result = call(*command)
        assert result.exit_code == 1, command
        assert message in " ".join(result.stderr.split())
    assert "epochs: 2" in (out / "config.yaml").read_text(), "what is refused changes nothing"
    assert json.loads(call("evaluate", out, own, "--split", "all", "--json").stdout)["graphs"] == 31
    own.write_text(molecules.read_text().replace("0,CO,20.0", "0,CS,20.0"))
    assert "its graphs are others" in call("evaluate", out, own).stderr
    own.write_text(molecules.read_text().replace("0,CO,20.0", "0,CO,21.0"))
    assert json.loads(call("evaluate", out, own, "--json").stdout)["split"] == "test", "the graphs are the same"
    assert "its targets are others" in call("train", own, "--out", out, "--resume", "--epochs", 3).stderr


def test_a_csv_keeps_its_columns_and_rows_whatever_its_letters(trained, tmp_path):
    (tmp_path / "UP.CSV").write_text("smiles,id\nCCO,a\nnonsense,b\nCCN,c\n")
    result = call("predict", trained, tmp_path / "UP.CSV", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.stderr
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row[:2] for row in rows] == [["smiles", "id"], ["CCO", "a"], ["nonsense", "b"], ["CCN", "c"]]
    assert [row[2] == "" for row in rows[1:]] == [False, True, False]


def test_a_refused_run_leaves_no_folder_behind(molecules, tmp_path):
    result = call("train", molecules, "--out", tmp_path / "run", "--target", "size", *SMALL, "--batch-size", "1")
    assert result.exit_code == 1
    assert "batch_size=1: " in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("seeds", [[], ["--seeds", 2]])
def test_an_interrupted_run_says_how_to_go_on(molecules, tmp_path, monkeypatch, seeds):
    @contextmanager
    def interrupting(*, several):
        assert several == bool(seeds)

        def report(epoch, run):
            if epoch.epoch == 2:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr("pathnn.cli.train.epoch_line", interrupting)
    out = tmp_path / "run"
    result = call("train", molecules, "--out", out, "--target", "size", *SMALL, "--epochs", "3", *seeds)
    assert result.exit_code == 130
    assert "--resume" in result.stderr
    monkeypatch.undo()
    assert call("train", molecules, "--out", out, "--resume", *seeds).exit_code == 0
    first = out / "seed-0" if seeds else out
    assert json.loads((first / "result.json").read_text())["epochs"] == 3


def test_an_explanation_is_in_the_unit_of_the_target(molecules, trained):
    predicted = json.loads(call("predict", trained, molecules, "--json").stdout)["predictions"]["predicted_size"]
    for row in (1, 7):
        found = json.loads(call("explain", trained, molecules, "--row", row, "--json").stdout)
        assert found["output"] == "size"
        assert found["prediction"] == pytest.approx(predicted[row - 1], rel=1e-4)
        parts = sum(found["vertex_scores"]) + found["baseline"] + found["rest"] + found["descriptors"]
        assert parts == pytest.approx(found["prediction"], rel=1e-6)


@pytest.fixture(scope="module")
def by_column(molecules, tmp_path_factory) -> tuple[Path, Path]:
    """A table that says how it is split, and a run on it."""
    folder = tmp_path_factory.mktemp("parts")
    words = ["part", *(["train", "train", "val", "test", "train"] * 6)]
    lines = molecules.read_text().splitlines()
    (folder / "parts.csv").write_text("\n".join(f"{a},{b}" for a, b in zip(lines, words, strict=True)) + "\n")
    arguments = ("--out", folder / "run", "--target", "size", "--split-by", "part", *SMALL)
    assert call("train", folder / "parts.csv", *arguments).exit_code == 0
    return folder / "parts.csv", folder / "run"


def test_a_run_keeps_to_the_split_of_a_column(by_column, molecules, tmp_path):
    table, run = by_column
    found = json.loads(call("evaluate", run, table, "--json").stdout)
    assert (found["split"], found["graphs"]) == ("test", 6)
    assert found["score"] == pytest.approx(json.loads((run / "result.json").read_text())["test_score"], rel=1e-6)
    few = tmp_path / "few.csv"
    few.write_text("\n".join(molecules.read_text().splitlines()[:6]) + "\n")
    assert json.loads(call("evaluate", run, few, "--json").stdout)["split"] == "all", "the column need not be there"


def test_without_its_column_a_table_has_no_test_graphs(by_column, molecules):
    _, run = by_column
    assert json.loads(call("evaluate", run, molecules, "--json").stdout)["split"] == "all"
    for part in ("test", "val"):
        refused = call("evaluate", run, molecules, "--split", part)
        assert refused.exit_code == 1
        assert "the split is another" in refused.stderr


def test_more_rows_are_split_as_their_column_says(by_column, tmp_path):
    table, run = by_column
    more = tmp_path / "more.csv"
    more.write_text(table.read_text() + "".join(f"{90 + i},{'N' * (i + 1)},9.0,1,test\n" for i in range(5)))
    assert json.loads(call("evaluate", run, more, "--split", "test", "--json").stdout)["graphs"] == 11
    assert json.loads(call("evaluate", run, more, "--json").stdout)["split"] == "all"
    short = tmp_path / "short.csv"
    short.write_text("\n".join(line.rsplit(",", 1)[0] for line in table.read_text().splitlines()[:9]) + "\n")
    refused = call("evaluate", run, short, "--split", "test")
    assert refused.exit_code == 1
    assert "lacks that column or file. Use --split all" in refused.stderr


def test_a_run_without_test_graphs_says_so(molecules, tmp_path):
    table = tmp_path / "parts.csv"
    words = ["part", *(["train", "val"] * 15)]
    lines = molecules.read_text().splitlines()
    table.write_text("\n".join(f"{a},{b}" for a, b in zip(lines, words, strict=True)) + "\n")
    arguments = ("--out", tmp_path / "run", "--target", "size", "--split-by", "part", *SMALL)
    assert "no test graphs" in call("train", table, *arguments).stdout
    refused = call("evaluate", tmp_path / "run", table)
    assert refused.exit_code == 1
    assert "has no test graphs: choose others with --split" in refused.stderr


def test_a_run_keeps_to_its_scaffolds(tmp_path):
    rings = (
        "c1ccccc1",
        "C1CCCCC1",
        "c1ccncc1",
        "C1CCCC1",
        "c1ccoc1",
        "c1ccsc1",
        "C1CC1",
        "C1CCC1",
        "C1CCNCC1",
        "C1CCOC1",
    )
    table = tmp_path / "rings.csv"
    table.write_text("\n".join(["smiles,size", *(f"{'C' * n}{ring},{n}.5" for ring in rings for n in range(1, 4))]))
    arguments = ("--out", tmp_path / "run", "--target", "size", "--split-by", "scaffold", "--split-seed", 1, *SMALL)
    assert call("train", table, *arguments).exit_code == 0
    found = json.loads(call("evaluate", tmp_path / "run", table, "--json").stdout)
    expected = json.loads((tmp_path / "run" / "result.json").read_text())["test_score"]
    assert (found["split"], found["score"]) == ("test", pytest.approx(expected, rel=1e-6))
    (tmp_path / "one.csv").write_text("smiles,size\nCCO,3.5\n")
    refused = call("evaluate", tmp_path / "run", tmp_path / "one.csv", "--split", "test")
    assert (refused.exit_code, "has no split" in refused.stderr) == (1, True)
    assert json.loads(call("evaluate", tmp_path / "run", tmp_path / "one.csv", "--json").stdout)["split"] == "all"


def test_a_column_and_a_seed_contradict_each_other(by_column, tmp_path):
    arguments = ("--out", tmp_path / "run", "--target", "size", "--split-by", "part", "--split-seed", 1)
    refused = call("train", by_column[0], *arguments)
    assert refused.exit_code == 1
    assert "determines the split: leave out split_seed=1 (--split-seed)" in refused.stderr


def test_the_line_says_which_seed_it_is_at(monkeypatch, capsys):
    def at(seed, number):
        epoch = Epoch(number, 1.0, 1.0, 0.5, None, True, 0.001, 2.0)
        config = SimpleNamespace(seed=seed, folds=None, epochs=3)
        task = SimpleNamespace(task=SimpleNamespace(metric_name="MAE"))
        return epoch, SimpleNamespace(config=config, loaders=task, state=SimpleNamespace(best=None))

    clock = iter([0.0, 0.0, 40.0, 80.0, 120.0, 160.0])
    monkeypatch.setattr(epoch_line.time, "monotonic", lambda: next(clock))
    with epoch_line.epoch_line(several=True) as report:
        for seed, number in ((4, 1), (4, 2), (5, 1), (5, 2)):
            report(*at(seed, number))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["seed 4", "seed 4", "seed 5", "seed 5"]
    assert "0.025 epochs/s" in lines[1]
    assert "0.5 epochs/s" in lines[2], "the next seed has a pace of its own"


def test_several_seeds_give_error_bars(molecules, tmp_path):
    out = tmp_path / "three"
    result = call("train", molecules, "--out", out, "--target", "size", "--seeds", 3, "--json", *SMALL)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["seeds"], len(document["test_each"])) == ([0, 1, 2], 3)
    evaluated = json.loads(call("evaluate", out, molecules, "--json", "--device", "cpu").stdout)
    assert evaluated["score"] == pytest.approx(document["test_score"], rel=1e-6)
    assert evaluated["each"] == pytest.approx(document["test_each"], rel=1e-6)
    assert (evaluated["networks"], evaluated["std"]) == (3, pytest.approx(document["test_std"], rel=1e-4))
    shown = call("evaluate", out, molecules, "--device", "cpu").stdout
    assert "of the mean prediction of 3 networks, one per seed; each alone" in shown
    new, predicted = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("smiles\nCCO\nnotamolecule\n")
    assert call("predict", out, new, "-o", predicted).exit_code == 0
    first, second = csv.DictReader(predicted.read_text().splitlines())
    assert float(first["predicted_size_std"]) > 0
    assert second["predicted_size_std"] == ""
    explained = json.loads(call("explain", out, new, "--row", 1, "--json").stdout)
    assert explained["networks"] == 3
    assert explained["prediction"] == pytest.approx(float(first["predicted_size"]), rel=1e-4)
    alone = [json.loads(call("explain", out / f"seed-{i}", new, "--row", 1, "--json").stdout) for i in range(3)]
    assert explained["prediction"] == pytest.approx(sum(one["prediction"] for one in alone) / 3, rel=1e-5)
    assert {one["networks"] for one in alone} == {1}
    assert "the mean of 3 networks" in call("explain", out, new, "--row", 1, "-o", tmp_path / "why.html").stdout
    assert "the mean of 3 networks" in (tmp_path / "why.html").read_text()
    again = call("train", molecules, "--out", out, "--seeds", 3, "--resume")
    assert again.exit_code == 0, again.stderr
    assert "the mean of 3 networks: test" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--seeds", 1], 2, "greater than or equal to 2"),
        (["--seeds", 2], 1, "holds a single run"),
    ],
)
def test_seeds_that_cannot_be(molecules, trained, arguments, code, message):
    result = call("train", molecules, "--out", trained, "--target", "size", *arguments, *SMALL)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())


def test_a_folder_of_seeds_is_no_single_run(molecules, trained, tmp_path):
    (tmp_path / "seed-0").symlink_to(trained)
    (tmp_path / "ensemble.json").write_text('{"seeds": [0, 1, 2]}')
    plain = call("train", molecules, "--out", tmp_path, "--target", "size", "--resume")
    assert plain.exit_code == 2
    assert "--seeds 3 --resume" in " ".join(plain.stderr.replace("│", " ").split())
    for arguments in (("predict",), ("explain", "--row", 1)):
        unfinished = call(arguments[0], tmp_path, molecules, *arguments[1:])
        assert unfinished.exit_code == 1
        assert "not all finished" in unfinished.stderr
    (tmp_path / "ensemble.json").write_text("seeds")
    damaged = call("evaluate", tmp_path, molecules)
    assert damaged.exit_code == 1
    assert "ensemble.json is damaged" in damaged.stderr


def test_another_metric_chooses_the_epoch_and_is_reported(molecules, trained, tmp_path):
    options = ("--out", tmp_path / "run", "--target", "size", "--metric", "rmse", "--json", *SMALL)
    result = call("train", molecules, *options)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["metric"] == "RMSE"
    assert document["scores"]["test"]["rmse"] == pytest.approx(document["test_score"], rel=1e-6)
    assert document["scores"]["val"]["rmse"] == pytest.approx(document["val_score"], rel=1e-6)
    again = json.loads(call("evaluate", tmp_path / "run", molecules, "--json").stdout)
    assert (again["metric"], again["score"]) == ("RMSE", pytest.approx(document["test_score"], rel=1e-5))
    assert again["scores"] == pytest.approx(document["scores"]["test"], rel=1e-5)
    other = json.loads(call("evaluate", tmp_path / "run", molecules, "--metric", "mae", "--json").stdout)
    assert (other["metric"], other["score"] <= again["score"]) == ("MAE", True)
    assert other["score"] == pytest.approx(again["scores"]["mae"], rel=1e-6)
    text = call("train", molecules, *options[: -1 - len(SMALL)], *SMALL, "--resume").stdout
    assert f"test: mae {document['scores']['test']['mae']:.4g}, rmse" in text
    assert f"val: mae {document['scores']['val']['mae']:.4g}, rmse" in text
    wrong = call("evaluate", trained, molecules, "--metric", "ap")
    assert wrong.exit_code != 0
    assert "metric='ap' is not for targets of the kind 'regression': expected mae, rmse, r2" in wrong.stderr


def test_several_targets_may_have_empty_cells_and_each_has_a_score(tmp_path):
    rows = [f"{s},{len(s) if i % 3 else ''},{i if i % 3 != 1 else ''}" for i, s in enumerate(MOLECULES)]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(["smiles,size,number", *rows]) + "\n")
    done = call("train", path, "--out", tmp_path / "run", "--target", "size", "--target", "number", *SMALL)
    assert done.exit_code == 0, done.stderr
    assert "33.3 % of the targets" in done.stderr
    assert "standard deviations" not in done.stderr
    assert [line.split(" ")[:6] for line in done.stdout.splitlines()[3:5]] == [
        [f"{part},", "MAE", "of", "each", "target:", "size"] for part in ("test", "val")
    ]
    found = call("evaluate", tmp_path / "run", path, "--split", "all")
    assert found.exit_code == 0, found.stderr
    assert found.stdout.splitlines()[1].startswith("mae ")
    assert [line.split(":")[0] for line in found.stdout.splitlines()[2:]] == ["  size", "  number"]
    document = json.loads(call("evaluate", tmp_path / "run", path, "--split", "all", "--json").stdout)
    assert sum(document["targets"].values()) / 2 == pytest.approx(document["score"], rel=1e-5)
    turned = ("--target", "number", "--target", "size")  # the other way round, but the same columns
    assert json.loads(call("evaluate", tmp_path / "run", path, "--split", "all", *turned, "--json").stdout) == document
    predicted = call("predict", tmp_path / "run", path)
    assert predicted.stdout.splitlines()[0] == "smiles,size,number,predicted_size,predicted_number,similarity,error"


def test_options_that_the_model_refuses_leave_no_folder_behind(molecules, tmp_path):
    result = call("train", molecules, "--out", tmp_path / "run", "--target", "size", "--k", 300, "--epochs", 1)
    assert result.exit_code == 2
    assert "k=300 is too large: expected at most 255" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_without_a_score_is_reported_again(molecules, tmp_path):
    options = ("--out", tmp_path / "run", "--target", "size", "--lr", "1e30", *SMALL, "--epochs", 1)
    for arguments in ((), ("--resume",)):
        found = call("train", molecules, *options, *arguments)
        assert found.exit_code == 0, found.stderr
        assert "validation not defined" in found.stdout


def test_graphs_of_the_training_are_known_again(molecules, trained, tmp_path):
    rows = molecules.read_text().splitlines()
    (tmp_path / "some.csv").write_text("\n".join(rows[:-3]) + "\n")
    found = call("evaluate", trained, tmp_path / "some.csv", "--json")
    assert found.exit_code == 0, found.stderr
    document = json.loads(found.stdout)
    assert 0 < document["training_overlap"] < document["graphs"] == len(rows) - 4
    overlap = document["training_overlap"]
    assert f"{overlap} of the {document['graphs']} graphs were in the training data" in found.stderr
    test = call("evaluate", trained, molecules, "--json")
    assert json.loads(test.stdout)["training_overlap"] == 0
    assert "in the training data" not in test.stderr
    everything = json.loads(call("evaluate", trained, molecules, "--split", "all", "--json").stdout)
    parts = [json.loads(call("evaluate", trained, molecules, "--split", p, "--json").stdout) for p in ("train", "val")]
    learned = sum(part["graphs"] for part in parts)  # the kernel learns from the validation part
    assert everything["training_overlap"] == learned
    chem = pytest.importorskip("rdkit.Chem")
    turned = [chem.MolToSmiles(m, rootedAtAtom=m.GetNumAtoms() - 1) for m in map(chem.MolFromSmiles, MOLECULES)]
    assert sum(a != b for a, b in zip(turned, MOLECULES, strict=True)) > 20
    for texts, expected in ((turned, ("test", 0)), (turned[::-1], ("all", learned))):
        (tmp_path / "turned.csv").write_text("\n".join(["smiles,size", *(f"{s},{len(s)}" for s in texts)]) + "\n")
        again = json.loads(call("evaluate", trained, tmp_path / "turned.csv", "--json").stdout)
        assert (again["split"], again["training_overlap"]) == expected, (
            "the training's data is known, however it is written"
        )


@pytest.mark.parametrize("option", ["--target", "--smiles", "--kind", "--splits"])
def test_options_of_tables_are_for_tables(tmp_path, option):
    refused = call("train", "csl", "--out", tmp_path / "run", option, "class")
    assert refused.exit_code == 2
    assert f"{option}: for tables of molecules" in " ".join(refused.stderr.replace("│", " ").split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("text", "code"), [("options:\nepochs: 1\n", 0), ("options: 3\n", 1)])
def test_the_options_of_a_config_file_may_be_empty_and_nothing_else(molecules, tmp_path, text, code):
    (tmp_path / "config.yaml").write_text(text)
    done = call("train", molecules, "--out", tmp_path / "run", "--target", "size", "--config", tmp_path / "config.yaml")
    assert done.exit_code == code, done.stderr
    assert (code == 0) == ("expected names and values below it" not in done.stderr)


def test_predictions_are_not_written_over_what_was_read(molecules, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in.csv").write_text(molecules.read_text())
    refused = call("predict", trained, "~/in.csv", "-o", tmp_path / "in.csv")
    assert refused.exit_code == 2
    assert (tmp_path / "in.csv").read_text() == molecules.read_text()


def test_every_option_of_train_reaches_the_run(molecules, tmp_path):
    given = {
        "collection": "sp", "batch-size": 16, "lr": 0.02, "weight-decay": 0.125, "patience": 7, "stop-at": 0.5,
        "clip": 2.0, "seed": 3, "split-seed": 5, "precision": "64-true", "max-entries": 4096, "dropout": 0.25,
        "metric": "rmse",
    }  # fmt: skip
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    done = call("train", molecules, "--out", tmp_path / "run", "--target", "size", *SMALL, *options)
    assert done.exit_code == 0, done.stderr
    config = RunFolder(tmp_path / "run").read_config().to_dict()
    assert {name: {**config, **config["options"]}[name.replace("-", "_")] for name in given} == given


def test_a_table_is_read_as_in_training(molecules, tmp_path):
    """Its column of SMILES, and rows that cannot be read; no option has to be said again."""
    path, out = tmp_path / "drugs.csv", tmp_path / "run"
    path.write_text(molecules.read_text().replace("id,smiles,", "id,drug,") + "99,C(,10,0\n")
    options = ("--target", "size", "--smiles", "drug", "--skip-invalid", *SMALL)
    assert call("train", path, "--out", out, *options).exit_code == 0
    evaluated = call("evaluate", out, path, "--json")
    assert evaluated.exit_code == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["split"] == "test"
    explained = call("explain", out, path, "--row", 1, "--json")
    assert explained.exit_code == 0, explained.stderr
    predicted = call("predict", out, path, "--json")
    assert predicted.exit_code == 0, predicted.stderr
    column = json.loads(predicted.stdout)["predictions"]["predicted_size"]
    assert [value is None for value in column] == [False] * len(MOLECULES) + [True]


def test_labels_keep_the_codes_of_training(tmp_path):
    def folder(name, labels):
        (tmp_path / name).mkdir()
        numbers = range(len(labels))
        files = {
            "A": "".join(f"{2 * i + 1},{2 * i + 2}\n{2 * i + 2},{2 * i + 1}\n" for i in numbers),
            "graph_indicator": "".join(f"{i + 1}\n{i + 1}\n" for i in numbers),
            "graph_labels": "".join(f"{i % 2}\n" for i in numbers),
            "node_labels": "".join(f"{a}\n{b}\n" for a, b in labels),
        }
        for part, text in files.items():
            (tmp_path / name / f"X_{part}.txt").write_text(text)
        return tmp_path / name

    labels = [(i % 3, (i // 3) % 3) for i in range(20)]
    whole, part = folder("whole", labels), folder("part", labels[4:6])
    assert call("train", whole, "--out", tmp_path / "run", *SMALL).exit_code == 0
    everything, some = (call("predict", tmp_path / "run", data, "--json") for data in (whole, part))
    assert some.exit_code == 0, some.stderr
    expected, found = (json.loads(one.stdout)["predictions"]["probability_1"] for one in (everything, some))
    assert found == pytest.approx(expected[4:6], abs=1e-6)


def test_the_share_that_is_not_known_is_that_of_the_graphs_measured(tmp_path):
    rows = []
    for i, smiles in enumerate(MOLECULES):
        part = ("train", "val", "test")[max(0, i // 5 - 3)]
        number = "" if (part == "train" and i % 2) or i == 29 else i
        rows.append(f"{smiles},{len(smiles)},{number},{part}")
    path, out = tmp_path / "two.csv", tmp_path / "run"
    path.write_text("\n".join(["smiles,size,number,part", *rows]) + "\n")
    done = call("train", path, "--out", out, "--target", "size", "--target", "number", "--split-by", "part", *SMALL)
    assert "18.3 % of the targets" in done.stderr
    assert "10 % of the targets" in call("evaluate", out, path).stderr


MESSY = "id;structure code;size\n" + "".join(f"m{i};{smiles};{i}.5\n" for i, smiles in enumerate(MOLECULES))
BAD = "x;C1CC;1\ny;;2\nz;CCO;many\n"


def test_bad_rows_are_written_to_a_file(tmp_path):
    (tmp_path / "own.csv").write_text(MESSY + BAD)
    arguments = ("train", tmp_path / "own.csv", "--out", tmp_path / "run", "--target", "size", *SMALL)
    refused = call(*arguments)
    file = tmp_path / "run-bad-rows.csv"
    assert refused.exit_code == 1
    assert f"3 of {len(MOLECULES) + 3} rows cannot be read" in refused.stderr
    assert f"All of them are in {file}." in refused.stderr
    assert not (tmp_path / "run").exists()
    rows = list(csv.DictReader(file.read_text().splitlines()))
    first = len(MOLECULES) + 1
    assert [(row["row"], row["smiles"]) for row in rows] == [
        (f"{first}", "C1CC"),
        (f"{first + 1}", ""),
        (f"{first + 2}", "CCO"),
    ]
    assert [word in row["reason"] for word, row in zip(("grammar", "empty", "'many'"), rows, strict=True)] == [True] * 3
    file.unlink()
    done = call(*arguments, "--skip-invalid")
    assert done.exit_code == 0, done.stderr
    assert f"all skipped rows are in {file}" in done.stderr
    assert len(file.read_text().splitlines()) == 4
    assert json.loads((tmp_path / "run" / "result.json").read_text())["skipped_rows"] == 3


def test_copies_and_conflicts_are_reported(tmp_path):
    copies = "a;CCO.[Na+].[Cl-];1\nb;OCC;8.25\nc;OC(C);8.25\n"
    (tmp_path / "own.csv").write_text(MESSY + copies)
    arguments = ("train", tmp_path / "own.csv", "--out", tmp_path / "run", "--target", "size", *SMALL)
    done = call(*arguments, "--clean", "salts")
    assert done.exit_code == 0, done.stderr
    values = [float(f"{i}.5") for i, smiles in enumerate(MOLECULES) if smiles in ("CCO", "OCC")] + [1, 8.25, 8.25]
    assert (
        f"with copies that have different targets; the largest difference is {max(values) - min(values):.4g}"
        in done.stderr
    )
    found = json.loads((tmp_path / "run" / "result.json").read_text())["copies"]
    assert found == {"molecules": 1, "rows": len(values) - 1, "conflicts": 1}
    new = tmp_path / "new.csv"
    new.write_text("smiles\nCCO\nCCO.[Na+].[Cl-]\n[Na+].CC[O-]\n")
    predicted = list(csv.DictReader(call("predict", tmp_path / "run", new).stdout.splitlines()))
    assert [row["smiles"] for row in predicted] == ["CCO", "CCO.[Na+].[Cl-]", "[Na+].CC[O-]"]
    assert len({row["predicted_size"] for row in predicted}) == 1


def test_cleaning_says_what_it_changed(tmp_path):
    salts = "a;CCO.[Na+].[Cl-];1\nb;C[NH3+];2\nc;[Na+].[Cl-];3\n"
    (tmp_path / "own.csv").write_text(MESSY + salts)
    arguments = ("train", tmp_path / "own.csv", "--target", "size", "--out", tmp_path / "run", *SMALL)
    total = len(MOLECULES) + 3
    done = call(*arguments, "--skip-invalid", "--clean", "salts")
    assert f"row {total}: '[Na+].[Cl-]' has no organic fragment, which cleaning would keep" in done.stderr
    assert f"--clean salts changed 2 of {total - 1} molecules" in done.stderr
    hint = f"2 of {total} molecules have several fragments: --clean salts keeps the largest of each"
    assert hint in call(*arguments, "--overwrite").stderr
    (tmp_path / "own.csv").write_text(MESSY + salts[: salts.index("c;")])
    assert "several fragments" not in call(*arguments, "--overwrite").stderr, "one of many"


def test_a_warning_if_most_rows_are_skipped(tmp_path):
    rows = [f"{smiles},{i if i < 13 else ''}" for i, smiles in enumerate(MOLECULES)]
    warning = "warning: only 13 rows are left: check that the options name the right columns"
    done = train_on(tmp_path, "\n".join(["smiles,y", *rows]), "--skip-invalid")
    assert f"skipped {len(rows) - 13} rows that cannot be read, the first is row 14" in done.stderr
    assert warning in done.stderr
    done = train_on(tmp_path, "\n".join(["smiles,y", *rows[:20]]), "--skip-invalid", "--overwrite")
    assert "skipped 7 rows" in done.stderr
    assert "rows are left" not in done.stderr


def test_copies_of_one_molecule_are_no_data(tmp_path):
    done = train_on(tmp_path, "smiles,y\n" + "".join(f"CCO,{i}\n" for i in range(40)))
    assert done.exit_code == 1
    assert "own.csv has 40 graphs (different molecules: 1), which leaves none for validation" in done.stderr
    assert "at least ten different graphs" in done.stderr


def test_a_split_is_written_once_and_then_read(tmp_path):
    (tmp_path / "own.csv").write_text(MESSY)
    split = tmp_path / "split.csv"

    def train(name: str, *more: object) -> str:
        arguments = ("--target", "size", "--splits", split, *SMALL, *more)
        done = call("train", tmp_path / "own.csv", "--out", tmp_path / name, *arguments)
        assert done.exit_code == 0, done.stderr
        return done.stderr

    assert f"wrote the split to {split}" in train("one", "--split-seed", 5)
    text = split.read_text()
    assert f"read the split in {split}" in train("two")
    assert split.read_text() == text
    one, two = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("one", "two"))
    assert one["test_score"] == two["test_score"]
    found = json.loads(call("evaluate", tmp_path / "two", tmp_path / "own.csv", "--json").stdout)
    assert (found["split"], found["score"]) == ("test", pytest.approx(two["test_score"], rel=1e-6))
    resumed = call("train", tmp_path / "own.csv", "--out", tmp_path / "two", "--resume")
    assert resumed.exit_code == 0, resumed.stderr


def test_a_table_may_come_from_standard_input(tmp_path):
    arguments = ["train", "-", "--out", str(tmp_path / "run"), "--target", "size", *map(str, SMALL)]
    done = CliRunner().invoke(make_app(), arguments, input=MESSY)
    assert done.exit_code == 0, done.stderr
    assert json.loads((tmp_path / "run" / "result.json").read_text())["test_score"] is not None


@pytest.mark.parametrize("split_by", ["random", "butina"])
def test_standard_input_is_split_as_the_file_of_the_training(molecules, tmp_path, split_by):
    run = tmp_path / "run"
    done = call("train", molecules, "--out", run, "--target", "size", "--split-by", split_by, *SMALL)
    assert done.exit_code == 0, done.stderr
    arguments = ["evaluate", str(run), "-", "--json"]
    piped = json.loads(CliRunner().invoke(make_app(), arguments, input=molecules.read_text()).stdout)
    there = json.loads(call("evaluate", run, molecules, "--json").stdout)
    assert (piped["split"], piped["graphs"], piped["score"]) == ("test", there["graphs"], there["score"])


def test_calibration_of_folds_is_refused_before_the_data_are_read(tmp_path: Path) -> None:
    arguments = ["train", "no.csv", "--out", str(tmp_path / "run"), "--folds", "3", "--calibration", "0.1"]
    assert CliRunner().invoke(make_app(), arguments).exit_code == 2  # 1: there is no such file


def test_files_for_people_have_umlauts_and_old_configs_resume(molecules, tmp_path):
    table, out = tmp_path / "umlaut.csv", tmp_path / "run"
    table.write_text(molecules.read_text().replace("size", "Löslichkeit", 1), encoding="utf-8")
    options = ["train", table, "--out", out, "--target", "Löslichkeit", *SMALL]
    assert call(*options, "--metric", "RMSE").exit_code == 0
    config = (out / "config.yaml").read_text(encoding="utf-8")
    assert "- Löslichkeit" in config
    assert "Löslichkeit" in (out / "report.html").read_text().partition("All options")[2]
    (out / "config.yaml").write_text(config.replace("- Löslichkeit", '- "L\\xF6slichkeit"'))
    resumed = call(*options, "--metric", "rmse", "--resume")
    assert resumed.exit_code == 0, resumed.stderr
    for command in (["evaluate", out, table], ["compare", out]):
        assert call(*command, "--metric", "RMSE").stdout == call(*command, "--metric", "rmse").stdout != ""


def test_targets_of_different_sizes_get_a_warning(tmp_path):
    rows = [f"{s},{len(s)},{30 * len(s)},{'' if i else 1}" for i, s in enumerate(MOLECULES)]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(["smiles,small,large,constant", *rows]) + "\n")
    options = ["train", path, "--target", "small", "--target", "large", *SMALL]
    done = call(*options, "--out", tmp_path / "run")
    assert "more than a factor of 10: the mean MAE, which chooses the epoch, is mostly that of large" in done.stderr
    assert "factor of 10" not in call(*options, "--metric", "r2", "--out", tmp_path / "r2").stderr
    assert "factor of 10" not in call(*options[:4], *SMALL, "--out", tmp_path / "one").stderr
