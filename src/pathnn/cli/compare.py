"""`pathnn compare`: the test scores of runs on the same molecules, and which differ."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnn.cli.console import note, print_json, print_table, progress, result_only, say
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
        models = [
            {**asdict(model), "distinguishable": model.difference and model.difference.distinguishable}
            for model in found.models
        ]
        print_json({"metric": found.metric, "molecules": found.molecules, "models": models, "out": out})
    else:
        _print(found)
        if out is not None:
            say(f"wrote {out}")


def _print(found: Comparison) -> None:
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
    print_table(header, rows, title=f"{found.metric} on {found.molecules:,} molecules")
    if any(UNDEFINED in row for row in rows):
        note(
            f"{UNDEFINED} is not defined: {found.metric} needs molecules whose targets differ, and predictions that "
            "differ. Choose another --metric, or compare on more molecules."
        )


def _text(form: str, *numbers: float) -> str:
    return UNDEFINED if any(map(math.isnan, numbers)) else form.format(*numbers)
