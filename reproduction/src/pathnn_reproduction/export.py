"""TrainedModel models to share: of every cell the best seed by validation score, with a card that says what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pathnn.data.readers.atom_features import FEATURES
from pathnn.data.task import Task
from pathnn.files import atomic_write
from pathnn.training import RunFolder, load_model, load_task
from pathnn.training.checkpoint import TrainedModel, save_model
from pathnn_reproduction.cells import Measured, best_line, measure
from pathnn_reproduction.experiment import Experiment
from pathnn_reproduction.ledger import Ledger, Line
from pathnn_reproduction.planned import RunSpec
from pathnn_reproduction.published import TABLES
from pathnn_reproduction.table_text import score_text

LONG_NAMES = {"AP": "average precision"}
"""What metrics are called where their short name is also that of a collection."""

INDEX = """# TrainedModel models

`PathNN.from_pretrained(NAME)` loads `NAME.safetensors` from here (or from `models` in the cache folder); `NAME.md` is
its card. They are written by `pathnn reproduce TARGET --export models`: of a PathNN the seed with the best
*validation* score. The number to quote is the mean over all seeds, in [results](../docs/results.md).

The wheel of pathnn is under MIT and has no models of data that is not for commercial use (CC BY-NC): to use one with
an installed pathnn, copy its `.safetensors` file from this folder of a clone to `models` in the cache folder
(`PATHNN_DATA`). The card of each model states its licence.

"""


class ExportError(ValueError):
    """There is nothing to export."""


def export_models(experiment: Experiment, runs: Sequence[RunSpec], ledger: Ledger, work: Path, out: Path) -> list[Path]:
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
        best = best_line(experiment, cell_runs, ledger)
        if best is not None:
            written.append(_export(experiment, cell_runs, best, ledger, work, out))
    if not written:
        raise ExportError(f"{ledger.path} has no finished run of a PathNN to export.")
    write_index(out)
    return written


def write_index(folder: Path) -> None:
    """Write `README.md`, the list of the models in a folder, from their cards; a README of anything else stays."""
    readme = folder / "README.md"
    if readme.exists() and not readme.read_text("utf-8").startswith(INDEX.splitlines()[0]):
        return
    lines = []
    for model in sorted(folder.glob("*.safetensors")):
        card = model.with_suffix(".md")
        text = card.read_text("utf-8") if card.exists() else ""
        what = text.partition("`: ")[2].partition("\n")[0] or "without a card."
        lines.append(f"- [{model.stem}]({card.name}): {what}")
    with atomic_write(readme) as file:
        file.write((INDEX + "\n".join(lines) + "\n").encode())


def model_name(run: RunSpec, ks: int = 1) -> str:
    """What the model of a run is called: dataset and collection, and k where there are several.

    >>> from pathnn_reproduction.experiments.targets import experiment
    >>> model_name(experiment("peptides").runs[4])
    'peptides-func-sp+'
    """
    released = "-released" if run.model == "pathnn-released" else ""
    return f"{run.dataset}-{run.collection}" + (f"-k{run.k}" if ks > 1 else "") + released


def _export(
    experiment: Experiment,
    runs: Sequence[RunSpec],
    best: tuple[RunSpec, Line],
    ledger: Ledger,
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
    with atomic_write(model.with_suffix(".md")) as file:
        file.write(model_card(name, experiment, runs, line, trained, task, ledger).encode())
    return model


def model_card(
    name: str,
    experiment: Experiment,
    runs: Sequence[RunSpec],
    line: Line,
    trained: TrainedModel,
    task: Task,
    ledger: Ledger,
) -> str:
    """What a user must know of a trained model, as Markdown."""
    table = TABLES.get(line["dataset"])
    decimals = 4 if table is None else table.decimals + 1
    protocol = "" if table is None else table.protocol
    split = task.splits[line["fold"]]
    sizes = f"{split.train.numel():,} / {split.val.numel():,} / {split.test.numel():,}"
    direction = "larger" if task.maximize else "smaller"
    metric = LONG_NAMES.get(line["metric"], line["metric"])
    lines = [
        f"# {name}\n",
        f'`PathNN.from_pretrained("{name}")`: PathNN-{str(line["collection"]).upper()}, K = {line["k"]}, '
        f"{line['parameters']:,} parameters, trained on {task.title}.\n",
        f"- **Data**: {task.title}, {len(task.graphs):,} graphs (train / validation / test: {sizes}). "
        f"{task.citation}. Licence of the data: {task.licence or 'see its source'}.{_notes(task)}",
        f"- **Protocol**: {experiment.title}, the paper's settings. {protocol} Of these runs this is the one with "
        f"the best validation score: seed {line['seed']}, epoch {line['best_epoch']} of {line['epochs']}.",
        f"- **Score** ({metric}, {direction} is better): validation {line['val']:.{decimals}f}, test "
        f"{line['test']:.{decimals}f}. {_of_the_cell(measure(experiment, runs, ledger), decimals)}",
        "- **Limits**: made to check a paper, and for graphs like those it was trained on: the same features in the "
        "same codes, graphs of similar size. It has not been tested for any decision about people or substances.",
        *_stereo(task),
        f"- **Made by**: `pathnn reproduce {experiment.name} --only {_only(line)}`, commit {line['commit']}, "
        f"{line['device']}, {line.get('time', '')}, {line['seconds']:.0f} s, torch {trained.versions.get('torch')}.",
        f"- **Licence** of the weights: {_licence(task)}.",
    ]
    return "\n".join(lines) + "\n"


def _of_the_cell(cell: Measured | None, decimals: int) -> str:
    """What all runs of the cell together reached; a single one was chosen."""
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


def _stereo(task: Task) -> list[str]:
    """What a user of OGB's features must know of SMILES with stereo marks."""
    if task.node_features != FEATURES["ogb"][0]:
        return []
    return [
        "- **Stereochemistry**: OGB's features have rdkit's chiral tags, which depend on the order of the atoms in a "
        "SMILES. The prediction for a SMILES with stereo marks (@) can depend on how it is written: write all of them "
        "in one way, such as rdkit's canonical SMILES. Models trained on your own molecules do not depend on it."
    ]
