"""`pathnn train`: options become a config, the config becomes a run folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, result_only, say
from pathnn.cli.options import Data, Json, SkipInvalid, Smiles, check_collection_name

if TYPE_CHECKING:
    from pathnn.data import Task
    from pathnn.training import EnsembleFolder, RunConfig, RunFolder

Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="RUN", help="The folder to write the run to.", show_default=False)
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A YAML file of options; those given here count more.",
                 show_default=False),
]  # fmt: skip
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder, if there is one.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", min=2, metavar="N", show_default=False,
                 help="Train N networks, from --seed on: evaluate and predict take their mean, with error bars."),
]  # fmt: skip
Target = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="COLUMN", help="The column of a .csv to predict; may be given several times.",
                 show_default=False),
]  # fmt: skip


def _option(*names: str, text: str, metavar: str | None = None) -> Any:
    """An option that says nothing unless it is given: the dataset, or the config file, decides."""
    return typer.Option(*names, help=text, metavar=metavar, show_default=False)


def train_command(
    data: Data,
    out: Out,
    config: ConfigFile = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    model: Annotated[str | None, _option("--model", text="pathnn, gin, gcn, gatedgcn, gat, graphsage or mlp.")] = None,
    collection: Annotated[str | None, _option("--collection", "-c", text="Which paths.", metavar="sp|sp+|ap")] = None,
    k: Annotated[int | None, _option("--k", "-k", text="The largest path length, in edges.")] = None,
    hidden: Annotated[int | None, _option("--hidden", text="Width of the model.")] = None,
    dropout: Annotated[float | None, _option("--dropout", text="Rate of dropout.")] = None,
    epochs: Annotated[int | None, _option("--epochs", text="Most epochs.")] = None,
    batch_size: Annotated[int | None, _option("--batch-size", text="Graphs per step, over all processes.")] = None,
    lr: Annotated[float | None, _option("--lr", text="Learning rate.")] = None,
    weight_decay: Annotated[float | None, _option("--weight-decay", text="Weight decay.")] = None,
    patience: Annotated[
        int | None, _option("--patience", text="Stop after so many epochs without a better validation score.")
    ] = None,
    stop_at: Annotated[
        float | None, _option("--stop-at", text="Stop when the validation score is as good as this.")
    ] = None,
    clip: Annotated[float | None, _option("--clip", text="Largest norm of the gradient.")] = None,
    seed: Annotated[int | None, _option("--seed", text="Which run: weights, order and dropout come from it.")] = None,
    seeds: Seeds = None,
    fold: Annotated[int | None, _option("--fold", text="Which of the dataset's splits, from 0.")] = None,
    split_seed: Annotated[
        int | None, _option("--split-seed", text="Another split of 80 / 10 / 10 from this seed, random or by scaffold.")
    ] = None,
    split_by: Annotated[
        str | None,
        _option(
            "--split-by",
            text="How to split a .csv: by scaffold, or as a column says (train, val, test).",
            metavar="scaffold|COLUMN",
        ),
    ] = None,
    device: Annotated[str | None, _option("--device", text="Where to train.", metavar="auto|cpu|cuda")] = None,
    devices: Annotated[int | None, _option("--devices", text="Processes (GPUs) per machine.")] = None,
    num_nodes: Annotated[int | None, _option("--num-nodes", text="Machines.")] = None,
    precision: Annotated[
        str | None, _option("--precision", text="32-true, tf32, 64-true, 16-mixed or bf16-mixed.")
    ] = None,
    max_entries: Annotated[
        int | None, _option("--max-entries", text="Trie entries to work on at once; less needs less memory.")
    ] = None,
    target: Target = None,
    kind: Annotated[
        str | None, _option("--kind", text="Kind of target: class, binary, multilabel, regression.")
    ] = None,
    metric: Annotated[
        str | None,
        _option("--metric", text="What to report and choose the epoch by: mae, rmse, roc-auc, ap, accuracy."),
    ] = None,
    smiles: Smiles = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
) -> None:
    """Train a model and write a run folder: config, metrics, the best model, result and curves.

    A dataset of the paper is trained with the paper's settings, your own data with defaults; every option changes one
    of them. A run that was stopped goes on with --resume. With --seeds the folder has a run folder for each seed.
    """
    given = {
        "model": model, "collection": collection and check_collection_name(collection), "k": k, "epochs": epochs,
        "batch_size": batch_size, "lr": lr,
        "weight_decay": weight_decay, "patience": patience, "stop_at": stop_at, "clip": clip, "seed": seed,
        "fold": fold, "split_seed": split_seed, "split_by": split_by, "device": device, "devices": devices,
        "num_nodes": num_nodes, "precision": precision, "max_entries": max_entries, "target": target or None,
        "kind": kind, "metric": metric, "smiles": smiles, "skip_invalid": skip_invalid or None,
    }  # fmt: skip
    chosen = {name: value for name, value in given.items() if value is not None}
    widths = {"hidden_channels": hidden, "dropout": dropout}
    options = {name: value for name, value in widths.items() if value is not None}
    with result_only(json):
        result = _train(data, out, config, chosen, options, seeds=seeds, resume=resume, overwrite=overwrite)
        from pathnn.device import is_first_process

        first = is_first_process()
    if first and json:
        print_json({**result, "out": out})
    elif first:
        _say_result(result, out)


def _train(
    data: str,
    out: Path,
    file: Path | None,
    chosen: dict[str, Any],
    options: dict[str, Any],
    *,
    seeds: int | None,
    resume: bool,
    overwrite: bool,
) -> dict[str, Any]:
    """Fill in a config and run it, with one seed or several."""
    from pathnn.cli.console import epoch_line, note_not_read
    from pathnn.device import is_first_process
    from pathnn.training import RunConfig, RunFolder, run, run_ensemble
    from pathnn.training.checkpoint import checked_config
    from pathnn.training.config import yaml_options

    if file is not None:
        chosen = {**yaml_options(file.read_text()), **chosen}
    listed = chosen.pop("options", None) or {}
    if not isinstance(listed, dict):
        raise ValueError(f"{file}: options={listed!r}: expected names and values below it, as hidden_channels: 64.")
    options = {**listed, **options}
    _check_table_options(data, chosen)
    folder = _folder(out, several=seeds is not None)
    first = folder if isinstance(folder, RunFolder) else folder.member(min(folder.seeds, default=0))
    if resume and first.begun:
        saved = checked_config(first).to_dict()
        base = RunConfig.from_dict({**saved, **chosen, "data": data, "options": {**saved["options"], **options}})
        task = _load(base)
    else:
        try:
            first_look = RunConfig.from_dict({**chosen, "data": data})
        except ValueError as error:  # before data is read, which may take long
            raise typer.BadParameter(str(error)) from error
        folder.check(resume=resume, overwrite=overwrite)
        task = _load(first_look)
        base = fill_in(data, task, chosen, options)
    if is_first_process():
        note_not_read(task)
    wishes: dict[str, Any] = {"task": task, "resume": resume, "overwrite": overwrite}
    try:
        with epoch_line(several=seeds is not None) as report:
            if seeds is None:
                return run(base, out, report=report, **wishes)
            return run_ensemble(base, out, seeds, report=report, **wishes)
    except KeyboardInterrupt:
        saved_one = RunFolder(out).state.exists() or any(out.glob("seed-*/last.ckpt"))
        if saved_one and is_first_process():
            note(f"stopped; what was done is in {out}, and --resume goes on with it")
        raise


def _folder(out: Path, *, several: bool) -> RunFolder | EnsembleFolder:
    """The folder of a run, or of the runs of several seeds. What one holds is not mistaken for the other."""
    from pathnn.training import EnsembleFolder, RunFolder

    if several:
        return EnsembleFolder(out)
    seeds = EnsembleFolder(out).seeds
    if seeds:
        again = f"--seeds {len(seeds)} --resume"
        raise typer.BadParameter(
            f"{out} holds runs of {len(seeds)} seeds. Go on with {again}, or give another folder.", param_hint="--out"
        )
    return RunFolder(out)


def fill_in(data: str, task: Task, chosen: dict[str, Any], options: dict[str, Any]) -> RunConfig:
    """The config of a new run: the paper's or the defaults for own data, then what the user chose."""
    from pathnn.training import RunConfig, default_options
    from pathnn.training.recipes import paper_run

    paper = paper_run(data, chosen.get("collection", "ap"))
    base = {"data": data, **default_options(task)} if paper is None else paper.to_dict()
    if chosen.get("model", "pathnn") != "pathnn":
        # The options and the preset are those of a PathNN; a baseline shares only the width with it.
        base["preset"] = None
        base["options"] = {k: v for k, v in base["options"].items() if k in ("hidden_channels", "dropout")}
    return RunConfig.from_dict({**base, **chosen, "data": data, "options": {**base["options"], **options}})


def _load(config: RunConfig) -> Task:
    from pathnn.cli.console import progress
    from pathnn.training import load_task

    with progress(f"reading {config.data}"):
        return load_task(config)


def _say_result(result: dict[str, Any], out: Path) -> None:
    from pathnn.cli.console import time_text

    if not _can_draw():
        note("without curves.png, which needs matplotlib: pip install 'pathnn[plot]'")
    score = result["test_score"]
    if "seeds" in result:
        _say_several(result)
        say(f"wrote {out}")
        return
    test = "not defined, or no test graphs" if score is None else _shown(score)
    say(
        f"{result['metric']}: test {test}, validation {_shown(result['val_score'])}, in epoch "
        f"{result['best_epoch']} of {result['epochs']} (stopped: {result['stopped']}); "
        f"{result['parameters']:,} parameters, {time_text(result['seconds'])}"
    )
    say(f"wrote {out}")


def _can_draw() -> bool:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def _check_table_options(data: str, chosen: dict[str, Any]) -> None:
    """Refuse options of tables for data that is none, which would not be read."""
    from pathnn.data.load import find_data

    given = [f"--{name}" for name in ("target", "kind", "smiles") if chosen.get(name) is not None]
    if given and find_data(data).kind != "table":
        raise typer.BadParameter(f"{', '.join(given)}: for .csv files of molecules, and {data} is none.")


def _shown(score: float | None) -> str:
    """A score for people; JSON has None for NaN."""
    return "not defined" if score is None or math.isnan(score) else f"{score:.4g}"


def _say_several(result: dict[str, Any]) -> None:
    from pathnn.cli.console import time_text

    score, count = result["test_score"], len(result["seeds"])
    spread = {part: f"{result[f'{part}_mean']:.4g} ± {result[f'{part}_std']:.2g}"
              for part in ("test", "val") if result[f"{part}_mean"] is not None}  # fmt: skip
    test = "not defined, or no test graphs" if "test" not in spread else f"{score:.4g}, each {spread['test']}"
    say(
        f"{result['metric']}, the mean of {count} networks: test {test}; validation, each "
        f"{spread.get('val', 'not defined')}; {result['parameters']:,} parameters each, {time_text(result['seconds'])}"
    )
