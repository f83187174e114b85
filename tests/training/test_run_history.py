"""The result of a run has the devices and commits of all its epochs, if they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.training import RunStoppedError, run


def begin(out: Path, epochs: int) -> None:
    done = []
    with pytest.raises(RunStoppedError):
        run(tiny_config(), out, task=tiny_task(), report=lambda e, _: done.append(e), stop=lambda: len(done) == epochs)


def test_a_single_part_is_not_mentioned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_COMMIT", "a1")
    begin(tmp_path / "run", 1)
    result = run(tiny_config(), tmp_path / "run", task=tiny_task(), resume=True)
    assert (result["commit"], result["device"]) == ("a1", "cpu")
    assert "history" not in result


def test_another_commit_is_another_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_COMMIT", "a1")
    begin(tmp_path / "run", 1)
    monkeypatch.setenv("PATHNN_COMMIT", "b2")
    result = run(tiny_config(), tmp_path / "run", task=tiny_task(), resume=True)
    assert result["commit"] == "b2"
    assert result["history"] == [
        {"device": "cpu", "commit": "a1", "epochs": 1},
        {"device": "cpu", "commit": "b2", "epochs": 3},
    ]


def test_a_run_that_is_only_ended_elsewhere_says_where_it_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHNN_COMMIT", "a1")
    run(tiny_config(), tmp_path / "run", task=tiny_task())
    (tmp_path / "run" / "result.json").unlink()
    monkeypatch.setenv("PATHNN_COMMIT", "b2")
    result = run(tiny_config(), tmp_path / "run", task=tiny_task(), resume=True)
    assert result["history"] == [{"device": "cpu", "commit": "a1", "epochs": 3}]
