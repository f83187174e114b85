import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_example_draws_every_figure_of_the_page(tmp_path, monkeypatch, capsys):
    script = ROOT / "examples" / "figures.py"
    monkeypatch.setattr("sys.argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    drawn = sorted(path.name for path in tmp_path.iterdir())
    page = (ROOT / "docs" / "theory.md").read_text()
    assert drawn == sorted(set(re.findall(r"\(figures/([^/)]+\.png)\)", page)))
    assert all((ROOT / "docs" / "figures" / name).exists() for name in drawn)
    assert all(path.stat().st_size <= 150_000 for path in tmp_path.iterdir())
