"""`pathnn train`: turn options into a config, and run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pathnn.cli.console import (
    note,
    number_text,
    print_json,
    progress,
    result_only,
    say,
    score_text,
    scores_text,
    time_text,
)
from pathnn.cli.options import Data, Json, check_usage, options_from
from pathnn.training.config import RunConfig, option

if TYPE_CHECKING:
    from pathnn.data import BadRow, Task
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
Folds = Annotated[
    int | None,
    typer.Option("--folds", min=2, metavar="K", show_default=False,
                 help="Cross-validate: train K networks, each on all but one of K parts of the data."),
]  # fmt: skip
Baselines = Annotated[
    bool,
    typer.Option("--baselines", help="Also train random forests and LightGBM on the molecules of a table."),
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
    folds: Folds = None,
    baselines: Baselines = False,
    json: Json = False,
    *,
    given: dict[str, Any],
) -> None:
    """Train a model and write a run folder: config, metrics, the best model, result and curves.

    A dataset of the paper is trained with the paper's settings, your own data with defaults; options change them.
    --resume continues a run that was stopped. With --seeds or --folds, the folder has a run folder for each seed or
    fold. A run on a table of molecules also has test_predictions.csv (of folds: out_of_fold.csv) and report.html.
    """
    _check_members(seeds, folds, given)
    names = [entry.name for entry in fields(ModelOptions)]
    options = {name: given.pop(name) for name in names if name in given}
    with result_only(json):
        several = {"seeds": seeds, "folds": folds}
        result = _train(data, out, config, given, options, **several, baselines=baselines, resume=resume,
                        overwrite=overwrite)  # fmt: skip
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
    folds: int | None,
    baselines: bool,
    resume: bool,
    overwrite: bool,
) -> dict[str, Any]:
    """Fill in a config and run it, with one seed or several; write what a table of molecules has besides."""
    from pathnn.cli.console import epoch_line
    from pathnn.device import is_first_process
    from pathnn.evaluation import cross_validate
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
    _check_table_options(data, chosen, baselines=baselines)
    first_look = check_usage(RunConfig.from_dict, {**chosen, "data": data})  # before reading the data
    folder = _folder(out, "seed" if seeds is not None else "fold" if folds is not None else None)
    first = folder if isinstance(folder, RunFolder) else folder.member(min(folder.numbers, default=0))
    if resume and first.begun:
        saved = checked_config(first).to_dict()
        base = RunConfig.from_dict({**saved, **chosen, "data": data, "options": {**saved["options"], **options}})
        task = _load(base, out)
    else:
        folder.check(resume=resume, overwrite=overwrite)
        task = _load(first_look, out)
        base = fill_in(data, task, chosen, options)
    settings: dict[str, Any] = {"task": task, "resume": resume, "overwrite": overwrite}
    try:
        with epoch_line(several=seeds is not None or folds is not None) as report:
            if seeds is not None:
                result = run_ensemble(base, out, seeds, report=report, **settings)
            elif folds is not None:
                result = cross_validate(base, out, folds, report=report, **settings)
            else:
                result = run(base, out, report=report, **settings)
        return {**result, **_evaluate(out, task, data, folds, baselines=baselines)}
    except KeyboardInterrupt:
        has_checkpoint = RunFolder(out).state.exists() or any(out.glob("*-*/last.ckpt"))
        if has_checkpoint and is_first_process():
            note(f"stopped; the checkpoint is in {out}, and --resume resumes the run")
        raise


def _check_members(seeds: int | None, folds: int | None, given: dict[str, Any]) -> None:
    if folds is not None and seeds is not None:
        raise typer.BadParameter("--seeds and --folds exclude each other: give one of them.", param_hint="--folds")
    if folds is not None and "fold" in given:
        raise typer.BadParameter("it trains all folds: leave out --fold.", param_hint="--folds")


def _evaluate(out: Path, task: Task, data: str, folds: int | None, *, baselines: bool) -> dict[str, Any]:
    """Write predictions, baselines and a report of a run on a table of molecules; return the baselines' scores."""
    from pathnn.data import find_data
    from pathnn.device import is_first_process
    from pathnn.evaluation import write_evaluation

    if find_data(data).kind != "table" or not is_first_process():
        return {}
    with progress("evaluating" if not baselines else "training baselines", 4 * (folds or 1)) as step:
        found = write_evaluation(out, task, baselines=baselines, step=step)
    return {"baselines": found} if found else {}


def _folder(out: Path, kind: Literal["seed", "fold"] | None) -> RunFolder | EnsembleFolder:
    """Return the folder of a run or of several seeds or folds; refuse a folder of several for a single run."""
    from pathnn.training import EnsembleFolder, RunFolder

    there = EnsembleFolder.open(out)
    if there.begun and kind != there.kind:
        again = f"--{there.kind}s {len(there.numbers)} --resume"
        raise typer.BadParameter(
            f"{out} holds runs of {len(there.numbers)} {there.kind}s. Resume them with {again}, or give another "
            "folder.",
            param_hint="--out",
        )
    return RunFolder(out) if kind is None else EnsembleFolder(out, kind)


def _load(config: RunConfig, out: Path) -> Task:
    """Load the data; write its bad rows to a file next to the run folder, and its split if `splits` does not exist."""
    from pathnn.cli.console import note_not_read
    from pathnn.data import BadRowsError, DataError, write_split
    from pathnn.device import is_first_process
    from pathnn.training import load_task
    from pathnn.training.setup import choose_split

    splits = None if config.splits is None else Path(config.splits)
    new = splits is not None and not splits.exists()
    file = out.with_name(f"{out.name}-bad-rows.csv")
    try:
        with progress(f"reading {config.data}"):
            config = replace(config, splits=None) if new else config
            task = load_task(config)
    except BadRowsError as error:
        _write_bad_rows(file, error.rows)
        raise DataError(f"{error} All of them are in {file}.") from error
    if not is_first_process():
        return task
    note_not_read(task)
    if task.skipped:
        _write_bad_rows(file, task.skipped)
        note(f"all skipped rows are in {file}")
    if splits is not None and new and task.splits:
        write_split(splits, task, choose_split(task, replace(config, calibration=None)))
        note(f"wrote the split to {splits}")
    elif splits is not None:
        note(f"read the split in {splits}")
    _note_copies(task)
    return task


def _write_bad_rows(file: Path, rows: Sequence[BadRow]) -> None:
    from pathnn.files import write_csv

    write_csv(file, ("row", "smiles", "reason"), [(bad.row, bad.text, bad.reason) for bad in rows])


def _note_copies(task: Task) -> None:
    """Say how many molecules occur several times, and how many of them have different targets."""
    from pathnn.data import count_copies
    from pathnn.data.fingerprints import copies_across

    copies = count_copies(task)
    if not copies.molecules:
        return
    note(f"{number_text(copies.molecules, 'molecule')} with copies in {number_text(copies.rows, 'other row')}")
    if copies.conflicts:
        largest = "" if copies.largest is None else f"; the largest difference is {copies.largest:.4g}"
        which = f"{number_text(copies.conflicts, 'molecule')} with copies that have different targets"
        note(f"{which}{largest} ({copies.example})")
    across = max(copies_across(task, split) for split in task.splits) if task.splits else 0
    if across:
        note(f"{number_text(across, 'molecule')} for validation and test with copies in the training data")


def _say_result(result: dict[str, Any], out: Path) -> None:
    if not _can_draw():
        note("without curves.png, which needs matplotlib: pip install 'pathnn[plot]'")
    if "folds" in result:
        _say_folds(result)
    elif "seeds" in result:
        _say_several(result)
    else:
        _say_one(result)
    for part, scores in result.get("scores", {}).items():  # not in the results of earlier versions
        say(f"{part}: {scores_text(scores)}")
    _say_baselines(result)
    page = out / "report.html"
    say(f"wrote {out}; {page} is the report" if page.exists() else f"wrote {out}")


def _say_one(result: dict[str, Any]) -> None:
    score = result["test_score"]
    test = "not defined, or no test graphs" if score is None else score_text(score)
    say(
        f"{result['metric']}: test {test}, validation {score_text(result['val_score'])}, in epoch "
        f"{result['best_epoch']} of {result['epochs']} (stopped: {result['stopped']}); "
        f"{result['parameters']:,} parameters, {time_text(result['seconds'])}"
    )


def _say_folds(result: dict[str, Any]) -> None:
    mean, std, count = result["test_mean"], result["test_std"], len(result["folds"])
    each = "not defined" if mean is None else f"{mean:.4g} ± {std:.2g}"
    test = "" if result["test_score"] is None else f"; test part {score_text(result['test_score'])}"
    say(
        f"{result['metric']} of {count} folds: each {each}, all held-out predictions together "
        f"{score_text(result['out_of_fold_score'])}{test}; {time_text(result['seconds'])}"
    )


def _say_baselines(result: dict[str, Any]) -> None:
    for name, scores in result.get("baselines", {}).items():
        say(f"{name}: {scores_text(scores)}")


def _can_draw() -> bool:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


TABLE_OPTIONS = ("target", "kind", "smiles", "clean", "splits", "descriptors", "calibration")


def _check_table_options(data: str, chosen: dict[str, Any], *, baselines: bool) -> None:
    """Refuse options of tables for other data, which would ignore them."""
    from pathnn.data import find_data

    given = [f"--{name}" for name in TABLE_OPTIONS if chosen.get(name) is not None]
    if baselines:
        import lightgbm  # noqa: F401  # fail now, not after the training
        import sklearn  # noqa: F401

        given.append("--baselines")
    if given and find_data(data).kind != "table":
        raise typer.BadParameter(f"{', '.join(given)}: for tables of molecules, which {data} is not.")


def _say_several(result: dict[str, Any]) -> None:
    score, count = result["test_score"], len(result["seeds"])
    spread = {part: f"{result[f'{part}_mean']:.4g} ± {result[f'{part}_std']:.2g}"
              for part in ("test", "val") if result[f"{part}_mean"] is not None}  # fmt: skip
    test = "not defined, or no test graphs" if "test" not in spread else f"{score:.4g}, each {spread['test']}"
    say(
        f"{result['metric']}, the mean of {count} networks: test {test}; validation, each "
        f"{spread.get('val', 'not defined')}; {result['parameters']:,} parameters each, {time_text(result['seconds'])}"
    )
