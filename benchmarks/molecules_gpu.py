"""Search for defaults, then measure intervals, folds and tuning, with several processes and within a time limit.

    python benchmarks/molecules_gpu.py SHARED_DATA OUT --seconds 330 --search 120 [--workers 12] [--device cuda]

The search compares the settings of `default_search.py` on training parts, until `--search` seconds have passed, and
`default_search.choose` chooses one; no test molecule is read before that. With this setting, the rest of the time is
for 90 % intervals on random and on published splits, scores of five folds and of one network on published splits, and
`pathnn tune` on ESOL. Every result is written at once into a file in OUT with the name and the form of one in
`benchmarks/results`, except `single.csv`, which has one network per dataset. `--setting` leaves out the search.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import default_search
from chemprop_scores import append_rows, score_rows, write_tables
from default_search import SEARCHED, choose, split_setting, write_training_part
from interval_coverage import measure, write_split
from molecule_scores import rows_of, write_rows

from pathnn.data import Task
from pathnn.device import device_name, resolve
from pathnn.inference import Predictor
from pathnn.nn import readout
from pathnn.provenance import commit
from pathnn.training import RunConfig, load_task, run, search_options
from pathnn.training.recipes import fill_in

Found = list[tuple[str, dict[str, Any]]]
"""The names of files, and a line for each."""


@dataclass(frozen=True)
class Job:
    """What all tasks need: folders, the device, and how much of the work a test leaves out."""

    work: Path
    device: str
    epochs: int | None = None
    trials: int = 30

    def options(self, setting: str, metric: str | None = None) -> tuple[dict[str, Any], dict[str, Any], float]:
        """Return the options of a setting as `split_setting` does, with the device and the metric of the epoch."""
        values, options, counts = split_setting(setting)
        short = {} if self.epochs is None else {"epochs": self.epochs, "warmup": 0}
        return {**values, **short, "device": self.device, "metric": metric}, options, counts

    def known(self, setting: str, table: Path, name: str, metric: str | None) -> tuple[Task, RunConfig, float]:
        """Return the molecules of a table that are not for test, a config for them, and the scale of counts."""
        values, options, counts = self.options(setting, metric)
        file = self.work / name / table.name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_rows(file, rows_of(table, "train", "val"), "smiles", "y", "split")
        chosen = {"data": str(file), "target": ["y"], "split_by": "split", **values}
        task = load_task(RunConfig.from_dict(chosen))
        return task, fill_in(str(file), task, chosen, options), counts


def search(job: Job, setting: str, table: Path) -> Found:
    """Cross-validate a setting on the training part of a dataset."""
    folder = job.work / "search" / setting.replace(" ", "-") / table.stem
    folder.mkdir(parents=True)
    short = {} if job.epochs is None else {"epochs": job.epochs, "warmup": 0}
    with patch.dict(default_search.SETTINGS, {setting: default_search.SETTINGS[setting] | short}):
        row = default_search.measure(setting, write_training_part(table, folder), folder, job.device)
    shutil.rmtree(folder)
    return [("defaults.jsonl", row)]


def folds(job: Job, setting: str, split: str, table: Path) -> Found:
    """Measure the intervals of five folds; for published splits, also their scores."""
    values, options, counts = job.options(setting, "rmse" if split == "published" else None)
    run = job.work / "runs" / split / table.stem
    with patch.object(readout, "COUNTS", counts):
        row, predicted = measure(write_split(table, job.work, split), run, values, options)
    shutil.rmtree(run)
    scores = [] if split == "random" else score_lines("pathnn --folds 5", table, predicted)
    intervals = [("intervals.jsonl", {**row, "setting": setting})] if table.stem != "ESOL" else []
    return [*intervals, *(("molecules.csv", line) for line in scores)]


def single(job: Job, setting: str, table: Path) -> Found:
    """Score one network on the published test part."""
    task, config, counts = job.known(setting, table, "single", "rmse")
    out = job.work / "single" / table.stem
    with patch.object(readout, "COUNTS", counts):
        run(config, out, task=task)
    found = Predictor(out, job.device)([row["smiles"] for row in rows_of(table, "test")])
    shutil.rmtree(out)
    return [("single.csv", line) for line in score_lines(f"pathnn, {setting}", table, found["predicted_y"])]


def tune(job: Job, setting: str, table: Path) -> Found:
    """Search for better options on a dataset with `pathnn tune`; its first trial has the setting."""
    start, (task, config, counts) = time.monotonic(), job.known(setting, table, "tune", None)
    with patch.object(readout, "COUNTS", counts):
        study = search_options(config, job.work / "tune" / "search", job.trials, task=task)
    pruned = sum(trial.state.name == "PRUNED" for trial in study.trials)
    return [("tune.jsonl", {
        "dataset": table.stem, "setting": setting, "metric": task.metric_name, "epochs": config.epochs,
        "training": len(rows_of(table, "train")), "validation": len(rows_of(table, "val")),
        "trials": len(study.trials), "pruned": pruned, "default": study.trials[0].value, "best": study.best_value,
        "best_trial": study.best_trial.number, "params": study.best_params,
        "scores": [trial.value for trial in study.trials], "seconds": time.monotonic() - start,
        "device": device_name(resolve(job.device)), "commit": commit(),
    })]  # fmt: skip


def score_lines(model: str, table: Path, predicted: list[float]) -> list[dict[str, Any]]:
    """Return lines of `molecules.csv` without CPU seconds, which a GPU does not have."""
    empty = {"train_cpu_seconds": "", "predict_cpu_seconds": "", "commit": commit()}
    rows = rows_of(table, "test")
    return [{"model": model, "dataset": table.stem, **line, **empty} for line in score_rows(rows, predicted)]


def in_time(deadline: float, task: Callable[[], Found]) -> Found:
    """Return the result of a task, or nothing if it is too late to begin it."""
    if time.time() >= deadline:
        return []
    gc.collect()  # CUDA graphs of the runs before hold memory
    return task()


def write(out: Path, found: Found) -> None:
    """Add the results of a task to their files."""
    for name, row in found:
        if name.endswith(".csv"):
            append_rows(out / name, [row])
        else:
            with (out / name).open("a") as file:
                file.write(json.dumps(row) + "\n")


def finish(tasks: dict[Future[Found], str], out: Path, stop: float) -> Iterator[str]:
    """Write results as they come until the time `stop`, and yield what failed; tasks that did not begin are silent."""
    try:
        for future in as_completed(tasks, timeout=max(0.0, stop - time.time())):
            error = future.exception()
            if error is not None:
                yield f"{tasks[future]}: {type(error).__name__}: {error}"
            else:
                write(out, future.result())
    except TimeoutError:
        yield f"stopped before the end of {sum(not future.done() for future in tasks)} tasks"


PARTS = ("tune", "random", "published", "single")


def evidence(
    job: Job, setting: str, tables: list[Path], parts: Sequence[str]
) -> Iterator[tuple[str, Callable[[], Found]]]:
    """Yield the tasks after the search with their titles, in the order of their importance, long ones first."""
    largest = sorted(tables, key=lambda path: -path.stat().st_size)
    esol = [path for path in tables if path.stem == "ESOL"]
    if "tune" in parts:
        yield from ((f"tune {path.stem}", partial(tune, job, setting, path)) for path in esol)
    for split in [name for name in ("random", "published") if name in parts]:
        for path in largest:
            if split == "published" or path not in esol:
                yield f"folds {split} {path.stem}", partial(folds, job, setting, split, path)
    if "single" in parts:
        yield from ((f"single {path.stem}", partial(single, job, setting, path)) for path in largest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, required=True, help="stop after this time")
    parser.add_argument("--search", type=float, default=0.0, help="begin no task of the search after this time")
    parser.add_argument("--setting", choices=default_search.CANDIDATES, help="measure this one, without a search")
    parser.add_argument("--settings", nargs="+", choices=default_search.SETTINGS, help="of the search; default: all")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="datasets; by default all")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure after the search")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--work", type=Path, default=Path("/tmp/molecules-gpu"))
    parser.add_argument("--epochs", type=int, help="fewer epochs, to try out this script")
    parser.add_argument("--trials", type=int, default=30)
    options = parser.parse_args()
    start = time.time()
    shutil.rmtree(options.work, ignore_errors=True)
    options.out.mkdir(parents=True, exist_ok=True)
    tables = write_tables(options.data, options.work / "tables")
    tables = [path for path in tables if options.only is None or path.stem in options.only]
    job = Job(options.work, options.device, options.epochs, options.trials)
    os.environ["OMP_NUM_THREADS"] = "1"
    pool = ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn"))

    def submit(deadline: float, tasks: Iterator[tuple[str, Callable[[], Found]]]) -> dict[Future[Found], str]:
        return {pool.submit(in_time, start + deadline, task): title for title, task in tasks}

    setting = options.setting
    try:
        if setting is None:
            order = options.settings or (*default_search.CANDIDATES, *default_search.COSTLY)
            searched = [path for path in reversed(tables) if path.stem in SEARCHED]
            tasks = ((f"{name} {path.stem}", partial(search, job, name, path)) for name in order for path in searched)
            for problem in finish(submit(options.search, tasks), options.out, start + options.seconds):
                print(problem, flush=True)
            file = options.out / "defaults.jsonl"
            lines = file.read_text().splitlines() if file.exists() else []
            setting = choose([json.loads(line) for line in lines])
            print(f"{time.time() - start:.0f} s: {len(lines)} results of the search, chosen: {setting}", flush=True)
        tasks = submit(options.seconds, evidence(job, setting, tables, options.parts))
        for problem in finish(tasks, options.out, start + options.seconds):
            print(problem, flush=True)
    finally:
        for process in list(pool._processes.values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
    print(f"{time.time() - start:.0f} s: done", flush=True)


if __name__ == "__main__":
    main()
