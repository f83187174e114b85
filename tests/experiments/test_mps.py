"""Processes on one GPU share it through MPS where that works, and go on without it where it does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from pathnn.experiments import mps
from pathnn.experiments.execute import Settings
from pathnn.experiments.mps import shared_gpu
from pathnn.experiments.pool import LocalPool, attempt

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
    assert not attempt(lambda: fail("CUDA out of memory. Tried to allocate 2 GiB"))[1]["fatal"]
    pool, process, connection = LocalPool(Settings(tmp_path, "cpu", jobs=1)), Ended(), Said((kind, values))
    pool._workers[0] = (process, connection)  # type: ignore[assignment]
    pool._busy.add(0)
    assert pool._read(0, connection).error.startswith("RuntimeError: CUDA error")  # type: ignore[arg-type]
    assert process.killed
    assert (pool._workers, pool.busy()) == ({}, 0)


class Ended:
    killed = False

    def kill(self) -> None:
        self.killed = True

    def join(self) -> None:
        assert self.killed


class Said:
    def __init__(self, message: Any) -> None:
        self.message = message

    def recv(self) -> Any:
        return self.message

    def close(self) -> None:
        pass
