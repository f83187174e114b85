"""A whole run: data, model, loop and folder put together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from lightning.fabric import Fabric

from pathnn.data.datasets.registry import is_dataset
from pathnn.data.fingerprints import DataFingerprint, same_place
from pathnn.data.load import load_data
from pathnn.data.metrics import default_metric
from pathnn.data.readers.atom_features import MoleculeFeatures
from pathnn.data.targets import with_metric
from pathnn.data.task import Task, Vocabulary
from pathnn.provenance import commit
from pathnn.training.checkpoint import (
    RunHistory,
    TaskSignature,
    load_state,
    save_model,
    save_state,
    training_fingerprints,
    versions,
)
from pathnn.training.config import RunConfig
from pathnn.training.curves import save_curves
from pathnn.training.devices import make_fabric, on_first
from pathnn.training.errors import RunError, RunStoppedError
from pathnn.training.loop import Epoch, train
from pathnn.training.run_folder import WHERE, RunFolder, config_differences, finite
from pathnn.training.setup import Loaders, build_model, make_loaders, resolve
from pathnn.training.state import TrainState

DATA, LEGS, SAMPLED = "data", "legs", "sampled"
"""Where a saved state has the print of its data, and says where it was worked on and how many paths it sampled."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run that is ready to go, in this process; `together` with how many others, itself included. `seen` has the
    prints of the training graphs of data that has no name (`pathnn.training.checkpoint`), `legs` say where it was done.
    """

    config: RunConfig
    folder: RunFolder
    fabric: Fabric
    loaders: Loaders
    state: TrainState
    legs: RunHistory
    seen: str = ""
    together: int = 1


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
    curves: bool = True,
) -> dict[str, Any]:
    """Train as `config` says, into the folder `out`, and return what `result.json` holds.

    With `resume` a run that was stopped at any moment goes on, and ends as if it had not been stopped; a run that is
    over is only reported; data that has changed since is refused. `report` is called after each epoch, in the first
    process. `task` saves loading `config.data`.

    The state is saved after an epoch if the last time is at least `checkpoint_every` seconds ago; 0 saves
    every epoch. Where an epoch takes less time than its checkpoint, 30 is better: a kill loses at most that.
    `stop` is asked after each epoch but the last; if it says so, the state is saved and `RunStoppedError` raised.
    `curves=False` leaves out the picture.

    ```python
    task = load_data("molecules.csv", targets="logS")
    config = RunConfig.from_dict({"data": "molecules.csv", "target": "logS", **default_options(task), "epochs": 2})
    result = run(config, Path("run"))
    print(result["test_score"])
    ```
    """
    task = load_task(config) if task is None else with_metric(task, config.metric)
    fabric = make_fabric(config)
    folder, new = RunFolder(out), not out.exists()
    on_first(fabric, lambda: folder.create(resume=resume, overwrite=overwrite))
    with folder.lock() if fabric.is_global_zero else nullcontext():
        try:
            ready = prepare(config, task, folder, fabric, resume=resume)
        except ValueError:  # a RunError, or what the model says of its options
            if new and fabric.is_global_zero:
                folder.abandon()
            raise
        done = on_first(fabric, lambda: noted_result(ready))
        if done is not None and ready.state.stop_reason(ready.config, maximize=task.maximize) is not None:
            return done
        checkpoints = Checkpoints(ready, checkpoint_every)
        for epoch in train(ready.state.model, ready.loaders, ready.config, state=ready.state):
            on_first(fabric, lambda epoch=epoch: checkpoints.add(epoch))  # type: ignore[misc]
            if report is not None and fabric.is_global_zero:
                report(epoch, ready)
            over = ready.state.stop_reason(ready.config, maximize=task.maximize) is not None
            if stop is not None and not over and on_first(fabric, stop):
                on_first(fabric, checkpoints.save)
                raise RunStoppedError(f"{out} was stopped after epoch {epoch.epoch}: go on with --resume.")
        on_first(fabric, checkpoints.save)
        return on_first(fabric, lambda: finish(ready, curves=curves))


def load_task(config: RunConfig, features: MoleculeFeatures = "cip", vocabulary: Vocabulary | None = None) -> Task:
    """The data of a run; `features` are those of the molecules of a CSV, `vocabulary` the codes of TU data.

    ```python
    task = load_task(RunConfig(data="molecules.csv", target="logS"))
    ```
    """
    targets = None if config.target is None else list(config.target)
    kind: Any = config.kind
    options: dict[str, Any] = {"skip_invalid": config.skip_invalid, "features": features}
    options |= {"split_by": config.split_by, "split_seed": config.split_seed, "vocabulary": vocabulary}
    task = load_data(config.data, smiles=config.smiles, targets=targets, kind=kind, **options)
    return with_metric(task, config.metric)


class Checkpoints:
    """Writes what epochs change: a line each, and now and then the state and the best model.

    A kill at any moment is made good by `prepare`: lines never lag behind the state, and the state holds the
    weights of the best model. Where the weights are worked on elsewhere, `bring` brings them to the run: it is called
    before the state is written.
    """

    def __init__(self, run: Run, every: float) -> None:
        self.run, self.every = run, every
        self._saved_at, self._saved_epoch = monotonic(), run.state.epoch
        self._saved_best = _best_epoch(run)

    def add(self, epoch: Epoch, bring: Callable[[], None] | None = None) -> None:
        """Take note of an epoch, and save if it is time."""
        self.run.folder.add_epoch(epoch)
        if monotonic() - self._saved_at >= self.every:
            self.save(bring)

    def save(self, bring: Callable[[], None] | None = None) -> None:
        """Save all that has changed since the last time."""
        run = self.run
        if run.state.epoch != self._saved_epoch:
            run.folder.sync_epochs()
            if bring is not None:
                bring()
            legs = run.legs.until(run.state.epoch)
            state = {**run.state.state_dict(), DATA: run.loaders.data.to_dict(), LEGS: legs}
            state[SAMPLED] = run.loaders.sampled
            save_state(run.folder.state, state, config=run.config)
        if _best_epoch(run) != self._saved_best:
            save_best(run)
        self._saved_at, self._saved_epoch, self._saved_best = monotonic(), run.state.epoch, _best_epoch(run)


def _best_epoch(run: Run) -> int | None:
    return None if run.state.best is None else run.state.best.epoch


def save_best(run: Run) -> None:
    """Write the best model so far."""
    best = run.state.best
    if best is not None:
        save_model(
            run.folder.model,
            run.state.model,
            best.weights,
            config=run.config,
            facts=TaskSignature.of(run.loaders.task, run.loaders.scale, run.loaders.data, run.seen),
            epoch=best.epoch,
            val_score=best.val_score,
            test_score=best.test_score,
        )


def noted_result(run: Run) -> dict[str, Any] | None:
    """The result of a run that is over, or None if `result.json` is not of the epoch that the run is at.

    Its scores are those of the checkpoint: `result.json` may have been edited, and is then written again.
    """
    done = run.folder.read_result()
    if done is None or done.get("epochs") != run.state.epoch or run.state.best is None:
        return None
    result = {**done, **finite(_scores(run))}
    if result != done:
        run.folder.write_result(result)
    return result


def _scores(run: Run) -> dict[str, Any]:
    """What the checkpoint of a run says of its result."""
    best = run.state.best
    if best is None:
        raise RunError("no epoch has a validation score: the run has no best epoch.")
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
    }


def finish(run: Run, *, curves: bool = True) -> dict[str, Any]:
    """Write the picture and the result; returns the result."""
    task, scores = run.loaders.task, _scores(run)
    if curves:
        save_curves(run.folder.curves, run.folder.read_epochs(), metric_name=task.metric_name)
    result = {
        **scores,
        "stopped": run.state.stop_reason(run.config, maximize=task.maximize),
        "config_hash": run.config.digest(),
        "device": run.legs.device,
        "processes": run.fabric.world_size,
        "together": run.together,
        "commit": run.legs.commit,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
    legs = run.legs.until(run.state.epoch)
    if [(leg["device"], leg["commit"]) for leg in legs] != [(result["device"], result["commit"])]:
        result["legs"] = legs
    if run.loaders.sampled is not None:
        result["max_paths_per_source"] = run.loaders.sampled
    run.folder.write_result(result)
    return result


def prepare(config: RunConfig, task: Task, folder: RunFolder, fabric: Fabric, *, resume: bool) -> Run:
    """Everything up to the first epoch to train; of a resumed run, all files as they were after the last one
    saved.
    """
    if config.metric == default_metric(task.target):
        config = replace(config, metric=None)  # by name or not, it is the same run
    resumed = resume and on_first(fabric, lambda: folder.begun)
    saved = load_state(folder.state) if resumed and on_first(fabric, folder.state.exists) else None
    data = None if saved is None else DataFingerprint.from_dict(saved.get(DATA))
    if resumed:
        config = on_first(fabric, lambda: _agree(config, folder.checked_config(), any_place=data is not None))
    model = build_model(config, task)
    if not resumed:
        config = resolve(config, model, fabric.device)
        config = fabric.broadcast(config)
    loaders = make_loaders(task, config, model, device=fabric.device)
    _check_data(config.data, data, loaders.data)
    if saved is not None and saved.get(SAMPLED) != loaders.sampled:
        raise RunError(
            f"the run was begun with max_paths_per_source={saved.get(SAMPLED)}, and its graphs now have paths with "
            f"max_paths_per_source={loaders.sampled}: expected the same (None: all paths)."
        )
    state = TrainState.start(model, config, fabric, maximize=task.maximize)
    if not resumed:
        on_first(fabric, folder.clear)  # only now, when all that could be refused has been accepted
    on_first(fabric, lambda: folder.write_config(config))
    named = is_dataset(config.data)
    seen = "" if named else training_fingerprints(task.graphs, loaders.train.index)
    device = torch.cuda.get_device_name(fabric.device) if fabric.device.type == "cuda" else "cpu"
    before, epoch = ([], 0) if saved is None else (saved.get(LEGS), saved["epoch"])
    legs = RunHistory.after(before, epoch, device, on_first(fabric, commit))
    ready = Run(config, folder, fabric, loaders, state, legs, seen)
    if saved is not None:
        state.load_state_dict(saved)
        on_first(fabric, lambda: _restore(ready))
    elif resumed:
        on_first(fabric, lambda: folder.truncate(0))
    return ready


def _restore(run: Run) -> None:
    run.folder.truncate(run.state.epoch)
    save_best(run)


def _check_data(name: str, before: DataFingerprint | None, now: DataFingerprint) -> None:
    difference = None if before is None else before.difference(now)
    if difference is not None:
        raise RunError(
            f"{name} has changed since the run was begun, or another version of pathnn reads it differently: "
            f"{difference}. Bring it back to go on, or begin anew with --overwrite."
        )


def _agree(asked: RunConfig, saved: RunConfig, *, any_place: bool) -> RunConfig:
    """The saved config with the options of `asked` that may change; any other difference is refused.

    With `any_place` the data may be called anything: it is known by its print.
    """
    may = {name: asked.to_dict()[name] for name in WHERE}
    automatic: dict[str, Any] = {"max_entries": saved.max_entries} if asked.max_entries == "auto" else {}
    automatic |= {"data": saved.data} if any_place or same_place(asked.data, saved.data) else {}
    different = config_differences(replace(asked, **automatic), replace(saved, **may))
    if different:
        name, wanted, before = different[0]
        raise RunError(
            f"the run was begun with {name}={before!r}, and cannot be resumed with {name}={wanted!r}. "
            f"Leave the option out, or start a new run with --overwrite. Only {', '.join(WHERE)} may change."
        )
    return replace(saved, **may)
