"""Export trained models: for every PathNN the best seed by validation score, with a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pathnn.data.readers.atom_features import FEATURES
from pathnn.data.task import Task
from pathnn.training import RunFolder, load_model, load_task
from pathnn.training.checkpoint import TrainedModel, save_model
from pathnn_reproduction.pages import fill, write_pages
from pathnn_reproduction.paper import TABLES
from pathnn_reproduction.results import Line, Results
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import Measured, best_line, measure, score_text

LONG_NAMES = {"AP": "average precision"}
"""What metrics are called where their short name is also that of a collection."""

STEREO = """
- **Stereochemistry**: OGB's features contain rdkit's chiral tags, which depend on the order of the atoms in a SMILES. \
The prediction for a SMILES with stereo marks (@) can depend on how it is written: write all of them in one way, such \
as rdkit's canonical SMILES. Models trained on your own molecules do not depend on it."""
"""A line of the card for models that read OGB's features."""


class ExportError(ValueError):
    """There is nothing to export."""


def export_models(
    experiment: Experiment, runs: Sequence[RunSpec], results_file: Results, work: Path, out: Path
) -> list[Path]:
    """Write `NAME.safetensors` and its card `NAME.md` for the best run of every PathNN cell among `runs`.

    The best is by validation score. A cell whose best run has no model file at hand is an error: another seed
    would be another choice.
    """
    cells: dict[tuple[Any, ...], list[RunSpec]] = {}
    for run in runs:
        if run.collection is not None and run.kind == "train":
            cells.setdefault(run.cell, []).append(run)
    written = []
    for cell_runs in cells.values():
        best = best_line(experiment, cell_runs, results_file)
        if best is not None:
            written.append(_export(experiment, cell_runs, best, results_file, work, out))
    if not written:
        raise ExportError(f"{results_file.path} has no finished run of a PathNN to export.")
    write_index(out)
    return written


def write_index(folder: Path) -> None:
    """Write `README.md`, the list of the models in a folder, from their cards; a README of anything else stays."""
    readme = folder / "README.md"
    if readme.exists() and not readme.read_text("utf-8").startswith("# Trained models"):
        return
    lines = []
    for model in sorted(folder.glob("*.safetensors")):
        card = model.with_suffix(".md")
        text = card.read_text("utf-8") if card.exists() else ""
        what = text.partition("`: ")[2].partition("\n")[0] or "without a card."
        lines.append(f"- [{model.stem}]({card.name}): {what}")
    write_pages({readme: fill("models_index", models="\n".join(lines))})


def model_name(run: RunSpec, ks: int = 1) -> str:
    """What the model of a run is called: dataset and collection, and k where there are several.

    >>> from pathnn_reproduction.experiments import get_experiment
    >>> model_name(get_experiment("peptides").runs[4])
    'peptides-func-sp+'
    """
    released = "-released" if run.model == "pathnn-released" else ""
    return f"{run.dataset}-{run.collection}" + (f"-k{run.k}" if ks > 1 else "") + released


def _export(
    experiment: Experiment,
    runs: Sequence[RunSpec],
    best: tuple[RunSpec, Line],
    results_file: Results,
    work: Path,
    out: Path,
) -> Path:
    run, line = best
    source = RunFolder(work / experiment.name / run.folder).model
    if not source.exists():
        raise ExportError(
            f"{run.name} is the best by validation, but its model is not in {work}. Unpack it (--unpack), or "
            "repeat the run there with an empty results folder."
        )
    ks = len({r.k for r in experiment.runs if (r.dataset, r.collection) == (run.dataset, run.collection)})
    name = model_name(run, ks)
    trained = load_model(source)
    task, model = load_task(trained.config), out / f"{name}.safetensors"
    save_model(
        model,
        trained.model,
        trained.model.state_dict(),
        config=trained.config,
        signature=replace(
            trained.signature, classes=list(task.classes)
        ),  # a dataset's names may be younger than the run
        epoch=trained.epoch,
        val_score=trained.val_score,
        test_score=trained.test_score,
        made_with=trained.versions,
    )
    write_pages({model.with_suffix(".md"): model_card(name, experiment, runs, line, trained, task, results_file)})
    return model


def model_card(
    name: str,
    experiment: Experiment,
    runs: Sequence[RunSpec],
    line: Line,
    trained: TrainedModel,
    task: Task,
    results_file: Results,
) -> str:
    """Return the card of a trained model."""
    table = TABLES.get(line["dataset"])
    decimals = 4 if table is None else table.decimals + 1
    protocol = "" if table is None else table.protocol
    split = task.splits[line["fold"]]
    sizes = f"{split.train.numel():,} / {split.val.numel():,} / {split.test.numel():,}"
    direction = "larger" if task.maximize else "smaller"
    metric = LONG_NAMES.get(line["metric"], line["metric"])
    return fill(
        "model_card",
        name=name,
        collection=str(line["collection"]).upper(),
        parameters=f"{line['parameters']:,}",
        graphs=f"{len(task.graphs):,}",
        sizes=sizes,
        title=task.title,
        citation=task.citation,
        data_licence=task.licence or "see its source",
        notes=_notes(task),
        experiment=experiment.title,
        target=experiment.name,
        protocol=protocol,
        metric=metric,
        direction=direction,
        val=f"{line['val']:.{decimals}f}",
        test=f"{line['test']:.{decimals}f}",
        all_runs=_of_all_runs(measure(experiment, runs, results_file), decimals),
        stereo=STEREO if task.node_features == FEATURES["ogb"][0] else "",
        only=_only(line),
        time=line.get("time", ""),
        seconds=f"{line['seconds']:.0f}",
        torch=trained.versions.get("torch"),
        licence=_licence(task),
        **{key: line[key] for key in ("k", "seed", "best_epoch", "epochs", "commit", "device")},
    )


def _of_all_runs(cell: Measured | None, decimals: int) -> str:
    """Say what all runs together reached; the model is one of them."""
    if cell is None:
        return "Not all runs of the protocol are done."
    what = (
        f"All {cell.count} {cell.unit}" if cell.count == cell.planned else f"{cell.count} of {cell.planned} {cell.unit}"
    )
    return f"{what}: {score_text(cell.mean, cell.std, decimals)}; that is the number to quote."


def _only(line: Line) -> str:
    """The run as `--only` takes it."""
    return (
        f"{line['model']},{line['dataset']},{line['collection']},k={line['k']},fold={line['fold']},seed={line['seed']}"
    )


def _notes(task: Task) -> str:
    """What is known of the data, as a sentence."""
    return f" {task.notes[:1].upper()}{task.notes[1:]}." if task.notes else ""


def _licence(task: Task) -> str:
    """The licence of the weights: that of the code, unless the data is not for commercial use."""
    if "BY-NC" not in task.licence:
        return "MIT, as the code"
    return f"{task.licence}, that of the data they were learned from; so they are not in the wheel of pathnn"
