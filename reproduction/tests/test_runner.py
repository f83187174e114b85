"""Experiments are done run by run, in any number of processes, and can be stopped anywhere."""

from __future__ import annotations

import json
import os
import signal
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.synchronize import SemLock
from pathlib import Path

import pytest
import torch

from pathnn.training import RunFolder
from pathnn_reproduction import runner
from pathnn_reproduction.carry import CarryError, pack_runs, unpack_runs
from pathnn_reproduction.experiments import get_experiment
from pathnn_reproduction.pool import Event, LocalPool, attempt
from pathnn_reproduction.progress import ended
from pathnn_reproduction.results import KEYS, Line, Results, ResultsError, check_line, config_hash, v1_options
from pathnn_reproduction.runner import Progress, run_missing
from pathnn_reproduction.settings import Settings
from pathnn_reproduction.spec import Experiment, RunSpec, SelectionError, select, slots
from tiny_experiments import InlinePool, made_up_line, tiny_experiment, tiny_run


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path_factory.getbasetemp() / "experiments-cache"))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    monkeypatch.setenv("PATHNN_OFFLINE", "1")


def scores(path: Path) -> list[tuple[int, float, float]]:
    return sorted((line["seed"], line["val"], line["test"]) for line in Results.open(path))


def test_what_is_missing_is_done_and_noted_down(tmp_path: Path) -> None:
    tiny, path = tiny_experiment(2), tmp_path / "tiny.jsonl"
    settings = Settings(tmp_path / "work", "cpu")
    progress = run_missing(tiny, tiny.runs, Results.open(path), InlinePool(settings), limit=1)
    assert (progress.done, progress.left, len(progress.failed)) == (1, 1, 0)
    run_missing(tiny, tiny.runs, Results.open(path), InlinePool(settings))
    again = InlinePool(settings)
    assert run_missing(tiny, tiny.runs, Results.open(path), again).left == 0
    assert again.done == []
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert [line["seed"] for line in lines] == [0, 1]
    for line in lines:
        assert set(KEYS) <= set(line)
        check_line(line)
        assert line["config"]["max_entries"] != "auto"
    folder = settings.work / "tiny" / tiny.runs[0].folder
    assert {entry.name for entry in folder.iterdir()} - {".lock"} == {
        "config.yaml",
        "metrics.jsonl",
        "model.safetensors",
        "result.json",
    }


def test_a_result_that_was_not_noted_down_is_found_in_its_folder(tmp_path: Path) -> None:
    tiny, settings = tiny_experiment(1), Settings(tmp_path / "work", "cpu")
    run_missing(tiny, tiny.runs, Results.open(tmp_path / "a.jsonl"), InlinePool(settings))
    metrics = (settings.work / "tiny" / tiny.runs[0].folder / "metrics.jsonl").stat().st_mtime_ns
    run_missing(tiny, tiny.runs, Results.open(tmp_path / "b.jsonl"), InlinePool(settings))
    assert scores(tmp_path / "a.jsonl") == scores(tmp_path / "b.jsonl")
    assert (settings.work / "tiny" / tiny.runs[0].folder / "metrics.jsonl").stat().st_mtime_ns == metrics


def test_scores_that_are_noted_down_are_those_of_the_model(tmp_path: Path) -> None:
    tiny, settings = tiny_experiment(2), Settings(tmp_path / "work", "cpu")
    run_missing(tiny, tiny.runs, Results.open(tmp_path / "a.jsonl"), InlinePool(settings))
    folders = [RunFolder(settings.work / "tiny" / run.folder) for run in tiny.runs]
    folders[0].write_result({**(folders[0].read_result() or {}), "test_score": 100.0, "val_score": 100.0})
    folders[1].write_config(replace(folders[1].read_config(), lr=0.5))
    progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "b.jsonl"), InlinePool(settings))
    assert scores(tmp_path / "b.jsonl") == scores(tmp_path / "a.jsonl")[:1]
    assert "lr is 0.5 there and 0.001 in model.safetensors" in progress.failed[0][1]


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    tiny = tiny_experiment(3)
    broken = replace(tiny.runs[1], config=replace(tiny.runs[1].config, fold=7))
    tiny = replace(tiny, runs=(tiny.runs[0], broken, tiny.runs[2]))
    progress = run_missing(
        tiny, tiny.runs, Results.open(tmp_path / "tiny.jsonl"), InlinePool(Settings(tmp_path / "work", "cpu"))
    )
    assert [run.seed for run in progress.finished] == [0, 2]
    ((run, error),) = progress.failed
    assert (run.seed, error.partition(": ")[0]) == (1, "RunError")
    assert "fold=7" in error
    assert "\n" not in progress.failed[0][1]


def short_of_memory(seeds: set[int], pool: list[InlinePool], *, always: bool = False) -> Callable[[RunSpec], Line]:
    """Runs of these seeds find too little memory, always or while others are under way."""

    def do(run: RunSpec) -> Line:
        if run.seed in seeds and (always or pool[0].busy()):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.22 GiB.")
        return made_up_line(run, val=1.0)

    return do


def test_a_run_that_found_too_little_memory_is_tried_again_alone(tmp_path: Path) -> None:
    tiny, pools, said = tiny_experiment(4), list[InlinePool](), list[str | None]()
    pools.append(InlinePool(short_of_memory({0, 1}, pools), size=2))
    results_file = Results.open(tmp_path / "tiny.jsonl")

    def show(progress: Progress, event: Event | None) -> None:
        said.append(None if event is None else ended(progress, event))

    progress = run_missing(tiny, tiny.runs, results_file, pools[0], limit=4, show=show)
    assert (progress.left, progress.failed, progress.waiting, progress.stopped) == (0, [], [], [])
    assert [run.seed for run in pools[0].done] == [0, 1, 2, 3, 0, 1]
    assert [[run.seed for run in runs] for runs in pools[0].given[-2:]] == [[0], [1]]
    assert sum(text is not None and text.startswith("waits: csl-sp-k2-s0: memory was short") for text in said) == 1


class AtOncePool:
    """Two workers, of which all that is said is heard in one call. Memory holds one run: of two, those of `short` find
    too little."""

    size, together = 2, 1

    def __init__(self, short: set[int], *, last_first: bool) -> None:
        self.short, self.last_first = short, last_first
        self.at: dict[int, RunSpec] = {}
        self.given: list[int] = []
        self.rested: list[int] = []

    def start(self, worker: int, runs: Sequence[RunSpec]) -> None:
        self.at[worker] = runs[0]
        self.given.append(runs[0].seed)

    def busy(self) -> int:
        return len(self.at)

    def events(self, timeout: float) -> list[Event]:
        two, found = len(self.at) == 2, []
        for worker, run in sorted(self.at.items(), reverse=self.last_first):
            if two and run.seed in self.short:
                found.append(Event(worker, "failed", error="OutOfMemoryError: CUDA out of memory", memory=True))
            else:
                found.append(Event(worker, "done", line=made_up_line(run, 1.0)))
        self.at.clear()
        return found

    def rest(self, keep: int) -> None:
        assert not self.at
        self.rested.append(keep)

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("short", [{0}, {0, 1}])
def test_who_was_busy_when_memory_was_short_counts(tmp_path: Path, short: set[int], last_first: bool) -> None:
    """Not who is when it is heard of; and idle workers give back what they hold before a run is tried again."""
    tiny, pool = tiny_experiment(2), AtOncePool(short, last_first=last_first)
    progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "tiny.jsonl"), pool)
    assert (progress.left, progress.failed) == (0, [])
    assert sorted(pool.given) == sorted([0, 1, *short])
    assert pool.rested == [0] * len(short)


@pytest.mark.parametrize(
    ("text", "fatal", "memory"),
    [
        ("CUDA error: out of memory", True, True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True, True),
        ("Triton Error [CUDA]: out of memory", True, True),
        ("CUDA error: an illegal memory access was encountered", True, False),
        ("out of memory of the words", False, False),
    ],
)
def test_memory_that_is_short_outside_of_torch(text: str, fatal: bool, memory: bool) -> None:
    def fail() -> None:
        raise RuntimeError(text)

    kind, values = attempt(fail)
    assert (kind, values["fatal"], values["memory"]) == ("failed", fatal, memory)


def test_idle_processes_rest_and_are_replaced(tmp_path: Path) -> None:
    tiny, pool = tiny_experiment(3, epochs=1), LocalPool(Settings(tmp_path / "work", "cpu", jobs=2))
    pool.start(0, tiny.runs[:1])
    pool.start(1, tiny.runs[1:2])
    while pool.busy():
        pool.events(1.0)
    old = {number: process for number, (process, _) in pool._workers.items()}
    pool.rest(1)
    assert set(pool._workers) == {1}
    assert not old[0].is_alive()
    pool.start(0, tiny.runs[2:])
    assert [event.kind for _ in iter(pool.busy, 0) for event in pool.events(1.0) if event.kind != "epoch"] == ["done"]
    pool.close()


def test_a_run_that_finds_too_little_memory_alone_has_failed(tmp_path: Path) -> None:
    tiny = tiny_experiment(3)
    for size, times in ((1, 1), (2, 2)):
        pools = list[InlinePool]()
        pools.append(InlinePool(short_of_memory({0}, pools, always=True), size=size))
        progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / f"{size}.jsonl"), pools[0])
        assert [run.seed for run, error in progress.failed if error.startswith("OutOfMemoryError")] == [0]
        assert [run.seed for run in pools[0].done].count(0) == times


def test_a_run_that_waits_for_memory_when_the_time_is_up_can_go_on_later(tmp_path: Path) -> None:
    tiny, pools = tiny_experiment(2), list[InlinePool]()
    pools.append(InlinePool(short_of_memory({0}, pools), size=2))
    progress = run_missing(
        tiny, tiny.runs, Results.open(tmp_path / "tiny.jsonl"), pools[0], interrupted=lambda: bool(pools[0].done)
    )
    assert progress.reason == "interrupted"
    assert {run.seed for run in progress.stopped} == {0, 1}
    assert not progress.failed
    pools[0] = InlinePool(short_of_memory({0}, pools), size=2)  # now when it was about to be tried again
    progress = run_missing(
        tiny, tiny.runs, Results.open(tmp_path / "again.jsonl"), pools[0], interrupted=lambda: len(pools[0].done) == 2
    )
    assert [run.seed for run in progress.stopped] == [0]
    assert [run.seed for run in progress.finished] == [1]


def test_winners_wait_for_a_run_that_waits_for_memory(tmp_path: Path) -> None:
    tu, pools = get_experiment("tu"), list[InlinePool]()
    runs = select(tu.runs, "enzymes,sp,k=1,fold=2")
    tight = next(run for run in runs if not run.assess).grid

    def do(run: RunSpec) -> Line:
        if run.grid == tight and not run.assess and pools[0].busy():
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return made_up_line(run, val=60.0 if run.grid == tight else 40.0)

    pools.append(InlinePool(do, size=3, together=4))
    progress = run_missing(tu, runs, Results(tmp_path / "tu.jsonl"), pools[0])
    assert (progress.left, progress.failed) == (0, [])
    assert [run.grid for run in pools[0].done if run.assess] == [tight] * 3


def test_runs_that_cannot_be_trained_together_are_spread_over_all_workers(tmp_path: Path) -> None:
    """Without a GPU: the first worker gets all six, keeps one and gives the others back."""
    tiny = tiny_experiment(6, epochs=1, preset="csl")
    pool = LocalPool(Settings(tmp_path / "work", "cpu", jobs=2, together=6))
    given: list[list[int]] = []
    start = pool.start

    def noted(worker: int, runs: Sequence[RunSpec]) -> None:
        given.append([run.seed for run in runs])
        start(worker, runs)

    pool.start = noted  # type: ignore[method-assign]
    progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "tiny.jsonl"), pool, limit=6)
    assert (progress.left, progress.failed, progress.stopped) == (0, [], [])
    assert given[0] == [0, 1, 2, 3, 4, 5]
    assert sorted(given[1:]) == [[1], [2], [3], [4], [5]]


def test_the_winner_of_a_grid_is_assessed(tmp_path: Path) -> None:
    tu = get_experiment("tu")
    runs = select(tu.runs, "enzymes,sp,k=1,fold=2")
    assert (len(runs), slots(runs)) == (16, 7)
    best = "hidden=32,dropout=0.5"
    results_file = Results(tmp_path / "tu.jsonl")
    pool = InlinePool(lambda run: made_up_line(run, val=60.0 if run.grid == best else 40.0 + run.seed), size=3)
    progress = run_missing(tu, runs, results_file, pool)
    assert (progress.done, progress.total, progress.left) == (7, 7, 0)
    assert [run.grid for run in pool.done if run.assess] == [best] * 3
    assert [run.seed for run in pool.done if run.assess] == [1, 2, 3]
    assert all(not run.assess for run in pool.done[:4])


def test_ties_of_a_grid_go_to_the_first(tmp_path: Path) -> None:
    tu, results_file = get_experiment("tu"), Results(tmp_path / "tu.jsonl")
    runs = select(tu.runs, "nci1,ap,k=2,fold=0")
    for run in runs[:3]:
        results_file.add(made_up_line(run, val=70.0))
    assert tu.winner(runs[0], results_file) is None
    results_file.add(made_up_line(runs[3], val=70.0))
    assert tu.winner(runs[0], results_file) == "hidden=32,dropout=0"


def test_time_that_is_up_loses_nothing(tmp_path: Path) -> None:
    """Stopped again and again in the middle of a run, it ends with the same result as in one go."""
    tiny = tiny_experiment(1, epochs=6)
    run_missing(tiny, tiny.runs, Results.open(tmp_path / "whole.jsonl"), InlinePool(Settings(tmp_path / "a", "cpu")))
    settings, calls = Settings(tmp_path / "b", "cpu"), 0
    execute = InlinePool(settings)._do
    for _ in range(10):
        calls += 1
        pool = InlinePool(lambda run: execute(run, stop=lambda: True))
        progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "cut.jsonl"), pool)
        if not progress.left:
            break
        assert [run.seed for run in progress.stopped] == [0]
    assert calls == 6
    assert scores(tmp_path / "whole.jsonl") == scores(tmp_path / "cut.jsonl")


def test_processes_share_the_work_and_give_the_same_results(tmp_path: Path) -> None:
    tiny = tiny_experiment(3)
    run_missing(tiny, tiny.runs, Results.open(tmp_path / "one.jsonl"), InlinePool(Settings(tmp_path / "a", "cpu")))
    pool = LocalPool(Settings(tmp_path / "b", "cpu", jobs=2))
    progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "two.jsonl"), pool)
    assert (progress.done, progress.failed) == (3, [])
    assert [row[0] for row in scores(tmp_path / "two.jsonl")] == [0, 1, 2]
    for one, two in zip(scores(tmp_path / "one.jsonl"), scores(tmp_path / "two.jsonl"), strict=True):
        assert one == pytest.approx(two, abs=1e-4)  # the number of threads may differ


def test_a_killed_process_is_replaced_and_ctrl_c_saves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that never end: the first is killed, a short third one takes its place, then Ctrl-C."""
    monkeypatch.setattr(runner, "PATIENCE", 30.0)
    endless = tiny_experiment(2, epochs=100_000)
    tiny = replace(endless, runs=(*endless.runs, tiny_run(2, epochs=1)))
    pool, killed = LocalPool(Settings(tmp_path / "work", "cpu", jobs=2)), []

    def act(progress: Progress, event: Event | None) -> None:
        begun = {run.seed for run, epoch in progress.running.values() if epoch}
        if begun == {0, 1} and not killed:
            worker = next(worker for (worker, _), (run, _) in progress.running.items() if run.seed == 0)
            killed.append(pool._workers[worker][0].pid)
            os.kill(killed[0], signal.SIGKILL)

    results_file = Results.open(tmp_path / "tiny.jsonl")
    progress = run_missing(
        tiny, tiny.runs, results_file, pool, seconds=200, show=act, interrupted=lambda: len(results_file) > 0
    )
    assert [(run.seed, error) for run, error in progress.failed] == [(0, "its process died (exit code -9).")]
    assert [run.seed for run in progress.finished] == [2]
    assert [run.seed for run in progress.stopped] == [1]
    assert (progress.reason, progress.left) == ("interrupted", 2)
    assert (tmp_path / "work" / "tiny" / tiny.runs[1].folder / "last.ckpt").exists()
    assert [line["seed"] for line in Results.open(results_file.path)] == [2]


def test_a_killed_process_holds_no_lock_of_the_others(tmp_path: Path) -> None:
    """In one kill of some thousand, a process is just asking whether to stop."""
    shared = LocalPool(Settings(tmp_path / "work", "cpu"))._stop
    assert not any(isinstance(part, SemLock) for part in vars(shared).values())


def test_an_error_of_the_caller_ends_the_workers_and_keeps_results(tmp_path: Path) -> None:
    tiny, pool = tiny_experiment(3), InlinePool(Settings(tmp_path / "work", "cpu"))

    def fail(progress: Progress, event: Event | None) -> None:
        if event is not None and event.kind == "done":
            raise KeyboardInterrupt

    progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "tiny.jsonl"), pool, show=fail)
    assert (progress.reason, progress.left) == ("interrupted", 2)
    assert len(Results.open(tmp_path / "tiny.jsonl")) == 1


def test_a_second_ctrl_c_does_not_wait_for_the_epoch(tmp_path: Path) -> None:
    """Both come while we listen: the first asks (`interrupted` says so), the second is an exception."""
    asked: list[bool] = []

    class Busy(InlinePool):
        def events(self, timeout: float) -> list[Event]:
            if asked:
                time.sleep(timeout)
                return []
            asked.append(True)
            raise KeyboardInterrupt

    tiny, begin = tiny_experiment(1), time.monotonic()
    pool = Busy(lambda run: made_up_line(run, 1.0))
    progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "t.jsonl"), pool, interrupted=lambda: bool(asked))
    assert progress.reason == "interrupted"
    assert time.monotonic() - begin < 5  # of the ten minutes that one epoch is given


def test_without_time_nothing_is_begun(tmp_path: Path) -> None:
    tiny, pool = tiny_experiment(1), InlinePool(Settings(tmp_path / "work", "cpu"))
    progress = run_missing(tiny, tiny.runs, Results.open(tmp_path / "tiny.jsonl"), pool, seconds=0.0)
    assert (progress.reason, progress.left, pool.done) == ("the time is up", 1, [])


def test_runs_are_carried_to_another_machine(tmp_path: Path) -> None:
    tiny, results_file = tiny_experiment(2, epochs=3), Results.open(tmp_path / "tiny.jsonl")
    here = Settings(tmp_path / "here", "cpu")
    run_missing(tiny, tiny.runs, results_file, InlinePool(here), limit=1)
    execute = InlinePool(here)._do
    run_missing(tiny, tiny.runs, results_file, InlinePool(lambda run: execute(run, stop=lambda: True)))
    with pytest.raises(CarryError, match="more than 1000 parts"):
        pack_runs(tiny, results_file, here.work, tmp_path / "runs.tar", part_mib=0.00001)
    assert pack_runs(tiny, results_file, here.work, tmp_path / "runs.tar", part_mib=0.005) == 2
    assert len(list(tmp_path.glob("runs.tar.00*"))) > 1
    assert unpack_runs(tmp_path / "runs.tar", tmp_path / "there") == 2
    names = {path.name for path in (tmp_path / "there" / "tiny" / tiny.runs[1].folder).iterdir()}
    assert names == {"config.yaml", "metrics.jsonl", "last.ckpt"}
    epochs: list[int] = []
    there = InlinePool(Settings(tmp_path / "there", "cpu"))._do
    pool = InlinePool(lambda run: there(run, report=lambda epoch, _: epochs.append(epoch.epoch)))
    assert run_missing(tiny, tiny.runs, results_file, pool).left == 0
    assert epochs == [2, 3]
    with pytest.raises(CarryError, match="does not exist"):
        unpack_runs(tmp_path / "nothing.tar", tmp_path / "there")
    (tmp_path / "bad.tar").write_bytes(b"x" * 2000)
    with pytest.raises(CarryError, match="damaged"):
        unpack_runs(tmp_path / "bad.tar", tmp_path / "there")
    with pytest.raises(CarryError, match="is a folder: expected a file that --pack wrote"):
        unpack_runs(tmp_path / "here", tmp_path / "there")


def test_folders_in_a_tar_file_that_was_packed_again_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    (tmp_path / "folder").mkdir()
    with tarfile.open(tmp_path / "again.tar", "w") as tar:
        for name in ("tiny", "tiny/a"):
            tar.add(tmp_path / "folder", arcname=name)
        tar.add(tmp_path / "config.yaml", arcname="tiny/a/config.yaml")
    assert unpack_runs(tmp_path / "again.tar", tmp_path / "there") == 1
    assert (tmp_path / "there" / "tiny" / "a" / "config.yaml").exists()


@pytest.mark.parametrize("name", ["notes.csv", "tiny/a/notes.csv", "config.yaml"])
def test_a_tar_file_of_something_else_is_not_unpacked(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.yaml").touch()
    with tarfile.open(tmp_path / "other.tar", "w") as tar:
        tar.add(tmp_path / "config.yaml", arcname="tiny/a/config.yaml")
        tar.add(tmp_path / "config.yaml", arcname=name)
    with pytest.raises(CarryError, match=f"was not written by --pack: it holds '{name}', expected TARGET/RUN/config"):
        unpack_runs(tmp_path / "other.tar", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_result_that_was_not_noted_down_is_carried_too(tmp_path: Path) -> None:
    tiny, here = tiny_experiment(1), Settings(tmp_path / "here", "cpu")
    run_missing(tiny, tiny.runs, Results.open(tmp_path / "lost.jsonl"), InlinePool(here))
    results_file = Results.open(tmp_path / "tiny.jsonl")
    assert pack_runs(tiny, results_file, here.work, tmp_path / "runs.tar") == 1
    assert unpack_runs(tmp_path / "runs.tar", tmp_path / "there") == 1
    run_missing(tiny, tiny.runs, results_file, InlinePool(Settings(tmp_path / "there", "cpu")))
    assert scores(results_file.path) == scores(tmp_path / "lost.jsonl")
    assert not (tmp_path / "there" / "tiny" / tiny.runs[0].folder / "metrics.jsonl").exists()  # not trained again


def test_what_is_left_of_a_folder_that_was_unpacked_in_part_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny, results_file = tiny_experiment(1, epochs=3), Results.open(tmp_path / "tiny.jsonl")
    here, there = Settings(tmp_path / "here", "cpu"), tmp_path / "there"
    execute = InlinePool(here)._do
    run_missing(tiny, tiny.runs, results_file, InlinePool(lambda run: execute(run, stop=lambda: True)))
    assert pack_runs(tiny, results_file, here.work, tmp_path / "runs.tar") == 1
    write = Path.write_bytes

    def full(self: Path, content: bytes) -> int:
        if self.name == "last.ckpt":
            raise OSError(28, "No space left on device")
        return write(self, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            unpack_runs(tmp_path / "runs.tar", there)
    assert list(there.iterdir()) == []
    assert unpack_runs(tmp_path / "runs.tar", there) == 1
    assert (there / "tiny" / tiny.runs[0].folder / "last.ckpt").exists()
    assert unpack_runs(tmp_path / "runs.tar", there) == 0


@pytest.mark.parametrize("name", ["../out/config.yaml", "/out/config.yaml", "a/../config.yaml", "a/b/c/config.yaml"])
def test_nothing_is_unpacked_outside_of_the_folder(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "runs.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(CarryError, match="was not written by --pack"):
        unpack_runs(tmp_path / "runs.tar", tmp_path / "work")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["runs.tar"]


def test_packing_again_removes_what_was_packed_before(tmp_path: Path) -> None:
    tiny, results_file, here = (
        tiny_experiment(1),
        Results.open(tmp_path / "tiny.jsonl"),
        Settings(tmp_path / "here", "cpu"),
    )
    run_missing(tiny, tiny.runs, results_file, InlinePool(here))
    file = tmp_path / "packed" / "runs.tar"
    for part, names in ((0.005, None), (0.01, None), (None, {"runs.tar"}), (1.0, {"runs.tar.000"})):
        pack_runs(tiny, results_file, here.work, file, part_mib=part)
        found = {path.name for path in file.parent.iterdir()}
        assert names is None or found == names
        assert unpack_runs(file, tmp_path / f"there-{part}") == 1


def test_a_results_file_that_changes_meanwhile_is_read_anew(tmp_path: Path) -> None:
    path, runs = tmp_path / "tiny.jsonl", tiny_experiment(4).runs
    lines = [json.dumps({**made_up_line(run, 1.0), "commit": "x" * 30 * run.seed}) for run in runs]
    path.write_text(lines[0] + "\n")
    results_file = Results.open(path)
    path.write_text(f"{lines[3]}\n\n{lines[0]}")  # merged with another machine's, with no newline at the end
    results_file.add(json.loads(lines[1]))
    assert {line["seed"] for line in results_file} == {0, 1, 3}
    assert len(results_file) == 3
    assert [line["seed"] for line in Results.open(path)] == [3, 0, 1]
    path.write_text(path.read_text() + "damaged\n" + lines[2] + "\n")
    for _ in range(2):
        with pytest.raises(ResultsError, match="is damaged in line 5: "):
            results_file.add(json.loads(lines[2]))
    assert len(results_file) == 3


def test_a_line_cut_off_by_a_kill_is_left_out_and_overwritten(tmp_path: Path) -> None:
    path, runs = tmp_path / "tiny.jsonl", tiny_experiment(3).runs
    results_file = Results.open(path)
    results_file.add(made_up_line(runs[0], 1.0))
    with path.open("a") as file:
        file.write('{"model": "pathnn", "dat')
    again = Results.open(path)
    assert len(again) == 1
    again.add(made_up_line(runs[1], 2.0))
    assert [line["val"] for line in Results.open(path)] == [1.0, 2.0]
    assert Results.open(path).find(runs[1]) is not None
    assert Results.open(path).find(runs[2]) is None


def test_two_processes_may_add_and_none_adds_twice(tmp_path: Path) -> None:
    path, runs = tmp_path / "tiny.jsonl", tiny_experiment(3).runs
    one, two = Results.open(path), Results.open(path)
    one.add(made_up_line(runs[0], 1.0))
    two.add(made_up_line(runs[1], 2.0))
    two.add(made_up_line(runs[0], 3.0))
    one.add(made_up_line(runs[2], 4.0))
    assert [line["val"] for line in Results.open(path)] == [1.0, 2.0, 4.0]
    assert one.find(runs[1]) == two.find(runs[1])
    assert two.find(runs[0])["val"] == 1.0
    path.write_text(path.read_text().splitlines(keepends=True)[0])  # someone removes lines by hand
    one.add(made_up_line(runs[1], 5.0))
    assert [line["val"] for line in Results.open(path)] == [1.0, 5.0]


def test_a_score_that_is_no_number_is_not_noted_down(tmp_path: Path) -> None:
    """JSON has no NaN; the run has failed, and the others are done."""
    results_file, plan = Results.open(tmp_path / "tiny.jsonl"), tiny_experiment(2)
    pool = InlinePool(lambda run: made_up_line(run, float("nan") if run.seed == 0 else 1.0))
    progress = run_missing(plan, plan.runs, results_file, pool)
    assert [run.seed for run, _ in progress.failed] == [0]
    assert [run.seed for run in progress.finished] == [1]
    assert scores(tmp_path / "tiny.jsonl") == [(1, 1.0, 50.0)]


def test_a_damaged_line_is_refused(tmp_path: Path) -> None:
    path, line = tmp_path / "tiny.jsonl", made_up_line(tiny_run(), 1.0)
    for wrong, message in (
        ({**line, "val": "1.0"}, "val='1.0': expected a finite number"),
        ({**line, "test": float("nan")}, "test=nan: expected a finite number"),
        ({**line, "config_hash": "0"}, "does not belong to the config"),
        ({**line, "config": {**line["config"], "lr": 0.5}}, "does not belong to the config"),
        ({**line, "config": 3}, "config=3: expected the options"),
        ({key: value for key, value in line.items() if key != "test"}, "lacks test"),
    ):
        path.write_text(json.dumps(wrong) + "\n")
        with pytest.raises(ResultsError, match=message):
            Results.open(path)
    path.write_text("{\n")
    with pytest.raises(ResultsError, match="damaged in line 1"):
        Results.open(path)


def test_the_hash_is_of_what_is_computed() -> None:
    options = v1_options(tiny_run().config)
    assert config_hash({**options, "device": "cuda", "max_entries": 64}) == config_hash(options)
    for change in ({"lr": 0.01}, {"seed": 5}, {"options": {"hidden_channels": 8}}):
        assert config_hash({**options, **change}) != config_hash(options)


@pytest.mark.parametrize(
    ("only", "count"),
    [("ap,seed=3", 1), ("ap,sp,seed=0-4", 10), ("gin", 10), ("pathnn,k=4", 30), (None, 60), ("zinc", 60)],
)
def test_only_selects(only: str | None, count: int) -> None:
    assert len(select(get_experiment("zinc").runs, only)) == count


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("bp", "'bp' is unknown: expected model pathnn, gin, gcn, mlp; dataset zinc; collection sp, sp.,"),
        ("seed=10", "seed=10 does not exist: expected one of 0, 1"),
        ("colour=red", "the field 'colour' is unknown: expected one of model"),
        ("ap,gin", "leaves no run"),
    ],
)
def test_only_says_what_exists(only: str, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        select(get_experiment("zinc").runs, only)


def test_the_targets_are_the_papers() -> None:
    assert {name: slots(get_experiment(name).runs) for name in ("zinc", "molhiv", "peptides")} == {
        "zinc": 60,
        "molhiv": 60,
        "peptides": 36,
    }
    tu = get_experiment("tu").runs
    for data, cells in (("nci1", 7), ("imdb-multi", 5)):
        assert slots(select(tu, f"{data},pathnn")) == cells * 70
    for name in ("zinc", "molhiv", "peptides", "tu", "synthetic"):
        runs = get_experiment(name).runs
        assert len({run.key for run in runs}) == len({run.folder for run in runs}) == len(runs)
        released = [run.config for run in runs if run.model == "pathnn-released"]
        assert all("released" in (config.variant, config.plateau_direction) for config in released)
        assert all((run.config.fold, run.config.seed) == (run.fold, run.seed) for run in runs)


def preset_runs(count: int) -> Experiment:
    """Seeds of a run that could be trained together on a GPU."""
    tiny = tiny_experiment(count)
    changed = [replace(run, config=replace(run.config, preset="csl")) for run in tiny.runs]
    return replace(tiny, runs=tuple(changed))


def test_runs_for_one_time_go_to_one_worker_and_all_come_back(tmp_path: Path) -> None:
    tiny, pool = preset_runs(3), LocalPool(Settings(tmp_path / "work", "cpu", jobs=1, together=2))
    together: list[set[int]] = []

    def show(progress: Progress, event: Event | None) -> None:
        together.append({run.seed for run, _ in progress.running.values()})

    results_file = Results.open(tmp_path / "tiny.jsonl")
    progress = run_missing(tiny, tiny.runs, results_file, pool, show=show)
    assert (progress.done, progress.failed, progress.running) == (3, [], {})
    assert {0, 1} in together
    assert {0, 1, 2} not in together
    alone = Results.open(tmp_path / "alone.jsonl")
    run_missing(tiny, tiny.runs, alone, InlinePool(Settings(tmp_path / "alone", "cpu")))
    assert scores(results_file.path) == scores(alone.path)


def test_a_process_that_dies_fails_all_its_runs(tmp_path: Path) -> None:
    tiny = preset_runs(2)
    endless = replace(tiny, runs=tuple(replace(r, config=replace(r.config, epochs=100_000)) for r in tiny.runs))
    pool = LocalPool(Settings(tmp_path / "work", "cpu", jobs=1, together=2))

    def act(progress: Progress, event: Event | None) -> None:
        if len(progress.running) == 2 and pool._workers:
            pool._workers[0][0].kill()

    progress = run_missing(endless, endless.runs, Results.open(tmp_path / "tiny.jsonl"), pool, show=act)
    assert [(run.seed, error) for run, error in progress.failed] == [
        (seed, "its process died (exit code -9).") for seed in (0, 1)
    ]


def test_a_cell_of_the_tudatasets_is_trained_in_few_large_groups(tmp_path: Path) -> None:
    """Widths cannot share a group; folds, seeds and rates of dropout can, and the winners wait for each other."""
    whole = get_experiment("tu")
    runs = select(whole.runs, "enzymes,pathnn,sp,k=2")
    pool = InlinePool(lambda run: made_up_line(run, val=run.config.options["hidden_channels"] + run.fold), 2, 20)
    progress = run_missing(whole, runs, Results.open(tmp_path / "tu.jsonl"), pool)
    assert (progress.left, progress.failed) == (0, [])
    assert [len(group) for group in pool.given] == [20, 20, 20, 10]
    assert [{run.config.options["hidden_channels"] for run in group} for group in pool.given] == [
        {32},
        {64},
        {64},
        {64},
    ]
    assert [{run.assess for run in group} for group in pool.given] == [{False}, {False}, {True}, {True}]


def test_winners_do_not_wait_for_runs_that_failed_or_are_not_selected(tmp_path: Path) -> None:
    whole, failed = get_experiment("tu"), 3
    runs = select(whole.runs, "enzymes,pathnn,sp,k=2")

    def do(run: RunSpec) -> Line:
        if run.fold == failed and not run.assess:
            raise ValueError("failed")
        return made_up_line(run, val=50.0)

    results_file = Results(tmp_path / "tu.jsonl")
    progress = run_missing(whole, runs, results_file, InlinePool(do, 2, 20))
    assert (len(progress.finished), len(progress.failed)) == (9 * 7, 4)
    some = Results(tmp_path / "some.jsonl")
    for run, line in whole.done([run for run in runs if not run.assess], results_file):
        if (run.fold, run.grid) != (0, "hidden=64,dropout=0.5"):
            some.add(line)
    progress = run_missing(whole, [run for run in runs if run.assess], some, InlinePool(do, 2, 20))
    assert len(progress.finished) == 8 * 3


def test_winners_that_are_trained_alone_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathnn_reproduction.runner.together_key", lambda run: None)
    whole = get_experiment("tu")
    pool = InlinePool(lambda run: made_up_line(run, val=50.0), 1, 20)
    progress = run_missing(whole, select(whole.runs, "enzymes,gcn,fold=0-1"), Results(tmp_path / "tu.jsonl"), pool)
    assert progress.left == 0
    first_winner = next(i for i, run in enumerate(pool.done) if run.assess)
    assert any(not run.assess for run in pool.done[first_winner:])


def test_the_time_left_counts_runs_under_way_by_their_epochs() -> None:
    """After 100 seconds two of five runs are under way, from epoch 20 to 60 and from 1 to 41 of at most 80; then one
    more was done after 50 epochs."""
    runs = [tiny_run(seed, epochs=80) for seed in range(3)]
    progress = Progress(5, 0, started=time.monotonic() - 100)
    assert progress.time_left() is None
    progress.running = {(0, 0): (runs[1], 60), (0, 1): (runs[2], 41)}
    progress.first = {(0, 0): 20, (0, 1): 1}
    expected = 100 / (40 / 80 + 40 / 80) * (5 - 60 / 80 - 41 / 80)
    assert progress.time_left() == pytest.approx(expected, rel=0.01)
    progress.finished, progress.epochs = [runs[0]], [50]
    expected = 100 / (1 + 40 / 60 + 40 / 50) * (4 - 60 / 60 - 41 / 50)
    assert progress.time_left() == pytest.approx(expected, rel=0.01)


def test_runs_that_failed_take_no_more_time() -> None:
    progress = Progress(4, 0, started=time.monotonic() - 10, finished=[tiny_run(0)], failed=[(tiny_run(1), "broken")])
    assert progress.time_left() == pytest.approx(20, rel=0.01)


def test_a_link_in_a_tar_file_is_not_unpacked(tmp_path: Path) -> None:
    link = tarfile.TarInfo("tiny/run/config.yaml")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
    with tarfile.open(tmp_path / "runs.tar", "w") as tar:
        tar.addfile(link)
    with pytest.raises(CarryError, match="was not written by --pack"):
        unpack_runs(tmp_path / "runs.tar", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_no_more_runs_are_begun_than_the_limit_also_for_one_time(tmp_path: Path) -> None:
    tiny, results_file = preset_runs(5), Results.open(tmp_path / "tiny.jsonl")
    pool = InlinePool(lambda run: made_up_line(run, 1.0), together=4)
    run_missing(tiny, tiny.runs, results_file, pool, limit=2)
    assert [len(runs) for runs in pool.given] == [2]
