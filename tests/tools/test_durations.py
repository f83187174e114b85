"""The table of test times in CONTRIBUTING.md."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPORT = """<testsuites><testsuite>
<testcase classname="tests.nn.test_a" time="2"/><testcase classname="tests.nn.test_b.TestC" time="1.5"/>
<testcase classname="tests.test_files" time="1"/><testcase classname="src.pathnn.files" time="0.2"/>
<testcase classname="reproduction.tests.cli.test_d" time="9"/>
</testsuite></testsuites>"""


def test_the_table_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("durations", ROOT / "tools" / "durations.py")
    assert spec is not None
    assert spec.loader is not None
    durations = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(durations)
    page, report = tmp_path / "CONTRIBUTING.md", tmp_path / "tests.xml"
    page.write_text((ROOT / "CONTRIBUTING.md").read_text())
    report.write_text(REPORT)
    monkeypatch.setattr(durations, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["durations.py", str(report)])
    durations.main()
    durations.main()
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    assert rows[:4] == [
        "| `reproduction/tests/cli` | 1 | 9 | 9 |",
        "| `tests/nn` | 2 | 4 | 2 |",
        "| `tests` | 1 | 1 | 1 |",
        "| `src` | 1 | 0 | 0 |",
    ]
    assert "| all | 5 | 14 | |" in page.read_text()
    assert "## Release checklist" in page.read_text()
