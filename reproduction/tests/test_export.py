"""The best model by validation is written with a card, and is the model of the run when it is loaded by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pathnn import PathNN
from pathnn.data import load_dataset
from pathnn.hub import model_folders, pretrained_names
from pathnn.training import load_model, load_task
from pathnn.training.checkpoint import save_model
from pathnn_reproduction import export
from pathnn_reproduction.experiments import TABLES as TARGETS, get_experiment
from pathnn_reproduction.export import ExportError, export_models, model_card, write_index
from pathnn_reproduction.results import Results, config_hash, v1_options
from pathnn_reproduction.spec import training_spec
from pathnn_reproduction.tables import best_run
from pathnn_reproduction.worker import Settings
from tiny_experiments import do_missing, made_up_row, of_specs, tiny_experiment, tiny_spec

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    tiny = tiny_experiment(2, epochs=1)
    settings = Settings(tmp_path / "work", device="cpu")
    do_missing(tiny, tmp_path / "tiny.jsonl", settings)
    results_file = Results.open(tmp_path / "tiny.jsonl")
    # The scores of a tiny run are ties: make seed 0 the best by validation, and seed 1 by test.
    lines = {line["seed"]: line for line in results_file}
    lines[0].update(val=50.0, test=20.0)
    lines[1].update(val=40.0, test=90.0)
    return tiny, results_file, settings.work


def test_the_best_by_validation_is_loaded_by_its_name(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    written = export_models(tiny, tiny.specs, results_file, work, tmp_path / "cache" / "models")
    assert [path.name for path in written] == ["csl-sp.safetensors"]
    assert "csl-sp" in pretrained_names()
    model = PathNN.from_pretrained("csl-sp")
    assert not model.training
    graphs = load_dataset("csl").graphs
    expected = load_model(work / "tiny" / tiny.specs[0].folder / "model.safetensors").model
    other = load_model(work / "tiny" / tiny.specs[1].folder / "model.safetensors").model
    outs = [m(graphs[3].x, graphs[3].edge_index) for m in (model, expected, other)]
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])


def test_classes_are_named_as_the_dataset_does_now(done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny, results_file, work = done
    source = work / "tiny" / tiny.specs[0].folder / "model.safetensors"
    old, names = load_model(source), tuple("abcdefghij")
    save_model(source, replace(old, signature=replace(old.signature, classes=[]), versions={"torch": "0.1"}))
    monkeypatch.setattr(export, "load_task", lambda config: replace(load_task(config), classes=names))
    new = load_model(export_models(tiny, tiny.specs, results_file, work, tmp_path / "models")[0])
    assert new.signature == replace(old.signature, classes=list(names))
    assert (new.config, new.epoch, new.val_score) == (old.config, old.epoch, old.val_score)
    assert new.versions == {"torch": "0.1"}


def test_the_card_says_what_it_is(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    export_models(tiny, tiny.specs, results_file, work, tmp_path / "models")
    card = (tmp_path / "models" / "csl-sp.md").read_text()
    for words in ("seed 0, epoch 1 of 1", "validation 50.00, test 20.00", "All 2 seeds: 55.00 ± 49.50", "parameters",
                  "90 / 30 / 30", "--only pathnn,csl,sp,k=2,fold=0,seed=0`",
                  "commit", "MIT", 'from_pretrained("csl-sp")'):  # fmt: skip
        assert words in card


def test_models_are_listed(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    (tmp_path / "a.safetensors").touch()
    export_models(tiny, tiny.specs, results_file, work, tmp_path)
    listed = (tmp_path / "README.md").read_text().splitlines()[-2:]
    assert listed[0] == "- [a](a.md): without a card."
    assert listed[1].startswith("- [csl-sp](csl-sp.md): PathNN-SP, K = ")
    (tmp_path / "README.md").write_text("# My project\n")
    write_index(tmp_path)
    assert (tmp_path / "README.md").read_text() == "# My project\n"


def test_the_project_s_models_are_listed(tmp_path: Path) -> None:
    folder = ROOT / "models"
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(b"" if path.suffix == ".safetensors" else path.read_bytes())
    write_index(tmp_path)
    assert (tmp_path / "README.md").read_text() == (folder / "README.md").read_text()


def test_the_card_does_not_call_a_part_all(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    more = of_specs(*tiny.specs, tiny_spec(2))
    export_models(more, more.specs, results_file, work, tmp_path / "models")
    assert "2 of 3 seeds: 55.00 ± 49.50; that is" in (tmp_path / "models" / "csl-sp.md").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "models").glob("*.safetensors")), ids=lambda path: path.stem)
def test_the_cards_of_the_project_agree_with_its_results(mirror: Path, path: Path) -> None:
    """If this fails, export the model again, or write the card with `model_card`."""
    trained = load_model(path)
    key = config_hash(v1_options(trained.config))
    run = next(spec for name in TARGETS for spec in get_experiment(name).specs if spec.key["config_hash"] == key)
    plan, results_file = get_experiment(run.target), Results.open(ROOT / "results" / f"{run.target}.jsonl")
    runs = [other for other in plan.specs if other.entry == run.entry]
    line = results_file.find(run.key)
    assert line is not None
    assert best_run(plan, runs, results_file) == (run, line)
    card = model_card(path.stem, plan, runs, line, trained, load_task(trained.config), results_file)
    assert path.with_suffix(".md").read_text() == card


def test_a_model_that_is_not_at_hand_is_no_reason_to_take_another(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    (work / "tiny" / tiny.specs[0].folder / "model.safetensors").unlink()
    with pytest.raises(ExportError, match="csl-sp-k2-s0 is the best by validation, but its model is not in"):
        export_models(tiny, tiny.specs, results_file, work, tmp_path / "models")
    with pytest.raises(ExportError, match="no finished run"):
        export_models(tiny, tiny.specs, Results(tmp_path / "none.jsonl"), work, tmp_path / "models")


def test_an_unknown_name_lists_what_exists(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    export_models(tiny, tiny.specs, results_file, work, tmp_path / "cache" / "models")
    with pytest.raises(ValueError, match=r"no trained model 'zinc-bp' here: .*csl-sp.*searched"):
        PathNN.from_pretrained("zinc-bp")
    assert model_folders()[0] == tmp_path / "cache" / "models"


def test_a_baseline_is_no_pathnn(done, tmp_path: Path) -> None:
    tiny, _, work = done
    gin = training_spec("tiny", replace(tiny.specs[0].config, model="gin"))
    do_missing(of_specs(gin), tmp_path / "gin.jsonl", Settings(work, device="cpu"))
    folder = tmp_path / "cache" / "models"
    folder.mkdir()
    (folder / "gin.safetensors").write_bytes((work / "tiny" / gin.folder / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match="is a Baseline, not a PathNN"):
        PathNN.from_pretrained("gin")


def test_models_of_several_k_have_names_of_their_own(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    short = training_spec("tiny", replace(tiny.specs[0].config, k=1))
    both = of_specs(*tiny.specs, short)
    do_missing(both, tmp_path / "k.jsonl", Settings(work, device="cpu"), specs=[short])
    results_file.add(Results.open(tmp_path / "k.jsonl").rows[0], short.key)
    written = export_models(both, both.specs, results_file, work, tmp_path / "models")
    assert [path.name for path in written] == ["csl-sp-k2.safetensors", "csl-sp-k1.safetensors"]
    assert [load_model(path).model.config.k for path in written] == [2, 1]


def test_what_was_not_trained_is_not_exported(done, tmp_path: Path) -> None:
    tiny, results_file, work = done
    untrained = training_spec("tiny", replace(tiny.specs[0].config, k=3), run=lambda spec, settings: {})
    results_file.add(made_up_row(untrained, 99.0), untrained.key)
    both = of_specs(*tiny.specs, untrained)
    written = export_models(both, both.specs, results_file, work, tmp_path / "models")
    assert [load_model(path).model.config.k for path in written] == [2]
