"""The code on the page about paths runs, and shows what it says it shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "paths.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_every_block_of_the_page():
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 10
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        example = doctest.DocTestParser().get_doctest(block[1], names, f"line {line + 1}", str(PAGE), line)
        assert example.examples, f"{PAGE.name}, line {line + 1}: a block without >>> is not tested"
        report: list[str] = []
        result = runner.run(example, out=report.append, clear_globs=False)
        assert not result.failed, "".join(report)
        names.update(example.globs)
