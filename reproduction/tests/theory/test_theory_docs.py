"""docs/theory.md runs, its pictures exist, and its table is what the result file says."""

import doctest
import json
import re
from pathlib import Path

from pathnn_reproduction.pages import replace_block
from pathnn_reproduction.theory.table import THEORY_BLOCK, theory_block

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "theory.md"
RESULT = json.loads((ROOT / "results" / "theory.json").read_text())


def test_page_runs():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


def test_pictures_of_the_page_exist():
    pictures = set(re.findall(r"\]\((figures/[^)]*)\)", PAGE.read_text()))
    assert len(pictures) > 30
    for picture in pictures:
        assert 0 < (PAGE.parent / picture).stat().st_size <= 150_000, picture
    drawn = {f"figures/theory/{path.name}" for path in (PAGE.parent / "figures" / "theory").iterdir()}
    assert drawn <= pictures


def test_the_table_is_written_from_the_results():
    page = PAGE.read_text()
    assert page == replace_block(page, THEORY_BLOCK, theory_block(RESULT))


def test_the_page_names_the_position_that_definition_3_1_gets_wrong():
    page = PAGE.read_text()
    paragraph = next(text for text in page.split("\n\n") if "efinition 3.1 takes" in text)
    assert all(words in paragraph for words in ("position k of the paths of length k", "k + 1 positions", "k + 1:"))
