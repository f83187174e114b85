"""Build the model and the loaders of a run from its config and its task; check that the task can be learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pathnn.data.datasets.registry import dataset_names
from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.loader import PackedLoader
from pathnn.data.metrics import score_targets
from pathnn.data.packed import PackedGraphs
from pathnn.data.paths import BatchPaths, path_options
from pathnn.data.splits import BUTINA, RANDOM, SCAFFOLD, deal, fold_splits, random_task_split, split_groups
from pathnn.data.task import Categorical, Split, TargetScale, Task, loss_for, regression_loss, weighted_loss
from pathnn.device import default_max_entries, free_memory
from pathnn.nn import Baseline, DeepPathNN, PathNN, paper_config
from pathnn.nn.model_file import Model as Model
from pathnn.nn.path_nn import PathModel
from pathnn.nn.readout import GraphScale
from pathnn.paths.prefixes import join_lengths
from pathnn.paths.ragged import RaggedTries
from pathnn.training.checkpoint import feature_width
from pathnn.training.config import RunConfig, run_seed
from pathnn.training.errors import NotFiniteError, RunError


def data_key(config: RunConfig, task: Task) -> str:
    """Return the text that stands for the data in the seeds of a run: a name, or fingerprints of a file's content."""
    if config.data.lower() in dataset_names():
        return config.data.lower()
    data = DataFingerprint.of(task, None)
    return f"{data.graphs} {data.targets}"


def build_model(config: RunConfig, task: Task) -> Model:
    """Build the untrained model of a run: its seed gives the weights, its task the widths.

    Descriptors are standardised with the training part of its split.

    ```python
    task = load_dataset("csl")
    model = build_model(RunConfig(data="csl", collection="sp+", k=3), task)
    ```
    """
    torch.manual_seed(run_seed(config, data_key(config, task), "weights"))
    options = {**_fitting(task), **config.options}
    model: Model
    try:
        paths: dict[str, Any] = {"collection": config.collection, "k": config.k}
        sample = {"max_paths_per_source": config.max_paths_per_source}
        if config.model == "pathnn":
            preset: dict[str, Any] = {"hidden_channels": 64}
            if config.preset is not None:
                preset = paper_config(config.preset, variant=config.variant, **paths).to_dict()
            model = PathNN.from_config({**preset, **options, **paths}, **sample)
        elif config.model == "pathnn+":
            model = DeepPathNN.from_config({"hidden_channels": 64, **options, **paths}, **sample)
        else:
            model = Baseline.from_config({"hidden_channels": 64, **options, "name": config.model})
    except TypeError as error:
        raise RunError(f"an option of the model has a value of the wrong type: {error}.") from error
    values = task.graphs.graph_attr
    if values is not None and isinstance(model.graph_scale, GraphScale):
        counts = 0 if task.descriptors is None else task.descriptors.counts
        train = choose_split(task, config).train.to(values.device)
        model.graph_scale.fit(values[train].cpu(), counts=counts)
        if config.kernel:
            _fit_kernel(model, config, task, values, counts)
    elif config.kernel:
        raise RunError("kernel compares descriptors, and this run has none: leave it out (--kernel none).")
    return model


def learned_from(split: Split, config: RunConfig) -> Tensor:
    """Return the graphs that a model learns from: the training part, and for a kernel then the validation part."""
    return torch.cat([split.train, split.val]) if config.kernel else split.train


MOST_COMPARED = 20_000
"""A kernel over more training graphs would take hours and gigabytes."""


def _fit_kernel(model: Model, config: RunConfig, task: Task, values: Tensor, counts: int) -> None:
    """Fit the kernel of a model to the training and validation graphs, in this order; `values` has their features."""
    split, y = choose_split(task, config), training_targets(task)
    index = learned_from(split, config)
    if task.target != "regression" or len(index) > MOST_COMPARED:
        raise RunError(
            f"kernel is for regression with at most {MOST_COMPARED:,} training graphs, but {task.name} has "
            f"{len(index):,} and the target is of the kind {task.target!r}: leave it out (--kernel none)."
        )
    y = y[index.to(y.device)].cpu().double()
    scale = TargetScale.of(y[: len(split.train)]) if config.standardize else TargetScale()
    model.fit_kernel(values[index.to(values.device)].cpu(), scale.encode(y), counts=counts)


def _fitting(task: Task) -> dict[str, Any]:
    """Return the options that the data determines: widths, kinds of encoders, number of outputs."""
    check_targets(task, training_targets(task))
    if task.node_features is None:
        raise RunError(f"{task.name} has no vertex features: give graphs an x, or pack them with ones.")
    return {
        "in_channels": feature_width(task.node_features),
        "encoder": "categorical" if isinstance(task.node_features, Categorical) else "mlp",
        "edge_channels": feature_width(task.edge_features),
        "out_channels": task.out_channels,
        "graph_channels": 0 if task.graphs.graph_attr is None else task.graphs.graph_attr.size(1),
    }


@dataclass(frozen=True, eq=False)
class Loaders:
    """The task of a run, the loaders of its split, the fingerprint of its data, and its `data_key`."""

    task: Task
    train: PackedLoader
    val: PackedLoader
    test: PackedLoader
    data: DataFingerprint
    data_key: str
    scale: TargetScale = field(default_factory=TargetScale)

    @property
    def sampled(self) -> int | None:
        """Return `max_paths_per_source` of the paths, or None for all paths."""
        tries = self.task.graphs.tries
        return None if tries is None else path_options(tries).max_paths_per_source

    def draw(self, config: RunConfig, epoch: int) -> None:
        """Draw the sample of an epoch, counted from 0, if the run redraws samples."""
        tries = self.train.graphs.tries
        if config.redraw and isinstance(tries, BatchPaths):
            options = replace(tries.options, seed=run_seed(config, self.data_key, "paths", epoch))
            self.train.graphs = replace(self.train.graphs, tries=replace(tries, options=options))


def training_targets(task: Task) -> Tensor:
    """Return the targets of all graphs; raise `RunError` if a task has none to train on."""
    if task.loss is None or task.target == "none" or task.graphs.y is None:
        raise RunError(
            f"{task.name} has no targets to train on ({task.notes}). For a CSV name the column: --target COLUMN "
            "(in Python: target=(COLUMN,))."
        )
    return task.graphs.y


def make_loaders(task: Task, config: RunConfig, model: Model, *, device: torch.device | str) -> Loaders:
    """Build the loaders of the split `config.fold`; move the dataset to `device` if it fits.

    ```python
    task, config = load_dataset("csl"), RunConfig(data="csl", collection="sp", k=2)
    loaders = make_loaders(task, config, build_model(config, task), device="cpu")
    batch = next(iter(loaders.train))
    ```
    """
    if config.redraw and config.max_paths_per_source is None:
        raise RunError("redraw draws a sample of paths again: expected max_paths_per_source (--max-paths-per-source).")
    y = training_targets(task).cpu()
    check_finite(task)
    check_finite_targets(task)
    split = choose_split(task, config)
    check_split(task, y[split.train], y[split.val])
    precise = config.standardize or config.precision == "64-true"
    if task.target == "regression":
        check_precision(task, y[split.train], torch.float64 if precise else torch.float32)
    data, key = DataFingerprint.of(task, split), data_key(config, task)
    task = task.with_graphs(with_paths(task.graphs, model, device))
    batch_norm = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    drop = batch_norm if config.drop_single is None else config.drop_single
    if drop and 1 in (split.train.numel(), config.batch_size):
        raise RunError(
            f"batch_size={config.batch_size}: BatchNorm learns nothing from batches of one graph, so they are left "
            f"out. Expected at least 2 (--batch-size), and at least 2 training graphs: there are {split.train.numel()}."
        )
    entries = resolve_max_entries(config.max_entries, model, device)
    options: dict[str, Any] = {"batch_size": config.batch_size, "max_entries": entries, "device": device}
    val, test = (PackedLoader(task.graphs, index, **options) for index in (split.val, split.test))
    options |= {"shuffle": True, "seed": run_seed(config, key, "order"), "drop_single": drop}
    redrawn = task.graphs
    if config.redraw and isinstance(model, PathModel):
        redrawn = redrawn.with_paths(**path_arguments(model), store=False)
    train = PackedLoader(redrawn, split.train, **options)
    y = training_targets(task)
    known = y[split.train.to(y.device)]
    task = _with_loss(task, config, known)
    return Loaders(task, train, val, test, data, key, TargetScale.of(known) if config.standardize else TargetScale())


def _with_loss(task: Task, config: RunConfig, y: Tensor) -> Task:
    """Return the task with the loss that a config asks for; `y` has the targets of the training graphs."""
    numbers = task.target == "regression"
    for name in ("class_weights",) if numbers else ("loss", "standardize"):
        if value := vars(config)[name]:
            raise RunError(
                f"{name}={value!r} is for {'classes and labels' if numbers else 'regression'}, but the target of "
                f"{task.name} is of the kind {task.target!r}: leave the option out."
            )
    if config.loss is not None:
        task = replace(task, loss=regression_loss(task, config.loss))
    if config.class_weights:
        task = replace(task, loss=weighted_loss(task, y))
    if task.has_missing_targets and task.loss is not None:
        task = replace(task, loss=partial(loss_for, task.loss, y))
    return task


def with_paths(graphs: PackedGraphs, model: Model, device: torch.device | str) -> PackedGraphs:
    """Add the paths and walks that `model` reads, unless they are there; move to `device` if half of it suffices."""
    if isinstance(model, PathModel) and model.reads_paths and not has_paths(graphs, model):
        graphs = graphs.with_paths(**path_arguments(model))
    if isinstance(model, DeepPathNN) and model.config.prefixes and model.reads_paths:
        if not isinstance(graphs.tries, RaggedTries):
            raise RunError("prefixes=True: expected stored paths, got paths with store=False.")
        joined = join_lengths(graphs.tries.trie())
        graphs = replace(graphs, tries=RaggedTries.from_trie(joined, graphs.node_ptr, graphs.edge_ptr))
    if isinstance(model, DeepPathNN) and model.config.walk_length:
        graphs = graphs.with_random_walks(model.config.walk_length)
    fits = torch.device(device).type == "cpu" or graphs.nbytes <= free_memory(device) // 2
    return graphs.to(device) if fits else graphs


def path_arguments(model: PathModel) -> dict[str, Any]:
    """Return the arguments of `PackedGraphs.with_paths` for the paths that a model reads."""
    names = ("collection", "k", "distances", "extend", "max_paths_per_source", "directed")
    return {name: vars(model.path_options)[name] for name in names}


def has_paths(graphs: PackedGraphs, model: Model) -> bool:
    """Return whether graphs have the paths that `model` reads, or a sample of them."""
    if graphs.tries is None or not isinstance(model, PathModel) or not model.reads_paths:
        return False
    has, reads = path_options(graphs.tries), model.path_options
    kept = has.max_paths_per_source if reads.max_paths_per_source is None else reads.max_paths_per_source
    return has.difference(replace(reads, max_paths_per_source=kept, directed=has.directed)) is None


def own_share(batches: list[Tensor], rank: int, world_size: int) -> Iterator[tuple[Tensor, float]]:
    """Yield a process' part of each batch and of its loss; the first graph and 0 of too few: all take part."""
    for batch in batches:
        own = batch.tensor_split(world_size)[rank]
        yield (own, own.numel() / batch.numel()) if own.numel() else (batch[:1], 0.0)


def choose_split(task: Task, config: RunConfig) -> Split:
    """Return the split of a run."""
    splits = splits_of(task, config)
    if not config.fold < len(splits):
        raise RunError(f"fold={config.fold}: {task.name} has {len(splits)} splits, numbered from 0.")
    split = splits[config.fold]
    if config.calibration is not None:
        split = replace(split, train=split.train[~torch.isin(split.train, calibration_part(task, config))])
    for part, index in (("train", split.train), ("validation", split.val)):
        if index.numel() == 0 and config.fold != config.folds:
            different = len(task.graphs) if task.groups is None else torch.unique(task.groups).numel()
            copies = f" (different molecules: {different})" if different < len(task.graphs) else ""
            raise RunError(
                f"{task.name} has {len(task.graphs)} graphs{copies}, which leaves none for {part}. "
                "Give more data: at least ten different graphs."
            )
    return split


def calibration_part(task: Task, config: RunConfig) -> Tensor:
    """Return the graphs of the training part that are set aside at random; copies of a molecule stay together."""
    assert config.calibration is not None
    train = splits_of(task, config)[config.fold].train
    groups = train if task.groups is None else task.groups[train]
    part = train[deal(groups, (1 - config.calibration, config.calibration), seed=config.split_seed or 0) == 1]
    if not part.numel():
        raise RunError(f"calibration={config.calibration} of {train.numel()} training graphs is none: expected more.")
    return part


def splits_of(task: Task, config: RunConfig) -> tuple[Split, ...]:
    """Return the splits that a run chooses from: those of the task, or the random one of `split_seed`."""
    if config.folds is not None:
        return _fold_splits(task, config, config.folds)
    if config.split_seed is None or config.split_by is not None or config.splits is not None:
        return task.splits
    return (random_task_split(task, seed=config.split_seed),)


def _fold_splits(task: Task, config: RunConfig, folds: int) -> tuple[Split, ...]:
    """Return the split of each fold, and last that of all folds together, which tests on the fixed test part."""
    if len(task.splits) == folds + 1:
        return task.splits  # made already
    fixed = config.splits is not None or config.split_by not in (None, RANDOM, SCAFFOLD, BUTINA)
    if fixed and not task.splits:
        return ()
    test = task.splits[0].test if fixed else torch.zeros(0, dtype=torch.long)
    groups = split_groups(task, None if fixed else config.split_by, config.clean)
    graphs = torch.arange(len(task.graphs))
    rest = graphs[~torch.isin(graphs, test)]
    part = replace(task, graphs=task.graphs.subset(rest), splits=()) if fixed else task
    splits = fold_splits(part, folds=folds, groups=groups[rest], seed=config.split_seed or 0)
    each = (Split(rest[split.train], rest[split.val], rest[split.test]) for split in splits)
    return (*each, Split(rest, rest[:0], test))


def resolve_max_entries(
    max_entries: int | Literal["auto"] | None, model: Model, device: torch.device | str
) -> int | None:
    """Return for "auto" a power of two: pieces, and rounding, stay the same if a little less memory is free."""
    if max_entries != "auto":
        return max_entries
    most = default_max_entries(device, hidden_channels=model.config.hidden_channels)
    return 1 << (most.bit_length() - 1)


def check_finite(task: Task) -> None:
    """Raise `NotFiniteError`, which names a graph, if a feature is NaN or infinite."""
    graphs, problem = task.graphs, "have a NaN or an infinity: expected finite numbers"
    if graphs.x is not None:
        _refuse(task, "vertex features", ~graphs.x.isfinite(), problem, graphs.node_ptr)
    if graphs.edge_attr is not None:
        _refuse(task, "edge features", ~graphs.edge_attr.isfinite(), problem, graphs.edge_ptr)


def check_finite_targets(task: Task) -> None:
    """Raise `NotFiniteError` if a target is infinite or NaN; if some are unknown, only if all of a graph are NaN."""
    some, y = task.has_missing_targets, task.graphs.y
    if y is not None:
        _refuse(task, "targets", y.isinf(), "have an infinity: expected finite numbers")
        unknown = y.isnan().all(dim=-1) if some and y.dim() > 1 else y.isnan()
        _refuse(task, "targets", unknown, f"are NaN: expected a number{' for one of them at least' * some}")


def _refuse(task: Task, what: str, wrong: Tensor, problem: str, ptr: Tensor | None = None) -> None:
    """Raise `NotFiniteError`, which names the graph of the first row with a wrong value; `ptr` has their first rows."""
    if bool(wrong.any()):
        row = wrong.nonzero()[0, 0].cpu()
        graph = int(row) if ptr is None else int(torch.searchsorted(ptr, row, right=True)) - 1
        raise NotFiniteError(
            f"the {what} of graph {graph} of {task.name}, counted from 0, {problem}. Fix or leave out that graph."
        )


COARSE = 0.01
"""Rounding may change targets by at most this share of their standard deviation."""


def check_precision(task: Task, y: Tensor, dtype: torch.dtype) -> None:
    """Raise `RunError` if `dtype` rounds the targets `y` of a regression by more than `COARSE` of their deviation."""
    given, read = torch.finfo(y.dtype), torch.finfo(dtype)
    number, advice = read, "Subtract a constant from it, or give it in another unit."
    if given.eps > read.eps:
        number, advice = given, "Give the targets as float64, or subtract a constant from them."
    elif read.dtype == "float32":
        advice = "Standardize it (in a config file: standardize: true), or subtract a constant from it."
    for i, column in enumerate(y.double().unbind(dim=1)):
        values = column[~column.isnan()]
        if values.numel() == 0 or values.min() == values.max():
            continue
        deviation = float(values.std(correction=0))
        rounding = max(number.eps / 2 * float(values.abs().max()), number.tiny)
        if rounding > COARSE * deviation:
            raise RunError(
                f"the target {_target_name(task, i)} of {task.name} varies by {deviation:.3g} around "
                f"{float(values.mean()):.10g}, and {number.dtype} rounds it by {rounding:.3g}: too coarse to learn "
                f"from. {advice}"
            )


def _target_name(task: Task, number: int) -> str:
    return repr(task.classes[number]) if task.classes else f"number {number}"


def check_targets(task: Task, y: Tensor) -> None:
    """Raise `RunError` if all targets `y` are the same, or if few graphs share a class."""
    if task.target == "class" and task.out_channels < 2:
        raise RunError(f"{task.name} has only one class: there is nothing to learn. Name another --target.")
    if len(y) < 2:
        return
    if task.target == "class" and 2 * (classes := torch.unique(y).numel()) > len(y) + 2:
        few = f"{task.name} has {classes} classes for {len(y)} graphs: expected several graphs of each class."
        raise RunError(f"{few} For a measured number leave out --kind class.")
    first = y.nan_to_num(-torch.inf).amax(dim=0) if task.has_missing_targets else y[:1]
    if task.target != "class" and bool(((y == first) | (y.isnan() & task.has_missing_targets)).all()):
        raise RunError(f"all targets of {task.name} are the same: there is nothing to learn. Name another --target.")


OTHER_SPLIT = "Give more data, or another split (--split-seed)."


def check_split(task: Task, train: Tensor, val: Tensor) -> None:
    """Raise `RunError` if the targets of a split leave nothing to learn (unknown or constant), or no best epoch."""
    never = train.isnan().all(dim=0).nonzero().flatten().tolist() if task.has_missing_targets else []
    if never:
        raise RunError(
            f"the target {_target_name(task, never[0])} of {task.name} is not known for any of the {len(train)} "
            f"training graphs, so it cannot be learned. Leave it out. {OTHER_SPLIT}"
        )
    score = task.score if task.target == "multilabel" else None
    if score is not None and bool(score_targets(score, torch.zeros_like(val), val).isnan().all()):
        raise RunError(
            f"{task.metric_name} is not defined for any target of the {len(val)} validation graphs of {task.name}: "
            f"expected both 0 and 1 in one of them. {OTHER_SPLIT}"
        )
    for part, values in (("training", train), ("validation", val)):
        if task.target == "binary" and torch.unique(values).numel() < 2:
            raise RunError(
                f"the {len(values)} {part} graphs of {task.name} all have the target {float(values[0].item()):g}: "
                f"expected both 0 and 1. {OTHER_SPLIT}"
            )
