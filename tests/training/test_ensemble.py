"""Several seeds: each is a run as any other, their mean is a mean, and folders of them survive what runs survive."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
import torch

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.inference import ensemble_columns, score
from pathnn.provenance import commit
from pathnn.training import (
    Ensemble,
    EnsembleFolder,
    Evaluation,
    MismatchError,
    RunError,
    RunFolder,
    RunFolderError,
    load_ensemble,
    load_model,
    predict,
    predict_each,
    run,
    run_ensemble,
    score_ensemble,
)
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.ensemble import EnsembleScore, combine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> EnsembleFolder:
    """Three networks, trained on one thread: this fixture runs before `one_thread`."""
    out, threads = tmp_path_factory.mktemp("ensembles") / "three", torch.get_num_threads()
    torch.set_num_threads(1)
    run_ensemble(tiny_config(seed=4), out, 3, task=tiny_task())
    torch.set_num_threads(threads)
    return EnsembleFolder(out)


def test_each_is_the_run_of_its_seed(folder, tmp_path):
    alone = run(tiny_config(seed=5), tmp_path / "alone", task=tiny_task())
    assert folder.numbers == [4, 5, 6]
    ours, theirs = (
        load_ensemble(folder.path).members[1].model,
        load_model(tmp_path / "alone" / "model.safetensors").model,
    )
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
    assert folder.member(5).read_result()["test_score"] == alone["test_score"]


def test_the_mean_is_the_mean_of_what_each_says(folder):
    task, ensemble = tiny_task(), load_ensemble(folder.path)
    each = torch.stack([predict(one, task) for one in ensemble.members])
    assert torch.equal(predict_each(ensemble, task), each)
    test = task.splits[0].test
    torch.testing.assert_close(predict_each(ensemble, task, test), each[:, test])
    found = score_ensemble(ensemble, task, test)
    assert found.each == tuple(score(one, task, test) for one in ensemble.members)
    scale = ensemble.signature.target_scale
    assert found.together.score == pytest.approx(
        float((scale.decode(each[:, test]).mean(dim=0) - task.graphs.y[test]).abs().mean()), rel=1e-5
    )
    columns = ensemble_columns(each, ensemble.signature)
    values = scale.decode(each)[:, :, 0].double()
    assert list(columns) == ["prediction", "prediction_std"]
    assert columns["prediction"] == pytest.approx(values.mean(dim=0).tolist(), rel=1e-5)
    assert columns["prediction_std"] == pytest.approx(values.std(dim=0).tolist(), rel=1e-4)


@pytest.mark.parametrize(("target", "unit"), [("class", torch.softmax), ("binary", None), ("multilabel", None)])
def test_probabilities_are_averaged_not_outputs(target, unit):
    outputs = 30 * torch.randn(5, 7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    probability = (lambda out: out.softmax(dim=-1)) if unit else torch.sigmoid
    together = probability(combine(outputs, target))
    torch.testing.assert_close(together, probability(outputs).mean(dim=0))
    assert combine(outputs, target).isfinite().all()


def test_classes_have_error_bars_for_their_probabilities(tmp_path):
    task = tiny_task(classes=True)
    result = run_ensemble(tiny_config(), tmp_path / "two", 2, task=task)
    ensemble = load_ensemble(tmp_path / "two")
    columns = ensemble_columns(predict_each(ensemble, task), ensemble.signature)
    names = [f"probability_{name}" for name in task.classes]
    assert list(columns) == ["predicted_class", *(name + end for name in names for end in ("", "_std"))]
    assert result["metric"] == "accuracy"


def test_a_score_that_is_not_defined_has_no_deviation():
    """As ROC-AUC has none where all graphs are yes."""
    nan, one = Evaluation(1.0, float("nan"), 3), Evaluation(1.0, 50.0, 3)
    for each in ((nan, nan), (nan, one), (one,)):
        assert math.isnan(EnsembleScore("MAE", nan, each).std)
    assert EnsembleScore("MAE", one, (one, Evaluation(1.0, 54.0, 3))).std == pytest.approx(8**0.5)


def test_the_result_says_how_far_they_differ(folder):
    result = folder.read_result()
    each = [folder.member(seed).read_result()["test_score"] for seed in (4, 5, 6)]
    assert (result["seeds"], result["test_each"]) == ([4, 5, 6], each)
    assert result["test_mean"] == pytest.approx(sum(each) / 3)
    assert result["test_std"] == pytest.approx(float(torch.tensor(each, dtype=torch.float64).std()))
    together = score_ensemble(load_ensemble(folder.path), tiny_task(), tiny_task().splits[0].test).together.score
    assert result["test_score"] == pytest.approx(together)
    assert result["commit"] == commit()


class Stop:
    """Stops the run of a seed after an epoch, as Ctrl-C does."""

    def __init__(self, seed: int, epoch: int) -> None:
        self.at = seed, epoch

    def __call__(self, epoch, ready) -> None:
        if (ready.config.seed, epoch.epoch) == self.at:
            raise KeyboardInterrupt


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name != ".lock")


def test_a_stopped_ensemble_goes_on_and_can_grow(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run_ensemble(tiny_config(), out, 3, task=tiny_task(), report=Stop(1, 2))
    with pytest.raises(RunFolderError, match=f"the 3 seeds in .* --seeds 3 --out {out} --resume"):
        load_ensemble(out)
    result = run_ensemble(tiny_config(), out, 3, task=tiny_task(), resume=True)
    whole = run_ensemble(tiny_config(), tmp_path / "whole", 4, task=tiny_task())
    assert result["test_each"] == whole["test_each"][:3]
    with pytest.raises(RunError, match=r"0, 1, 2.* not in 0 to 1"):
        run_ensemble(tiny_config(), out, 2, task=tiny_task(), resume=True)
    with pytest.raises(RunError, match="with lr"):
        run_ensemble(tiny_config(lr=0.5), out, 4, task=tiny_task(), resume=True)
    assert EnsembleFolder(out).read_result() == result, "what is refused changes nothing"
    with pytest.raises(KeyboardInterrupt):
        run_ensemble(tiny_config(), out, 4, task=tiny_task(), resume=True, report=Stop(3, 1))
    assert EnsembleFolder(out).numbers == [0, 1, 2, 3]
    with pytest.raises(RunFolderError, match="not all finished"):
        load_ensemble(out)
    grown = run_ensemble(tiny_config(), out, 4, task=tiny_task(), resume=True)
    assert (grown["test_each"], grown["test_score"]) == (whole["test_each"], whole["test_score"])


def test_an_ensemble_that_gets_more_epochs_is_unfinished_meanwhile(tmp_path):
    out = tmp_path / "run"
    run_ensemble(tiny_config(), out, 2, task=tiny_task())
    with pytest.raises(KeyboardInterrupt):
        run_ensemble(tiny_config(epochs=5), out, 2, task=tiny_task(), resume=True, report=Stop(0, 5))
    with pytest.raises(RunFolderError, match="not all finished"):
        load_ensemble(out)
    run_ensemble(tiny_config(epochs=5), out, 2, task=tiny_task(), resume=True)
    assert [one.config.epochs for one in load_ensemble(out).members] == [5, 5]


def test_overwriting_leaves_nothing_of_the_old_one_even_if_stopped(tmp_path):
    out, task = tmp_path / "run", tiny_task()
    run_ensemble(tiny_config(epochs=1), out, 3, task=task)
    with pytest.raises(RunFolderError, match="holds runs of 3 seeds already"):
        run_ensemble(tiny_config(epochs=1), out, 3, task=task)
    with pytest.raises(RunError, match="has 1 splits"):
        run_ensemble(tiny_config(epochs=1, fold=3), out, 2, task=task, overwrite=True)
    assert load_ensemble(out).config.lr == tiny_config().lr, "a run that is refused removes nothing"
    other = tiny_config(lr=0.1, seed=10)
    with pytest.raises(KeyboardInterrupt):
        run_ensemble(other, out, 2, task=task, overwrite=True, report=Stop(10, 1))
    assert names(out) == ["ensemble.json", "seed-10"]
    run_ensemble(other, out, 2, task=task, resume=True)
    assert names(out) == ["ensemble.json", "result.json", "seed-10", "seed-11"]
    assert load_ensemble(out).config.lr == 0.1


def test_nothing_is_taken_from_another_process(tmp_path):
    out, task = tmp_path / "run", tiny_task()
    run_ensemble(tiny_config(epochs=1), out, 2, task=task)
    for at_work in (RunFolder(out), RunFolder(out / "seed-1")):
        with at_work.lock(), pytest.raises(RunFolderError, match="being written by another process"):
            run_ensemble(tiny_config(epochs=1, seed=5), out, 2, task=task, overwrite=True)
        assert len(load_ensemble(out).members) == 2


def test_a_run_folder_is_one_whatever_lies_in_it(tmp_path):
    run(tiny_config(epochs=1), tmp_path / "run", task=tiny_task())
    run_ensemble(tiny_config(epochs=1), tmp_path / "many", 2, task=tiny_task())
    shutil.copytree(tmp_path / "many", tmp_path / "run", dirs_exist_ok=True)
    assert not EnsembleFolder(tmp_path / "run").begun


def test_runs_beside_it_are_left_alone(tmp_path):
    """Folders of runs that merely have such a name are neither removed nor read."""
    run(tiny_config(epochs=1, seed=7, lr=0.3), tmp_path / "seed-7", task=tiny_task())
    run_ensemble(tiny_config(epochs=1), tmp_path, 2, task=tiny_task())
    run_ensemble(tiny_config(epochs=1), tmp_path, 2, task=tiny_task(), overwrite=True)
    assert len(load_ensemble(tmp_path).members) == 2
    assert RunFolder(tmp_path / "seed-7").read_config().lr == 0.3


def test_what_is_in_the_way_of_a_later_seed_is_said_first(tmp_path):
    (tmp_path / "seed-1").mkdir()
    (tmp_path / "seed-1" / "notes.txt").write_text("mine")
    for wish in ({}, {"overwrite": True}):
        with pytest.raises(RunFolderError, match=r"other files \(notes.txt\)"):
            run_ensemble(tiny_config(), tmp_path, 2, task=tiny_task(), **wish)
    assert names(tmp_path) == ["seed-1"]
    with pytest.raises(RunError, match="has 1 splits"):
        run_ensemble(tiny_config(fold=4), tmp_path / "new", 2, task=tiny_task())
    assert not (tmp_path / "new").exists()


def test_what_does_not_belong_together_is_refused(tmp_path):
    def trained(name: str, task, **changes):
        run(tiny_config(epochs=1, **changes), tmp_path / name, task=task)
        return load_model(tmp_path / name / "model.safetensors")

    first = trained("first", tiny_task())
    with pytest.raises(MismatchError, match=r"different options \(lr\)"):
        Ensemble((first, trained("other", tiny_task(), seed=1, lr=0.1)))
    with pytest.raises(MismatchError, match="different data"):
        Ensemble((first, trained("elsewhere", tiny_task(seed=7), seed=1)))
    with pytest.raises(ValueError, match="at least one"):
        Ensemble(())
    assert len(Ensemble((first, trained("same", tiny_task(), seed=1))).members) == 2


@pytest.mark.parametrize(
    ("changes", "seeds", "message"),
    [({}, 1, "expected 2 to 1000"), ({}, 10**12, "expected 2 to 1000"), ({"devices": 2}, 2, "leave out devices")],
)
def test_wrong_wishes_are_refused(tmp_path: Path, changes, seeds, message):
    with pytest.raises(RunError, match=message):
        run_ensemble(tiny_config(**changes), tmp_path / "run", seeds, task=tiny_task())


def test_folders_of_something_else_are_refused(tmp_path, folder):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"other files \(notes.txt\)"):
        run_ensemble(tiny_config(), tmp_path, 2, task=tiny_task())
    with pytest.raises(RunFolderError, match="holds a single run"):
        run_ensemble(tiny_config(), folder.member(4).path, 2, task=tiny_task(), overwrite=True)
    with pytest.raises(RunFolderError, match="has no runs"):
        load_ensemble(tmp_path / "nowhere")


def test_the_error_bar_of_a_target_is_not_written_over_by_another() -> None:
    facts = TaskSignature("a", "regression", 2, 3, None, "MAE", False, 1.0, ["y", "y_std"])
    outputs = torch.tensor([[[1.0, 100.0]], [[3.0, 110.0]]])
    found = ensemble_columns(outputs, facts)
    assert list(found) == ["predicted_y", "predicted_y_std_", "predicted_y_std", "predicted_y_std_std"]
    assert (found["predicted_y_std"], found["predicted_y_std_"]) == ([105.0], [pytest.approx(2**0.5, rel=1e-4)])


def test_the_result_says_how_the_data_was_split(tmp_path):
    result = run_ensemble(tiny_config(epochs=1, split_by="part"), tmp_path / "column", 2, task=tiny_task())
    assert (result["split_by"], result["split_seed"]) == ("part", None)
    result = run_ensemble(tiny_config(epochs=1, split_seed=3), tmp_path / "seed", 2, task=tiny_task())
    assert (result["split_by"], result["split_seed"]) == (None, 3)
    each = [EnsembleFolder(tmp_path / "seed").member(seed).read_result()["seconds"] for seed in (0, 1)]
    assert result["seconds"] == pytest.approx(sum(each))


def test_all_networks_have_the_same_max_entries(tmp_path, monkeypatch):
    """The memory that is free changes from run to run; a resumed ensemble takes the options of its first run."""
    free = iter(range(20, 60))
    monkeypatch.setattr("pathnn.training.setup.default_max_entries", lambda *_, **__: 1 << next(free))
    out, config = tmp_path / "run", tiny_config(epochs=1, max_entries="auto")
    run_ensemble(config, out, 2, task=tiny_task())
    saved = [EnsembleFolder(out).member(seed).read_config().max_entries for seed in (0, 1)]
    assert saved[0] == saved[1]
    run_ensemble(config, out, 3, task=tiny_task(), resume=True)
    assert EnsembleFolder(out).member(2).read_config().max_entries == saved[0]
