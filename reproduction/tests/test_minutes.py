"""The minutes of a table are those of similar rows, by kind of device."""

from __future__ import annotations

from pathlib import Path

from pathnn_reproduction.experiments import get_experiment
from pathnn_reproduction.pages import MINUTES_BLOCK, minutes_table, minutes_text, replace_block, write_report
from pathnn_reproduction.results import Results
from pathnn_reproduction.spec import select
from tiny_experiments import made_up_row

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_results_give() -> None:
    page = (ROOT / "docs" / "reproduce.md").read_text()
    assert page == replace_block(page, MINUTES_BLOCK, minutes_table(ROOT / "results"))


def test_every_report_writes_the_minutes(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "reproduce.md"
    page.write_text("\n".join(("before", *MINUTES_BLOCK, "after")))
    assert page in write_report("plus", tmp_path / "results", tmp_path)
    runs = len(select(get_experiment("plus").specs, "zinc"))
    assert f"| plus | zinc | PathNN+ and controls | {runs} |" in page.read_text()
    assert page.read_text().startswith("before")
    assert page.read_text().endswith("after")


def test_minutes_of_ten_seeds_by_those_that_were_run() -> None:
    specs = select(get_experiment("zinc").specs, "sp,ap")
    rows = [{**made_up_row(specs[seed], 1.0), "seconds": seconds} for seed, seconds in ((0, 60.0), (1, 120.0))]
    assert minutes_text(specs, rows) == "15, 1 of 2 rows"
    assert minutes_text(specs[:10], rows) == "15"
    assert minutes_text(specs[10:], rows) == "not measured"


def test_rows_of_a_gpu_and_of_a_cpu_are_apart(tmp_path: Path) -> None:
    specs, results = select(get_experiment("zinc").specs, "pathnn,seed=0"), Results(tmp_path / "zinc.jsonl")
    for spec, device in zip(specs, ("cpu", "NVIDIA H200", "NVIDIA H200"), strict=True):
        results.add({**made_up_row(spec, 1.0), "seconds": 60.0, "device": device}, spec.key)
    lines = [line for line in minutes_table(tmp_path).splitlines() if line.startswith("| zinc | zinc | PathNN ")]
    assert lines == ["| zinc | zinc | PathNN | 30 | 20, 2 of 3 rows | 10, 1 of 3 rows |"]
