"""The same runs on Ray: two workers on this machine give the results of one process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from pathnn_reproduction import runner
from pathnn_reproduction.pool import Event
from pathnn_reproduction.ray_pool import RayPool
from pathnn_reproduction.results import Results
from pathnn_reproduction.runner import Progress, run_missing
from pathnn_reproduction.settings import Settings
from tiny_experiments import InlinePool, tiny_experiment

LIMIT = 200.0
"""Seconds after which a call gives up; it takes 20, on a busy machine 90."""


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    monkeypatch.setattr(runner, "PATIENCE", 10.0)  # a Ray that has lost a worker is to fail a test, not to hold it up


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_two_workers(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pathnn-reproduction[ray]'")
    tiny = tiny_experiment(3)
    broken = tiny_experiment(1, fold=7).runs
    run_missing(tiny, tiny.runs, Results.open(tmp_path / "one.jsonl"), InlinePool(Settings(tmp_path / "a", "cpu")))
    both = type(tiny)("tiny", "with one that fails", (*tiny.runs, *broken))
    before = signal.getsignal(signal.SIGTERM)
    pool = RayPool(Settings(tmp_path / "b", "cpu", jobs=2), "local")
    assert signal.getsignal(signal.SIGTERM) is before  # Ray's own would end the call at once
    progress = run_missing(both, both.runs, Results.open(tmp_path / "two.jsonl"), pool, seconds=LIMIT)
    assert progress.reason == ""
    assert len(progress.finished) == 3
    ((_, error),) = progress.failed
    assert error.startswith("RunError: fold=7")
    one, two = (
        sorted((line["seed"], line["test"]) for line in Results.open(tmp_path / f"{name}.jsonl"))
        for name in ("one", "two")
    )
    assert [seed for seed, _ in two] == [0, 1, 2]
    assert [test for _, test in two] == pytest.approx([test for _, test in one], abs=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_an_actor_that_dies_is_replaced(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'pathnn-reproduction[ray]'")
    tiny = tiny_experiment(2)
    endless = tiny_experiment(1, epochs=100_000).runs
    plan = type(tiny)("tiny", "the first never ends", (*endless, tiny.runs[1]))
    pool = RayPool(Settings(tmp_path / "work", "cpu", jobs=1), "local")
    killed = []

    def act(progress: Progress, event: Event | None) -> None:
        if progress.running and not killed:
            killed.append(pool._actors[0])
            ray.kill(killed[0])

    progress = run_missing(plan, plan.runs, Results.open(tmp_path / "tiny.jsonl"), pool, seconds=LIMIT, show=act)
    assert progress.reason == ""
    assert [(run.seed, error[:4]) for run, error in progress.failed] == [(0, "Ray:")]
    assert [run.seed for run in progress.finished] == [1]


def test_without_ray_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'pathnn-reproduction\[ray\]'"):
        RayPool(Settings(tmp_path, "cpu"), "local")
