"""Write docs/benchmarks.md and the README's table from benchmarks/results: `python benchmarks/report.py`."""

from pathlib import Path

from pathnn_reproduction.bench.report import benchmark_page, with_headline

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"

if __name__ == "__main__":
    (ROOT / "docs" / "benchmarks.md").write_text(benchmark_page(RESULTS))
    readme = ROOT / "README.md"
    readme.write_text(with_headline(readme.read_text(), RESULTS))
