"""The script for lent GPUs does the missing runs, brings their results, and goes on from what it brought."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "lease.sh"


def lease(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a repository that has nothing but the code, with results in its folder `out`."""
    here = {"PATHNN_COMMIT": "abc", "OUT": str(repository / "out"), "SCRATCH": str(repository / "scratch")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", repository / "benchmarks" / SCRIPT.name, *arguments],
        env={**os.environ, **here, "PATH": path, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for folder in ("benchmarks", ".device"):
        (tmp_path / folder).mkdir()
    shutil.copy(SCRIPT, tmp_path / "benchmarks")
    (tmp_path / "src").symlink_to(SCRIPT.parents[1] / "src")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("xz") is None, reason="needs xz")
def test_runs_are_done_and_brought_back(repository: Path, mirror: Path) -> None:
    (repository / ".device" / "data").symlink_to(mirror)
    first = lease(repository, "0", "synthetic", "exp-iso,gin,seed=0", "1", "synthetic", "exp-iso,gin,seed=1", "1")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "0 of 1 runs done" in first.stdout
    assert not first.stderr
    log = (repository / "scratch" / "synthetic.log").read_text()
    assert log.count("runs done") == 1  # without time the second list is not looked at
    # What a stopped run leaves is tested with --pack; here an empty file goes the same way.
    brought = (repository / "out" / "synthetic.tar.xz.00").read_bytes()
    assert lzma.decompress(brought).startswith(b"\0")
    (repository / ".device" / "synthetic.tar.xz").write_bytes(brought)
    shutil.rmtree(repository / "scratch")
    lists = ("synthetic", "exp-iso,gin,seed=0", "1", "synthetic", "exp-iso,gin,seed=1", "1")
    second = lease(repository, "600", *lists)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "unpacked 0 runs" in second.stdout
    lines = [json.loads(line) for line in (repository / "out" / "synthetic.jsonl").read_text().splitlines()]
    assert [(line["seed"], line["test"], line["commit"]) for line in lines] == [(0, 600, "abc"), (1, 600, "abc")]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("xz") is None, reason="needs xz")
def test_results_come_before_runs_under_way(repository: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / ".device" / "data").symlink_to(mirror)
    (repository / "results").mkdir()
    for target in ("synthetic", "zinc"):
        (repository / "results" / f"{target}.jsonl").write_text("")
    monkeypatch.setenv("FILES", "3")
    done = lease(repository, "0", "zinc", "gin,seed=0", "1", "synthetic", "exp-iso,gin,seed=0", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no room for the runs under way of synthetic" in done.stdout
    found = sorted(path.name for path in (repository / "out").iterdir())
    assert found == ["synthetic.jsonl", "zinc.jsonl", "zinc.tar.xz.00"]


def test_tests_come_first_and_end_it_where_they_fail(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in (("good", "pass"), ("bad", "assert 0, 'as planned'"), ("unmarked", "assert 0")):
        mark = "" if name == "unmarked" else "import pytest\n@pytest.mark.cuda\n"
        (repository / f"test_{name}.py").write_text(f"{mark}def test_it():\n    {body}\n")
    (repository / "pytest.ini").write_text("[pytest]\nmarkers = cuda\n")
    monkeypatch.setenv("TESTS", "test_good.py test_unmarked.py")
    good = lease(repository, "60")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "1 passed" in good.stdout
    assert "all is over" in good.stdout
    monkeypatch.setenv("TESTS", "test_good.py test_bad.py")
    bad = lease(repository, "60")
    assert bad.returncode == 1
    assert "as planned" in bad.stdout
    assert "all is over" not in bad.stdout
    assert "test_good.py::test_it PASSED" in (repository / "out" / "tests.log").read_text()


def test_it_says_what_it_needs(repository: Path) -> None:
    missing = subprocess.run(
        ["bash", repository / "benchmarks" / SCRIPT.name, "5"], env={}, capture_output=True, text=True, check=False
    )
    assert missing.returncode != 0
    assert "the commit of the code" in missing.stderr
