"""Draw the charts of the landing page and the badges of the README: `python tools/website/charts.py`.

Each chart has a light and a dark version. Numbers in it are text, so that a test can compare them with the results
files. The badges come from pyproject.toml and need no other server.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from pathnn_reproduction.experiments import get_experiment
from pathnn_reproduction.pages import open_results
from pathnn_reproduction.tables import compare

OURS, OTHERS = "#E8590C", "#8C93A8"
INK = {"light": "#24292F", "dark": "#D8DBE5"}
METHODS = ("gin", "gcn", "3WLGNN-E", "GNNML3", "Graphormer", "ESAN", "KP-GIN", "CIN")
"""Other methods of the paper's table of ZINC, also those that are better."""

Bar = tuple[str, float, bool]
"""Label, value, and whether it is ours."""


def write_charts(root: Path, folder: Path) -> None:
    """Write the charts of speed and accuracy as SVG."""
    steps, errors = step_times(root / "benchmarks" / "results"), zinc_errors(root / "results")
    for mode, ink in INK.items():
        speed = Figure(figsize=(6, 3.6))
        rows = speed.subplots(len(steps), gridspec_kw={"height_ratios": [len(bars) for bars in steps.values()]})
        for axes, (title, bars) in zip(rows, steps.items(), strict=True):
            draw_bars(axes, bars, title, ink, "{:,.1f} ms")
        save(speed, folder / f"speed-{mode}.svg")
        accuracy = Figure(figsize=(6, 3.6))
        draw_bars(accuracy.subplots(), errors, "mean absolute error on ZINC12K (less is better)", ink, "{:.3f}")
        save(accuracy, folder / f"accuracy-{mode}.svg")


def step_times(folder: Path) -> dict[str, list[Bar]]:
    """Return the milliseconds of a training step on ZINC by device, as in the table "Speed" of the README."""
    found: dict[str, list[Bar]] = {}
    for name in ("gpu", "cpu"):
        measured = json.loads((folder / f"model-{name}.json").read_text())
        ms = {row["way"]: row["ms"] for row in measured["user_loop"] if row["phase"] == "step"}
        found[f"a training step, {measured['device'].removeprefix('x86_64, ')}"] = [
            ("LSTM path by path", ms["dense"], False),
            ("pathnn", ms["pathnn train"], True),
            ("PyG's GINE, same size", ms["gine"], False),
        ]
    return found


def zinc_errors(results: Path) -> list[Bar]:
    """Return the errors on ZINC: our runs, and other methods as the paper prints them; the largest first."""
    found: list[Bar] = []
    for entry in compare(get_experiment("zinc"), open_results("zinc", results))["zinc"]:
        if entry.model == "pathnn" and entry.collection is not None and entry.ours is not None:
            found.append((f"PathNN-{entry.collection.upper()}, our runs", entry.ours.mean, True))
        elif entry.model in METHODS and entry.paper.mean is not None:
            name = entry.model.upper() if entry.model.islower() else entry.model
            found.append((f"{name}, from the paper", entry.paper.mean, False))
    return sorted(found, key=lambda bar: -bar[1])


def badges(root: Path) -> dict[str, str]:
    """Return the badges of the README as SVG by name: the licence, and the oldest versions that are supported."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    oldest = dict(requirement.split(">=") for requirement in project["dependencies"] if ">=" in requirement)
    texts = {
        "python": ("Python", project["requires-python"].replace(">=", "\u2265 ")),
        "torch": ("PyTorch", f"\u2265 {oldest['torch']}"),
        "pyg": ("PyTorch Geometric", f"\u2265 {oldest['torch_geometric']}"),
        "licence": ("licence", project["license"]),
    }
    return {name: badge(*text) for name, text in texts.items()}


def badge(label: str, value: str) -> str:
    """Return a badge as SVG: a label on grey, and a value on blue."""
    left, right = (round(6.6 * len(text)) + 14 for text in (label, value))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label} {value}" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" '
        f'text-anchor="middle">\n<rect width="{left + right}" height="20" rx="3" fill="#3F51B5"/>\n'
        f'<path d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#555"/>\n'
        f'<text x="{left / 2}" y="14">{label}</text>\n<text x="{left + right / 2}" y="14">{value}</text>\n</svg>\n'
    )


def draw_bars(axes: Any, bars: list[Bar], title: str, ink: str, text: str) -> None:
    """Draw horizontal bars with their labels and values, and nothing else."""
    labels, values, ours = zip(*bars, strict=True)
    places = range(len(bars), 0, -1)
    drawn = axes.barh(places, values, height=0.66, color=[OURS if mine else OTHERS for mine in ours])
    axes.bar_label(drawn, [text.format(value) for value in values], padding=4, color=ink, fontsize=9)
    axes.set_yticks(places, labels, fontsize=9, color=ink)
    axes.set_title(title, fontsize=10, color=ink, loc="left")
    axes.set(xlim=(0, 1.25 * max(values)), ylim=(0.5, len(bars) + 0.5))
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as a transparent SVG, without a date."""
    figure.tight_layout()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):
        figure.savefig(path, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    write_charts(root, root / "docs" / "figures")
    for name, picture in badges(root).items():
        (root / "docs" / "figures" / f"badge-{name}.svg").write_text(picture)
