"""The batches of a run: train, validation and test of one split, with the paths that the model reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from pathnn.data.fingerprints import DataPrint
from pathnn.data.loader import PackedLoader, epoch_order
from pathnn.data.packed import PackedGraphs
from pathnn.data.shards import ShardedTries
from pathnn.data.targets import TargetScale, for_targets
from pathnn.data.task import Split, Task, random_split
from pathnn.device import default_max_entries, free_memory
from pathnn.engine.build import Model, has_batch_norm, path_options
from pathnn.engine.checks import check_answers, check_finite, check_finite_targets, check_precision
from pathnn.engine.config import RunConfig
from pathnn.engine.errors import RunError
from pathnn.engine.seeding import data_key, run_seed
from pathnn.nn import PathNNConfig
from pathnn.paths.ragged import RaggedTries

UNSCALED = TargetScale()


@dataclass(frozen=True, eq=False)
class Loaders:
    """What a run reads: batches to train on, to choose the epoch by, and to report; the facts of the task; and what
    stands for the data in seeds (`pathnn.engine.seeding`).
    """

    task: Task
    train: PackedLoader
    val: PackedLoader
    test: PackedLoader
    data: DataPrint
    data_key: str
    scale: TargetScale = UNSCALED

    @property
    def sampled(self) -> int | None:
        """The most paths of a source and length, where they are a sample (`max_paths_per_source`)."""
        tries = _in_memory(self.task.graphs.tries)
        return None if tries is None else tries.sampled


def make_loaders(task: Task, config: RunConfig, model: Model, *, device: torch.device | str) -> Loaders:
    """The loaders of the split `config.fold`; the dataset lies on `device` where it fits.

    ```python
    task, config = load_dataset("csl"), RunConfig(data="csl", collection="sp", k=2)
    loaders = make_loaders(task, config, build_model(config, task), device="cpu")
    batch = next(iter(loaders.train))
    ```
    """
    check_finite(task)
    check_finite_targets(task)
    split = choose_split(task, config)
    check_answers(task, split)
    precise = config.standardize or config.precision == "64-true"
    check_precision(task, split.train, torch.float64 if precise else torch.float32)
    data, key = DataPrint.of(task, split), data_key(config, task)
    task = task.with_graphs(with_paths(task.graphs, model, device))
    drop = has_batch_norm(model) if config.drop_single is None else config.drop_single
    if drop and split.train.numel() == 1:
        raise RunError(f"{task.name} has one graph to train on: expected at least 2 for BatchNorm.")
    if drop and config.batch_size == 1:
        raise RunError(
            "batch_size=1: batches of one graph are left out, since BatchNorm learns nothing from them. Expected at "
            "least 2 (--batch-size)."
        )

    def loader(index: Tensor, *, train: bool) -> PackedLoader:
        return PackedLoader(
            task.graphs,
            index,
            batch_size=config.batch_size,
            shuffle=train,
            seed=run_seed(config, key, "order"),
            drop_single=drop and train,
            max_entries=resolve_max_entries(config.max_entries, model, device),
            device=device,
        )

    y = task.graphs.y
    if config.standardize and task.target != "regression":
        raise RunError(
            f"standardize=True is for regression, and the target of {task.name} is of the kind {task.target!r}: "
            "expected standardize=False (in a config file: standardize: false)."
        )
    if task.partly_known and task.loss is not None and y is not None:
        task = replace(task, loss=partial(for_targets, task.loss, y[split.train.to(y.device)]))
    scale = TargetScale.of(y[split.train]) if config.standardize and y is not None else UNSCALED
    return Loaders(
        task,
        loader(split.train, train=True),
        loader(split.val, train=False),
        loader(split.test, train=False),
        data,
        key,
        scale,
    )


def with_paths(graphs: PackedGraphs, model: Model, device: torch.device | str) -> PackedGraphs:
    """The graphs with the paths that `model` reads, on `device` if they take at most half of its free
    memory. Graphs that have these paths already, on disk (`build_shards`) or as a sample, keep them.
    """
    reads = path_options(model)
    if reads is not None and not _are_read(graphs.tries, reads):
        if isinstance(graphs.tries, ShardedTries):
            raise RunError(
                f"the paths on disk are not the model's: expected collection={reads.collection!r}, k={reads.k}, "
                f"distances={reads.distances}, extend={reads.extend}. Make them with these options of build_shards."
            )
        graphs = graphs.with_paths(
            collection=reads.collection, k=reads.k, distances=reads.distances, extend=reads.extend
        )
    fits = torch.device(device).type == "cpu" or graphs.nbytes <= free_memory(device) // 2
    return graphs.to(device) if fits else graphs


def has_paths(graphs: PackedGraphs, model: Model) -> bool:
    """Whether graphs have paths that are to be kept: those that `model` reads, or any on disk."""
    reads = path_options(model)
    return reads is not None and (isinstance(graphs.tries, ShardedTries) or _are_read(graphs.tries, reads))


def _in_memory(tries: object) -> RaggedTries | None:
    """The tries themselves; of those on disk the first, which are like the others. None where there are none."""
    if isinstance(tries, ShardedTries):
        return next(iter(tries.shards), None)
    return tries if isinstance(tries, RaggedTries) else None


def _are_read(given: object, reads: PathNNConfig) -> bool:
    tries = _in_memory(given)
    return (
        tries is not None
        and (tries.collection, tries.k, tries.extended) == (reads.collection, reads.k, reads.extend)
        and (tries.distance is not None) == reads.distances
    )


def batch_indices(loader: PackedLoader, epoch: int) -> list[Tensor]:
    """The graphs of each batch of an epoch, in the order they are visited."""
    order = epoch_order(loader.index, shuffle=loader.shuffle, seed=loader.seed, epoch=epoch)
    return list(loader.sampler.batches(order))


def own_share(batches: list[Tensor], rank: int, world_size: int) -> Iterator[tuple[Tensor, float]]:
    """One process' part of each batch, and its share of the batch's loss.

    Every process takes part in every step: where a batch has fewer graphs than there are processes, the
    others see its first graph with a share of 0.

    >>> list(own_share([torch.tensor([4, 5, 6])], 0, 2))
    [(tensor([4, 5]), 0.6666...)]
    >>> list(own_share([torch.tensor([4])], 1, 2))
    [(tensor([4]), 0.0)]
    """
    for batch in batches:
        own = batch.tensor_split(world_size)[rank]
        yield (own, own.numel() / batch.numel()) if own.numel() else (batch[:1], 0.0)


def choose_split(task: Task, config: RunConfig) -> Split:
    """The split of a run."""
    splits = splits_of(task, config)
    if not config.fold < len(splits):
        raise RunError(f"fold={config.fold}: {task.name} has {len(splits)} splits, counted from 0.")
    split = splits[config.fold]
    for part, index in (("train", split.train), ("validation", split.val)):
        if index.numel() == 0:
            raise RunError(
                f"{task.name} has {len(task.graphs)} graphs, which leaves none for {part}. "
                "Give more data: at least ten graphs."
            )
    return split


def splits_of(task: Task, config: RunConfig) -> tuple[Split, ...]:
    """The splits that a run chooses from: the task's, or the random one of `split_seed`."""
    if config.split_seed is None or config.split_by is not None:
        return task.splits
    return (random_split(len(task.graphs), seed=config.split_seed),)


def resolve_max_entries(
    max_entries: int | Literal["auto"] | None, model: Model, device: torch.device | str
) -> int | None:
    """A number for "auto": what half of the free memory holds, rounded down to a power of two.

    Rounded, so that a little less memory does not cut other pieces, which would round other sums.
    """
    if max_entries != "auto":
        return max_entries
    most = default_max_entries(device, hidden_channels=model.config.hidden_channels)
    return 1 << (most.bit_length() - 1)


def resolve(config: RunConfig, model: Model, device: torch.device | str) -> RunConfig:
    """The config with every "auto" replaced by what it meant here."""
    return replace(config, max_entries=resolve_max_entries(config.max_entries, model, device))
