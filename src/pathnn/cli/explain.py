"""`pathnn explain`: the paths that a prediction depends on, as a table and a page with a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnn import __version__
from pathnn.cli.console import note, number_text, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Data, Device, Json, Run, Smiles, pick_device

if TYPE_CHECKING:
    from pathnn.explain import Explanation
    from pathnn.explain.dataset import OutputSummary
    from pathnn.explain.subject import ExplainedGraph, ExplainedOutput
    from pathnn.nn import PathNN
    from pathnn.training.ensemble import Ensemble

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
All = Annotated[bool, typer.Option("--all", help="Explain all rows or graphs of the data.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="The .html page to write; with --all, the folder.",
                 show_default=False),
]  # fmt: skip
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
        from pathnn.explain.subject import read_reference
        from pathnn.inference.predictor import load_runs
        from pathnn.nn import PathNN

        trained = load_runs(run)
        models = [one.model for one in trained.members if isinstance(one.model, PathNN)]
        if not models:
            raise ValueError(f"{run} is a {trained.config.model}, which reads no paths: expected a PathNN.")
        smiles = smiles or trained.config.smiles
        reference, words = read_reference(trained.members[0], run, data, smiles=smiles)
        about = f"{run}{_several(len(models))}; explained by pathnn {__version__}"
        if every:
            assert out is not None
            found = _explain_all(trained, models, data, smiles, output, reference, pick_device(device))
            _write_all(out, found, f"{data}: {about}", words, top)
        else:
            one = _explain_one(trained, models, data, row, graph, smiles, output, reference, out)
    if every:
        _print_all(found, words, out, json, top)
    else:
        _print_one(*one, run, data, words, about, out, top, len(models), json)


def _explain_one(
    trained: Ensemble, models: list[PathNN], data: str, row: int | None, graph: int | None, smiles: str | None,
    output: str | None, reference: list[ExplainedGraph], out: Path | None,
) -> tuple[ExplainedGraph, ExplainedOutput, Explanation]:  # fmt: skip
    import torch

    from pathnn.explain.attribution import reference_inputs
    from pathnn.explain.dataset import explain_mean
    from pathnn.explain.subject import choose_answer, read_subject
    from pathnn.training.ensemble import combine

    subject = read_subject(trained.members[0], data, row=row, graph=graph, smiles=smiles)
    if out is not None:
        subject.picture.draw({}, {})  # fail now, not after the work
    outputs = torch.stack([subject.outputs(one) for one in trained.members])
    together = combine(outputs.unsqueeze(1), trained.signature.target)[0]
    answer = choose_answer(trained.signature, together, output, networks=len(models))
    with progress(f"explaining {subject.title}"):
        others = [one.data for one in reference]
        references = [reference_inputs(model, others) if others else None for model in models]
        (found,) = explain_mean(models, [subject.data], answer.number, references)
    return subject, answer, found.rescaled(answer.factor, answer.shift).renumbered(subject.order)


def _print_one(
    subject: ExplainedGraph, answer: ExplainedOutput, found: Explanation, run: Path, data: str, reference: str,
    about: str, out: Path | None, top: int, networks: int, json: bool,
) -> None:  # fmt: skip
    if out is not None:
        from pathnn.explain.page import Heading, explanation_page

        heading = Heading(subject.title, answer.name, answer.words, f"{subject.place}; {about}", reference)
        _write(out, explanation_page(heading, found, subject.picture, top=top))
    if json:
        shown = found.ranked()[:top]
        paths = [{"path": path.vertices, "words": subject.picture.words(path), "score": path.score} for path in shown]
        print_json(
            {
                "run": run, "data": data, "subject": subject.title, "output": answer.name,
                "prediction": found.prediction, "baseline": found.baseline, "reference": reference, "rest": found.rest,
                "paths": paths, **({} if subject.graph_attr is None else {"descriptors": found.descriptors}),
                "vertex_scores": found.vertex_scores(), "networks": networks, "out": out,
            }
        )  # fmt: skip
        return
    ranked = found.ranked()
    rows = [(subject.picture.words(path), str(path.length), f"{path.score:+.4g}") for path in ranked[:top]]
    if rest := ranked[top:]:
        rows.append((f"the other {len(rest):,}", "", f"{sum(path.score for path in rest):+.4g}"))
    if subject.graph_attr is not None:
        rows.append(("descriptors", "", f"{found.descriptors:+.4g}"))
    print_table(("path", "length", "adds"), rows, title=subject.title)
    words = f", {answer.words}" if answer.words else ""
    say(f"{answer.name}: {found.prediction:.4g}{words}{_several(networks)}")
    say(f"reference value {found.baseline:.4g}: {reference}; rest {found.rest:+.2g}")
    if out is not None:
        say(f"wrote {out}")


def _explain_all(
    trained: Ensemble, models: list[PathNN], data: str, smiles: str | None, output: str | None,
    reference: list[ExplainedGraph], device: str,
) -> list[OutputSummary]:  # fmt: skip
    import torch

    from pathnn.explain.dataset import explain_dataset
    from pathnn.explain.subject import choose_answer, read_subjects

    signature = trained.signature
    count = signature.out_channels
    names = signature.classes if len(signature.classes) == count else [str(i) for i in range(count)]
    asked = names if output is None else [output]
    answers = [choose_answer(signature, torch.zeros(count), name, networks=len(models)) for name in asked]
    problems: list[str] = []

    def readable() -> Iterator[ExplainedGraph]:
        for one in read_subjects(trained.members[0], data, smiles=smiles):
            if isinstance(one, str):
                problems.append(one)
            else:
                yield one

    with progress(f"explaining {data}"):
        found = explain_dataset(models, readable(), answers, reference, device=device)
    if problems:
        note(f"{number_text(len(problems), 'row')} cannot be read, the first: {problems[0]}")
    if not found[0].graphs:
        raise ValueError(f"{data} has no graph that can be explained.")
    return found


def _write_all(out: Path, found: list[OutputSummary], title: str, reference: str, top: int) -> None:
    from pathnn.explain.dataset import patterns_csv
    from pathnn.explain.page import Heading, dataset_page

    out.mkdir(parents=True, exist_ok=True)
    _write(out / "paths.csv", patterns_csv(found))
    data, _, about = title.partition(": ")
    _write(
        out / "explanation.html",
        dataset_page(found, Heading(f"What {data} is predicted from", "", "", about, reference), top=top),
    )


def _print_all(found: list[OutputSummary], reference: str, out: Path | None, json: bool, top: int) -> None:
    rows = []
    for summary in found:
        ranked = summary.ranked()
        chosen = ranked if len(ranked) <= 2 * top else [*ranked[:top], *ranked[-top:]]
        rows += [(summary.output.name, one) for one in chosen]
    if json:
        keys = ("text", "length", "graphs", "occurrences", "mean", "std")
        outputs = [
            {
                "output": summary.output.name, "graphs": summary.graphs, "baseline": summary.baseline,
                "faithfulness": summary.areas(),
                "paths": [{key: getattr(one, key) for key in keys} for name, one in rows if name == summary.output.name],
            }
            for summary in found
        ]  # fmt: skip
        print_json({"reference": reference, "outputs": outputs, "out": out})
        return
    for summary in found:
        table = [
            (one.text, f"{one.graphs:,}", f"{one.mean:+.3g}", f"{one.std:.2g}")
            for name, one in rows
            if name == summary.output.name
        ]
        print_table(
            ("path", "graphs", "mean", "spread"),
            table,
            title=f"{summary.output.name}: {number_text(summary.graphs, 'graph')}",
        )
        say(f"reference value {summary.baseline:.4g}: {reference}")
        for kind, (deleted, inserted) in summary.areas().items():
            say(f"faithfulness, {kind}: area {deleted:.3g} deleted, {inserted:.3g} inserted")
    say(f"wrote {out}")


def _write(out: Path, text: str) -> None:
    from pathnn.files import atomic_write

    with atomic_write(out) as file:
        file.write(text.encode())


def _several(networks: int) -> str:
    return f"; the mean of {networks} networks" if networks > 1 else ""
