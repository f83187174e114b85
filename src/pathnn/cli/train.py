"""`pathnn train`: turn options into a config, and run it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, number_text, print_json, progress, result_only, say, time_text
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
    from pathnn.cli.console import epoch_line
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
        task = _load(base, out)
    else:
        folder.check(resume=resume, overwrite=overwrite)
        task = _load(first_look, out)
        base = fill_in(data, task, chosen, options)
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
        write_split(splits, task, choose_split(task, config))
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
    from pathnn.data.copies import copies_across

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
    """Refuse options of tables for other data, which would ignore them."""
    from pathnn.data import find_data

    given = [f"--{name}" for name in ("target", "kind", "smiles", "clean", "splits") if chosen.get(name) is not None]
    if given and find_data(data).kind != "table":
        raise typer.BadParameter(f"{', '.join(given)}: for tables of molecules, which {data} is not.")


def _shown(score: float | None) -> str:
    """Return a score as text; None stands for NaN, as in JSON."""
    return "not defined" if score is None or math.isnan(score) else f"{score:.4g}"


def _say_several(result: dict[str, Any]) -> None:
    score, count = result["test_score"], len(result["seeds"])
    spread = {part: f"{result[f'{part}_mean']:.4g} ± {result[f'{part}_std']:.2g}"
              for part in ("test", "val") if result[f"{part}_mean"] is not None}  # fmt: skip
    test = "not defined, or no test graphs" if "test" not in spread else f"{score:.4g}, each {spread['test']}"
    say(
        f"{result['metric']}, the mean of {count} networks: test {test}; validation, each "
        f"{spread.get('val', 'not defined')}; {result['parameters']:,} parameters each, {time_text(result['seconds'])}"
    )
