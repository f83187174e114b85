"""`pathnn tune`: search for good options of `pathnn train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, result_only, say, score_text
from pathnn.cli.options import Data, Json, check_usage, options_from
from pathnn.cli.train import ConfigFile, ModelOptions, check_table_options, load_table, read_options
from pathnn.training.config import RunConfig

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder of the search.")]
Trials = Annotated[
    int, typer.Option("--trials", min=1, metavar="N", help="Trials to finish, with those of earlier calls.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, metavar="N", help="Processes on this machine.")]
Storage = Annotated[
    str | None,
    typer.Option("--storage", metavar="URL",
                 help="A database that several machines share, such as postgresql://...; by default a file in FOLDER."),
]  # fmt: skip


@options_from(RunConfig, ModelOptions)
def tune_command(
    data: Data,
    out: Out,
    trials: Trials = 30,
    jobs: Jobs = 1,
    storage: Storage = None,
    config: ConfigFile = None,
    json: Json = False,
    *,
    given: dict[str, Any],
) -> None:
    """Search for good options with Optuna, by the validation score; the first trial has the defaults of train.

    K, collection, width, dropout, readout, learning rate and weight decay are searched; an option that is given keeps
    its value. Repeat the command to continue a search that was stopped. FOLDER/config.yaml has the best setting, for
    train --config; FOLDER/search.png shows the search.
    """
    with result_only(json):
        import optuna  # noqa: F401  # fail now, not after reading the data

        from pathnn.training import search_options
        from pathnn.training.recipes import add_descriptors, fill_in

        chosen, options = read_options(given, config)
        check_table_options(data, chosen)
        chosen = add_descriptors(data, chosen)
        task = load_table(check_usage(RunConfig.from_dict, {**chosen, "data": data}), out)
        base = fill_in(data, task, chosen, options)
        study = search_options(base, out, trials, fixed=given, task=task, jobs=jobs, storage=storage, report=_report)
    best, file = study.best_trial, out / "config.yaml"
    if json:
        print_json({"metric": task.metric_name, "val_score": best.value, "trial": best.number, "best": best.params,
                    "trials": len(study.trials), "config": file})  # fmt: skip
    else:
        which = f"trial {best.number + 1} of {len(study.trials)}"
        say(f"{task.metric_name}: validation {score_text(best.value)} in {which}")
        say(", ".join(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
                      for name, value in best.params.items()))  # fmt: skip
        say(f"wrote {file}: pathnn train {data} --config {file} --out RUN")


def _report(study: Study, trial: FrozenTrial) -> None:
    """Say how a trial ended; trials are counted from 1."""
    ended = "stopped early" if trial.state.name == "PRUNED" else f"finished, validation {score_text(trial.value)}"
    note(f"trial {trial.number + 1} {ended}")
