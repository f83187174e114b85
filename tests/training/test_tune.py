"""A search tries the default first, never looks at the test part, and continues after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.training import Epoch, RunConfig, RunError, RunFolderError, run, search_options, tune

pytest.importorskip("optuna", reason="a search needs optuna (extra tune)")

FIXED = ("k", "hidden_channels", "collection")  # keeps the tests fast


class Killed(BaseException):
    """Leaves a trial as SIGKILL does: Optuna does not see it."""


def states(study: Any) -> list[str]:
    return [trial.state.name for trial in study.trials]


def tiny_search(out: Path, trials: int, **options: Any) -> Any:
    return search_options(tiny_config(epochs=2), out, trials, **{"task": tiny_task(), "fixed": FIXED, **options})


def test_the_first_trial_is_the_default_and_the_best_is_written(tmp_path, monkeypatch):
    train, epochs = tune.train, []
    monkeypatch.setattr(tune, "train", lambda *parts: (epochs.append(e) or e for e in train(*parts)))
    study = tiny_search(tmp_path / "search", 2)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    config = tiny_config(epochs=2)
    default = run(config, tmp_path / "default", task=tiny_task())
    assert study.trials[0].value == default["val_score"]
    assert study.best_value <= default["val_score"]
    assert (study.trials[0].params["lr"], set(study.trials[0].params)) == (
        config.lr, {"lr", "weight_decay", "dropout", "readout"},
    )  # fmt: skip
    assert len(epochs) == 4
    assert all(epoch.test_score is None for epoch in epochs)
    best = RunConfig.from_yaml((tmp_path / "search" / "config.yaml").read_text())
    assert run(best, tmp_path / "best", task=tiny_task())["val_score"] == study.best_value
    assert best.k == config.k
    assert (tmp_path / "search" / "search.png").read_bytes().startswith(b"\x89PNG")


def test_a_search_continues_and_counts_all_its_trials(tmp_path):
    first = tiny_search(tmp_path, 1).trials[0]
    study = tiny_search(tmp_path, 3)
    assert states(study) == ["COMPLETE"] * 3
    assert study.trials[0].params == first.params
    assert len({trial.params["lr"] for trial in study.trials}) == 3, "the same settings were drawn again"
    assert states(tiny_search(tmp_path, 2)) == ["COMPLETE"] * 3


@pytest.mark.parametrize("killed", [0, 1])
def test_a_trial_that_was_killed_is_tried_again(tmp_path, monkeypatch, killed):
    train = tune.train
    if killed:
        tiny_search(tmp_path, 1)

    def kill(*parts):
        yield next(train(*parts))
        raise Killed

    monkeypatch.setattr(tune, "train", kill)
    with pytest.raises(Killed):
        tiny_search(tmp_path, 2)
    monkeypatch.setattr(tune, "train", train)
    study = tiny_search(tmp_path, 2)
    assert states(study).count("COMPLETE") == 2
    assert [trial.state.name for trial in study.trials][killed] == "FAIL"
    assert study.trials[killed + 1].params == study.trials[killed].params
    assert any(trial.params["lr"] == tiny_config().lr for trial in study.trials if trial.state.name == "COMPLETE")


def test_a_bad_trial_is_pruned(tmp_path, monkeypatch):
    """Of seven trials with the same curve but the last, which is worse in every epoch."""
    scores = iter([1.0] * 6 + [9.0])

    def flat(model, loaders, config):
        score = next(scores)
        for number in range(1, 9):
            yield Epoch(number, 1.0, 1.0, score, None, True, 1e-3, 0.0)

    monkeypatch.setattr(tune, "train", flat)
    study = search_options(tiny_config(epochs=8), tmp_path, 7, task=tiny_task(), fixed=FIXED)
    assert states(study) == [*["COMPLETE"] * 6, "PRUNED"]


def test_wrong_searches_are_refused(tmp_path):
    with pytest.raises(RunError, match="trials=0"):
        tiny_search(tmp_path / "a", 0)
    with pytest.raises(RunError, match="leave out devices"):
        search_options(tiny_config(devices=2), tmp_path / "a", 1, task=tiny_task())
    names = ("k", "collection", "hidden_channels", "dropout", "readout", "lr", "weight_decay")
    with pytest.raises(RunError, match=r"nothing to search: all of k, collection, .*, weight_decay are given"):
        tiny_search(tmp_path / "a", 1, fixed=names)
    with pytest.raises(RunError, match="Expected a database of Optuna"):
        tiny_search(tmp_path / "b", 1, storage="nonsense")
    tiny_search(tmp_path / "c", 1)
    with pytest.raises(RunFolderError, match="other data or options"):
        tiny_search(tmp_path / "c", 1, task=tiny_task(seed=1))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "thesis.tex").write_text("")
    with pytest.raises(RunFolderError, match=r"other files \(thesis.tex\)"):
        tiny_search(tmp_path / "d", 1)


def test_machines_share_a_storage(tmp_path):
    url = f"sqlite:///{tmp_path}/shared.db"
    tiny_search(tmp_path / "one", 1, storage=url)
    study = tiny_search(tmp_path / "two", 2, storage=url)
    assert states(study) == ["COMPLETE"] * 2
    assert (tmp_path / "two" / "config.yaml").exists()
