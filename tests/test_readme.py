"""Every block of the README runs, and every relative link of the documentation leads to a file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pathnn.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = sorted(page for folder in (".", "docs", "examples", "models") for page in (ROOT / folder).glob("*.md"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of a clone that the README names."""
    for name in ("examples", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_blocks_run(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rdkit")
    (block,) = blocks("python")
    exec(compile(block, "README.md", "exec"), {})
    assert re.match(r"MAE of the last batch: \d\.\d\d\n", capsys.readouterr().out)


def test_commands_run(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rdkit")
    commands = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    ours = [words[1:] for words in commands if words[0] == "pathnn"]
    assert [words[0] for words in ours] == ["train", "predict", "explain", "reproduce", "distinguish"]
    said = {}
    for words in ours:
        app(words, standalone_mode=False)
        said[words[0]] = capsys.readouterr().out
    assert re.search(r"RMSE: test \d\.\d+", said["train"])
    assert re.search(r"aspirin,CC\(=O\)Oc1ccccc1C\(=O\)O,-?\d", said["predict"])
    assert (clone / "why.html").read_text().startswith("<!doctype html>")
    assert "PathNN-AP (K=4)" in said["reproduce"]
    assert re.search(r"1-WL +1 ", said["distinguish"])
    assert [words[0] for words in commands if words[0] not in ("pathnn", "pip")] == [
        "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu"  # make demo: tests/test_demo.py
    ]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 130
    lengths = [len(list(filter(None, block.splitlines()))) for block in blocks("sh") + blocks("python")]
    assert max(lengths) <= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", page.read_text())  # SMILES have brackets, too
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing
