"""Search for good options of a run with Optuna (extra `tune`): by validation scores, never on the test part."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pathnn.data.task import Task, with_metric
from pathnn.device import resolve
from pathnn.paths.count import PathExplosionError
from pathnn.paths.options import COLLECTIONS
from pathnn.training.config import RunConfig
from pathnn.training.errors import NotFiniteError, RunError, RunFolderError
from pathnn.training.loop import train
from pathnn.training.run_folder import BLUE, LOCK, ORANGE, Folder, write_figure, write_file
from pathnn.training.runs import load_task
from pathnn.training.setup import Model, build_model, data_key, make_loaders

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

FILES = ("tune.db", "tune.db-journal", "config.yaml", "search.png", LOCK)
"""The files of a search: Optuna's database, the best setting, and a picture."""

FINISHED = ("COMPLETE", "PRUNED")


@dataclass(frozen=True)
class Search:
    """The config of the first trial, its searched options, and where to search: `alone` if no other command does."""

    config: RunConfig
    defaults: Mapping[str, Any]
    url: str
    alone: bool
    name: str
    trials: int
    report: Callable[[Study, FrozenTrial], None] | None


def search_options(
    config: RunConfig,
    out: Path,
    trials: int,
    *,
    fixed: Collection[str] = (),
    task: Task | None = None,
    jobs: int = 1,
    storage: str | None = None,
    report: Callable[[Study, FrozenTrial], None] | None = None,
) -> Study:
    """Try settings around `config` until `trials` trials are finished, and write the best one to `out/config.yaml`.

    The first trial is `config` itself, so the best setting has at least its validation score. Options named in `fixed`
    keep their values. A search that was stopped continues if it is called again. `jobs` processes, and machines that
    give the same `storage` (a URL of Optuna; by default a file in `out`), work on one search; processes load the data
    that `config` names. Optuna logs each trial, unless `report` is called after it.

    ```python
    task = load_data("molecules.csv", targets="logS")
    config = RunConfig.from_dict({"data": "molecules.csv", "target": "logS", **default_options(task), "epochs": 2})
    study = search_options(config, Path("search"), 2, task=task)
    print(study.best_value, study.best_params)
    ```
    """
    if trials < 1 or jobs < 1:
        raise RunError(f"trials={trials}, jobs={jobs}: expected at least 1.")
    if config.devices * config.num_nodes > 1:
        raise RunError("each trial runs in one process: leave out devices and num_nodes, and give jobs instead.")
    task = load_task(config) if task is None else with_metric(task, config.metric)
    model = build_model(config, task)
    defaults = searched(config, model, fixed)
    if not defaults:
        raise RunError(f"there is nothing to search: all of {', '.join(searched(config, model))} are given.")
    task = task.with_graphs(make_loaders(task, config, model, device="cpu").task.graphs)  # raises the errors of a run
    folder = Folder(out)
    folder.check_free(lambda name: name in FILES)
    with folder.lock():
        place = ("data", "device", "max_entries")  # which machines may have differently
        shared = {name: value for name, value in config.to_dict().items() if name not in place}
        key = json.dumps([shared, sorted(defaults), data_key(config, task)])
        name = f"pathnn-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        url = storage or f"sqlite:///{out.resolve()}/tune.db"
        plan = Search(config, defaults, url, storage is None, name, trials, report)
        study = open_study(plan, task)
        if jobs == 1:
            work(plan, study, task)
        else:
            _work_in_processes(plan, jobs)
        if not _trials(study, "COMPLETE"):
            raise RunError("no trial ended with a score. Lower k or the width, or fix them with options.")
        write_file(out / "config.yaml", trial_config(config, study.best_params).to_yaml())
        write_figure(out / "search.png", lambda: draw_search(study, metric_name=task.metric_name))
    return study


def searched(config: RunConfig, model: Model, fixed: Collection[str] = ()) -> dict[str, Any]:
    """Return the options that are searched, with their values in `config` and its model."""
    paths = ("k", "collection") if config.model.startswith("pathnn") else ()
    names = (*paths, "hidden_channels", "dropout", "readout", "lr", "weight_decay")
    every = {**vars(model.config), **vars(config)}
    return {name: every[name] for name in names if name not in fixed}


def suggest(trial: Trial, name: str, default: Any) -> Any:
    """Return a value of an option for a trial, near its default."""
    if name == "k":
        return trial.suggest_int(name, max(1, default - 2), default + 2)
    if name == "dropout":
        return trial.suggest_float(name, 0.0, max(0.5, default))
    if name == "lr":
        return trial.suggest_float(name, default / 5, default * 5, log=True)
    choices: Sequence[Any] = tuple(COLLECTIONS) if name == "collection" else ("sum", "mean")
    if name == "hidden_channels":
        choices = (max(1, default // 2), default, 2 * default)
    elif name == "weight_decay":
        choices = sorted({0.0, 1e-5, 1e-4, 1e-3, default})
    return trial.suggest_categorical(name, choices)


def trial_config(config: RunConfig, params: Mapping[str, Any]) -> RunConfig:
    """Return `config` with the options of a trial."""
    own = {name: value for name, value in params.items() if name in vars(config)}
    return replace(config, **own, options={**config.options, **{n: v for n, v in params.items() if n not in own}})


def open_study(plan: Search, task: Task, worker: int = 0) -> Study:
    """Open or create a study and enqueue its first trial; if alone, also the trials that were killed."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    if plan.report is not None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.MedianPruner(n_warmup_steps=plan.config.epochs // 4)
    patient = {"connect_args": {"timeout": 60}} if plan.url.startswith("sqlite") else None
    try:
        storage = optuna.storages.RDBStorage(plan.url, patient)
        names = optuna.get_all_study_names(storage)
        if plan.alone and names and plan.name not in names:
            raise RunFolderError("the folder has a search with other data or options: give another folder.")
        direction = "maximize" if task.maximize else "minimize"
        study = optuna.create_study(
            storage=storage, study_name=plan.name, direction=direction, pruner=pruner, load_if_exists=True
        )
    except (SQLAlchemyError, ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"{reason}. Expected a database of Optuna, such as --storage sqlite:///tune.db.") from error
    seed = plan.config.seed + len(study.trials) + 10_000 * worker  # a search that continues draws other settings
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    if worker:
        return study
    for trial in _trials(study, "RUNNING") if plan.alone else ():
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        study.enqueue_trial(trial.params)
    tried = _trials(study, *FINISHED, "RUNNING", "WAITING")
    if not any(plan.defaults in (trial.params, trial.system_attrs.get("fixed_params")) for trial in tried):
        study.enqueue_trial(dict(plan.defaults))
    return study


def _trials(study: Study, *states: str) -> list[FrozenTrial]:
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in states]


def work(plan: Search, study: Study, task: Task) -> None:
    """Run trials until the search has as many as it asks for, of this and of other processes."""
    import optuna

    parent = multiprocessing.parent_process()

    def objective(trial: Trial) -> float:
        params = {name: suggest(trial, name, value) for name, value in plan.defaults.items()}
        config, best = trial_config(plan.config, params), math.nan
        try:
            model = build_model(config, task)
            loaders = make_loaders(task, config, model, device=resolve(config.device))
            loaders.test.index = loaders.test.index[:0]  # the search never looks at the test part
            for epoch in train(model, loaders, config):
                best = epoch.val_score if epoch.best else best
                trial.report(epoch.val_score, epoch.epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
                if parent is not None and not parent.is_alive():
                    raise KeyboardInterrupt  # the command was killed
        except (NotFiniteError, PathExplosionError, MemoryError, torch.OutOfMemoryError) as error:
            raise optuna.TrialPruned from error
        if math.isnan(best):
            raise optuna.TrialPruned
        return best

    counted = (*FINISHED, "RUNNING") if plan.alone else FINISHED  # elsewhere, trials that seem to run may be lost
    while len(_trials(study, *counted)) < plan.trials:
        study.optimize(objective, n_trials=1, callbacks=plan.report and [plan.report])


def _work_in_processes(plan: Search, jobs: int) -> None:
    context, threads = multiprocessing.get_context("spawn"), max(1, (os.cpu_count() or 1) // jobs)
    workers = [context.Process(target=_worker, args=(plan, i + 1, threads), daemon=True) for i in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RunError("a process of the search failed; its error is above. The finished trials are kept.")


def _worker(plan: Search, number: int, threads: int) -> None:
    torch.set_num_threads(threads)
    task = load_task(plan.config)
    with suppress(KeyboardInterrupt):
        work(plan, open_study(plan, task, number), task)


def draw_search(study: Study, *, metric_name: str) -> Figure:
    """Draw the validation scores of the trials that were not pruned: in their order, and by each option."""
    from matplotlib.figure import Figure

    trials = _trials(study, "COMPLETE")
    numbers, values = [trial.number + 1 for trial in trials], [trial.value for trial in trials]
    names, better = list(trials[0].params), max if study.direction.name == "MAXIMIZE" else min
    figure = Figure(figsize=(12, 6), layout="constrained")
    history, *slices = [figure.add_subplot(2, 4, i + 1) for i in range(len(names) + 1)]
    history.plot(numbers, list(accumulate(values, better)), color=ORANGE, label="best")
    history.plot(numbers, values, "o", color=BLUE)
    history.set(xlabel="trial", ylabel=f"validation {metric_name}")
    history.legend(frameon=False)
    for axes, name in zip(slices, names, strict=True):
        given, words = sorted((trial.params[name], trial.value) for trial in trials), name not in ("dropout", "lr")
        axes.plot([str(x) if words else x for x, _ in given], [y for _, y in given], "o", color=BLUE)
        axes.set(xlabel=name, **({"xscale": "log"} if name == "lr" else {}))
    return figure
