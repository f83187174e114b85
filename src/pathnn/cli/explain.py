"""`pathnn explain`: the paths that a prediction depends on, as a table and a page with a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, number_text, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Data, Device, Json, Run, Smiles, pick_device

if TYPE_CHECKING:
    from pathnn.explain.dataset import RunExplainer

Row = Annotated[int | None, typer.Option("--row", min=1, help="The row of a .csv, counted from 1 below the header.")]
Graph = Annotated[int | None, typer.Option("--graph", min=0, help="The graph of other data, counted from 0.")]
Output = Annotated[
    str | None,
    typer.Option("--output", metavar="NAME", help="Which class or target column; by default the predicted class, the "
                 "likeliest of several answers, or the first target."),
]  # fmt: skip
All = Annotated[bool, typer.Option("--all", help="Explain all rows or graphs of the data.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="The .html page to write; with --all, the folder.")
]
Top = Annotated[int, typer.Option("--top", min=1, help="How many paths to show.")]


def explain_command(
    run: Run,
    data: Data,
    row: Row = None,
    graph: Graph = None,
    every: All = False,
    output: Output = None,
    out: Out = None,
    top: Top = 12,
    smiles: Smiles = None,
    device: Device = "cpu",
    json: Json = False,
) -> None:
    """Score the paths that a prediction depends on; the scores sum to the prediction minus a reference value.

    The reference value is the mean prediction for the training molecules, if the run folder has them. Scores are
    integrated gradients over the weights of the paths. For several networks (train --seeds), their mean is explained.
    With --all, a page and paths.csv say which paths raise or lower the predictions for a whole dataset.
    """
    if every and (out is None or out.suffix.lower() == ".html" or row is not None or graph is not None):
        raise typer.BadParameter("expected --out FOLDER, and neither --row nor --graph.", param_hint="--all")
    if not every and out is not None and (out.suffix.lower() != ".html" or out.is_dir()):
        raise typer.BadParameter(f"{out}: expected the name of a file that ends in .html.", param_hint="--out")
    with result_only(json):
        from pathnn.explain.dataset import RunExplainer

        explainer = RunExplainer(run, data, smiles=smiles, device=pick_device(device))
        if every:
            assert out is not None
            document = _explain_all(explainer, output, out, top, quiet=json)
        else:
            document = _explain_one(explainer, row, graph, output, out, top, quiet=json)
    if json:
        print_json({"run": run, "data": data, **document, "networks": explainer.networks, "out": out})
    elif out is not None:
        say(f"wrote {out}")


def _explain_one(
    explainer: RunExplainer, row: int | None, graph: int | None, output: str | None, out: Path | None, top: int,
    *, quiet: bool,
) -> dict[str, Any]:  # fmt: skip
    """Write the page of a graph, print its table unless `quiet`, and return its JSON document."""
    from pathnn.explain.page import explanation_page
    from pathnn.explain.subject import read_subject
    from pathnn.files import replace_file

    subject = read_subject(explainer.trained.members[0], explainer.data, row=row, graph=graph, smiles=explainer.smiles)
    if out is not None:
        subject.picture.draw({}, {})  # fail now, not after the work
    title = subject.title if len(subject.title) <= 100 else f"{subject.title[:97]}..."
    with progress(f"explaining {title}"):
        answer, found, reference = explainer.explain(subject, output)
    if out is not None:
        replace_file(out, explanation_page(subject, answer, found, reference, explainer.made_by, top=top))
    ranked, words, parts = found.ranked(), subject.picture.words, subject.descriptor_parts(found)
    if not quiet:
        rows = [(words(path), str(path.length), f"{path.score:+.4g}") for path in ranked[:top]]
        if rest := ranked[top:]:
            rows.append((f"the other {len(rest):,}", "", f"{sum(path.score for path in rest):+.4g}"))
        if parts:
            rows.append((f"all {len(found.descriptor_scores):,} descriptors", "", f"{found.descriptors:+.4g}"))
            rows += [(f"  {name}", "", f"{score:+.4g}") for name, score in parts[:3]]
        print_table(("path", "length", "score"), rows, title=title)
        say(f"{answer.name}: {found.prediction:.4g}{answer.words and f', {answer.words}'}{explainer.several}")
        say(f"reference value {found.baseline:.4g}: {reference}; rest {found.rest:+.2g}")
    paths = [{"path": path.vertices, "words": words(path), "score": path.score} for path in ranked[:top]]
    return {
        "subject": subject.title, "output": answer.name, "prediction": found.prediction,
        "baseline": found.baseline, "reference": reference, "rest": found.rest, "paths": paths,
        **({"descriptors": found.descriptors, "descriptor_parts": dict(parts)} if parts else {}),
        "vertex_scores": found.vertex_scores(),
    }  # fmt: skip


def _explain_all(explainer: RunExplainer, output: str | None, out: Path, top: int, *, quiet: bool) -> dict[str, Any]:
    """Write the page and the table of a dataset, print them in short unless `quiet`, and return the JSON document."""
    from pathnn.explain.dataset import write_patterns
    from pathnn.explain.page import dataset_page
    from pathnn.files import replace_file

    with progress(f"explaining {explainer.data}"):
        found, reference = explainer.explain_all(output)
    if bad := explainer.problems:
        note(f"{number_text(len(bad), 'row')} cannot be read, the first: {bad[0]}")
    out.mkdir(parents=True, exist_ok=True)
    write_patterns(out / "paths.csv", found)
    title = f"Paths that the predictions for {Path(explainer.data).name} depend on"
    replace_file(out / "explanation.html", dataset_page(found, title, reference, explainer.made_by, top=top))
    for one in found if not quiet else ():
        rows = [(p.text, f"{p.graphs:,}", f"{p.mean:+.3g}", f"{p.std:.2g}") for p in one.extremes(top)]
        print_table(("path", "graphs", "mean", "spread"), rows, title=f"{one.output.name}: {one.graphs:,} graphs")
        say(f"reference value {one.baseline:.4g}: {reference}")
        for kind, (deleted, inserted) in one.areas().items():
            say(f"faithfulness, {kind}: area {deleted:.3g} if deleted, {inserted:.3g} if inserted")
    outputs = [
        {
            "output": one.output.name, "graphs": one.graphs, "baseline": one.baseline, "faithfulness": one.areas(),
            "paths": [{"path": p.text, "graphs": p.graphs, "mean": p.mean, "std": p.std} for p in one.extremes(top)],
        }
        for one in found
    ]  # fmt: skip
    return {"reference": reference, "outputs": outputs}
