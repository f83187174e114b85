"""`pathnn compare`: the test scores of runs on the same molecules, and which differ."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, number_text, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json

if TYPE_CHECKING:
    from pathnn.evaluation import Comparison

UNDEFINED = "–"

Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders that pathnn train wrote for a table of molecules.")
]
Metric = Annotated[
    str | None,
    typer.Option("--metric", metavar="NAME", parser=str.lower,
                 help="The metric to compare; by default that of the first run."),
]  # fmt: skip
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="The .svg or .png to draw.")]


def compare_command(runs: Runs, metric: Metric = None, out: Out = None, json: Json = False) -> None:
    """Compare the test scores of runs, and of the baselines in them, on the same molecules.

    Differences are to the first run. Their intervals are over bootstrap samples of the molecules, the same samples for
    both; runs are distinguishable if the interval excludes 0. Folds are compared by their out-of-fold predictions.
    """
    if out is not None and (out.suffix.lower() not in (".svg", ".png") or out.is_dir()):
        raise typer.BadParameter(f"{out}: expected the name of a file that ends in .svg or .png.", param_hint="--out")
    with result_only(json):
        from pathnn.evaluation import compare_runs
        from pathnn.evaluation.figures import draw_comparison
        from pathnn.plots.trees import save

        with progress("comparing"):
            found = compare_runs(runs, metric=metric)
        if out is not None:
            save(draw_comparison(found), out)
    if json:
        print_json({**_document(found), "out": out})
    else:
        notes = [_print(one, f"{found.metric} of {name}") for name, one in found.targets.items()]
        whole = f"{found.metric}, the mean of {len(found.targets)} targets," if found.targets else found.metric
        for text in sorted({*notes, _print(found, whole)} - {""}):
            note(text)
        if out is not None:
            say(f"wrote {out}")


def _document(found: Comparison) -> dict[str, Any]:
    models = [
        {**asdict(model), "distinguishable": model.difference and model.difference.distinguishable}
        for model in found.models
    ]
    targets = {name: _document(one) for name, one in found.targets.items()}
    document = {"metric": found.metric, "molecules": found.molecules, "models": models}
    return {**document, "targets": targets} if targets else document


def _print(found: Comparison, title: str) -> str:
    """Print a table; return a note on its dashes, or an empty text."""
    from pathnn.evaluation.predictions import LEAST

    rows = []
    for model in found.models:
        row = [model.name, _text("{:.4g}", model.score), _text("{:.4g} to {:.4g}", model.low, model.high)]
        by = model.difference
        if by is None:
            rows.append([*row, "", "", "", ""])
        else:
            ends = _text("{:+.4g} to {:+.4g}", by.low, by.high)
            answer = UNDEFINED if ends == UNDEFINED else "yes" if by.distinguishable else "no"
            rows.append([*row, _text("{:+.4g}", by.value), ends, _text("{:.1%}", by.better), answer])
    header = ("model", found.metric, "95 %", "difference", "95 %", "better in", "distinguishable")
    print_table(header, rows, title=f"{title} on {number_text(found.molecules, 'molecule')}")
    if found.molecules < LEAST:
        return f"{UNDEFINED}: fewer than {LEAST} molecules have no intervals, and distinguish no models."
    if not any(UNDEFINED in row for row in rows):
        return ""
    return (
        f"{UNDEFINED} is not defined: {found.metric} needs molecules whose targets differ, and predictions that "
        "differ. Choose another --metric, or compare on more molecules."
    )


def _text(form: str, *numbers: float) -> str:
    return UNDEFINED if any(map(math.isnan, numbers)) else form.format(*numbers)
