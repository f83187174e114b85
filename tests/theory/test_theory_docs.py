import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "theory.md"


def test_page_runs():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


@pytest.mark.parametrize("line", [line for line in PAGE.read_text().splitlines() if line.startswith("![")])
def test_pictures_of_the_page_exist(line):
    picture = PAGE.parent / line.split("](")[1].rstrip(")")
    assert 0 < picture.stat().st_size <= 150_000
