"""`pathnn explain`: the paths that a prediction depends on, as a table and a page with a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pathnn import __version__
from pathnn.cli.console import note, number_text, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Data, Device, Json, Run, Smiles, pick_device

if TYPE_CHECKING:
    from pathnn.explain.subject import ExplainedGraph
    from pathnn.nn import PathNN
    from pathnn.training.ensemble import Ensemble

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
        from pathnn.inference.predictor import load_runs
        from pathnn.nn import PathNN

        trained = load_runs(run)
        models = [one.model for one in trained.members if isinstance(one.model, PathNN)]
        if not models:
            raise ValueError(f"{run} is a {trained.config.model}, whose paths cannot be explained: expected a PathNN.")
        smiles = smiles or trained.config.smiles
        asked = Asked(trained, models, run, data, smiles, output, out, top, pick_device(device))
        document, show = _explain_all(asked) if every else _explain_one(asked, row, graph)
    if json:
        print_json(document)
        return
    show()
    if out is not None:
        say(f"wrote {out}")


Found = tuple[dict[str, Any], Callable[[], None]]
"""A JSON document, and a function that prints a table."""


class Asked(NamedTuple):
    """What is explained; `models` are the networks of `trained`."""

    trained: Ensemble
    models: list[PathNN]
    run: Path
    data: str
    smiles: str | None
    output: str | None
    out: Path | None
    top: int
    device: str

    @property
    def about(self) -> str:
        """Return the line of a page that names the run."""
        return f"{self.run}{_several(len(self.models))}; explained by pathnn {__version__}"


def _explain_one(asked: Asked, row: int | None, graph: int | None) -> Found:
    import torch

    from pathnn.explain.dataset import explain_mean, inputs_of
    from pathnn.explain.page import Heading, explanation_page
    from pathnn.explain.subject import choose_answer, read_reference, read_subject
    from pathnn.training.ensemble import combine

    trained, models, run, data, smiles, output, out, top, device = asked
    subject = read_subject(trained.members[0], data, row=row, graph=graph, smiles=smiles)
    if out is not None:
        subject.picture.draw({}, {})  # fail now, not after the work
    outputs = torch.stack([subject.outputs(one) for one in trained.members])
    together = combine(outputs.unsqueeze(1), trained.signature.target)[0]
    answer = choose_answer(trained.signature, together, output, networks=len(models))
    with progress(f"explaining {subject.title}"):
        others, reference = read_reference(trained.members[0], run, data, smiles=smiles)
        models = [model.to(device) for model in models]
        inputs = inputs_of(models, others, device)
        (found,) = explain_mean(models, [subject.data.to(device)], answer.number, inputs)
    found = found.rescaled(answer.factor, answer.shift).renumbered(subject.order)
    parts = subject.descriptor_parts(found)
    if out is not None:
        heading = Heading(subject.title, answer.name, answer.words, f"{subject.place}; {asked.about}", reference)
        _write(out, explanation_page(heading, found, subject.picture, top=top, descriptors=parts))
    ranked, words = found.ranked(), subject.picture.words
    rows = [(words(path), str(path.length), f"{path.score:+.4g}") for path in ranked[:top]]
    if rest := ranked[top:]:
        rows.append((f"the other {len(rest):,}", "", f"{sum(path.score for path in rest):+.4g}"))
    if parts:
        rows.append((f"all {len(found.descriptor_scores):,} descriptors", "", f"{found.descriptors:+.4g}"))
        rows += [(f"  {name}", "", f"{score:+.4g}") for name, score in parts[:3]]

    def show() -> None:
        print_table(("path", "length", "score"), rows, title=subject.title)
        words = f", {answer.words}" if answer.words else ""
        say(f"{answer.name}: {found.prediction:.4g}{words}{_several(len(models))}")
        say(f"reference value {found.baseline:.4g}: {reference}; rest {found.rest:+.2g}")

    paths = [{"path": path.vertices, "words": words(path), "score": path.score} for path in ranked[:top]]
    return {
        "run": run, "data": data, "subject": subject.title, "output": answer.name, "prediction": found.prediction,
        "baseline": found.baseline, "reference": reference, "rest": found.rest, "paths": paths,
        **({"descriptors": found.descriptors, "descriptor_parts": dict(parts)} if parts else {}),
        "vertex_scores": found.vertex_scores(), "networks": len(models), "out": out,
    }, show  # fmt: skip


def _explain_all(asked: Asked) -> Found:
    import torch

    from pathnn.explain.dataset import explain_dataset, patterns_csv
    from pathnn.explain.page import Heading, dataset_page
    from pathnn.explain.subject import choose_answer, output_names, read_reference, read_subjects

    trained, models, run, data, smiles, output, out, top, device = asked
    assert out is not None
    signature, first = trained.signature, trained.members[0]
    none = torch.zeros(signature.out_channels)
    names = output_names(signature) if output is None else [output]
    answers = [choose_answer(signature, none, name, networks=len(models)) for name in names]
    problems: list[str] = []

    def readable() -> Iterator[ExplainedGraph]:
        for one in read_subjects(first, data, smiles=smiles):
            if isinstance(one, str):
                problems.append(one)
            else:
                yield one

    with progress(f"explaining {data}"):
        others, reference = read_reference(first, run, data, smiles=smiles)
        found = explain_dataset(models, readable(), answers, others, device=device)
    if not found[0].graphs:
        raise ValueError(f"{data} has no graph that can be explained: {(problems or ['it is empty'])[0]}")
    if problems:
        note(f"{number_text(len(problems), 'row')} cannot be read, the first: {problems[0]}")
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "paths.csv", patterns_csv(found))
    heading = Heading(f"Paths that the predictions for {Path(data).name} depend on", "", "", asked.about, reference)
    _write(out / "explanation.html", dataset_page(found, heading, top=top))

    paths = ("path", "graphs", "mean", "std")
    outputs = [
        {
            "output": one.output.name, "graphs": one.graphs, "baseline": one.baseline, "faithfulness": one.areas(),
            "paths": [dict(zip(paths, (p.text, p.graphs, p.mean, p.std), strict=True)) for p in one.extremes(top)],
        }
        for one in found
    ]  # fmt: skip

    def show() -> None:
        for one in found:
            rows = [(p.text, f"{p.graphs:,}", f"{p.mean:+.3g}", f"{p.std:.2g}") for p in one.extremes(top)]
            print_table(("path", "graphs", "mean", "spread"), rows, title=f"{one.output.name}: {one.graphs:,} graphs")
            say(f"reference value {one.baseline:.4g}: {reference}")
            for kind, (deleted, inserted) in one.areas().items():
                say(f"faithfulness, {kind}: area {deleted:.3g} if deleted, {inserted:.3g} if inserted")

    about = {"run": run, "data": data, "reference": reference, "networks": len(models)}
    return {**about, "outputs": outputs, "out": out}, show


def _write(out: Path, text: str) -> None:
    from pathnn.files import atomic_write

    with atomic_write(out) as file:
        file.write(text.encode())


def _several(networks: int) -> str:
    return f"; the mean of {networks} networks" if networks > 1 else ""
