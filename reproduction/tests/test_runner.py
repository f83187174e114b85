"""Missing runs are done in any number of processes, and can be stopped at any moment."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pathnn.training import RunFolder
from pathnn_reproduction import runner
from pathnn_reproduction.experiments import get_experiment
from pathnn_reproduction.progress import announcement, ended, status
from pathnn_reproduction.results import TRAINED, Results, Row, check_row
from pathnn_reproduction.runner import Progress
from pathnn_reproduction.spec import RunSpec, select, slots
from pathnn_reproduction.worker import Outcome, Settings
from tiny_experiments import InlinePool, do_missing, made_up_row, of_specs, tiny_experiment, tiny_spec


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path_factory.getbasetemp() / "experiments-cache"))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    monkeypatch.setenv("PATHNN_OFFLINE", "1")


def scores(path: Path) -> list[tuple[int, float, float]]:
    return sorted((row["seed"], row["val"], row["test"]) for row in Results.open(path))


def test_missing_runs_are_done_and_written(tmp_path: Path) -> None:
    tiny, path = tiny_experiment(2), tmp_path / "tiny.jsonl"
    progress = do_missing(tiny, path, limit=1)
    assert (progress.done, progress.left, progress.failed) == (1, 1, [])
    assert do_missing(tiny, path).left == 0
    again = InlinePool(lambda spec: pytest.fail("nothing is missing"))
    assert do_missing(tiny, path, pool=again).left == 0
    rows = [json.loads(text) for text in path.read_text().splitlines()]
    assert [row["seed"] for row in rows] == [0, 1]
    for row in rows:
        assert set(TRAINED) <= set(row)
        assert not {"together", "legs"} & set(row)
        check_row(row)
        assert row["config"]["max_entries"] != "auto"
    folder = tmp_path / "work" / "tiny" / tiny.specs[0].folder
    assert {entry.name for entry in folder.iterdir()} - {".lock"} == {
        "config.yaml",
        "metrics.jsonl",
        "model.safetensors",
        "result.json",
    }


def test_no_pool_is_made_if_nothing_is_to_be_done(tmp_path: Path) -> None:
    tiny, results = tiny_experiment(1), Results(tmp_path / "tiny.jsonl")
    settings = Settings(tmp_path, results.path)
    runner.run_missing(tiny, tiny.specs, results, lambda: pytest.fail("a pool was made"), settings, limit=0)


def test_a_result_without_a_row_is_found_in_its_folder(tmp_path: Path) -> None:
    tiny, settings = tiny_experiment(1), Settings(tmp_path / "work", device="cpu")
    do_missing(tiny, tmp_path / "a.jsonl", settings)
    metrics = settings.folder(tiny.specs[0]).metrics.stat().st_mtime_ns
    do_missing(tiny, tmp_path / "b.jsonl", settings)
    assert scores(tmp_path / "a.jsonl") == scores(tmp_path / "b.jsonl")
    assert settings.folder(tiny.specs[0]).metrics.stat().st_mtime_ns == metrics


def test_scores_are_those_of_the_model_file(tmp_path: Path) -> None:
    tiny, settings = tiny_experiment(2), Settings(tmp_path / "work", device="cpu")
    do_missing(tiny, tmp_path / "a.jsonl", settings)
    folders = [RunFolder(settings.work / "tiny" / spec.folder) for spec in tiny.specs]
    folders[0].write_result({**(folders[0].read_result() or {}), "test_score": 100.0, "val_score": 100.0})
    folders[1].write_config(replace(folders[1].read_config(), lr=0.5))
    progress = do_missing(tiny, tmp_path / "b.jsonl", settings)
    assert scores(tmp_path / "b.jsonl") == scores(tmp_path / "a.jsonl")[:1]
    assert "lr is 0.5 there and 0.001 in model.safetensors" in progress.failed[0][1]


def test_a_bad_config_does_not_stop_the_others(tmp_path: Path) -> None:
    specs = tiny_experiment(3).specs
    tiny = of_specs(specs[0], tiny_spec(1, fold=7), specs[2])
    progress = do_missing(tiny, tmp_path / "tiny.jsonl")
    assert [spec.key["seed"] for spec in progress.finished] == [0, 2]
    ((spec, error),) = progress.failed
    assert spec.key["seed"] == 1
    assert error.startswith("RunError: ")
    assert "fold=7" in error
    assert "\n" not in error


def full_memory(pool: list[InlinePool], times: int, seeds: tuple[int, ...] = (0,)):
    """Runs of these seeds find the memory full for so many times."""

    def do(spec: RunSpec) -> Outcome:
        if spec.key["seed"] in seeds and [done.key for done in pool[0].done].count(spec.key) <= times:
            return Outcome(error="OutOfMemoryError: CUDA out of memory.", memory=True)
        return Outcome(made_up_row(spec, val=1.0))

    return do


def test_runs_for_which_the_memory_was_full_next_to_others_are_repeated_alone(tmp_path: Path) -> None:
    pools, said = list[InlinePool](), list[str]()
    pools.append(InlinePool(full_memory(pools, 1, (0, 1)), size=2))

    def show(progress: Progress, spec: RunSpec | None, outcome: Outcome | None) -> None:
        if spec is not None and outcome is not None:
            said.append(ended(progress, spec, outcome))

    progress = do_missing(tiny_experiment(4), tmp_path / "tiny.jsonl", pool=pools[0], limit=4, show=show)
    assert (progress.left, progress.failed, progress.waiting, progress.stopped) == (0, [], [], [])
    seeds = [spec.key["seed"] for spec in pools[0].done]
    assert (seeds[:4], sorted(seeds[4:])) == ([0, 1, 2, 3], [0, 1])  # in the order in which the first tries ended
    assert pools[0].released == 2
    assert sum(text.startswith("waits: csl-sp-k2-s0: the memory was full") for text in said) == 1


@pytest.mark.parametrize(("size", "times"), [(1, 1), (2, 2)])
def test_a_run_for_which_the_memory_is_full_alone_has_failed(tmp_path: Path, size: int, times: int) -> None:
    pools = list[InlinePool]()
    pools.append(InlinePool(full_memory(pools, 9), size=size))
    progress = do_missing(tiny_experiment(3), tmp_path / "tiny.jsonl", pool=pools[0])
    assert [spec.key["seed"] for spec, _ in progress.failed] == [0]
    assert [spec.key["seed"] for spec in pools[0].done].count(0) == times


def test_the_winner_of_a_grid_is_assessed(tmp_path: Path) -> None:
    tu = get_experiment("tu")
    specs = select(tu.specs, "enzymes,sp,k=1,fold=2")
    assert (len(specs), slots(specs)) == (16, 7)
    best = "hidden=32,dropout=0.5"
    pool = InlinePool(lambda spec: made_up_row(spec, val=60.0 if spec.grid == best else 40.0), size=3)
    progress = do_missing(tu, tmp_path / "tu.jsonl", pool=pool, specs=specs)
    assert (progress.done, progress.total, progress.left) == (7, 7, 0)
    assert [(spec.grid, spec.key["seed"]) for spec in pool.done if spec.assess] == [(best, 1), (best, 2), (best, 3)]
    assert all(not spec.assess for spec in pool.done[:4])


def test_a_run_that_is_stopped_after_each_epoch_ends_with_the_same_result(tmp_path: Path) -> None:
    tiny = tiny_experiment(1, epochs=6)
    do_missing(tiny, tmp_path / "whole.jsonl", Settings(tmp_path / "a", device="cpu"))
    stop = tmp_path / "stop"
    stop.touch()
    running = Settings(tmp_path / "b", device="cpu")
    calls, left = 0, 1
    while left and calls < 10:
        calls += 1
        pool = InlinePool(replace(running, stop_file=stop))  # the runner itself is not told to stop
        progress = do_missing(tiny, tmp_path / "cut.jsonl", running, pool)
        left = progress.left
        assert [spec.key["seed"] for spec in progress.stopped] == [0] * left
    assert calls == 6
    assert scores(tmp_path / "whole.jsonl") == scores(tmp_path / "cut.jsonl")


def test_after_the_deadline_nothing_is_started(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "work", device="cpu", deadline=time.time())
    pool = InlinePool(settings)
    progress = do_missing(tiny_experiment(1), tmp_path / "tiny.jsonl", settings, pool)
    assert (progress.reason, progress.left, pool.done) == ("the time is up", 1, [])


def test_an_interrupt_in_the_caller_keeps_the_rows(tmp_path: Path) -> None:
    def interrupt(progress: Progress, spec: RunSpec | None, outcome: Outcome | None) -> None:
        if outcome is not None:
            raise KeyboardInterrupt

    progress = do_missing(tiny_experiment(3), tmp_path / "tiny.jsonl", show=interrupt)
    assert (progress.reason, progress.left) == ("interrupted", 2)
    assert len(Results.open(tmp_path / "tiny.jsonl")) == 1


def test_a_score_that_is_not_a_number_is_not_written(tmp_path: Path) -> None:
    def do(spec: RunSpec) -> Row:
        return made_up_row(spec, float("nan") if spec.key["seed"] == 0 else 1.0)

    progress = do_missing(tiny_experiment(2), tmp_path / "tiny.jsonl", pool=InlinePool(do))
    assert [spec.key["seed"] for spec, _ in progress.failed] == [0]
    assert scores(tmp_path / "tiny.jsonl") == [(1, 1.0, 50.0)]


def test_a_dataset_that_is_not_available_is_reported_once(tmp_path: Path) -> None:
    peptides, said = get_experiment("peptides"), list[str]()

    def show(progress: Progress, spec: RunSpec | None, outcome: Outcome | None) -> None:
        if spec is not None and outcome is not None:
            said.append(ended(progress, spec, outcome))

    specs = select(peptides.specs, "peptides-struct,sp,sp+")
    progress = do_missing(peptides, tmp_path / "peptides.jsonl", specs=specs, show=show)
    assert (progress.failed, progress.left, list(progress.unavailable)) == ([], 8, ["peptides-struct"])
    assert len(said) == 1
    assert said[0].startswith("peptides-struct is not available, its runs stay missing: ")


def test_the_time_left_is_estimated_and_corrected(tmp_path: Path) -> None:
    """Eight seeds at 100 s each by the rows of two others; here the first takes 10 s."""
    tiny, results, said = tiny_experiment(10), Results(tmp_path / "tiny.jsonl"), list[str]()
    assert announcement(Progress(10, 0)) == "10 runs are missing; the time is not known before the first one is done"
    for spec in tiny.specs[:2]:
        results.add({**made_up_row(spec, 1.0), "seconds": 100.0}, spec.key)
    left: list[float | None] = []

    def show(progress: Progress, spec: RunSpec | None, outcome: Outcome | None) -> None:
        left.append(progress.seconds_left)
        said.append(announcement(progress) if outcome is None else status(progress, settings))

    settings = Settings(tmp_path, results.path, "cpu", jobs=2)
    pool = InlinePool(lambda spec: {**made_up_row(spec, 1.0), "seconds": 10.0})
    runner.run_missing(tiny, tiny.specs, results, lambda: pool, settings, show=show)
    assert left[0] == 8 * 100 / 2
    assert said[0].startswith("8 runs are missing, about 6 min 40 s by the seconds of similar rows")
    assert left[1] == pytest.approx(7 * 10 / 2)  # all by the run on this machine
    assert "3 of 10 done" in said[1]


def test_a_run_like_no_other_is_estimated_by_its_dataset(tmp_path: Path) -> None:
    zinc, results = get_experiment("zinc"), Results(tmp_path / "zinc.jsonl")
    assert runner.estimated_seconds(zinc.specs[0], results.rows) is None
    for spec, seconds in zip(select(zinc.specs, "ap,seed=0-1"), (30.0, 50.0), strict=True):
        results.add({**made_up_row(spec, 1.0), "seconds": seconds}, spec.key)
    assert runner.estimated_seconds(zinc.specs[0], results.rows) == 40.0
    mine = [{**results.rows[0], "collection": "sp", "seconds": 7.0}]
    assert [runner.estimated_seconds(spec, mine, results.rows) for spec in select(zinc.specs, "ap,sp,seed=3")] == [
        7,
        40,
    ]
