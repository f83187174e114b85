"""`pathnn train`: turn options into a config, and run it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, progress, result_only, say, score_text, scores_text, time_text
from pathnn.cli.options import Data, Json, check_usage, options_from
from pathnn.training.config import RunConfig, option

if TYPE_CHECKING:
    from pathnn.data import Task
    from pathnn.training import EnsembleFolder, RunFolder

Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="RUN", help="The folder to write the run to.", show_default=False)
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A YAML file of options; options of the command line override it.",
                 show_default=False),
]  # fmt: skip
Resume = Annotated[bool, typer.Option("--resume", help="Resume the run in the folder, if there is one.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", min=2, metavar="N", show_default=False,
                 help="Train N networks, with seeds from --seed on; predictions are their mean, with error bars."),
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of the model that have an option on the command line; `RunConfig.options` has them all."""

    hidden_channels: int = option(64, "Width of the model.", flags=("--hidden",))
    dropout: float = option(0.0, "Dropout rate.")


@options_from(RunConfig, ModelOptions)
def train_command(
    data: Data,
    out: Out,
    config: ConfigFile = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    seeds: Seeds = None,
    json: Json = False,
    *,
    given: dict[str, Any],
) -> None:
    """Train a model and write a run folder: config, metrics, the best model, result and curves.

    A dataset of the paper is trained with the paper's settings, your own data with defaults; options change them.
    --resume continues a run that was stopped. With --seeds, the folder has a run folder for each seed.
    """
    names = [entry.name for entry in fields(ModelOptions)]
    options = {name: given.pop(name) for name in names if name in given}
    with result_only(json):
        result = _train(data, out, config, given, options, seeds=seeds, resume=resume, overwrite=overwrite)
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
    from pathnn.training import RunFolder, run, run_ensemble
    from pathnn.training.checkpoint import checked_config
    from pathnn.training.config import yaml_options
    from pathnn.training.recipes import fill_in

    if file is not None:
        chosen = {**yaml_options(file.read_text()), **chosen}
    listed = chosen.pop("options", None) or {}
    if not isinstance(listed, dict):
        raise ValueError(f"{file}: options={listed!r}: expected names and values below it, as hidden_channels: 64.")
    options = {**listed, **options}
    _check_table_options(data, chosen)
    first_look = check_usage(RunConfig.from_dict, {**chosen, "data": data})  # before reading the data
    folder = _folder(out, several=seeds is not None)
    first = folder if isinstance(folder, RunFolder) else folder.member(min(folder.seeds, default=0))
    if resume and first.begun:
        saved = checked_config(first).to_dict()
        base = RunConfig.from_dict({**saved, **chosen, "data": data, "options": {**saved["options"], **options}})
        task = _load(base)
    else:
        folder.check(resume=resume, overwrite=overwrite)
        task = _load(first_look)
        base = fill_in(data, task, chosen, options)
    if is_first_process():
        note_not_read(task)
    settings: dict[str, Any] = {"task": task, "resume": resume, "overwrite": overwrite}
    try:
        with epoch_line(several=seeds is not None) as report:
            if seeds is None:
                return run(base, out, report=report, **settings)
            return run_ensemble(base, out, seeds, report=report, **settings)
    except KeyboardInterrupt:
        has_checkpoint = RunFolder(out).state.exists() or any(out.glob("seed-*/last.ckpt"))
        if has_checkpoint and is_first_process():
            note(f"stopped; the checkpoint is in {out}, and --resume resumes the run")
        raise


def _folder(out: Path, *, several: bool) -> RunFolder | EnsembleFolder:
    """Return the folder of a run or of several seeds; refuse a folder of several seeds for a single run."""
    from pathnn.training import EnsembleFolder, RunFolder

    if several:
        return EnsembleFolder(out)
    seeds = EnsembleFolder(out).seeds
    if seeds:
        again = f"--seeds {len(seeds)} --resume"
        raise typer.BadParameter(
            f"{out} holds runs of {len(seeds)} seeds. Resume them with {again}, or give another folder.",
            param_hint="--out",
        )
    return RunFolder(out)


def _load(config: RunConfig) -> Task:
    from pathnn.training import load_task

    with progress(f"reading {config.data}"):
        return load_task(config)


def _say_result(result: dict[str, Any], out: Path) -> None:
    if not _can_draw():
        note("without curves.png, which needs matplotlib: pip install 'pathnn[plot]'")
    if "seeds" in result:
        _say_several(result)
    else:
        _say_one(result)
    for part, scores in result.get("scores", {}).items():  # not in the results of earlier versions
        say(f"{part}: {scores_text(scores)}")
    say(f"wrote {out}")


def _say_one(result: dict[str, Any]) -> None:
    score = result["test_score"]
    test = "not defined, or no test graphs" if score is None else score_text(score)
    say(
        f"{result['metric']}: test {test}, validation {score_text(result['val_score'])}, in epoch "
        f"{result['best_epoch']} of {result['epochs']} (stopped: {result['stopped']}); "
        f"{result['parameters']:,} parameters, {time_text(result['seconds'])}"
    )


def _can_draw() -> bool:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def _check_table_options(data: str, chosen: dict[str, Any]) -> None:
    """Refuse options of tables for other data, which would ignore them."""
    from pathnn.data import find_data

    given = [f"--{name}" for name in ("target", "kind", "smiles") if chosen.get(name) is not None]
    if given and find_data(data).kind != "table":
        raise typer.BadParameter(f"{', '.join(given)}: for .csv files of molecules, which {data} is not.")


def _say_several(result: dict[str, Any]) -> None:
    score, count = result["test_score"], len(result["seeds"])
    spread = {part: f"{result[f'{part}_mean']:.4g} ± {result[f'{part}_std']:.2g}"
              for part in ("test", "val") if result[f"{part}_mean"] is not None}  # fmt: skip
    test = "not defined, or no test graphs" if "test" not in spread else f"{score:.4g}, each {spread['test']}"
    say(
        f"{result['metric']}, the mean of {count} networks: test {test}; validation, each "
        f"{spread.get('val', 'not defined')}; {result['parameters']:,} parameters each, {time_text(result['seconds'])}"
    )
