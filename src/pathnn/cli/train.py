"""`pathnn train`: turn options into a config, and run it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import (
    epoch_line,
    note,
    note_not_read,
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
from pathnn.paths.options import option
from pathnn.training.config import RunConfig, yaml_options

if TYPE_CHECKING:
    from pathnn.data import BadRow, Task
    from pathnn.training.run_folder import Member

Out = Annotated[Path, typer.Option("--out", "-o", metavar="RUN", help="The folder to write the run to.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A YAML file of options; options of the command line override it."),
]  # fmt: skip
Resume = Annotated[bool, typer.Option("--resume", help="Resume the run in the folder, if there is one.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", min=2, metavar="N",
                 help="Train N networks, with seeds from --seed on; predictions are their mean, with error bars."),
]  # fmt: skip
Folds = Annotated[
    int | None,
    typer.Option("--folds", min=2, metavar="K",
                 help="Cross-validate: train K networks, each on all but one of K parts of the data."),
]  # fmt: skip
Baselines = Annotated[
    bool, typer.Option("--baselines", help="Also train random forests and LightGBM on the molecules of a table.")
]


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
    if folds is not None and seeds is not None:
        raise typer.BadParameter("--seeds and --folds exclude each other: give one of them.", param_hint="--folds")
    if folds is not None and "fold" in given:
        raise typer.BadParameter("it trains all folds: leave out --fold.", param_hint="--folds")
    with result_only(json):
        from pathnn.device import is_first_process
        from pathnn.evaluation import cross_validate
        from pathnn.training import RunFolder, run, run_ensemble

        chosen, options = read_options(given, config)
        if folds is not None:
            check_usage(RunConfig.from_dict, {**chosen, "data": data, "folds": folds})
        check_table_options(data, chosen, baselines=baselines)
        kind: Member | None = "seed" if seeds is not None else "fold" if folds is not None else None
        modes = {"resume": resume, "overwrite": overwrite}
        base, task = _prepare(data, out, chosen, options, kind, modes)
        try:
            with epoch_line(several=kind is not None) as report:
                settings: dict[str, Any] = {"task": task, "report": report, **modes}
                if seeds is not None:
                    result = run_ensemble(base, out, seeds, **settings)
                elif folds is not None:
                    result = cross_validate(base, out, folds, **settings)
                else:
                    result = run(base, out, **settings)
            first = is_first_process()
            result |= _evaluate(out, task, data, folds, baselines=baselines) if first else {}
        except KeyboardInterrupt:
            if is_first_process() and (RunFolder(out).state.exists() or any(out.glob("*-*/last.ckpt"))):
                note(f"stopped; the checkpoint is in {out}, and --resume resumes the run")
            raise
    if first and json:
        print_json({**result, "out": out})
    elif first:
        _say_result(result, out)


def read_options(given: dict[str, Any], file: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the command line and of a config file: those of the run, and those of the model."""
    names = [entry.name for entry in fields(ModelOptions)]
    chosen = {} if file is None else yaml_options(file.read_text("utf-8"))
    listed = chosen.pop("options", None) or {}
    if not isinstance(listed, dict):
        raise ValueError(f"{file}: options={listed!r}: expected names and values below it, as hidden_channels: 64.")
    chosen |= {name: value for name, value in given.items() if name not in names}
    return chosen, {**listed, **{name: value for name, value in given.items() if name in names}}


def _prepare(
    data: str, out: Path, chosen: dict[str, Any], options: dict[str, Any], kind: Member | None, modes: dict[str, bool]
) -> tuple[RunConfig, Task]:
    """Check the folder, load the data, and fill in the config of a new run or of one to resume."""
    from pathnn.training import EnsembleFolder, RunFolder
    from pathnn.training.checkpoint import checked_config
    from pathnn.training.recipes import add_descriptors, fill_in
    from pathnn.training.run_folder import check_kind

    first_look = check_usage(RunConfig.from_dict, {**chosen, "data": data})  # before reading the data
    check_usage(check_kind, out, kind)
    folder = RunFolder(out) if kind is None else EnsembleFolder(out, kind)
    first = folder if isinstance(folder, RunFolder) else folder.member(min(folder.numbers, default=0))
    if modes["resume"] and first.begun:
        saved = checked_config(first).to_dict()
        base = RunConfig.from_dict({**saved, **chosen, "data": data, "options": {**saved["options"], **options}})
        return base, load_table(base, out)
    folder.check(resume=modes["resume"], overwrite=modes["overwrite"])
    chosen = add_descriptors(data, chosen)
    task = load_table(replace(first_look, descriptors=chosen.get("descriptors")), out)
    return fill_in(data, task, chosen, options), task


def _evaluate(out: Path, task: Task, data: str, folds: int | None, *, baselines: bool) -> dict[str, Any]:
    """Write predictions, baselines and a report of a run on a table of molecules; return the baselines' scores."""
    from pathnn.data import find_data
    from pathnn.evaluation import write_evaluation

    if find_data(data).kind != "table":
        return {}
    with progress("evaluating" if not baselines else "training baselines", 4 * (folds or 1)) as step:
        found = write_evaluation(out, task, baselines=baselines, step=step)
    return {"baselines": found} if found else {}


def load_table(config: RunConfig, out: Path) -> Task:
    """Load the data; write its bad rows to a file next to the run folder, and its split if `splits` does not exist."""
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
    _note_cleaning(task, config)
    _note_copies(task)
    _note_scales(task)
    return task


def _write_bad_rows(file: Path, rows: Sequence[BadRow]) -> None:
    from pathnn.files import write_csv

    write_csv(file, ("row", "smiles", "reason"), [(bad.row, bad.text, bad.reason) for bad in rows])


def _note_cleaning(task: Task, config: RunConfig) -> None:
    """Say how many molecules cleaning changed, or that many have several fragments."""
    from pathnn.data.readers.molecules import is_changed

    names, clean = task.graphs.names or (), config.clean
    if clean is not None:
        changed = sum(is_changed(name, clean) for name in names)
        note(f"--clean {clean} changed {changed:,} of {len(names):,} molecules")
    elif 20 * (salts := sum("." in name for name in names)) > len(names):
        note(f"{salts:,} of {len(names):,} molecules have several fragments: --clean salts keeps the largest of each")


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


def _note_scales(task: Task) -> None:
    """Say which target dominates the mean of errors, if the standard deviations differ by more than a factor of 10."""
    y = task.graphs.y if task.metric_name in ("MAE", "RMSE") else None
    std = [] if y is None else [float(column[~column.isnan()].std(correction=0)) for column in y.T]
    if std and max(std) > 10 * min(one or math.inf for one in std):
        largest = (task.classes or range(len(std)))[std.index(max(std))]
        note(
            "the standard deviations of the targets differ by more than a factor of 10: the mean "
            f"{task.metric_name}, which chooses the epoch, is mostly that of {largest}; --metric r2 weights all equally"
        )


TABLE_OPTIONS = ("target", "kind", "smiles", "clean", "splits", "descriptors", "calibration")


def check_table_options(data: str, chosen: dict[str, Any], *, baselines: bool = False) -> None:
    """Refuse options of tables for other data, which would ignore them."""
    from pathnn.data import find_data

    given = [f"--{name}" for name in TABLE_OPTIONS if chosen.get(name) not in (None, "none")]
    if baselines:
        import lightgbm  # noqa: F401  # fail now, not after the training
        import sklearn  # noqa: F401

        given.append("--baselines")
    if given and find_data(data).kind != "table":
        raise typer.BadParameter(f"{', '.join(given)}: for tables of molecules, which {data} is not.")


def _say_result(result: dict[str, Any], out: Path) -> None:
    if not any(out.rglob("curves.png")):
        note("without curves.png, which needs matplotlib: pip install 'pathnn[plot]'")
    say(_result_text(result))
    for part, scores in result.get("scores", {}).items():  # not in the results of earlier versions
        say(f"{part}: {scores_text(scores)}")
    for part, scores in result.get("targets", {}).items():
        say(f"{part}, {result['metric']} of each target: {scores_text(scores)}")
    for name, scores in result.get("baselines", {}).items():
        say(f"{name}: {scores_text(scores)}")
    page = out / "report.html"
    say(f"wrote {out}; {page} is the report" if page.exists() else f"wrote {out}")


def _result_text(result: dict[str, Any]) -> str:
    """Return the main scores of one run, of several seeds, or of folds."""
    metric, score, seconds = result["metric"], result["test_score"], time_text(result["seconds"])
    spread = {part: f"{result[f'{part}_mean']:.4g} ± {result[f'{part}_std']:.2g}"
              for part in ("test", "val") if result.get(f"{part}_mean") is not None}  # fmt: skip
    undefined = "not defined, or no test graphs"
    if "folds" in result:
        test = "" if score is None else f"; test part {score_text(score)}"
        together = f"all held-out predictions together {score_text(result['out_of_fold_score'])}"
        each = spread.get("test", "not defined")
        return f"{metric} of {len(result['folds'])} folds: each {each}, {together}{test}; {seconds}"
    if "seeds" in result:
        test = f"{score:.4g}, each {spread['test']}" if "test" in spread else undefined
        return (
            f"{metric}, the mean of {len(result['seeds'])} networks: test {test}; validation, each "
            f"{spread.get('val', 'not defined')}; {result['parameters']:,} parameters each, {seconds}"
        )
    return (
        f"{metric}: test {undefined if score is None else score_text(score)}, validation "
        f"{score_text(result['val_score'])}, in epoch {result['best_epoch']} of {result['epochs']} (stopped: "
        f"{result['stopped']}); {result['parameters']:,} parameters, {seconds}"
    )
