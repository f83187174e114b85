"""The page docs/data.md runs."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "data.md"


def test_the_page_runs(own_cache: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags, encoding="utf-8")
    assert result.attempted > 20
    assert result.failed == 0


def test_the_page_names_every_dataset() -> None:
    from pathnn.data import dataset_names

    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in dataset_names() if name not in text and not name.startswith("sr")] == []
