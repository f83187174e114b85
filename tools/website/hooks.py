"""Hooks of mkdocs (mkdocs.yml): formulas become MathML, and examples in docstrings become code blocks.

MathML needs no script, so the pages load nothing from other servers. Imports of mkdocs and Markdown are in functions:
the tests read this file without them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.DOTALL)


def on_config(config: Any) -> Any:
    """Add a Markdown extension that fences the examples of docstrings."""
    from markdown import Extension, Markdown
    from markdown.preprocessors import Preprocessor

    class FenceExamples(Preprocessor):
        def run(self, lines: list[str]) -> list[str]:
            return fence_examples(lines)

    class Examples(Extension):
        def extendMarkdown(self, md: Markdown) -> None:
            md.preprocessors.register(FenceExamples(md), "examples", 1000)  # before code blocks are found

    config.markdown_extensions.append(Examples())
    return config


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas of a page by MathML."""
    return FORMULA.sub(_mathml, content)


def _mathml(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    return str(convert(html.unescape(match[2]).strip(), display="inline" if match[1] == "span" else "block"))


def fence_examples(lines: Iterable[str]) -> list[str]:
    """Put `>>>` examples between code fences, except those that are in a code block already.

    >>> fence_examples(["Add.", "", ">>> 1 + 1", "2", "", "More."])
    ['Add.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'More.']
    """
    found: list[str] = []
    fenced = example = False
    for line in (*lines, ""):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if not fenced and not example and line.startswith(">>> "):
            found.append("```pycon")
            example = True
        elif example and not line.strip():
            found.append("```")
            example = False
        found.append(line)
    return found[:-1]
