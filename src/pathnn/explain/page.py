"""Write explanations as HTML pages that need no other file: of one graph, or of all graphs of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from pathnn.explain.dataset import OutputSummary, Pattern, draw_curves
from pathnn.explain.explanation import Explanation, PathScore
from pathnn.explain.pictures import LESS, MORE, Picture, hex_color
from pathnn.explain.subject import ExplainedGraph, ExplainedOutput
from pathnn.plots.page import svg

PICTURES, MOST_DESCRIPTORS = 24, 12
"""The largest number of paths with a picture, and of descriptors with a row."""


def explanation_page(
    subject: ExplainedGraph, answer: ExplainedOutput, found: Explanation, reference: str, made_by: str, *, top: int = 12
) -> str:
    """Return the page of one graph, with the `top` largest scores; `reference` says what the reference value is."""
    picture, descriptors = subject.picture, subject.descriptor_parts(found)
    ranked = found.ranked()
    most = abs(ranked[0].score) if ranked else 0.0
    rows = []
    for i, path in enumerate(ranked[:top]):
        words, small = escape(picture.words(path)), _draw_path(path, picture) if i < PICTURES else ""
        entries = f'<td class="path">{words}</td><td>{small}</td><td class="number">{path.length}</td>'
        rows.append(f"<tr>{entries}{_number(path.score)}{_bar(path.score, most)}</tr>")
    if others := ranked[top:]:
        score = sum(path.score for path in others)
        rows.append(f'<tr><td colspan="3">the other {len(others):,}</td>{_number(score)}<td></td></tr>')
    alone = {0: f"single {picture.vertices}"}
    parts = [(alone.get(length, f"paths of length {length}"), score) for length, score in found.by_length()]
    parts += [(f"descriptors of the {picture.whole}", found.descriptors)] if len(found.descriptor_scores) else []
    vertices, edges = subject.vertex_scores(found).tolist(), found.edge_scores()
    text = {
        "title": subject.title, "output": answer.name, "made_by": f"{subject.place}; {made_by}", "reference": reference,
        "answer": f", {answer.words}" if answer.words else "", "vertices": picture.vertices, "edges": picture.edges,
        "whole": picture.whole, "deepest": f"{max(map(abs, (*vertices, *edges.values())), default=0.0):.2g}",
        "prediction": f"{found.prediction:.4g}", "baseline": f"{found.baseline:.4g}", "rest": f"{found.rest:+.2g}",
    }  # fmt: skip
    shown = descriptors[:MOST_DESCRIPTORS]
    if rest := descriptors[MOST_DESCRIPTORS:]:
        shown.append((f"the other {len(rest):,}", sum(score for _, score in rest)))
    return _fill(
        "page.html",
        text,
        picture=picture.draw(dict(enumerate(vertices)), edges),
        parts=_bars(parts), rows="\n".join(rows), descriptors=_bars(shown), hidden="" if shown else "hidden",
    )  # fmt: skip


def _fill(name: str, text: dict[str, str], **html: str) -> str:
    """Fill in a template: `text` is escaped, and `html` is inserted as it is."""
    folder = files("pathnn.explain")
    style = folder.joinpath("style.css").read_text(encoding="utf-8")
    style = Template(style).substitute(more=hex_color(MORE), less=hex_color(LESS))
    template = Template(folder.joinpath(name).read_text(encoding="utf-8"))
    return template.substitute({key: escape(value) for key, value in text.items()}, style=style, **html)


def _bar(score: float, most: float) -> str:
    part = 100 * abs(score) / most if most else 0.0
    kind, shift = ("more", "") if score > 0 else ("less", f"; left: -{part:.0f}%")
    return f'<td class="bar"><div><span class="{kind}" style="width: {part:.0f}%{shift}"></span></div></td>'


def _number(score: float) -> str:
    return f'<td class="number">{score:+#.3g}</td>'


def _bars(parts: Sequence[tuple[str, float]]) -> str:
    most = max((abs(score) for _, score in parts), default=0.0)
    rows = (f"<tr><td>{escape(name)}</td>{_number(score)}{_bar(score, most)}</tr>" for name, score in parts)
    return "\n".join(rows)


def _draw_path(path: PathScore, picture: Picture) -> str:
    vertices, edges = dict.fromkeys(path.vertices, path.score), dict.fromkeys(path.edges, path.score)
    return picture.draw(vertices, edges, numbers=False)


def dataset_page(summaries: Sequence[OutputSummary], title: str, reference: str, made_by: str, *, top: int = 12) -> str:
    """Return the page of a dataset, with the `top` paths that raise each output and the `top` that lower it."""
    sections = "\n".join(_section(summary, reference, top) for summary in summaries)
    return _fill("dataset.html", {"title": title, "made_by": made_by}, sections=sections)


def _section(summary: OutputSummary, reference: str, top: int) -> str:
    shown = summary.extremes(top)
    areas = "".join(
        f'<tr><td>{kind}</td><td class="number">{deleted:.3g}</td><td class="number">{inserted:.3g}</td></tr>'
        for kind, (deleted, inserted) in summary.areas().items()
    )
    each = next(iter(summary.patterns.values())).examples[0][0] if summary.patterns else None
    text = {
        "name": summary.output.name, "graphs": f"{summary.graphs:,}", "reference": reference,
        "baseline": f"{summary.baseline:.4g}", "rest": f"{summary.rest:.2g}", "sample": f"{len(summary.curves)}",
        "descriptors": f"{summary.descriptors:.3g}", "vertices": each.picture.vertices if each else "vertices",
    }  # fmt: skip
    return _fill(
        "section.html",
        text,
        hidden="" if summary.descriptors else "hidden",
        atoms=_patterns(summary.ranked(summary.atoms)),
        raising=_patterns([one for one in shown if one.mean > 0]),
        lowering=_patterns([one for one in reversed(shown) if one.mean < 0]),
        areas=areas,
        curves=svg(draw_curves(summary), summary.output.name),
    )


def _patterns(shown: Sequence[Pattern]) -> str:
    most, rows = max((abs(one.mean) for one in shown), default=0.0), []
    for one in shown:
        examples = ""
        for graph, path in one.examples:
            title = escape(f"{graph.title} ({graph.place}): {path.score:+.3g}")
            examples += f'<span class="example" title="{title}">{_draw_path(path, graph.picture)}</span>'
        numbers = (f"{one.graphs:,}", f"{one.occurrences:,}", f"{one.mean:+#.3g}", f"{one.std:#.2g}")
        columns = "".join(f'<td class="number">{number}</td>' for number in numbers)
        rows.append(
            f'<tr><td class="path">{escape(one.text)}</td>{columns}{_bar(one.mean, most)}'
            f'<td class="examples">{examples}</td></tr>'
        )
    return "\n".join(rows)
