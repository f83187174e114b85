"""An explanation as one HTML file: what was predicted, a picture, and the paths that matter most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Protocol

from pathnn.explain.explanation import Edge, Explanation, PathScore
from pathnn.explain.pictures import LESS, MORE, hex_color

SHARED = "(scores of paths, shared out over their vertices and edges)"
PICTURES = 24
"""Rows that have a picture of their own, at most."""

STYLE = f"""
body {{ font: 15px/1.5 system-ui, sans-serif; color: #333; max-width: 860px; margin: 2em auto; padding: 0 1em; }}
h1 {{ font-size: 1.4em; overflow-wrap: anywhere; }}
figure {{ margin: 0; text-align: center; }}
figure svg {{ width: 100%; height: auto; max-height: 24em; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: 0.3em 0.6em; border-bottom: 1px solid #ddd; vertical-align: middle; }}
td svg {{ display: block; max-width: 15em; max-height: 7em; }}
th.number, td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
td.path {{ font-family: ui-monospace, monospace; }}
td.bar {{ width: 26%; }}
td.bar div {{ position: relative; left: 50%; width: 50%; }}
td.bar span {{ display: block; height: 0.9em; }}
.more {{ background: {hex_color(MORE)}; }}
.less {{ background: {hex_color(LESS)}; position: relative; }}
.key span {{ display: inline-block; width: 0.9em; height: 0.9em; vertical-align: -0.1em; }}
"""


class Picture(Protocol):
    """What can be drawn on, and names paths: `Molecule`, `GraphPicture`."""

    def words(self, path: PathScore) -> str:
        """A path in words."""

    def draw(self, vertices: Mapping[int, float], edges: Mapping[Edge, float], *, numbers: bool = True) -> str:
        """An SVG with scores as colours, and the vertices' numbers; "" where there is none."""


@dataclass(frozen=True)
class Heading:
    """What stands above the picture: what is explained, what was predicted, by what."""

    title: str
    output: str
    answer: str
    made_by: str


def explanation_page(heading: Heading, found: Explanation, picture: Picture, *, top: int = 12) -> str:
    """The page, as a document that needs no other file."""
    ranked = found.ranked()
    vertices = dict(enumerate(found.vertex_scores().tolist()))
    large = picture.draw(vertices, found.edge_scores())
    most = abs(ranked[0].score) if ranked else 0.0
    rows = "\n".join(_row(path, picture, most, drawn=i < PICTURES) for i, path in enumerate(ranked[:top]))
    left = sum(path.score for path in ranked[top:])
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(heading.title)}</title><style>{STYLE}</style></head>
<body>
<h1>{escape(heading.title)}</h1>
<p><b>{escape(heading.output)}: {found.prediction:.4g}</b>{escape(f", {heading.answer}" if heading.answer else "")}</p>
<p>Without any path, from the vertices alone, the model would say {found.baseline:.4g}. The paths add
{found.prediction - found.baseline:+.4g}.</p>
<figure>{large}</figure>
<p class="key"><span class="more"></span> adds to the prediction &nbsp; <span class="less"></span> takes away from it
&nbsp; {SHARED if large else ""}</p>
<table>
<thead><tr><th>path</th><th></th><th class="number">length</th><th class="number">adds</th><th></th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<p>{_others(len(ranked) - top, left)}Scores are integrated gradients over the weights of the paths; they add up to what
the paths add, to {abs(found.rest):.2g}. A path and its reverse are one row.</p>
<p><small>{escape(heading.made_by)}</small></p>
</body>
</html>
"""


def _row(path: PathScore, picture: Picture, most: float, *, drawn: bool) -> str:
    ends, edges = dict.fromkeys(path.vertices, path.score), dict.fromkeys(path.edges, path.score)
    small = picture.draw(ends, edges, numbers=False) if drawn else ""
    part = 100 * abs(path.score) / most if most else 0.0
    kind, shift = ("more", "") if path.score > 0 else ("less", f"; left: -{part:.0f}%")
    bar = f'<div><span class="{kind}" style="width: {part:.0f}%{shift}"></span></div>'
    return (
        f'<tr><td class="path">{escape(picture.words(path))}</td><td>{small}</td><td class="number">{path.length}</td>'
        f'<td class="number">{path.score:+#.3g}</td><td class="bar">{bar}</td></tr>'
    )


def _others(number: int, score: float) -> str:
    if number <= 0:
        return ""
    return f"The other {number:,} paths add {score:+.4g}. " if number > 1 else f"The other path adds {score:+.4g}. "
