"""`pathnn evaluate`: the score of a trained model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from pathnn.cli.console import note, note_not_read, print_json, progress, result_only, say, score_text, scores_text
from pathnn.cli.options import Data, Device, Json, Run, SkipInvalid, Smiles, one_of, pick_device
from pathnn.training.config import METRICS

if TYPE_CHECKING:
    from pathnn.training.ensemble import EnsembleScore

PARTS = ("train", "val", "test", "all")

Part = Annotated[
    str | None,
    typer.Option("--split", metavar="|".join(PARTS), callback=one_of(*PARTS),
                 help="Which graphs; by default the test graphs of the training data, or all graphs of other data."),
]  # fmt: skip
Target = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="COLUMN", help="The target column of a .csv; by default that of training."),
]  # fmt: skip
Metric = Annotated[
    str | None,
    typer.Option("--metric", metavar="NAME", parser=str.lower,
                 help=f"The metric of the first line: {', '.join(METRICS)}; by default that of training."),
]  # fmt: skip


def evaluate_command(
    run: Run,
    data: Data,
    split: Part = None,
    target: Target = None,
    metric: Metric = None,
    smiles: Smiles = None,
    skip_invalid: SkipInvalid = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a trained model: its loss, its metric, and all other metrics of its kind of target."""
    with result_only(json):
        from pathnn.inference.predictor import evaluation_data, load_runs
        from pathnn.training.ensemble import score_ensemble

        trained = load_runs(run)
        with progress(f"evaluating on {data}"):
            chosen = evaluation_data(
                trained, data, part=split, target=target, metric=metric, smiles=smiles, skip_invalid=skip_invalid
            )
            found = score_ensemble(trained, chosen.task, chosen.index, metric=metric, device=pick_device(device))
    task, part, overlap = chosen.task, chosen.part, chosen.overlap
    note_not_read(task, chosen.index)
    if overlap is not None and bool(overlap.any()):
        note(
            f"{int(overlap.sum())} of the {overlap.numel()} graphs were in the training data, or look like graphs that "
            "were: their score says nothing about new graphs"
        )
    elif overlap is None and split is None and part == "all":
        note(f"{run} was not trained on {data}: all its graphs are measured, also those that the model may know")
    if json:
        together, each = found.together, [one.score for one in found.each]
        several = {"networks": len(each), "each": each, "mean": found.mean, "std": found.std}
        print_json(
            {
                "run": run, "data": data, "split": part, "graphs": together.graphs, "metric": found.metric,
                "score": together.score, "loss": together.loss, "scores": together.scores,
                **({} if overlap is None else {"training_overlap": int(overlap.sum())}),
                **({"targets": together.targets} if together.targets else {}),
                **({"epoch": trained.members[0].epoch} if len(each) == 1 else several),
            }
        )  # fmt: skip
    else:
        say(_text(found, part, "seed" if trained.config.folds is None else "fold"))
        say(scores_text(found.together.scores))
        for name, score in found.together.targets.items():
            say(f"  {name}: {score_text(score, 6)}")


def _text(found: EnsembleScore, part: str, kind: str) -> str:
    """Return a score as text; of several networks, also how much they differ."""
    together, score = found.together, score_text(found.together.score, 6)
    text = f"{found.metric} {score} on {together.graphs} graphs ({part}); loss {together.loss:.6g}"
    if len(found.each) == 1:
        return text
    spread = "" if math.isnan(together.score) else f"; each alone {found.mean:.6g} ± {found.std:.2g}"
    return f"{text}, of the mean prediction of {len(found.each)} networks, one per {kind}{spread}"
