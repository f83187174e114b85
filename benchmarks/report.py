"""Write docs/benchmarks.md from benchmarks/results: `python benchmarks/report.py`."""

from pathlib import Path

from pathnn.bench.report import benchmark_page

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    (ROOT / "docs" / "benchmarks.md").write_text(benchmark_page(ROOT / "benchmarks" / "results"))
