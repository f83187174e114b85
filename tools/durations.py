"""Write the time of the tests by folder into CONTRIBUTING.md: `python tools/durations.py build/tests.xml`.

The file is what `pytest --junitxml` writes. CONTRIBUTING.md says how.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
BEGIN, END = "<!-- test times: written by tools/durations.py -->", "<!-- end of test times -->"


def times_by_folder(report: str) -> dict[str, list[float]]:
    """Return the seconds of each test by folder: `tests/nn`, and `src` for examples in docstrings.

    >>> times_by_folder('<x><testcase classname="tests.nn.test_a.TestB" time="2.5"/></x>')
    {'tests/nn': [2.5]}
    """
    found: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.fromstring(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        folders = [part for part in parts if not part.startswith("test_")]
        deep = 3 if parts[0] == "reproduction" else 2
        name = parts[0] if parts[0] in ("src", "tools") else "/".join(folders[: min(deep, len(folders))])
        found[name.split("/Test")[0]].append(float(case.get("time", 0)))
    return dict(found)


def table(found: dict[str, list[float]]) -> str:
    """Return the folders as a Markdown table, the slowest first."""
    rows = sorted(found.items(), key=lambda item: -sum(item[1]))
    total = sum(sum(times) for times in found.values())
    lines = [f"| `{name}` | {len(times):,} | {sum(times):,.0f} | {max(times):,.0f} |" for name, times in rows]
    head = ["| folder | tests | seconds | slowest test |", "|---|---|---|---|"]
    return "\n".join([*head, *lines, f"| all | {sum(map(len, found.values())):,} | {total:,.0f} | |"])


def main() -> None:
    """Replace the table of CONTRIBUTING.md."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    content = table(times_by_folder(Path(sys.argv[1]).read_text()))
    PAGE.write_text(f"{before}{BEGIN}\n\n{content}\n\n{END}{after}")


if __name__ == "__main__":
    main()
