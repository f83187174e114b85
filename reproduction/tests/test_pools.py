"""Processes and Ray tasks: equal results, replaced when they die, ended with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pathnn_reproduction import runner
from pathnn_reproduction.pools import LocalPool, RayPool
from pathnn_reproduction.results import Results
from pathnn_reproduction.runner import Progress
from pathnn_reproduction.spec import RunSpec
from pathnn_reproduction.worker import Outcome, Settings, execute
from tiny_experiments import do_missing, of_specs, tiny_experiment, tiny_spec


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path_factory.getbasetemp() / "experiments-cache"))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    monkeypatch.setattr(runner, "PATIENCE", 30.0)


def scores(path: Path) -> list[tuple[int, float, float]]:
    return sorted((row["seed"], row["val"], row["test"]) for row in Results.open(path))


def check_equal(one: Path, two: Path) -> None:
    """The number of threads may differ, so scores are equal up to rounding."""
    assert [row[0] for row in scores(one)] == [0, 1, 2]
    for ours, theirs in zip(scores(one), scores(two), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)


def test_processes_give_the_results_of_one_process(tmp_path: Path) -> None:
    tiny, settings = tiny_experiment(3), Settings(tmp_path / "b", device="cpu", jobs=2)
    do_missing(tiny, tmp_path / "one.jsonl", Settings(tmp_path / "a", device="cpu"))
    progress = do_missing(tiny, tmp_path / "two.jsonl", settings, LocalPool(settings))
    assert (progress.done, progress.failed) == (3, [])
    check_equal(tmp_path / "two.jsonl", tmp_path / "one.jsonl")


def test_a_killed_process_is_replaced_and_a_stop_saves_the_others(tmp_path: Path) -> None:
    """Two runs that never end: one is killed, a short third run takes its place, then the stop file appears."""
    tiny = of_specs(*tiny_experiment(2, epochs=100_000).specs, tiny_spec(2, epochs=1))
    stop, killed = tmp_path / "stop", list[int]()
    settings = Settings(tmp_path / "work", device="cpu", jobs=2, deadline=time.time() + 200, stop_file=stop)
    pool = LocalPool(settings)

    def act(progress: Progress, spec: RunSpec | None, outcome: Outcome | None) -> None:
        begun = [spec for spec in progress.running if settings.folder(spec).metrics.exists()]
        if len(begun) == 2 and not killed:
            (pid,) = pool._executors[0]._processes or {}
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        if progress.finished:
            stop.touch()

    progress = do_missing(tiny, tmp_path / "tiny.jsonl", settings, pool, show=act)
    assert [(spec.key["seed"], error[:16]) for spec, error in progress.failed] == [(0, "its process died")]
    assert [spec.key["seed"] for spec in progress.finished] == [2]
    assert [spec.key["seed"] for spec in progress.stopped] == [1]
    assert (progress.reason, progress.left) == ("interrupted", 2)
    assert settings.folder(tiny.specs[1]).state.exists()
    assert [row["seed"] for row in Results.open(tmp_path / "tiny.jsonl")] == [2]


def test_a_process_that_was_killed_while_idle_is_replaced(tmp_path: Path) -> None:
    pool = LocalPool(Settings(tmp_path / "work", device="cpu"))
    assert pool.submit(tiny_spec(0, epochs=1)).result().row is not None
    (pid,) = pool._executors[0]._processes or {}
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)
    assert pool.submit(tiny_spec(1, epochs=1)).result().row is not None
    pool.close()


def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        f"sys.path[:0] = {[path for path in sys.path if path]!r}\n"
        "from pathnn_reproduction.pools import LocalPool\n"
        "from pathnn_reproduction.worker import Settings\n"
        "from tiny_experiments import tiny_spec\n"
        "if __name__ == '__main__':\n"
        f"    pool = LocalPool(Settings(Path({str(tmp_path / 'work')!r}), device='cpu'))\n"
        "    pool.submit(tiny_spec(0, epochs=1)).result()\n"
        "    print(*pool._executors[0]._processes, flush=True)\n"
        "    time.sleep(100)\n"
    )
    (tmp_path / "parent.py").write_text(script)
    parent = subprocess.Popen([sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and "Z" not in _state(child) and time.monotonic() < until:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists() or _state(child) == "Z"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@pytest.mark.parametrize(
    ("text", "lost", "memory"),
    [
        ("CUDA error: out of memory", True, True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True, True),
        ("Triton Error [CUDA]: out of memory", True, True),
        ("CUDA error: an illegal memory access was encountered", True, False),
        ("out of memory of the words", False, False),
    ],
)
def test_errors_of_the_gpu(tmp_path: Path, text: str, lost: bool, memory: bool) -> None:
    def fail(spec: RunSpec, settings: Settings) -> Any:
        raise RuntimeError(text)

    outcome = execute(RunSpec(target="tiny", key={"k": 1}, run=fail), Settings(tmp_path))
    assert (outcome.lost, outcome.memory, outcome.error) == (lost, memory, f"RuntimeError: {text}")


@pytest.mark.filterwarnings("ignore")  # of Ray
def test_ray_gives_the_results_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pathnn-reproduction[ray]'")
    tiny = tiny_experiment(3)
    do_missing(tiny, tmp_path / "one.jsonl", Settings(tmp_path / "a", device="cpu"))
    settings = Settings(tmp_path / "b", device="cpu", jobs=2, deadline=time.time() + 200)
    before = signal.getsignal(signal.SIGTERM)
    pool = RayPool(settings, "local")
    assert signal.getsignal(signal.SIGTERM) is before  # Ray's would end the call at once
    progress = do_missing(of_specs(*tiny.specs, tiny_spec(3, fold=7)), tmp_path / "two.jsonl", settings, pool)
    assert (progress.reason, len(progress.finished)) == ("", 3)
    ((_, error),) = progress.failed
    assert error.startswith("RunError: fold=7")
    check_equal(tmp_path / "two.jsonl", tmp_path / "one.jsonl")


def test_without_ray_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'pathnn-reproduction\[ray\]'"):
        RayPool(Settings(tmp_path), "local")
