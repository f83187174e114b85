"""Check the built website: `python tools/website/check.py site`.

Every link and picture leads to a file of the website and to an anchor on it, and no page loads anything from another
server. Links to other websites are not followed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
"""Attributes whose address a browser loads with the page."""

NOT_LOADED = ("canonical", "prev", "next", "alternate")


class Page(HTMLParser):
    """The links of a page (address, whether it is loaded) and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, bool]] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect links and anchors."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        loaded = tag in LOADED and found.get("rel") not in NOT_LOADED
        for name in ("href", "src"):
            if name in found:
                self.links.append((found[name], loaded and LOADED[tag] == name))


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with the pages below a folder."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link, loaded in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    yield f"{path.relative_to(site)} loads {link}"
                continue
            if path.name == "404.html":  # its links begin with the address of the website
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{path.relative_to(site)}: {link} is missing"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors | {"__"}:
                yield f"{path.relative_to(site)}: {link} has no such anchor"


def main() -> None:
    """Print what is wrong; exit 1 if anything is."""
    site = Path(sys.argv[1]).resolve()
    found = list(problems(site))
    pages = list(site.rglob("*.html"))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print("\n".join([*found, f"{len(pages)} pages, {size / 2**20:.1f} MiB, {len(found)} problems"]))
    sys.exit(1 if found or not pages else 0)


if __name__ == "__main__":
    main()
