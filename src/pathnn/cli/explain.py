"""`pathnn explain`: the paths that a prediction depends on, as a table and a page with a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import print_json, print_table, progress, result_only, say
from pathnn.cli.options import Data, Json, Run, Smiles

if TYPE_CHECKING:
    from pathnn.explain import Explanation
    from pathnn.explain.subject import ExplainedGraph, ExplainedOutput

Row = Annotated[
    int | None,
    typer.Option("--row", min=1, help="The row of a .csv, counted from 1 below the header.", show_default=False),
]
Graph = Annotated[
    int | None, typer.Option("--graph", min=0, help="The graph of other data, counted from 0.", show_default=False)
]
Output = Annotated[
    str | None,
    typer.Option("--output", metavar="NAME", help="Which class or target column; by default the predicted class, the "
                 "likeliest of several answers, or the first target.", show_default=False),
]  # fmt: skip
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="The .html page to write.", show_default=False)
]
Top = Annotated[int, typer.Option("--top", min=1, help="How many paths to show.")]


def explain_command(
    run: Run,
    data: Data,
    row: Row = None,
    graph: Graph = None,
    output: Output = None,
    out: Out = None,
    top: Top = 12,
    smiles: Smiles = None,
    json: Json = False,
) -> None:
    """Score the paths that a prediction depends on; the scores sum to the prediction minus the baseline.

    The baseline is the output without any path, from the vertices alone. Scores are integrated gradients over the
    weights of the paths. For several networks (train --seeds), their mean is explained.
    """
    if out is not None and (out.suffix.lower() != ".html" or out.is_dir()):
        raise typer.BadParameter(f"{out}: expected the name of a file that ends in .html.", param_hint="--out")
    with result_only(json):
        import torch

        from pathnn.explain import Explanation, explain_paths
        from pathnn.explain.subject import choose_answer, read_subject
        from pathnn.inference.predictor import load_runs
        from pathnn.nn import PathNN
        from pathnn.training.ensemble import combine

        trained = load_runs(run)
        models = [one.model for one in trained.members if isinstance(one.model, PathNN)]
        if not models:
            raise ValueError(f"{run} is a {trained.config.model}, which reads no paths: expected a PathNN.")
        subject = read_subject(trained.members[0], data, row=row, graph=graph, smiles=smiles or trained.config.smiles)
        if out is not None:
            subject.picture.draw({}, {})  # fail now, not after the work
        outputs = torch.stack([subject.outputs(one) for one in trained.members])
        together = combine(outputs.unsqueeze(1), trained.signature.target)[0]
        answer = choose_answer(trained.signature, together, output, networks=len(models))
        with progress(f"explaining {subject.title}"):
            graph_of = (subject.x, subject.edge_index)
            options: dict[str, Any] = {"edge_attr": subject.edge_attr, "graph_attr": subject.graph_attr}
            options["output"] = answer.number
            found = Explanation.mean([explain_paths(model, *graph_of, **options) for model in models])
            found = found.rescaled(answer.factor, answer.shift).renumbered(subject.order)
            if out is not None:
                model_of = f"{run}{_several(len(models))}"
                _write(out, model_of, subject, answer, found, top)
    if json:
        shown = found.ranked()[:top]
        paths = [{"path": path.vertices, "words": subject.picture.words(path), "score": path.score} for path in shown]
        print_json(
            {
                "run": run, "data": data, "subject": subject.title, "output": answer.name,
                "prediction": found.prediction, "baseline": found.baseline, "rest": found.rest, "paths": paths,
                **({} if subject.graph_attr is None else {"descriptors": found.descriptors}),
                "vertex_scores": found.vertex_scores(), "networks": len(models), "out": out,
            }
        )  # fmt: skip
    else:
        _print(subject, answer, found, top, len(models))
        if out is not None:
            say(f"wrote {out}")


def _write(
    out: Path, model_of: str, subject: ExplainedGraph, answer: ExplainedOutput, found: Explanation, top: int
) -> None:
    from pathnn import __version__
    from pathnn.explain.page import Heading, explanation_page
    from pathnn.files import atomic_write

    heading = Heading(
        subject.title, answer.name, answer.words, f"{model_of}; {subject.place}; explained by pathnn {__version__}"
    )
    page = explanation_page(heading, found, subject.picture, top=top)
    with atomic_write(out) as file:
        file.write(page.encode())


def _several(networks: int) -> str:
    return f"; the mean of {networks} networks" if networks > 1 else ""


def _print(subject: ExplainedGraph, answer: ExplainedOutput, found: Explanation, top: int, networks: int) -> None:
    ranked = found.ranked()
    rows = [(subject.picture.words(path), str(path.length), f"{path.score:+.4g}") for path in ranked[:top]]
    rest = ranked[top:]
    if rest:
        rows.append((f"the other {len(rest):,}", "", f"{sum(path.score for path in rest):+.4g}"))
    if subject.graph_attr is not None:
        rows.append(("descriptors", "", f"{found.descriptors:+.4g}"))
    print_table(("path", "length", "adds"), rows, title=subject.title)
    words = f", {answer.words}" if answer.words else ""
    without = f"without paths {found.baseline:.4g}, rest {found.rest:+.2g}"
    say(f"{answer.name}: {found.prediction:.4g}{words}; {without}{_several(networks)}")
