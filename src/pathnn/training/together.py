"""Several whole runs at once on one GPU: of one model and dataset, which differ in fold, seed and dropout alone.

Every run has its folder, its checkpoints and its result, as if it were done alone, and can go on alone or in other
company.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from pathnn.data.targets import with_metric
from pathnn.data.task import Task
from pathnn.nn import PathNN
from pathnn.nn.backends import base
from pathnn.nn.stacked import stack_fault
from pathnn.paths.ragged import RaggedTries
from pathnn.training.config import RunConfig
from pathnn.training.cuda_graphs.capture import padding_problem
from pathnn.training.cuda_graphs.padded_batch import PaddedShape, graph_sizes
from pathnn.training.errors import RunError
from pathnn.training.loop import Epoch, fabric_for
from pathnn.training.run_folder import RunFolder
from pathnn.training.runs import Run, load_task, prepare
from pathnn.training.together_epochs import Outcome, Together

BUSY, MOST = 2**20, 64
"""Entries of all batches together, and runs, at a time; more gain nothing."""


def run_together(
    configs: Sequence[RunConfig],
    outs: Sequence[Path],
    *,
    task: Task | None = None,
    report: Callable[[int, Epoch], None] | None = None,
    checkpoint_every: float = 0.0,
    stop: Callable[[], bool] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Train as `configs` say, each into its folder of `outs`, and yield (which run, what came of it) as they end.

    Runs that were begun go on. The options are those of `run`; `report` gets the number of the run, too. A run that
    cannot begin (a damaged checkpoint), or whose loss is not finite, ends alone, the others go on. Where the memory
    does not hold all at once, some wait for others. `TogetherError` says that these runs cannot be done together.

    ```python
    configs = [RunConfig(data="nci1", preset="nci1", collection="sp", k=2, fold=fold) for fold in range(10)]
    for number, result in run_together(configs, [Path(f"runs/{fold}") for fold in range(10)]):
        print(number, result["test_score"])
    ```
    """
    if not configs or len(configs) != len(outs):
        raise ValueError(f"{len(configs)} configs and {len(outs)} folders: expected at least one, and as many of each.")
    task = load_task(configs[0]) if task is None else with_metric(task, configs[0].metric)
    numbers, runs = [], []
    with ExitStack() as locks:
        for number, (config, out) in enumerate(zip(configs, outs, strict=True)):
            try:
                ready = _prepare(config, out, task, locks)
            except RunError as error:
                yield number, error
                continue
            task = ready.loaders.task  # with its paths, on the GPU: the others need not make them again
            numbers.append(number)
            runs.append(ready)
        if not runs:
            return
        fault = together_fault(runs)
        if fault is not None:
            raise TogetherError(fault)
        groups = -(-len(runs) // most_together(runs[0]))
        size = -(-len(runs) // groups)
        for first in range(0, len(runs), size):
            group, own = runs[first : first + size], numbers[first : first + size]
            tell = None if report is None else partial(_counted, own, report)
            for place, outcome in Together(group, tell, checkpoint_every, stop).go():
                yield own[place], outcome


def _counted(numbers: list[int], report: Callable[[int, Epoch], None], place: int, epoch: Epoch) -> None:
    report(numbers[place], epoch)


def _prepare(config: RunConfig, out: Path, task: Task, locks: ExitStack) -> Run:
    folder, fabric = RunFolder(out), fabric_for(config)
    folder.create(resume=True)
    locks.enter_context(folder.lock())
    return prepare(config, task, folder, fabric, resume=True)


class TogetherError(RunError):
    """Runs that have to be done one by one."""


def together_fault(runs: Sequence[Run]) -> str | None:
    """Why runs cannot be done together, or None."""
    first = runs[0]
    model, loaders = first.state.model, first.loaders
    if len({common(run.config).digest() for run in runs}) > 1:
        return "their options differ in more than fold, seed and dropout."
    if loaders.task.has_missing_targets and len({run.config.fold for run in runs}) > 1:
        return "some targets are not known, another share of them in each fold."
    if first.fabric.device.type != "cuda" or not base.on_triton(next(model.parameters())):
        return "they are not on an NVIDIA GPU with Triton."
    if first.config.precision != "32-true" or first.config.clip is not None or first.config.standardize:
        return "precision, clip or standardize are not the defaults."
    graphs = loaders.train.graphs
    paths = isinstance(graphs.tries, RaggedTries) or not isinstance(model, PathNN)
    if graphs.device.type != "cuda" or graphs.x is None or not paths:
        return "the dataset is not on the GPU."
    if loaders.task.loss is None or not hasattr(loaders.task.loss(), "reduction"):
        return "the loss of the task is not one for each graph."
    if most_together(first) < 2:
        return "a batch of one of them keeps the GPU busy, or takes most of the memory."
    return stack_fault(model) or padding_problem(model)


def most_together(run: Run) -> int:
    """How many runs like this one are worth doing at once, at least 0. Batches of all of them keep the GPU busy with
    `BUSY` entries of a trie (more gains nothing, and wastes room: the largest batch decides), and the memory holds
    `max_entries`, of which each takes twice as much here, because nothing is computed again."""
    loader = run.loaders.train
    sizes = graph_sizes(loader.graphs, paths=isinstance(run.state.model, PathNN))
    shapes = PaddedShape.shapes(sizes, run.config.batch_size)
    least, most = shapes[0].amount, shapes[-1].amount
    held = MOST if loader.max_entries is None else loader.max_entries // (2 * most)
    return min(held, BUSY // least, MOST)


def common(config: RunConfig) -> RunConfig:
    """A config without what may differ between runs that are done together.

    >>> options = {"hidden_channels": 64}
    >>> one = RunConfig(data="nci1", fold=1, options={**options, "dropout": 0.5})
    >>> common(one) == common(RunConfig(data="nci1", fold=2, options=options))
    True
    """
    options = {name: value for name, value in config.options.items() if name != "dropout"}
    return replace(config, fold=0, seed=0, max_entries="auto", options=options)
