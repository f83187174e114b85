"""`pathnn evaluate`: the score of a trained model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, result_only, say
from pathnn.cli.options import Data, Json, SkipInvalid, Smiles

if TYPE_CHECKING:
    from torch import Tensor

    from pathnn.data import Task
    from pathnn.engine import RunConfig, Trained
    from pathnn.engine.data_print import DataPrint

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A folder that pathnn train wrote, a model.safetensors file, or "
                         "the name of a trained model (zinc-ap).",
                         show_default=False),
]  # fmt: skip
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda", help="Where to compute.")]
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


def evaluate_command(
    run: Run,
    data: Data,
    split: Part = None,
    target: Target = None,
    smiles: Smiles = None,
    skip_invalid: SkipInvalid = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a trained model: its loss and its metric."""
    with result_only(json):
        from pathnn.cli.progress import progress
        from pathnn.engine import load_task, score

        trained = load_run(run)
        config = replace(
            trained.config,
            data=data,
            smiles=smiles or trained.config.smiles,
            skip_invalid=skip_invalid or trained.config.skip_invalid,
            **target_options(trained, target),
        )
        with progress(f"evaluating on {data}"):
            task = load_task(config, trained.facts.molecule_features)
            part = choose_part(trained, task, config, split)
            index = choose(task, config, part)
            found = score(trained, task, index, device=pick_device(device))
    if task.skipped:
        note(f"left out {len(task.skipped)} rows that cannot be read, the first is {task.skipped[0]}")
    if json:
        print_json(
            {
                "run": run, "data": data, "split": part, "graphs": found.graphs, "metric": task.metric_name,
                "score": found.score, "loss": found.loss, "epoch": trained.epoch,
            }
        )  # fmt: skip
    else:
        score_text = "not defined" if math.isnan(found.score) else f"{found.score:.6g}"
        say(f"{task.metric_name} {score_text} on {found.graphs} graphs ({part}); loss {found.loss:.6g}")


def target_options(trained: Trained, target: list[str] | None) -> dict[str, Any]:
    """Which column of a CSV to compare with, and how to read it: as in training, whatever few rows look like.

    Of another column than the model was trained on, only classes are taken for granted.
    """
    facts = trained.facts
    if facts.target == "class":
        return {"target": tuple(target) if target else trained.config.target, "kind": "class"}
    if target:
        return {"target": tuple(target)}
    return {"target": trained.config.target or tuple(facts.classes) or None, "kind": facts.target}


def load_run(run: Path) -> Trained:
    """The best model of a run folder, of a model file, or a trained model by its name."""
    from pathnn.engine import RunFolder, load_model
    from pathnn.nn.pretrained import pretrained_file, pretrained_names

    if not run.exists():
        names = pretrained_names()
        if str(run) in names:
            return load_model(pretrained_file(str(run)))
        known = f", or the name of a trained model ({', '.join(names)})" if names else ""
        raise ValueError(f"{run} does not exist: expected a folder that pathnn train has written{known}.")
    if run.is_dir() and not RunFolder(run).model.exists():
        raise ValueError(f"{run} holds no model.safetensors: expected a folder in which a run has begun.")
    return load_model(RunFolder(run).model if run.is_dir() else run)


def choose_part(trained: Trained, task: Task, config: RunConfig, asked: str | None) -> str:
    """What was asked for; else the test graphs of the data that the run was trained on, all of other data.

    Data that was changed since has no graphs that are known to be new to the model, and is refused.
    """
    from pathnn.engine.data_print import same_place

    if asked == "all":
        return asked
    before, same_name = trained.facts.data, same_place(config.data, trained.config.data)
    changed = None if before is None else _difference(before, task, config)
    if same_name and changed is not None:
        raise ValueError(
            f"{config.data} has changed since the model was trained, or is read with other options (--target, "
            f"--skip-invalid): {changed}. Which of its graphs the model has not seen cannot be told. Give the data as "
            "it was, or --split all."
        )
    known = same_name if before is None else changed is None
    return asked or ("test" if known else "all")


def _difference(before: DataPrint, task: Task, config: RunConfig) -> str | None:
    """What is not as in training, other than the targets: another column of the same graphs is fine."""
    from pathnn.engine.data_print import DataPrint
    from pathnn.engine.loaders import choose_split

    same_size = len(task.graphs) == before.num_graphs
    splits = len(task.splits) if config.split_seed is None else 1
    now = DataPrint.of(task, choose_split(task, config) if same_size and config.fold < splits else None)
    return replace(before, targets=now.targets).difference(now)


def choose(task: Task, config: RunConfig, part: str) -> Tensor | None:
    """The graphs of a part of the run's split; None for all."""
    from pathnn.engine.loaders import choose_split

    if part not in ("train", "val", "test", "all"):
        raise typer.BadParameter(f"{part!r} is unknown: expected train, val, test or all.", param_hint="--split")
    if part == "all":
        return None
    split = choose_split(task, config)
    return {"train": split.train, "val": split.val, "test": split.test}[part]


def pick_device(device: str) -> str:
    """The device of a name; "auto" is the GPU where there is one."""
    import torch

    if device not in ("auto", "cpu", "cuda"):
        raise typer.BadParameter(f"{device!r} is unknown: expected auto, cpu or cuda.", param_hint="--device")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: there is no CUDA device here. Use cpu or auto.")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device
