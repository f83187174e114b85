"""Train a whole run: data, model, loop and run folder together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from pathnn.data.datasets.registry import is_dataset
from pathnn.data.fingerprints import DataFingerprint, count_copies
from pathnn.data.load import load_data, same_place
from pathnn.data.metrics import default_metric
from pathnn.data.readers.descriptors import Descriptors
from pathnn.data.readers.molecules import MoleculeFeatures
from pathnn.data.task import Task, Vocabulary, with_metric
from pathnn.device import device_name, on_first
from pathnn.provenance import commit, versions
from pathnn.training.checkpoint import (
    TaskSignature,
    TrainedModel,
    checked_config,
    load_state,
    save_model,
    save_state,
    training_fingerprints,
)
from pathnn.training.config import RunConfig
from pathnn.training.errors import RunError, RunStoppedError
from pathnn.training.loop import Epoch, TrainState, fabric_for, train, validate
from pathnn.training.run_folder import RESUMABLE, RunFolder, config_differences, finite
from pathnn.training.scoring import evaluate, result_scores
from pathnn.training.setup import (
    Loaders,
    build_model,
    choose_split,
    learned_from,
    make_loaders,
    resolve_max_entries,
)

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.loggers import Logger

DATA, HISTORY, SAMPLED = "data", "history", "sampled"
"""Keys of a saved state: the fingerprint of its data, the history of the run, and `max_paths_per_source`."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is ready to train in this process, on `device` and `commit`; `before` has its earlier parts.

    `training_graphs` has the fingerprints of the training graphs of data that is not a named dataset.
    """

    config: RunConfig
    folder: RunFolder
    fabric: Fabric
    loaders: Loaders
    state: TrainState
    device: str
    commit: str | None
    before: list[dict[str, Any]]
    training_graphs: str = ""
    logger: Logger | None = None

    @property
    def finished(self) -> bool:
        """Return whether the last epoch is done."""
        return self.state.stop_reason(self.config, maximize=self.loaders.task.maximize) is not None

    @property
    def history(self) -> list[dict[str, Any]]:
        """Return where its epochs were computed: its earlier parts, and that on this device and commit."""
        before, epoch = self.before, self.state.epoch
        if before and before[-1]["epochs"] >= epoch:
            return before
        here = {"device": self.device, "commit": self.commit, "epochs": epoch}
        same = bool(before) and {**before[-1], "epochs": epoch} == here
        return [*(before[:-1] if same else before), here]


def run(
    config: RunConfig,
    out: Path,
    *,
    task: Task | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Callable[[Epoch, Run], None] | None = None,
    checkpoint_every: float = 0.0,
    stop: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """Train as `config` says into the folder `out`, and return the content of `result.json`.

    With `resume`, a run that was stopped at any moment continues, and ends as if it had not been stopped; a finished
    run is only reported; changed data is refused. `report` is called after each epoch, in the first process.
    Give `task` if `config.data` is loaded already.

    The state is saved after an epoch if the last checkpoint is at least `checkpoint_every` seconds old; 0 saves every
    epoch. If an epoch takes less time than its checkpoint, 30 is better: a kill loses at most 30 seconds. `stop` is
    called after each epoch but the last; if it returns True, the state is saved and `RunStoppedError` is raised.

    ```python
    task = load_data("molecules.csv", targets="logS")
    config = RunConfig.from_dict({"data": "molecules.csv", "target": "logS", **default_options(task), "epochs": 2})
    result = run(config, Path("run"))
    print(result["test_score"])
    ```
    """
    with open_run(config, out, task=task, resume=resume, overwrite=overwrite) as ready:
        result = on_first(ready.fabric, lambda: saved_result(ready))
        if result is not None:
            return result
        train_run(ready, report=report, checkpoint_every=checkpoint_every, stop=stop)
        on_first(ready.fabric, lambda: ready.folder.write_curves(ready.loaders.task.metric_name))
        scores = best_scores(ready)
        return on_first(ready.fabric, lambda: finish_run(ready, scores))


@contextmanager
def open_run(
    config: RunConfig, out: Path, *, task: Task | None = None, resume: bool = False, overwrite: bool = False
) -> Iterator[Run]:
    """Lock the folder of a run, and prepare the run; a run that is refused leaves no new folder."""
    task = load_task(config) if task is None else with_metric(task, config.metric)
    fabric = fabric_for(config)
    folder = RunFolder(out)
    on_first(fabric, lambda: folder.check(resume=resume, overwrite=overwrite))
    with ExitStack() as lock:
        on_first(fabric, lambda: lock.enter_context(folder.lock()))
        yield prepare(config, task, folder, fabric, resume=resume)


def train_run(
    run: Run,
    *,
    report: Callable[[Epoch, Run], None] | None = None,
    checkpoint_every: float = 0.0,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Train the remaining epochs of a run, and save its checkpoints; the arguments are those of `run`."""
    folder, state = run.folder, run.state
    saved_at, saved_epoch = monotonic(), state.epoch

    def save() -> None:
        nonlocal saved_at, saved_epoch
        if state.epoch > saved_epoch:
            folder.sync_epochs()
            about = {DATA: asdict(run.loaders.data), HISTORY: run.history, SAMPLED: run.loaders.sampled}
            save_state(folder.state, {**state.state_dict(), **about}, config=run.config)
            if state.best is not None and state.best.epoch > saved_epoch:
                save_best(run)
        saved_at, saved_epoch = monotonic(), state.epoch

    def add(epoch: Epoch) -> None:
        folder.add_epoch(epoch, run.logger)
        if monotonic() - saved_at >= checkpoint_every:
            save()

    for epoch in train(state.model, run.loaders, run.config, state=state):
        on_first(run.fabric, partial(add, epoch))
        if report is not None and run.fabric.is_global_zero:
            report(epoch, run)
        if stop is not None and not run.finished and on_first(run.fabric, stop):
            on_first(run.fabric, save)
            raise RunStoppedError(f"{folder.path} was stopped after epoch {epoch.epoch}: resume with --resume.")
    on_first(run.fabric, save)


def load_task(
    config: RunConfig,
    features: MoleculeFeatures = "cip",
    vocabulary: Vocabulary | None = None,
    descriptors: Descriptors | None = None,
) -> Task:
    """Load the data of a run; `features` are those of molecules in a table, `vocabulary` the codes of TU data.

    `descriptors` are those of a trained model; None for those of the config.

    ```python
    task = load_task(RunConfig(data="molecules.csv", target="logS"))
    ```
    """
    same = ("smiles", "kind", "skip_invalid", "clean", "split_by", "split_seed", "splits")
    options: dict[str, Any] = {name: vars(config)[name] for name in same}
    options |= {"targets": None if config.target is None else list(config.target), "features": features}
    options |= {"vocabulary": vocabulary, "descriptors": descriptors or config.descriptors}
    return with_metric(load_data(config.data, **options), config.metric)


def save_best(run: Run) -> None:
    """Write the best model so far."""
    best, loaders = run.state.best, run.loaders
    if best is not None:
        signature = TaskSignature.of(loaders.task, loaders.scale, loaders.data, run.training_graphs)
        scores = best.epoch, best.val_score, versions(), best.test_score
        save_model(run.folder.model, TrainedModel(run.state.model, run.config, signature, *scores), best.weights)


def saved_result(run: Run) -> dict[str, Any] | None:
    """Return the result of a finished run with the scores of its checkpoint; None if its last epoch has none."""
    done = run.folder.read_result() if run.finished else None
    if done is None or done.get("epochs") != run.state.epoch or run.state.best is None:
        return None
    result = {**done, **finite(_scores(run))}
    if result != done:
        run.folder.write_result(result)
    return result


def _scores(run: Run) -> dict[str, Any]:
    """Return the part of the result that a checkpoint determines."""
    best = run.state.best
    if best is None:
        raise RunError("the run has no best epoch: no epoch has a validation score.")
    return {
        "data": run.config.data,
        "model": run.config.model,
        "metric": run.loaders.task.metric_name,
        "test_score": best.test_score,
        "val_score": best.val_score,
        "best_epoch": best.epoch,
        "epochs": run.state.epoch,
        "seconds": run.state.seconds,
        "parameters": sum(p.numel() for p in run.state.model.parameters()),
        "fold": run.config.fold,
        "seed": run.config.seed,
        **({} if (share := best.weights.get("head.kernel.share")) is None else {"kernel_share": share.tolist()}),
    }


def best_scores(run: Run) -> dict[str, Any]:
    """Return `result_scores` of the best model on the test and validation graphs; call it in every process."""
    best, loaders = run.state.best, run.loaders
    assert best is not None
    model = copy.deepcopy(run.state.evaluated)
    model.load_state_dict(best.weights)
    found = {"val": validate(model, loaders, run.fabric)} if len(loaders.val) else {}
    if len(loaders.test):
        test = evaluate(model, loaders.test, loaders.task, scale=loaders.scale, fabric=run.fabric)
        found = {"test": test, **found}
    return result_scores(found)


def finish_run(run: Run, scores: dict[str, Any] | None = None) -> dict[str, Any]:
    """Write and return the result of a run; `scores` are those of `best_scores`."""
    result = {
        **_scores(run),
        **(scores or {}),
        "stopped": run.state.stop_reason(run.config, maximize=run.loaders.task.maximize),
        "config_hash": run.config.digest(),
        "device": run.device,
        "processes": run.fabric.world_size,
        "commit": run.commit,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
    task = run.loaders.task
    if task.skipped:
        result["skipped_rows"] = len(task.skipped)
    if (copies := count_copies(task)).molecules:
        result["copies"] = {"molecules": copies.molecules, "rows": copies.rows, "conflicts": copies.conflicts}
    if [(part["device"], part["commit"]) for part in run.history] != [(run.device, run.commit)]:
        result["history"] = run.history
    if run.loaders.sampled is not None:
        result["max_paths_per_source"] = run.loaders.sampled
    run.folder.write_result(result)
    return result


def prepare(config: RunConfig, task: Task, folder: RunFolder, fabric: Fabric, *, resume: bool) -> Run:
    """Return a run before its next epoch; restore the files of a resumed run to its last checkpoint."""
    if config.metric == default_metric(task.target):
        config = replace(config, metric=None)  # with the name of the default metric, it is the same run
    resumed = resume and on_first(fabric, lambda: folder.begun)
    saved = load_state(folder.state) if resumed and on_first(fabric, folder.state.exists) else None
    data = None if saved is None else DataFingerprint.from_dict(saved.get(DATA))
    if resumed:
        config = on_first(fabric, lambda: _agree(config, checked_config(folder), any_place=data is not None))
    model = build_model(config, task)
    if not resumed:
        entries = resolve_max_entries(config.max_entries, model, fabric.device)
        config = fabric.broadcast(replace(config, max_entries=entries))
    loaders = make_loaders(task, config, model, device=fabric.device)
    if data is not None and (difference := data.difference(loaders.data)) is not None:
        raise RunError(
            f"{config.data} has changed since the run began, or another version of pathnn reads it differently: "
            f"{difference}. Restore it to resume the run, or start again with --overwrite."
        )
    if saved is not None and saved.get(SAMPLED) != loaders.sampled:
        raise RunError(
            f"the run began with max_paths_per_source={saved.get(SAMPLED)}, and its graphs now have paths with "
            f"max_paths_per_source={loaders.sampled}: expected the same (None: all paths)."
        )
    state = TrainState.start(model, config, fabric, maximize=task.maximize)
    logger = folder.make_logger(config.logger)
    if not resumed:
        on_first(fabric, folder.clear)  # only now, after all checks
    on_first(fabric, lambda: folder.write_config(config))
    index = learned_from(choose_split(task, config), config)
    training_graphs = "" if is_dataset(config.data) else training_fingerprints(task.graphs, index)
    before = [] if saved is None else saved[HISTORY]
    place = device_name(fabric.device), on_first(fabric, commit)
    ready = Run(config, folder, fabric, loaders, state, *place, before, training_graphs, logger)
    if saved is not None:
        state.load_state_dict(saved)
        on_first(fabric, lambda: folder.truncate(state.epoch))
        on_first(fabric, lambda: save_best(ready))
    elif resumed:
        on_first(fabric, lambda: folder.truncate(0))
    if logger is not None and fabric.is_global_zero:  # after a kill, or with another logger: all epochs again
        folder.clear_logs()
        folder.log_epochs(logger, folder.read_epochs())
    return ready


def _agree(asked: RunConfig, saved: RunConfig, *, any_place: bool) -> RunConfig:
    """Return the saved config with what may change of `asked`; raise `RunError` for any other difference."""
    if saved.schedule == "cosine" and asked.epochs != saved.epochs:
        raise RunError(
            f"the run began with epochs={saved.epochs}, and cannot be resumed with epochs={asked.epochs}: with the "
            "cosine schedule, the number of epochs determines every learning rate. Resume without --epochs, or start "
            f"a new run of {asked.epochs} epochs with --overwrite or in another folder."
        )
    may = {name: vars(asked)[name] for name in RESUMABLE}
    automatic: dict[str, Any] = {"max_entries": saved.max_entries} if asked.max_entries == "auto" else {}
    automatic |= {"data": saved.data} if any_place or same_place(asked.data, saved.data) else {}
    different = config_differences(replace(asked, **automatic), replace(saved, **may))
    if different:
        name, wanted, before = different[0]
        raise RunError(
            f"the run began with {name}={before!r}, and cannot be resumed with {name}={wanted!r}. "
            f"Leave the option out, or start a new run with --overwrite. Only {', '.join(may)} may change."
        )
    return replace(saved, **may)
