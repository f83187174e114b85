"""The figures of docs/theory.md are those that the command draws."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def test_the_command_draws_every_figure_of_the_page(tmp_path: Path, cli: Callable[..., Any]) -> None:
    done = cli("reproduce", "figures", "--out", tmp_path, "--format", "png")
    assert done.exit_code == 0, done.stderr
    drawn = {path.name for path in tmp_path.iterdir()}
    page = (ROOT / "docs" / "theory.md").read_text()
    shown = set(re.findall(r"\(figures/([^/)]+\.png)\)", page))
    assert shown
    assert shown <= drawn
    assert all((ROOT / "docs" / "figures" / name).stat().st_size <= 150_000 for name in shown)
