"""`pathnn evaluate`: the score of a trained model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, note_not_read, print_json, result_only, say
from pathnn.cli.options import Data, Json, SkipInvalid, Smiles
from pathnn.cli.trained import Device, Run, load_runs, pick_device

if TYPE_CHECKING:
    from torch import Tensor

    from pathnn.data import Task
    from pathnn.data.fingerprints import DataFingerprint
    from pathnn.training import Ensemble, RunConfig, TrainedModel
    from pathnn.training.ensemble import EnsembleScore

Part = Annotated[
    str | None,
    typer.Option("--split", metavar="train|val|test|all", show_default=False,
                 help="Which graphs; by default the test graphs of the data it was trained on, all of other data."),
]  # fmt: skip
Target = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="COLUMN", help="The target column of a .csv; by default the one it was trained "
                 "on.", show_default=False),
]  # fmt: skip

Metric = Annotated[
    str | None,
    typer.Option("--metric", metavar="NAME", help="mae, rmse, roc-auc, ap or accuracy; by default that of training.",
                 show_default=False),
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
    """Measure a trained model: its loss and its metric."""
    with result_only(json):
        from pathnn.cli.console import progress
        from pathnn.training import load_task, score_ensemble, training_overlap

        trained = load_runs(run)
        config = replace(
            trained.config,
            data=data,
            smiles=smiles or trained.config.smiles,
            skip_invalid=skip_invalid or trained.config.skip_invalid,
            metric=metric or trained.config.metric,
            **target_options(trained, target),
        )
        with progress(f"evaluating on {data}"):
            task = load_task(
                replace(config, split_by=None), trained.signature.molecule_features, trained.signature.vocabulary
            )
            task = task if split == "all" else with_split(trained, task, config)
            part = choose_part(trained, task, config, split)
            index = choose(task, config, part)
            overlap = None if part == "train" else training_overlap(trained.signature, task, index)
            found = score_ensemble(trained, task, index, metric=metric, device=pick_device(device))
    note_not_read(task, index)
    if overlap is not None and bool(overlap.any()):
        note(
            f"{int(overlap.sum())} of the {overlap.numel()} graphs were in the training data, or look like graphs "
            "that were: what is measured on them says nothing about new ones"
        )
    elif overlap is None and split is None and part == "all":
        note(f"{data} is not what {run} was trained on: all its graphs are measured, known to the model or not")
    if json:
        together, each = found.together, [one.score for one in found.each]
        several = {"networks": len(each), "each": each, "mean": found.mean, "std": found.std}
        print_json(
            {
                "run": run, "data": data, "split": part, "graphs": together.graphs, "metric": found.metric,
                "score": together.score, "loss": together.loss,
                **({} if overlap is None else {"training_overlap": int(overlap.sum())}),
                **({"targets": _each_target(found, task.classes)} if found.targets else {}),
                **({"epoch": trained.members[0].epoch} if len(each) == 1 else several),
            }
        )  # fmt: skip
    else:
        say(_text(found, part))
        for name, score in _each_target(found, task.classes).items():
            say(f"  {name}: {'not defined' if math.isnan(score) else f'{score:.6g}'}")


def _each_target(found: EnsembleScore, names: Sequence[str]) -> dict[str, float]:
    """The score of each of several targets, by the name of the column that was compared with, or its number."""
    plain = names if len(names) == len(found.targets) else [str(i) for i in range(len(found.targets))]
    return dict(zip(plain, found.targets, strict=True))


def _text(found: EnsembleScore, part: str) -> str:
    """What to say of a score; of several networks also how far they differ."""
    together, several = found.together, len(found.each) > 1
    defined = not math.isnan(together.score)
    score = f"{together.score:.6g}" if defined else "not defined"
    text = f"{found.metric} {score} on {together.graphs} graphs ({part}); loss {together.loss:.6g}"
    spread = f", each {found.mean:.6g} ± {found.std:.2g}" if defined else ""
    return f"{text}; the mean of {len(found.each)} networks{spread}" if several else text


def target_options(trained: Ensemble | TrainedModel, target: list[str] | None) -> dict[str, Any]:
    """Which column of a CSV to compare with, and how to read it: as in training, whatever few rows look like.

    Of another column than the model was trained on, only classes are taken for granted.
    """
    signature = trained.signature
    if signature.target == "class":
        return {"target": tuple(target) if target else trained.config.target, "kind": "class"}
    if target and sorted(target) == sorted(signature.classes):
        return {"target": tuple(signature.classes), "kind": signature.target}  # in the order of the model's outputs
    if target:
        return {"target": tuple(target)}
    return {"target": trained.config.target or tuple(signature.classes) or None, "kind": signature.target}


def with_split(trained: Ensemble, task: Task, config: RunConfig) -> Task:
    """The task split as in training, where that was not at random: as its column says, or, if it can be the data of the
    training, by scaffolds. Else it has no split.
    """
    from pathnn.data.errors import DataError
    from pathnn.data.load import find_data, split_task
    from pathnn.data.readers.table import read_csv
    from pathnn.data.splits import SCAFFOLD

    if config.split_by is None:
        return task
    before, path = trained.signature.data, Path(config.data).expanduser()
    same_size = before is not None and before.num_graphs == len(task.graphs)
    if find_data(config.data).kind == "table" and (same_size or config.split_by != SCAFFOLD):
        with suppress(DataError):
            return split_task(task, read_csv(path), config.split_by, config.split_seed)
    return replace(task, splits=())


def choose_part(trained: Ensemble | TrainedModel, task: Task, config: RunConfig, asked: str | None) -> str:
    """What was asked for; else the test graphs of the data that the run was trained on, all of other data.

    Data that was changed since has no graphs that are known to be new to the model, and is refused; so is another
    split of its graphs.
    """
    from pathnn.data.fingerprints import OTHER_SPLIT, same_place

    if asked == "all":
        return asked
    before, same_name = trained.signature.data, same_place(config.data, trained.config.data)
    changed = None if before is None else _difference(before, task, config)
    if changed is not None and (same_name or (asked is not None and changed == OTHER_SPLIT)):
        raise ValueError(
            f"{config.data} has changed since the model was trained, or is read with other options (--target, "
            f"--skip-invalid): {changed}. Which of its graphs the model has not seen cannot be told. Give the data as "
            "it was, or --split all."
        )
    if asked is not None and config.split_by is not None and not task.splits:
        raise ValueError(
            f"{config.data} has no split: the model was trained on data split by {config.split_by!r}, and this data is "
            "other data, or lacks that column. Use --split all."
        )
    known = same_name if before is None else changed is None
    return asked or ("test" if known else "all")


def _difference(before: DataFingerprint, task: Task, config: RunConfig) -> str | None:
    """What is not as in training, other than the targets: another column of the same graphs is fine."""
    from pathnn.data.fingerprints import DataFingerprint
    from pathnn.training.setup import choose_split, splits_of

    same_size = len(task.graphs) == before.num_graphs
    splits = len(splits_of(task, config)) if same_size else 0
    now = DataFingerprint.of(task, choose_split(task, config) if config.fold < splits else None)
    return replace(before, targets=now.targets).difference(now)


def choose(task: Task, config: RunConfig, part: str) -> Tensor | None:
    """The graphs of a part of the run's split; None for all."""
    from pathnn.training.setup import choose_split

    if part not in ("train", "val", "test", "all"):
        raise typer.BadParameter(f"{part!r} is unknown: expected train, val, test or all.", param_hint="--split")
    if part == "all":
        return None
    split = choose_split(task, config)
    index = {"train": split.train, "val": split.val, "test": split.test}[part]
    if not index.numel():
        raise ValueError(f"the split of {config.data} has no {part} graphs: choose others with --split.")
    return index
