"""Locks and lines that are added: a symbolic link is refused, and what it names stays as it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from pathnn.files import locked_file
from pathnn.training import Epoch, RunConfig, RunError, RunFolder, RunFolderError, run_ensemble
from pathnn_reproduction.results import Results, ResultsError

Lock = Callable[[Path], AbstractContextManager[object]]
"""From a folder that is prepared to something that locks it, or a file in it."""


@contextmanager
def of_a_run(folder: Path):
    with RunFolder(folder).lock():
        yield


@contextmanager
def of_a_member(folder: Path):
    """What an ensemble locks before it removes the runs of its seeds."""
    from pathnn.training import EnsembleFolder

    EnsembleFolder(folder.parent).clear([0])
    yield


@contextmanager
def of_results(folder: Path):
    key = {"k": 1}
    Results(folder / ".lock").add({**key, "commit": None, "device": "cpu", "time": ""}, key)
    yield


@contextmanager
def of_a_file(folder: Path):
    with locked_file(folder / ".lock") as file:
        yield file


@contextmanager
def of_lines(folder: Path):
    """No lock, but written in place as well."""
    (folder / ".lock").rename(folder / "metrics.jsonl")
    RunFolder(folder).add_epoch(Epoch(1, 0.5, 0.5, 0.5, None, True, 0.1, 2.0))
    yield


KINDS = [of_a_run, of_a_member, of_results, of_a_file, of_lines]


@pytest.mark.parametrize("lock", KINDS, ids=lambda lock: lock.__name__)
@pytest.mark.parametrize("content", [b"all of it\n", b"no end of line", b""])
def test_a_symlink_is_refused_and_what_it_names_is_unchanged(tmp_path: Path, lock: Lock, content: bytes) -> None:
    precious, folder = tmp_path / "precious.txt", tmp_path / "seed-0"
    precious.write_bytes(content)
    os.utime(precious, ns=(10**18, 10**18))
    folder.mkdir()
    (folder / ".lock").symlink_to(precious)
    with (
        pytest.raises((OSError, RunError, ResultsError), match="symbolic link, which is not followed; remove it"),
        lock(folder),
    ):
        pass
    assert precious.read_bytes() == content
    assert precious.stat().st_mtime_ns == 10**18


@pytest.mark.parametrize("lock", KINDS, ids=lambda lock: lock.__name__)
def test_a_dangling_symlink_makes_no_file(tmp_path: Path, lock: Lock) -> None:
    folder = tmp_path / "seed-0"
    folder.mkdir()
    (folder / ".lock").symlink_to(tmp_path / "new.txt")
    with pytest.raises((OSError, RunError, ResultsError), match="symbolic link"), lock(folder):
        pass
    assert not (tmp_path / "new.txt").exists()


def test_an_ensemble_whose_lock_is_a_symlink_trains_nothing(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("all of it")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious.txt")
    with pytest.raises(RunFolderError, match="symbolic link"):
        run_ensemble(RunConfig(data="csl", collection="sp", k=1, epochs=1, device="cpu"), tmp_path / "run", 2)
    assert (tmp_path / "precious.txt").read_text() == "all of it"
    assert [entry.name for entry in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_lock_is_not_truncated(tmp_path: Path) -> None:
    """A hard link, which looks like any file."""
    (tmp_path / "precious.txt").write_text("all of it")
    (tmp_path / ".lock").hardlink_to(tmp_path / "precious.txt")
    with RunFolder(tmp_path).lock():
        pass
    assert (tmp_path / "precious.txt").read_text() == "all of it"


def test_what_is_no_plain_file_is_no_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(RunFolderError, match="not a plain file"), RunFolder(tmp_path).lock():
        pass


def test_a_lock_is_held_until_its_end(tmp_path: Path) -> None:
    with locked_file(tmp_path / ".lock", wait=False):
        with pytest.raises(BlockingIOError), locked_file(tmp_path / ".lock", wait=False):
            pass
        with pytest.raises(RunFolderError, match="another process"), RunFolder(tmp_path).lock():
            pass
    with locked_file(tmp_path / ".lock", wait=False) as file:
        assert file.read() == b""


def test_without_file_locks_training_warns_that_the_folder_is_not_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    warning = pytest.warns(RuntimeWarning, match=r"\.lock is not locked: this system has no file locks")
    with warning, RunFolder(tmp_path).lock():
        pass
    assert (tmp_path / ".lock").exists()
