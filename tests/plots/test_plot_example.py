import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_example_draws_every_figure_of_the_page(tmp_path, monkeypatch, capsys):
    script = ROOT / "examples" / "figures.py"
    monkeypatch.setattr("sys.argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == sorted(path.name for path in (ROOT / "docs" / "figures").glob("*.png"))
    page = (ROOT / "docs" / "theory.md").read_text()
    assert all(f"(figures/{name})" in page for name in drawn)
    assert all(path.stat().st_size <= 150_000 for path in tmp_path.iterdir())
