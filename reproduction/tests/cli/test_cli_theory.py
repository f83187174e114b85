"""`pathnn reproduce theory` and `pathnn reproduce figures`: tables, files, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathnn_reproduction.theory import checks as theory

Run = Callable[..., Any]


def test_theory_prints_draws_and_saves(cli: Run, tmp_path: Path) -> None:
    save = tmp_path / "theory.json"
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: written by pathnn reproduce theory -->\n<!-- end -->\n")
    arguments = ("--max-vertices", 3, "--max-height", 2, "--out", tmp_path / "out", "--save", save, "--page", page)
    result = cli("reproduce", "theory", *arguments)
    assert result.exit_code == 0, result.stderr
    assert "Theorem 3.5" in result.stdout
    assert f"into {tmp_path / 'out'}" in result.stdout
    drawn = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "example-1.svg" in drawn
    assert len(list((tmp_path / "figures" / "theory").iterdir())) == len(drawn)
    saved = json.loads(save.read_text())
    assert {"commit", "time", "device", "seed", "seconds"} <= saved.keys()
    assert "| Lemma 3.2 |" in page.read_text()


def test_theory_as_json(cli: Run, tmp_path: Path) -> None:
    result = cli("reproduce", "theory", "--max-vertices", 2, "--max-height", 2, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["graphs"] == 3
    refuted = [check for check in found["checks"] if check["question"] == "refines WL" and not check["holds"]]
    assert refuted  # statements that do not hold are no failure of the command
    assert all(Path(path).is_file() for path in found["drawings"])


@pytest.mark.parametrize("format", ["svg", "png"])
def test_figures(cli: Run, tmp_path: Path, format: str) -> None:
    result = cli("reproduce", "figures", "--out", tmp_path, "--format", format, "--json")
    assert result.exit_code == 0, result.stderr
    files = [Path(one["file"]) for one in json.loads(result.stdout)["figures"]]
    assert len(files) == 11
    assert all(file.suffix == f".{format}" and file.stat().st_size > 1000 for file in files)


@pytest.mark.parametrize(
    "arguments", [("theory", "--max-vertices", 8), ("theory", "--max-height", 0), ("figures", "--format", "gif")]
)
def test_wrong_usage(cli: Run, arguments: tuple[Any, ...]) -> None:
    result = cli("reproduce", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_page_without_marks_is_refused_at_once(cli: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")
    result = cli("reproduce", "theory", "--out", tmp_path / "out", "--page", page)
    assert result.exit_code == 1
    assert "put them around the place of the table" in result.stderr


def test_sizes_and_heights_are_as_asked(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def theory_checks(settings: theory.TheorySettings) -> None:
        asked.append(settings)
        raise ValueError("that is all")

    monkeypatch.setattr(theory, "theory_checks", theory_checks)
    assert cli("reproduce", "theory", "--max-vertices", 2, "--max-height", 3, "--out", tmp_path).exit_code == 1
    assert asked == [theory.TheorySettings(2, 3)]
