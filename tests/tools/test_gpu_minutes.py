"""Unfinished runs are carried from one machine to the next, and a packed file of another program is refused."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import gpu_minutes
from gpu_minutes import PackError, pack, unpack


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An unfinished run, and a finished one."""
    for name, files in (("zinc/a-1", gpu_minutes.UNFINISHED), ("zinc/b-2", gpu_minutes.FINISHED)):
        folder = tmp_path / "here" / name
        folder.mkdir(parents=True)
        for file in (*files, ".lock"):
            (folder / file).write_text(f"{name} {file} " * 100)
    return tmp_path / "here"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("part_mib", [None, 0.0002])
def test_unfinished_runs_come_back_as_they_were(work: Path, tmp_path: Path, part_mib: float | None) -> None:
    file, there = tmp_path / "packed" / "runs.tar.xz", tmp_path / "there"
    assert pack(work, file, part_mib=0.0001) == 1
    assert pack(work, file, part_mib=part_mib) == 1  # parts of the last time are removed
    assert (len(list(file.parent.iterdir())) == 1) is (part_mib is None)
    assert unpack(file, there) == 1
    assert files(there) == [f"zinc/a-1/{name}" for name in sorted(gpu_minutes.UNFINISHED)]
    assert (there / "zinc/a-1/last.ckpt").read_text() == (work / "zinc/a-1/last.ckpt").read_text()
    (there / "zinc/a-1/last.ckpt").write_text("newer")
    assert unpack(file, there) == 0
    assert (there / "zinc/a-1/last.ckpt").read_text() == "newer"


def test_models_are_packed_if_asked(work: Path, tmp_path: Path) -> None:
    assert pack(work, tmp_path / "runs.tar.xz", models=True) == 2
    assert unpack(tmp_path / "runs.tar.xz", tmp_path / "there") == 2
    assert "zinc/b-2/model.safetensors" in files(tmp_path / "there")


@pytest.mark.parametrize(
    "name", ["../out/config.yaml", "/a/config.yaml", "a/../config.yaml", "a/b/c.py", "config.yaml"]
)
def test_a_file_of_another_program_is_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "runs.tar.xz", "w:xz") as tar:
        tar.addfile(tarfile.TarInfo("zinc/a/config.yaml"), io.BytesIO())
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(PackError, match="was not written by pack"):
        unpack(tmp_path / "runs.tar.xz", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_links_and_damaged_and_missing_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tarfile.TarInfo("zinc/a/config.yaml")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
    with tarfile.open(tmp_path / "link.tar.xz", "w:xz") as tar:
        tar.addfile(link)
    (tmp_path / "bad.tar.xz").write_bytes(b"x" * 2000)
    for name, message in (("link", "was not written by pack"), ("bad", "cannot be unpacked"), ("no", "does not exist")):
        assert gpu_minutes.main(["unpack", str(tmp_path / f"{name}.tar.xz"), str(tmp_path / "there")]) == 1
        assert message in capsys.readouterr().err


def test_a_call_without_time_resumes_and_packs_again(work: Path, tmp_path: Path) -> None:
    pack(work, tmp_path / "runs.tar.xz")
    places = {"out": tmp_path / "out", "runs": tmp_path / "runs.tar.xz", "scratch": tmp_path / "scratch"}
    assert gpu_minutes.run(0.0, ["zinc:ap,seed=0"], jobs=1, **places) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["runs.tar.xz.000", "zinc.jsonl"]
    assert unpack(tmp_path / "out" / "runs.tar.xz", tmp_path / "there") == 1
