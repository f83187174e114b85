"""Processes on one GPU share it through MPS where that works, and go on without it where it does not."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from pathnn_reproduction import mps
from pathnn_reproduction.mps import shared_gpu
from pathnn_reproduction.pool import LocalPool, attempt
from pathnn_reproduction.settings import Settings
from tiny_experiments import tiny_run

SCRIPT = """#!/bin/sh
echo "$* $(cat)" >> {log}
exit {code}
"""


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, *, code: int = 0, probe: str = "") -> Path:
    """A program in MPS' place that notes down what it is told, on a machine that seems to have a GPU."""
    log, program = folder / "log", folder / mps.CONTROL
    program.write_text(SCRIPT.format(log=log, code=code))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.delenv("PATHNN_MPS", raising=False)
    monkeypatch.setattr(mps, "STANDARD", folder / "nobody's")
    monkeypatch.setattr(mps, "PROBE", probe)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return log


def test_the_service_is_there_inside_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = install(monkeypatch, tmp_path)
    with shared_gpu(4, "auto") as shared:
        assert shared
        folder = Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
        assert folder.is_dir()
        assert log.read_text().split() == ["-d"]
    assert log.read_text().split() == ["-d", "quit"]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert not folder.exists()


def test_an_error_inside_ends_it_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = install(monkeypatch, tmp_path)
    with pytest.raises(KeyboardInterrupt), shared_gpu(2, "cuda"):
        raise KeyboardInterrupt
    assert log.read_text().split() == ["-d", "quit"]


@pytest.mark.parametrize(("code", "probe"), [(1, ""), (0, "raise SystemExit(3)")])
def test_one_that_does_not_work_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, probe: str
) -> None:
    log = install(monkeypatch, tmp_path, code=code, probe=probe)
    with shared_gpu(4, "auto") as shared:
        assert not shared
        assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert log.read_text().split() == ["-d", "quit"]


def test_a_service_that_keeps_its_output_open_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = install(monkeypatch, tmp_path)
    program = tmp_path / mps.CONTROL
    program.write_text(f'#!/bin/sh\n[ "$1" = -d ] && sleep 5 &\necho "$* $(cat)" >> {log}\n')
    begin = time.monotonic()
    with shared_gpu(4, "auto") as shared:
        assert shared
    assert time.monotonic() - begin < 4.5


def test_one_that_hangs_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path)
    (tmp_path / mps.CONTROL).write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(mps, "SECONDS", 0.2)
    begin = time.monotonic()
    with shared_gpu(4, "auto") as shared:
        assert not shared
    assert time.monotonic() - begin < 30


def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path)
    start = 'sleep 60 & echo $! > "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"'
    (tmp_path / mps.CONTROL).write_text(f'#!/bin/sh\n[ "$1" = -d ] || exit 1\n{start}\n')
    with shared_gpu(4, "auto") as shared:
        assert shared
        number = int((Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"]) / mps.PID).read_text())
        assert running(number)
    until = time.monotonic() + 10
    while running(number) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(number)


def running(number: int) -> bool:
    """Whether a process runs; one that has ended may still be listed as a zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("case", ["one job", "cpu", "turned off", "the user's", "the machine's", "no gpu"])
def test_it_is_not_started_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str) -> None:
    log = install(monkeypatch, tmp_path)
    if case == "turned off":
        monkeypatch.setenv("PATHNN_MPS", "0")
    elif case == "the user's":
        monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mine")
    elif case == "the machine's":
        mps.STANDARD.touch()
    elif case == "no gpu":
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = dict(os.environ)
    with shared_gpu(1 if case == "one job" else 4, "cpu" if case == "cpu" else "auto") as shared:
        assert not shared
        assert dict(os.environ) == before
    assert not log.exists()


def fail(text: str) -> None:
    raise RuntimeError(text)


def test_a_process_that_has_lost_the_gpu_is_replaced(tmp_path: Path) -> None:
    """A fault of one process takes the GPU from all that share it; memory that is used up does not."""
    kind, values = attempt(lambda: fail("CUDA error: an illegal memory access was encountered"))
    assert (kind, values["fatal"]) == ("failed", True)
    assert attempt(lambda: fail("Triton Error [CUDA]: an illegal memory access was encountered"))[1]["fatal"]
    assert not attempt(lambda: fail("CUDA out of memory. Tried to allocate 2 GiB"))[1]["fatal"]
    pool, process, connection = LocalPool(Settings(tmp_path, "cpu", jobs=1)), Ended(), Said((kind, values))
    pool._workers[0] = (process, connection)  # type: ignore[assignment]
    pool._busy[0] = {0, 2}  # the second of its runs is over
    events = pool._read(0, connection)  # type: ignore[arg-type]
    assert [event.place for event in events] == [0, 2]
    assert all(event.error.startswith("RuntimeError: CUDA error") for event in events)
    assert process.killed
    assert (pool._workers, pool.busy()) == ({}, 0)


def test_a_process_that_dies_before_it_gets_its_run_fails_that_run_alone(tmp_path: Path) -> None:
    pool, process, connection = LocalPool(Settings(tmp_path, "cpu", jobs=1)), Ended(), Gone(None)
    pool._workers[0] = (process, connection)  # type: ignore[assignment]
    pool.start(0, [tiny_run()])
    (event,) = pool._read(0, connection)  # type: ignore[arg-type]
    assert (event.kind, event.error) == ("failed", "its process died (exit code -9).")
    assert (pool._workers, pool.busy()) == ({}, 0)


class Ended:
    killed = False
    exitcode = -9

    def is_alive(self) -> bool:
        return True

    def kill(self) -> None:
        self.killed = True

    def join(self, timeout: float | None = None) -> None:
        assert self.killed or timeout is not None


class Said:
    def __init__(self, message: Any) -> None:
        self.message = message

    def recv(self) -> Any:
        return self.message

    def close(self) -> None:
        pass


class Gone(Said):
    def send(self, message: Any) -> None:
        raise BrokenPipeError

    def recv(self) -> Any:
        raise EOFError
