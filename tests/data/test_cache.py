"""Caches: a damaged, stale or half-written one is never used, two processes may build at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from torch import Tensor

from pathnn.files import FileError, atomic_write, file_metadata, read_tensors, write_tensors

META = {"of": "a", "n": 3}
TENSORS = {"a": torch.arange(40, dtype=torch.int32), "b": torch.rand(3, 2), "c": torch.tensor([True, False])}
SLOW = [HealthCheck.function_scoped_fixture]


def write(path: Path, tensors: dict[str, Tensor] = TENSORS) -> None:
    write_tensors(path, tensors, kind="cache", version=2, meta=META)


def read(path: Path) -> dict[str, Tensor] | None:
    """The tensors, if they are intact."""
    try:
        tensors, meta = read_tensors(path, kind="cache", version=2)
    except FileError:
        return None
    assert meta == META
    return tensors


def same(found: dict[str, Tensor] | None) -> bool:
    return found is not None and found.keys() == TENSORS.keys() and all(found[k].equal(TENSORS[k]) for k in found)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.pathnn"
    write(path)
    assert same(read(path))
    assert [file.name for file in path.parent.iterdir()] == ["a.pathnn"]


@given(where=st.floats(0, 1, exclude_max=True))
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
def test_a_truncated_file_is_refused(tmp_path: Path, where: float) -> None:
    path = tmp_path / "a.pathnn"
    write(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(where * len(whole))])
    assert read(path) is None


@given(where=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
def test_a_file_with_a_flipped_byte_is_refused(tmp_path: Path, where: float, flip: int) -> None:
    path = tmp_path / "a.pathnn"
    write(path)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= flip
    path.write_bytes(content)
    found = read(path)
    assert found is None or same(found)


@given(garbage=st.binary(max_size=200))
@settings(max_examples=50, deadline=None, suppress_health_check=SLOW)
def test_garbage_is_no_cache(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "a.pathnn"
    path.write_bytes(garbage)
    assert read(path) is None
    assert file_metadata(path) == {}


@pytest.mark.parametrize("other", [{"kind": "other"}, {"version": 1}, {"version": 3}])
def test_another_version_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    path = tmp_path / "a.pathnn"
    write_tensors(path, TENSORS, **{"kind": "cache", "version": 2, "meta": META} | other)
    assert read(path) is None


WRITER = """
import sys, torch
from pathlib import Path
from pathnn.files import write_tensors
path, value, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
tensors = {"a": torch.full((200_000,), value)}
print("ready", flush=True)
for _ in range(count):
    write_tensors(path, tensors, kind="cache", version=2, meta={"of": "a", "n": 3})
"""


def _writer(path: Path, value: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(value), str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | _source_path())
    assert process.stdout is not None
    return process


def _source_path() -> dict[str, str]:
    source = str(Path(__file__).resolve().parents[2] / "src")
    return {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}


@pytest.mark.slow
def test_two_processes_at_once_leave_a_whole_cache_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.pathnn"
    values = set()
    with ExitStack() as processes:
        writers = [processes.enter_context(_writer(path, value, 100)) for value in (1, 2)]
        running = True
        while running:
            running = any(process.poll() is None for process in writers)
            if path.exists():
                found = read(path)
                assert found is not None, "a reader saw half a file"
                assert torch.unique(found["a"]).numel() == 1
                values.add(int(found["a"][0]))
        assert [process.wait() for process in writers] == [0, 0]
    assert values
    assert values <= {1, 2}


def test_a_killed_build_leaves_nothing_that_is_taken_for_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "a.pathnn"
    for wait in (0.0, 0.007):
        process = _writer(path, 7, 10_000)
        process.stdout.readline()
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = read(path)
        assert found is None or bool((found["a"] == 7).all())
        path.unlink(missing_ok=True)
        assert all(file.name.endswith(".tmp") for file in tmp_path.iterdir())


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    inode = path.stat().st_ino
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino != inode, "it was written in place, not renamed"
    with pytest.raises(KeyboardInterrupt):
        _interrupted(path)
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o007, 0o660), (0o077, 0o600)])
def test_a_file_gets_the_mode_that_the_umask_gives(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with atomic_write(tmp_path / "a") as file:
            file.write(b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


def _interrupted(path: Path) -> None:
    with atomic_write(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
