"""What commands print: JSON that any parser reads, tables that nothing cuts, errors as sentences."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from pathnn.cli import console
from pathnn.cli.app import explain
from pathnn.cli.console import (
    number_text,
    plain,
    print_json,
    print_table,
    progress,
    result_only,
    scores_text,
    time_text,
    watch_compiler,
)
from pathnn.paths.count import size_text

NUMBERS = st.floats() | st.integers() | st.booleans() | st.none() | st.text()
DOCUMENTS = st.recursive(NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner))


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


@given(document=DOCUMENTS)
def test_any_document_is_valid_json(document: Any) -> None:
    text = json.dumps(plain(document), allow_nan=False)
    json.loads(text, parse_constant=_refuse)


@given(value=st.floats())
def test_numbers_are_not_rounded(value: float) -> None:
    shown = value if math.isfinite(value) else None
    assert json.loads(json.dumps(plain({"value": value, "pair": (1, value)}))) == {"value": shown, "pair": [1, shown]}


def test_tensors_arrays_and_paths_become_plain(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"tensor": torch.tensor([1.5, math.inf]), "array": np.float32(2), "path": Path("a") / "b", 3: {1}})
    assert json.loads(capsys.readouterr().out) == {
        "tensor": [1.5, None],
        "array": 2.0,
        "path": str(Path("a") / "b"),
        "3": [1],
    }


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="no object"):
        plain(object())


def test_under_json_foreign_prints_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with result_only(True):
        sys.stdout.write("a library talks\n")
    with result_only(False):
        sys.stdout.write("the result\n")
    assert tuple(capsys.readouterr()) == ("the result\n", "a library talks\n")


def test_a_wide_table_is_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "value"), [("x" * 150, "[not markup]")])
    out = capsys.readouterr().out
    assert "x" * 150 in out
    assert "[not markup]" in out


def test_sizes_read_well() -> None:
    assert [size_text(n) for n in (0, 1023, 1024, 5 * 2**30, 3 * 2**40)] == [
        "0 B", "1023 B", "1.0 KiB", "5.0 GiB", "3.0 TiB"
    ]  # fmt: skip


def test_progress_is_silent_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", total=1) as step:
        step()
    assert tuple(capsys.readouterr()) == ("", "")


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (0.3, True)])
def test_progress_shows_on_a_terminal_after_a_while(
    seconds: float, shown: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setattr("pathnn.cli.console.DELAY", 0.1)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("working"):
        time.sleep(seconds)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("working" in err) is shown


def test_the_memory_errors_of_python_and_torch_are_explained() -> None:
    for error in (MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")):
        assert "memory is full" in str(explain(error))


def test_an_error_is_one_line() -> None:
    assert explain(ValueError("two\n  lines")) == "two lines"
    assert explain(ValueError()) == "ValueError."
    assert explain(PermissionError(13, "Permission denied", "/x")) == "/x: Permission denied."
    assert explain(ModuleNotFoundError("No module named 'pathnn.nothing'", name="pathnn.nothing")) is None
    assert explain(ModuleNotFoundError("No module named 'rdkit'", name="rdkit")) == (
        "this needs rdkit, which is not installed: pip install 'pathnn[mol]'."
    )
    assert explain(RuntimeError("a bug")) is explain(KeyError("x")) is None


def test_words_for_numbers() -> None:
    assert scores_text({"mae": 0.51239, "r2": None}) == "mae 0.5124, r2 not defined"
    assert (number_text(1, "graph"), number_text(12000, "graph")) == ("1 graph", "12,000 graphs")
    assert [time_text(seconds) for seconds in (42.0, 100.0, 7500.0)] == ["42 s", "1 min 40 s", "2 h 5 min"]


def test_a_long_compilation_is_announced(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.event import trigger_event

    monkeypatch.setattr(console, "DELAY", 0.2)
    watch_compiler()
    with trigger_event("numba:compile"):
        pass
    time.sleep(0.4)
    assert capsys.readouterr().err == "", "it was short"
    with trigger_event("numba:compile"):
        until, err = time.monotonic() + 20, ""
        while not err and time.monotonic() < until:
            time.sleep(0.05)
            err = capsys.readouterr().err
    assert err.startswith("compiling the loops over paths, once")


def test_a_bar_with_a_unit_shows_the_rate_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "DELAY", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")
    with progress("predicting", total=30, unit="molecules") as step:
        until, err = time.monotonic() + 20, ""
        while "molecules/s" not in err and time.monotonic() < until:
            step(1)
            time.sleep(0.1)
            err += capsys.readouterr().err
    assert "molecules/s, left:" in err
