"""Export trained models: for every PathNN the best seed by validation score, with a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pathnn.data.readers.smiles import FEATURES
from pathnn.data.task import Task
from pathnn.training import RunFolder, load_model, load_task
from pathnn.training.checkpoint import TrainedModel, save_model
from pathnn_reproduction.pages import fill, write_pages
from pathnn_reproduction.paper import TABLES
from pathnn_reproduction.results import Results, Row
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import best_run, measure, score_text
from pathnn_reproduction.worker import train_run


class ExportError(ValueError):
    """There is nothing to export."""


def export_models(
    experiment: Experiment, specs: Sequence[RunSpec], results: Results, work: Path, out: Path
) -> list[Path]:
    """Write `NAME.safetensors` and its card `NAME.md` for the best run of every PathNN among `specs`.

    The best is by validation score. If its model file is missing, this is an error: another seed would be another
    choice.
    """
    entries: dict[tuple[Any, ...], list[RunSpec]] = {}
    for spec in specs:
        if spec.key.get("collection") is not None and spec.run is train_run:
            entries.setdefault(spec.entry, []).append(spec)
    written = []
    for runs in entries.values():
        best = best_run(experiment, runs, results)
        if best is None:
            continue
        run, row = best
        source = RunFolder(work / experiment.name / run.folder).model
        if not source.exists():
            raise ExportError(
                f"{run.name} is the best by validation, but its model is not in {work}. Copy its folder from the "
                "machine that trained it, or repeat the run with another results folder."
            )
        same = (run.dataset, run.key["collection"])
        ks = len({spec.key["k"] for spec in experiment.specs if (spec.dataset, spec.key["collection"]) == same})
        name, trained = model_name(run, ks), load_model(source)
        task, model = load_task(trained.config), out / f"{name}.safetensors"
        # the names of a dataset's classes may be younger than the run
        save_model(model, replace(trained, signature=replace(trained.signature, classes=list(task.classes))))
        write_pages({model.with_suffix(".md"): model_card(name, experiment, runs, row, trained, task, results)})
        written.append(model)
    if not written:
        raise ExportError(f"{results.path} has no finished run of a PathNN to export.")
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
    """Return the name of an exported model: dataset and collection, and k if there are several.

    >>> from pathnn_reproduction.experiments import get_experiment
    >>> model_name(get_experiment("peptides").specs[4])
    'peptides-func-sp+'
    """
    released = "-released" if run.key["model"] == "pathnn-released" else ""
    return f"{run.dataset}-{run.key['collection']}" + (f"-k{run.key['k']}" if ks > 1 else "") + released


def model_card(
    name: str,
    experiment: Experiment,
    runs: Sequence[RunSpec],
    row: Row,
    trained: TrainedModel,
    task: Task,
    results: Results,
) -> str:
    """Return the card of a trained model."""
    table, split = TABLES.get(row["dataset"]), task.splits[row["fold"]]
    decimals = 4 if table is None else table.decimals + 1
    result, all_runs = measure(experiment, runs, results), "Not all runs of the protocol are done."
    if result is not None:
        what = f"All {result.count}" if result.count == result.planned else f"{result.count} of {result.planned}"
        score = score_text(result.mean, result.std, decimals)
        all_runs = f"{what} {result.unit}: {score}; that is the number to quote."
    of_data = f"{task.licence}, that of the data they were learned from; so they are not in the wheel of pathnn"
    chosen = [row[name] for name in ("model", "dataset", "collection")]
    return fill(
        "model_card",
        name=name,
        collection=str(row["collection"]).upper(),
        parameters=f"{row['parameters']:,}",
        graphs=f"{len(task.graphs):,}",
        sizes=" / ".join(f"{len(part):,}" for part in (split.train, split.val, split.test)),
        title=task.title,
        citation=task.citation,
        data_licence=task.licence or "see its source",
        notes=f" {task.notes[:1].upper()}{task.notes[1:]}." if task.notes else "",
        experiment=experiment.title,
        target=experiment.name,
        protocol="" if table is None else table.protocol,
        metric="average precision" if row["metric"] == "AP" else row["metric"],  # AP is also a collection
        direction="larger" if task.maximize else "smaller",
        val=f"{row['val']:.{decimals}f}",
        test=f"{row['test']:.{decimals}f}",
        all_runs=all_runs,
        stereo="\n" + fill("model_card_stereo").strip() if task.node_features == FEATURES["ogb"][0] else "",
        only=",".join([*chosen, *(f"{name}={row[name]}" for name in ("k", "fold", "seed"))]),
        time=row.get("time", ""),
        seconds=f"{row['seconds']:.0f}",
        torch=trained.versions.get("torch"),
        licence=of_data if "BY-NC" in task.licence else "MIT, as the code",
        **{key: row[key] for key in ("k", "seed", "best_epoch", "epochs", "commit", "device")},
    )
