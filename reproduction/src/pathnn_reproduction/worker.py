"""Do one run in this process: train from its run folder, with the data of the last run, and return its row."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pathnn.data.errors import DatasetNotFoundError
from pathnn.data.task import Task
from pathnn.device import default_max_entries, resolve
from pathnn.training import RunFolder, RunStoppedError, build_model, load_model, load_task
from pathnn.training.checkpoint import checked_config
from pathnn.training.config import Device, RunConfig
from pathnn.training.runs import finish_run, open_run, saved_result, train_run as train_epochs
from pathnn.training.setup import with_paths
from pathnn_reproduction.results import Row, loaded_commit, trained_row

if TYPE_CHECKING:
    from pathnn_reproduction.spec import RunSpec

GPU_LOST = ("CUDA error", "Triton Error [CUDA]", "cuDNN error")
"""Parts of an error after which the process can compute nothing more on the GPU."""

NO_MEMORY = ("out of memory", "ALLOC_FAILED")
"""Parts of such an error if the memory of the GPU was full."""


@dataclass(frozen=True)
class Settings:
    """The settings that all runs of a call share."""

    work: Path  # the folder of the run folders
    results: Path = Path()  # the results file
    device: Device = "auto"
    jobs: int = 1  # so many runs share this machine
    deadline: float | None = None  # the time (`time.time()`) at which runs stop
    stop_file: Path | None = None  # runs stop when this file exists

    def stopping(self) -> bool:
        """Return whether runs must stop."""
        late = self.deadline is not None and time.time() >= self.deadline
        return late or (self.stop_file is not None and self.stop_file.exists())

    def folder(self, spec: RunSpec) -> RunFolder:
        """Return the folder of a training run."""
        return RunFolder(self.work / spec.target / spec.folder)


@dataclass(frozen=True)
class Outcome:
    """The end of a run: a row, or why there is none."""

    row: Row | None = None
    error: str = ""  # empty for a finished run and for one that was stopped and can be resumed
    memory: bool = False  # the memory was full, which may be due to other runs
    lost: bool = False  # the process can do nothing more
    unavailable: bool = False  # the dataset is not available


def execute(spec: RunSpec, settings: Settings) -> Outcome:
    """Do a run; errors are outcomes, since not every error can be sent between processes."""
    try:
        return Outcome(spec.run(spec, settings))
    except RunStoppedError:
        return Outcome()
    except DatasetNotFoundError as error:
        return Outcome(error=_one_line(error), unavailable=True)
    except Exception as error:
        text = _one_line(error)
        lost = any(sign in text for sign in GPU_LOST)
        memory = isinstance(error, torch.OutOfMemoryError) or (lost and any(sign in text for sign in NO_MEMORY))
        return Outcome(error=f"{type(error).__name__}: {text}", memory=memory, lost=lost)
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # the other processes on this GPU may need it


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def train_run(spec: RunSpec, settings: Settings) -> Row:
    """Train the model of a spec, or resume it, and return its row.

    Raises `RunStoppedError` if the run was stopped after an epoch.
    """
    assert spec.config is not None
    folder = settings.folder(spec)
    result = _finished(folder)
    if result is None:
        config = replace(spec.config, **_place(spec.config, folder, settings))
        with open_run(config, folder.path, task=task_with_paths(config), resume=True) as ready:
            result = saved_result(ready)
            if result is None:
                train_epochs(ready, stop=settings.stopping, checkpoint_every=30.0)  # seconds that a kill can lose
                result = finish_run(ready)
        result = {**result, "commit": loaded_commit()}
    row = trained_row(spec, checked_config(folder), result)
    folder.state.unlink(missing_ok=True)  # a finished run keeps its model, metrics and result
    return row


def _finished(folder: RunFolder) -> dict[str, Any] | None:
    """Return the result of a run that ended before its row was written; the scores are those of the model file."""
    done = folder.read_result()
    best = None if done is None else load_model(folder.model)
    if done is None or best is None or best.test_score is None:
        return None
    return {**done, "val_score": best.val_score, "test_score": best.test_score, "best_epoch": best.epoch}


def _place(config: RunConfig, folder: RunFolder, settings: Settings) -> dict[str, Any]:
    """Return the device, and the share of the memory; a run that has begun keeps its share."""
    place: dict[str, Any] = {"device": settings.device}
    if not folder.begun and config.max_entries == "auto":
        width = int(config.options.get("hidden_channels", 128))
        most = default_max_entries(resolve(settings.device).type, hidden_channels=width) // settings.jobs
        place["max_entries"] = 1 << (max(most, 1).bit_length() - 1)
    return place


_LAST_TASK: dict[tuple[Any, ...], Task] = {}


def task_with_paths(config: RunConfig) -> Task:
    """Load the data of a run, with its paths if the model reads paths; the last data stays in memory."""
    paths = config.model in ("pathnn", "pathnn+") and config.options.get("read_paths", True)
    key = (config.data, paths and (config.collection, config.k), config.device)
    if key not in _LAST_TASK:
        _LAST_TASK.clear()  # before the new data is loaded
        task = load_task(config)
        _LAST_TASK[key] = task.with_graphs(with_paths(task.graphs, build_model(config, task), resolve(config.device)))
    return _LAST_TASK[key]


def start_worker(jobs: int) -> None:
    """Prepare a process: its share of the cores, no signals (the parent handles them), no life without the parent."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    loaded_commit()
    share_cores(jobs)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def share_cores(jobs: int) -> None:
    """Use a share of the cores, and no more threads than `OMP_NUM_THREADS`."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    threads = max(1, available // jobs)
    torch.set_num_threads(min(threads, int(allowed)) if allowed.isdigit() and int(allowed) else threads)
