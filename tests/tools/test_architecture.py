"""The pages about the code name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_every_link_leads_to_a_file(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text())
    assert not [link for link in links if not (DOCS / link).exists()]


def test_every_package_is_described() -> None:
    text = (DOCS / "architecture.md").read_text()
    packages = [path.parent.name for path in (DOCS.parent / "src" / "pathnn").glob("*/__init__.py")]
    assert len(packages) > 5
    assert not [name for name in packages if f"**[{name}](../src/pathnn/{name})**" not in text]
