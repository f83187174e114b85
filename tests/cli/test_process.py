"""The command line as a process of its own: exit codes, pipes, interrupts, and no traceback."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"


def start(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pathnn.cli", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"},
    )


def test_json_is_all_there_is_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "square.g6").write_bytes(b"Cr\n")
    process = start("paths", str(tmp_path / "square.g6"), "--k", "3", "--json")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["mean_paths"] == {"1": 8.0, "2": 8.0, "3": 8.0}


@pytest.mark.skipif(sys.platform != "linux", reason="asks GNU's OpenMP")
@pytest.mark.parametrize(
    ("given", "least", "most"),
    [({}, 0, 1000), ({"GOMP_SPINCOUNT": "7"}, 7, 7), ({"OMP_WAIT_POLICY": "ACTIVE"}, 10**6, 10**12)],
)
def test_threads_of_torch_do_not_spin_for_long(given: dict[str, str], least: int, most: int) -> None:
    """OpenMP itself says how often its threads spin, when a command loads torch; what the user set stays."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    environment |= {"PYTHONPATH": str(SRC), "OMP_DISPLAY_ENV": "VERBOSE", **given}
    command = [sys.executable, "-m", "pathnn.cli", "paths", "nothing.csv"]
    err = subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stderr
    spins = re.search(r"GOMP_SPINCOUNT = '(\d+)'", err)
    assert spins is not None, err
    assert least <= int(spins[1]) <= most


def test_what_goes_to_a_file_is_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    process = subprocess.run(
        [sys.executable, "-m", "pathnn.cli", "paths", str(tmp_path / "λ.csv")], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    assert process.returncode == 1
    assert "λ.csv" in process.stderr.decode("utf-8")


def test_bad_input_is_one_line_and_exit_1(tmp_path: Path) -> None:
    process = start("paths", str(tmp_path / "nothing.csv"), "--json")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        process = start("datasets", "--json", stdout=full.fileno())
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "No space left" in err
    assert "Traceback" not in err


def test_a_reader_that_leaves_is_no_fault() -> None:
    process = start("datasets")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) in (0, 1)
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    fifo = tmp_path / "slow.g6"
    os.mkfifo(fifo)  # the command waits here for data that never come
    # A shell has its background jobs ignore this signal, and so would the command: as if it were in the foreground.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = start("paths", str(fifo))
    finally:
        signal.signal(signal.SIGINT, before)
    writer = open_for_reader(fifo, process)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:  # Python can lose the first while it collects garbage: a user presses again
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    os.close(writer)
    assert (process.returncode, out, err) == (130, "", "")


def open_for_reader(fifo: Path, process: subprocess.Popen[str]) -> int:
    """Open a pipe once the command reads from it. Plain `open` would wait for ever for a command that has failed."""
    while process.poll() is None:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads yet
                raise
            time.sleep(0.01)
    return pytest.fail(f"it ended with {process.returncode} before it read: {process.communicate()}")


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_command_that_never_reads_fails_the_test_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.g6")
    with pytest.raises(pytest.fail.Exception, match=r"before it read: .*No such command"):
        open_for_reader(tmp_path / "slow.g6", start("pahts"))


def test_the_reproduction_runs_from_a_bare_checkout() -> None:
    """On PYTHONPATH there are no entry points."""
    path = os.pathsep.join([str(SRC), str(SRC.parent / "reproduction" / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "pathnn_reproduction", "reproduce", "zinc", "--limit", "0"],
        capture_output=True, text=True, check=False, cwd=SRC.parent, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "MAE" in done.stdout
