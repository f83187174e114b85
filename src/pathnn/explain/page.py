"""Write an explanation as one HTML page: the prediction, a picture, and the paths that matter most."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

from pathnn.explain.explanation import Explanation, PathScore
from pathnn.explain.pictures import LESS, MORE, Picture, hex_color

PICTURES = 24
"""The largest number of rows with a picture."""


@dataclass(frozen=True)
class Heading:
    """The text around the picture: the graph, the explained output, its meaning in words, and the model."""

    title: str
    output: str
    answer: str
    made_by: str


def explanation_page(heading: Heading, found: Explanation, picture: Picture, *, top: int = 12) -> str:
    """Return a page with the `top` paths of the largest scores, as a document that needs no other file."""
    ranked = found.ranked()
    most = abs(ranked[0].score) if ranked else 0.0
    rows = [_row(path, picture, most, drawn=i < PICTURES) for i, path in enumerate(ranked[:top])]
    if others := ranked[top:]:
        score = sum(path.score for path in others)
        rows.append(
            f'<tr><td colspan="3">the other {len(others):,}</td><td class="number">{score:+#.3g}</td><td></td></tr>'
        )
    if found.descriptors:
        adds = f"{found.descriptors:+#.3g}"
        rows.append(f'<tr><td colspan="3">descriptors</td><td class="number">{adds}</td><td></td></tr>')
    text = {
        "title": heading.title, "output": heading.output, "made_by": heading.made_by,
        "answer": f", {heading.answer}" if heading.answer else "", "vertices": picture.vertices, "edges": picture.edges,
        "prediction": f"{found.prediction:.4g}", "baseline": f"{found.baseline:.4g}",
        "change": f"{found.prediction - found.baseline - found.descriptors:+.4g}", "rest": f"{abs(found.rest):.2g}",
        "more": hex_color(MORE), "less": hex_color(LESS),
    }  # fmt: skip
    template = Template(files("pathnn.explain").joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        {name: escape(value) for name, value in text.items()},
        picture=picture.draw(dict(enumerate(found.vertex_scores().tolist())), found.edge_scores()),
        rows="\n".join(rows),
    )


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
