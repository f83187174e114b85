"""YAML of plain values, in which numbers such as 1e-4 are numbers: PyYAML alone reads them as text."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

import torch
import yaml

from pathnn.checks import check_choice
from pathnn.data.datasets.registry import dataset_names
from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.metrics import METRIC_NAMES
from pathnn.data.splits import SCAFFOLD
from pathnn.data.task import Task
from pathnn.nn.baselines import BaselineName
from pathnn.paths.options import Collection, check_collection, check_k
from pathnn.training.errors import RunError

EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """Makes nothing but plain values."""


class _Dumper(yaml.SafeDumper):
    """Puts texts that `_Loader` would take for numbers in quotes."""


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+.0123456789"))


def read_yaml(text: str) -> Any:
    """The values in a text; `yaml.YAMLError` where it is no YAML, or asks for more than plain values.

    >>> read_yaml("lr: 1e-4")
    {'lr': 0.0001}
    """
    return yaml.load(text, Loader=_Loader)


def write_yaml(values: Any) -> str:
    """Plain values as a text, in their order.

    >>> write_yaml({"lr": 1e-4, "target": "1e5"})
    "lr: 0.0001\\ntarget: '1e5'\\n"
    """
    return str(yaml.dump(values, Dumper=_Dumper, sort_keys=False))


Device = Literal["auto", "cpu", "cuda"]


Precision = Literal["32-true", "tf32", "64-true", "16-mixed", "bf16-mixed"]


Direction = Literal["metric", "released"]


KINDS = ("class", "binary", "multilabel", "regression")


MODELS: tuple[str, ...] = ("pathnn", *get_args(BaselineName))


def option(default: Any, text: str, *, flags: tuple[str, ...] = (), metavar: str | None = None) -> Any:
    """Return a field of a dataclass with a help text, which makes it an option of the command line.

    `flags` are the names of the option; by default `--name` of the field.
    """
    return field(default=default, metadata={"help": text, "flags": flags, "metavar": metavar})


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One training run. The defaults are for a user's own molecules; the paper's settings are in
    `pathnn.training.recipes`.

    >>> config = RunConfig(data="zinc", collection="ap", k=4, options={"hidden_channels": 140})
    >>> RunConfig.from_yaml(config.to_yaml()) == config
    True
    >>> RunConfig.from_dict({"data": "zinc", "epoch": 3})
    Traceback (most recent call last):
    ...
    pathnn.training.errors.RunError: the option 'epoch' does not exist: did you mean 'epochs'?

    Attributes:
        data: a dataset's name or the path of a file. The name, or the content of the file, seeds the run together with
            `fold` and `seed`.
        fold: which of the task's splits.
        split_seed: a random split from this seed instead of the task's own splits.
        split_by: how a CSV of molecules is split: "scaffold" (another such split for each `split_seed`), or the name of
            a column that says train, val or test.
        metric: by which epochs are compared and scores are reported (`pathnn.data.metrics`); None for the default of
            the kind of target, or the paper's.
        smiles, target, kind, skip_invalid: how to read a CSV; see `pathnn.data.load_data`.
        model: "pathnn", or a baseline's name.
        options: of `PathNN` or `Baseline`, such as `hidden_channels`; what the data decides is left out.
        preset: name of a model of the paper (`pathnn.nn.paper_config`), which `options` then change.
        variant: of the preset; "released" follows the authors' code where it departs from the text.
        collection, k: which paths; a baseline does not read them.
        batch_size: graphs per step, over all processes together.
        drop_single: leave out a last training batch of one graph; None: if the model has BatchNorm.
        max_entries: trie entries to work on at once; "auto" is replaced by what half of the memory holds.
        epochs: most epochs.
        patience: stop after so many epochs without a validation score at least as good as the best.
        min_lr: stop when the learning rate is not above this.
        stop_at: stop when the validation score (in the paper's unit, percent for accuracy) is as good as
            this.
        plateau_factor, plateau_patience: ReduceLROnPlateau on the validation score; None for none.
        plateau_direction: "metric" for the metric's own direction; "released" always takes lower for better,
            as the authors' code does (it differs for average precision on Peptides-func).
        clip: largest norm of the gradient, None for no limit.
        standardize: learn targets of a regression minus their mean, over their standard deviation.
        device, devices, num_nodes: as Lightning Fabric has them; `devices` are processes per machine.
        precision: as Lightning Fabric has them; besides, "tf32" lets products on a GPU have 11 bits.
    """

    data: str
    fold: int = option(0, "Which of the dataset's splits, counted from 0.")
    split_seed: int | None = option(None, "Split 80 / 10 / 10 with this seed, at random or by scaffold.")
    split_by: str | None = option(
        None,
        "How to split a .csv: by scaffold, or as a column says (train, val, test).",
        metavar="scaffold|COLUMN",
    )
    smiles: str | None = option(None, "The SMILES column of a .csv.", metavar="COLUMN")
    target: tuple[str, ...] | None = option(
        None, "The column of a .csv to predict; may be given several times.", metavar="COLUMN"
    )
    kind: str | None = option(None, "Kind of target: class, binary, multilabel or regression.")
    skip_invalid: bool = option(False, "Skip rows that cannot be read, and count them.", flags=("--skip-invalid",))
    metric: str | None = option(
        None, "The metric to report and to choose the epoch by: mae, rmse, roc-auc, ap or accuracy."
    )
    model: str = option("pathnn", "pathnn, gin, gcn, gatedgcn, gat, graphsage or mlp.")
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    variant: Literal["paper", "released"] = "paper"
    collection: Collection = option("ap", "Which paths.", flags=("--collection", "-c"), metavar="sp|sp+|ap")  # noqa: RUF009
    k: int = option(4, "The largest path length, in edges.", flags=("--k", "-k"))
    batch_size: int = option(32, "Graphs per step, over all processes.")
    drop_single: bool | None = None
    max_entries: int | Literal["auto"] | None = option(
        "auto", "Trie entries to work on at once; fewer need less memory."
    )
    epochs: int = option(200, "Train at most this many epochs.")
    lr: float = option(1e-3, "Learning rate.")
    weight_decay: float = option(0.0, "Weight decay.")
    patience: int | None = option(None, "Stop after this many epochs without a better validation score.")
    min_lr: float | None = None
    stop_at: float | None = option(None, "Stop when the validation score is as good as this.")
    plateau_factor: float | None = None
    plateau_patience: int = 20
    plateau_direction: Direction = "metric"
    clip: float | None = option(None, "Largest norm of the gradient.")
    standardize: bool = False
    seed: int = option(0, "Seed of weights, order of the graphs, and dropout.")
    device: Device = option("auto", "Where to train.", metavar="auto|cpu|cuda")  # noqa: RUF009
    devices: int = option(1, "Processes (GPUs) per machine.")
    num_nodes: int = option(1, "Machines.")
    precision: Precision = option("32-true", "32-true, tf32, 64-true, 16-mixed or bf16-mixed.")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_collection(self.collection)
        check_k(self.k)
        check_choice("model", self.model, MODELS)
        if self.kind is not None:
            check_choice("kind", self.kind, KINDS)
        if self.metric is not None:
            check_choice("metric", self.metric, METRIC_NAMES)
        check_choice("variant", self.variant, ("paper", "released"))
        check_choice("device", self.device, get_args(Device))
        check_choice("precision", self.precision, get_args(Precision))
        check_choice("plateau_direction", self.plateau_direction, get_args(Direction))
        for name in ("batch_size", "epochs", "devices", "num_nodes"):
            _at_least(name, self.__dict__[name], 1)
        for name in ("fold", "seed", "split_seed", "patience", "plateau_patience"):
            _at_least(name, self.__dict__[name], 0)
        if self.split_by not in (None, SCAFFOLD) and self.split_seed is not None:
            raise RunError(
                f"split_by={self.split_by!r} takes the split from a column, and split_seed={self.split_seed} asks for "
                "another: give one of them."
            )
        for name in ("lr", "clip"):
            _positive(name, self.__dict__[name])
        for name in ("weight_decay", "min_lr", "stop_at", "plateau_factor"):
            _number(name, self.__dict__[name])
        if self.weight_decay < 0:
            raise RunError(f"weight_decay={self.weight_decay}: expected a number of at least 0.")
        if self.plateau_factor is not None and not 0 < self.plateau_factor < 1:
            raise RunError(f"plateau_factor={self.plateau_factor}: expected a number between 0 and 1.")
        if self.max_entries != "auto":
            _at_least("max_entries", self.max_entries, 1)
        target: Any = self.target
        if target is not None:
            object.__setattr__(self, "target", (target,) if isinstance(target, str) else tuple(target))
        if not isinstance(self.options, Mapping):
            raise RunError(f"options={self.options!r}: expected names and values, such as {{'hidden_channels': 64}}.")
        object.__setattr__(self, "options", _plain(self.options))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON or YAML: tuples are lists."""
        values: dict[str, Any] = _plain(asdict(self))
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """The inverse of `to_dict`; an option that does not exist is refused with the closest names."""
        known = [entry.name for entry in fields(cls)]
        for name in values:
            if name not in known:
                raise RunError(f"the option {name!r} does not exist: {_closest(str(name), known)}")
        if "data" not in values:
            raise RunError("the option 'data' is missing: expected a dataset's name or a file.")
        try:
            return cls(**values)
        except TypeError as error:
            raise RunError(f"an option has a value of the wrong type: {error}.") from error

    def to_yaml(self) -> str:
        """The options as YAML, in the order of the attributes."""
        return write_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls, text: str) -> RunConfig:
        """Read what `to_yaml` wrote, or what a user wrote in its form."""
        return cls.from_dict(yaml_options(text))

    def digest(self) -> str:
        """A short checksum of the options, to tell runs apart."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:16]


def yaml_options(text: str) -> dict[str, Any]:
    """The options in a YAML text, unchecked; only plain values can come out of it.

    >>> yaml_options("epochs: 3")
    {'epochs': 3}
    """
    try:
        values = read_yaml(text)
    except yaml.YAMLError as error:
        raise RunError(f"the config is not YAML of plain values: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise RunError(f"the config holds a {type(values).__name__}: expected lines like 'epochs: 100'.")
    return values


def _plain(value: Any) -> Any:
    """Mappings as dicts and tuples as lists, all the way down, as JSON and YAML have them."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _closest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"known are {', '.join(known)}."


def _at_least(name: str, value: Any, least: int) -> None:
    if value is None and name in ("patience", "max_entries", "split_seed"):
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise RunError(f"{name}={value!r}: expected a whole number of at least {least}.")


def _number(name: str, value: Any) -> None:
    if value is None and name != "weight_decay":
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RunError(f"{name}={value!r}: expected a number.")


def _positive(name: str, value: Any) -> None:
    if value is None and name == "clip":
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise RunError(f"{name}={value!r}: expected a number above 0.")


def data_key(config: RunConfig, task: Task) -> str:
    """What stands for the data of a run in its seeds, however the path of a file is written.

    >>> from pathnn.data import load_dataset
    >>> csl = load_dataset("csl")
    >>> data_key(RunConfig(data="csl"), csl)
    'csl'
    >>> data_key(RunConfig(data="mine.g6"), csl) == data_key(RunConfig(data="/home/me/mine.g6"), csl)
    True
    """
    if config.data.lower() in dataset_names():
        return config.data.lower()
    data = DataFingerprint.of(task, None)
    return f"{data.graphs} {data.targets}"


def run_seed(config: RunConfig, data: str, *parts: int | str) -> int:
    """The seed of a run, or with `parts` that of a part of it; 63 bits. `data` is what `data_key` returns.

    >>> a, b = RunConfig(data="csl", seed=1), RunConfig(data="csl", seed=2)
    >>> run_seed(a, "csl") == run_seed(a, "csl"), run_seed(a, "csl") == run_seed(b, "csl")
    (True, False)
    """
    key = "\0".join(map(str, (data, config.fold, config.seed, *parts)))
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1


def seed_torch(config: RunConfig, data: str, *parts: int | str) -> None:
    """Seed torch's generators (CPU and every GPU) for a run or a part of it."""
    torch.manual_seed(run_seed(config, data, *parts))
