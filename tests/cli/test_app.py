"""The frame of the command line: help, version, exit codes, and errors of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import pathnn
from pathnn.cli.app import Commands

COMMANDS = [
    (),
    ("paths",),
    ("distinguish",),
    ("train",),
    ("evaluate",),
    ("predict",),
    ("explain",),
    ("datasets",),
    ("datasets", "fetch"),
    ("datasets", "verify"),
    ("reproduce",),
    ("reproduce", "counts"),
    ("bench",),
    ("bench", "extract"),
    ("bench", "batch"),
    ("bench", "model"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(cli: Callable[..., Any], command: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        result = cli(*command, flag)
        assert result.exit_code == 0
        assert "Example: pathnn" in result.stdout
        assert result.stderr == ""


@pytest.mark.parametrize("command", [c for c in COMMANDS if c and c not in (("reproduce",), ("bench",))], ids=" ".join)
def test_every_command_that_gives_a_result_has_json(cli: Callable[..., Any], command: tuple[str, ...]) -> None:
    assert "--json" in cli(*command, "--help").stdout


def test_version(cli: Callable[..., Any]) -> None:
    result = cli("--version")
    assert (result.exit_code, result.stdout) == (0, f"pathnn {pathnn.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [("nothing",), ("--nothing",), ("paths",), ("reproduce", "nothing"), ("bench", "extract", "--part", "x")],
)
def test_wrong_usage_is_exit_2(cli: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    result = cli(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error" in result.stderr
    assert "Traceback" not in result.stderr


def test_all_commands_are_listed(cli: Callable[..., Any]) -> None:
    listed = cli("--help").stdout
    for name in (
        "paths", "distinguish", "train", "evaluate", "predict", "explain", "reproduce", "bench", "datasets",
    ):  # fmt: skip
        assert re.search(rf"^\W*{name} ", listed, re.M), name


def _failing(error: BaseException) -> Any:
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)

    @app.callback()
    def root() -> None:
        pass

    @app.command()
    def fail() -> None:
        raise error

    return CliRunner().invoke(app, ["fail"])


@pytest.mark.parametrize("error", [ValueError("bad\ninput."), OSError(28, "No space left on device", "out.csv")])
def test_bad_input_is_a_sentence_and_exit_1(error: Exception) -> None:
    result = _failing(error)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr in ("Error: bad input.\n", "Error: out.csv: No space left on device.\n")


def test_an_interrupt_is_quiet_and_exit_130() -> None:
    result = _failing(KeyboardInterrupt())
    assert (result.exit_code, result.output) == (130, "")


def test_our_own_faults_keep_their_traceback() -> None:
    assert isinstance(_failing(KeyError("bug")).exception, KeyError)


def test_a_traceback_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_TRACEBACK", "1")
    assert isinstance(_failing(ValueError("bad input")).exception, ValueError)
