"""Define the options of a training run, read and write them as YAML, and derive seeds from them.

This module imports neither torch nor the other packages, so that the command line can read it quickly.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from pathnn.checks import check_choice
from pathnn.paths.options import Collection, PathOptions, option
from pathnn.training.errors import RunError

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["32-true", "tf32", "64-true", "16-mixed", "bf16-mixed"]
Direction = Literal["metric", "released"]
Loss = Literal["l1", "mse", "huber"]
OptimizerName = Literal["adam", "adamw"]
Schedule = Literal["plateau", "cosine"]
Keep = Literal["best", "last"]
Logger = Literal["csv", "tensorboard"]

KINDS = ("class", "binary", "multilabel", "regression")
"""Kinds of targets that can be asked for."""

METRICS = (
    "mae", "rmse", "r2", "pearson", "spearman", "roc-auc", "ap", "mcc", "f1", "balanced-accuracy", "brier", "accuracy",
)  # fmt: skip
"""The names of `pathnn.data.metrics`."""

MODELS = ("pathnn", "pathnn+", "gin", "gcn", "gatedgcn", "gat", "graphsage", "mlp")
"""PathNN, PathNN+ (`pathnn.nn.DeepPathNN`), and the names of `pathnn.nn.baselines`."""

Clean = Literal["salts", "tautomers"]
"""How molecules are cleaned (`pathnn.data.readers.molecules`)."""

DESCRIPTORS = ("standard", "rdkit", "morgan")
"""Descriptors that are computed from molecules (`pathnn.data.readers.descriptors`); other names are columns."""

CHOICES: dict[str, tuple[str, ...]] = {
    "model": MODELS, "kind": KINDS, "metric": METRICS, "clean": get_args(Clean), "variant": ("paper", "released"),
    "device": get_args(Device), "precision": get_args(Precision), "plateau_direction": get_args(Direction),
    "optimizer": get_args(OptimizerName), "schedule": get_args(Schedule), "keep": get_args(Keep),
    "kernel": ("ridge",), "loss": get_args(Loss), "logger": get_args(Logger),
}  # fmt: skip
"""The options of a run that are one of some names."""

_WHOLE = {name: (least, math.inf, f"a whole number of at least {least}") for name, least in {
    "batch_size": 1, "epochs": 1, "devices": 1, "num_nodes": 1, "max_entries": 1, "folds": 2,
    "fold": 0, "seed": 0, "split_seed": 0, "patience": 0, "plateau_patience": 0, "warmup": 0,
    "max_paths_per_source": 1,
}.items()}  # fmt: skip
_ABOVE_0 = math.ulp(0.0)
_POSITIVE, _SHARE = (_ABOVE_0, math.inf, "a number above 0"), (_ABOVE_0, 1.0, "a number between 0 and 1")
_ANY = (-sys.float_info.max, math.inf, "a number")

NUMBERS: dict[str, tuple[float, float, str]] = {
    **_WHOLE, "lr": _POSITIVE, "clip": _POSITIVE, "weight_decay": (0.0, math.inf, "a number of at least 0"),
    "min_lr": _ANY, "stop_at": _ANY, "plateau_factor": _SHARE, "ema": _SHARE, "calibration": _SHARE,
}  # fmt: skip
"""The options of a run that are numbers: the least, a limit that is not reached, and what is expected."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The options of one training run; the texts of the fields describe the simple ones.

    `pathnn.training.recipes` has the options of the paper's runs.

    >>> config = RunConfig(data="zinc", collection="ap", k=4, options={"hidden_channels": 140})
    >>> RunConfig.from_yaml(config.to_yaml()) == config
    True
    >>> RunConfig.from_dict({"data": "zinc", "epoch": 3})
    Traceback (most recent call last):
    ...
    pathnn.training.errors.RunError: the option 'epoch' does not exist: did you mean 'epochs'?

    Attributes:
        data: the name of a dataset, or the path of a file. The name, or the content of the file, seeds the run together
            with `fold` and `seed`.
        folds: cross-validate: split the data into this many folds, and hold out the fold number `fold`. The number
            `folds` itself stands for all folds together: it holds out only a test part that `split_by` names.
        split_seed, split_by, splits: another split than that of the task; `splits` replaces the others.
        smiles, target, kind, skip_invalid, clean: how to read a table; see `pathnn.data.load_data`. Data that a trained
            model predicts for is cleaned in the same way.
        descriptors: numbers of each molecule that the head reads: "standard" (Morgan counts and fast descriptors of
            RDKit), "rdkit" (all its descriptors), "morgan", or columns. The training part standardises all but counts.
        kernel: "ridge" averages the outputs with those of a `KernelRegression` on the descriptors, with shares that are
            best for the validation part. The model file then has the descriptors of the training molecules.
        metric: see `pathnn.data.metrics`; None for the default of the kind of target, or the paper's.
        options: options of the model (`PathNN`, `DeepPathNN` or `Baseline`) that the data does not determine, such as
            `hidden_channels`.
        preset: the name of a model of the paper (`pathnn.nn.paper_config`), which `options` change.
        variant: of the preset; "released" follows the authors' code where it differs from the text.
        collection, k, max_paths_per_source, redraw: the paths; baselines do not read them. Evaluation and predictions
            read the sample of seed 0.
        drop_single: leave out a last training batch of one graph; None: only if the model has BatchNorm.
        max_entries: "auto" is a number for which half of the memory is enough.
        schedule: "plateau" for a learning rate that falls as `plateau_factor` says; "cosine" for one that falls along
            half a cosine until the last of the `epochs`. Both begin after `warmup`.
        keep: "best" for the epoch with the best validation score, the later one of two; "last" for the last one, as few
            validation graphs choose badly.
        min_lr: stop when the learning rate has fallen to this value.
        plateau_factor, plateau_patience: of ReduceLROnPlateau on the validation score; None for no scheduler.
        plateau_direction: "metric" for the direction of the metric; "released" takes lower for better, as the authors'
            code does (it differs for average precision on Peptides-func).
        ema: the decay of an average over all steps, of weights and statistics, which is evaluated and saved.
        loss: of a regression, in the unit of the network ("huber" with delta 1); None for "l1".
        calibration: this fraction of the training part trains no network, and chooses no epoch. Folds need none.
        standardize: subtract the mean of regression targets, and divide them by their standard deviation.
        device, devices, num_nodes, precision: as in Lightning Fabric; also "tf32", which allows TF32 products on a GPU.
        logger: write `logs` in the run folder with a logger of Lightning Fabric, for TensorBoard for example.
    """

    data: str
    fold: int = option(0, "Which of the dataset's splits, counted from 0.")
    folds: int | None = None
    split_seed: int | None = option(None, "Split 80 / 10 / 10 with this seed, at random or by scaffold.")
    split_by: str | None = option(
        None,
        "How to split a table: random, scaffold, butina, or a column with the words train, val and test, or dates.",
        metavar="NAME|COLUMN",
    )
    splits: str | None = option(
        None, "A .csv with the split of a table; it is written if it does not exist.", metavar="FILE"
    )
    smiles: str | None = option(None, "The SMILES column of a table.", metavar="COLUMN")
    target: tuple[str, ...] | None = option(
        None, "The column of a table to predict; may be given several times.", metavar="COLUMN"
    )
    kind: str | None = option(None, "Kind of target: class, binary, multilabel or regression.")
    skip_invalid: bool = option(False, "Skip rows that cannot be read, and count them.", flags=("--skip-invalid",))
    clean: Clean | None = option(  # noqa: RUF009
        None,
        "Clean molecules: salts keeps the largest fragment and neutralises it; tautomers also chooses one tautomer.",
        metavar="salts|tautomers",
    )
    descriptors: str | tuple[str, ...] | None = option(
        None, "What else the model reads of molecules: standard (the default), rdkit, morgan, none, or columns.",
        metavar="NAME|COLUMN,...",
    )  # fmt: skip
    kernel: str | None = option(
        None, "Average the network with a kernel regression on the descriptors of its training molecules.",
        metavar="ridge|none",
    )  # fmt: skip
    metric: str | None = option(
        None, f"The metric of validation scores (see --keep): {', '.join(METRICS)}.", metavar="NAME"
    )
    model: str = option("pathnn", "pathnn, pathnn+, gin, gcn, gatedgcn, gat, graphsage or mlp.")
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    variant: Literal["paper", "released"] = "paper"
    collection: Collection = option("ap", "Which paths.", flags=("--collection", "-c"), metavar="sp|sp+|ap")  # noqa: RUF009
    k: int = option(4, "The largest path length, in edges.", flags=("--k", "-k"))
    max_paths_per_source: int | None = option(
        None, "Read a sample of at most this many paths of each source and length."
    )
    redraw: bool = option(False, "Draw the sample of the training graphs again in each epoch.", flags=("--redraw",))
    batch_size: int = option(32, "Graphs per step, over all processes.")
    drop_single: bool | None = None
    max_entries: int | Literal["auto"] | None = option(
        "auto", "Trie entries to work on at once; fewer need less memory."
    )
    epochs: int = option(200, "Train at most this many epochs.")
    lr: float = option(1e-3, "Learning rate.")
    weight_decay: float = option(0.0, "Weight decay.")
    optimizer: OptimizerName = option("adam", "The optimizer.", metavar="adam|adamw")  # noqa: RUF009
    schedule: Schedule = option("plateau", "How the learning rate falls.", metavar="plateau|cosine")  # noqa: RUF009
    keep: Keep = option("best", "Keep the epoch with the best validation score, or the last.", metavar="best|last")  # noqa: RUF009
    warmup: int = option(0, "Epochs of a rising learning rate, before its schedule.")
    ema: float | None = option(None, "Decay of a moving average of the weights, such as 0.99.")
    loss: Loss | None = option(None, "Loss of a regression; by default l1.", metavar="l1|mse|huber")  # noqa: RUF009
    class_weights: bool = option(False, "Weight classes inversely to their frequency.", flags=("--class-weights",))
    patience: int | None = option(None, "Stop after this many epochs without a better validation score.")
    min_lr: float | None = None
    stop_at: float | None = option(None, "Stop when the validation score is as good as this.")
    plateau_factor: float | None = None
    plateau_patience: int = 20
    plateau_direction: Direction = "metric"
    clip: float | None = option(None, "Largest norm of the gradient.")
    calibration: float | None = option(
        None, "Set aside this fraction of the training molecules, such as 0.1, for predict --interval."
    )
    standardize: bool = False
    seed: int = option(0, "Seed of weights, order of the graphs, and dropout.")
    device: Device = option("auto", "Where to train.", metavar="auto|cpu|cuda")  # noqa: RUF009
    devices: int = option(1, "Processes (GPUs) per machine.")
    num_nodes: int = option(1, "Machines.")
    logger: Logger | None = option(None, "Also log every epoch for other programs.", metavar="csv|tensorboard")  # noqa: RUF009
    precision: Precision = option("32-true", "32-true, tf32, 64-true, 16-mixed or bf16-mixed.")  # noqa: RUF009

    def __post_init__(self) -> None:
        PathOptions(self.collection, self.k)  # checks them
        if isinstance(self.metric, str):
            object.__setattr__(self, "metric", self.metric.lower())  # tables have MAE
        object.__setattr__(self, "kernel", None if self.kernel == "none" else self.kernel)
        for name, choices in CHOICES.items():
            if self.__dict__[name] != type(self).__dict__[name]:  # not the default, which may be None
                check_choice(name, self.__dict__[name], choices)
        for name, (low, high, words) in NUMBERS.items():
            value, default = self.__dict__[name], type(self).__dict__[name]
            if value in (None, default) and not isinstance(default, int | float):
                continue
            number = isinstance(value, int if isinstance(low, int) else int | float) and not isinstance(value, bool)
            if not number or not low <= value < high:
                raise RunError(f"{name}={value!r}: expected {words}.")
        if self.folds is not None and self.calibration is not None:
            raise RunError("folds calibrate intervals with what they hold out: leave out calibration.")
        for name in ("split_by", "splits", "smiles"):
            if not isinstance(self.__dict__[name], str | None):
                raise RunError(f"{name}={self.__dict__[name]!r}: expected a text.")
        if not isinstance(self.options, Mapping):
            raise RunError(f"options={self.options!r}: expected names and values, such as {{'hidden_channels': 64}}.")
        object.__setattr__(self, "options", _plain(self.options))
        target: Any = self.target
        if target is not None:
            object.__setattr__(self, "target", (target,) if isinstance(target, str) else tuple(target))
        columns: Any = None if self.descriptors == "none" else self.descriptors
        if columns is not None and columns not in DESCRIPTORS:
            parts = columns.split(",") if isinstance(columns, str) else columns
            columns = tuple(filter(None, (str(part).strip() for part in parts))) or None
        object.__setattr__(self, "descriptors", columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON or YAML: tuples become lists."""
        return _plain(asdict(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Return the config of `to_dict`; an error for an unknown option names the closest ones."""
        known = [entry.name for entry in fields(cls)]
        for name in values:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
                advice = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known are {', '.join(known)}."
                raise RunError(f"the option {name!r} does not exist: {advice}")
        if "data" not in values:
            raise RunError("the option 'data' is missing: expected the name of a dataset or a file.")
        try:
            return cls(**values)
        except TypeError as error:
            raise RunError(f"an option has a value of the wrong type: {error}.") from error

    def to_yaml(self) -> str:
        """Return the options as YAML, in the order of the attributes."""
        import yaml

        class Dumper(yaml.SafeDumper):
            """Quotes text that `yaml_options` would take for a number."""

        Dumper.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+.0123456789"))
        plain = len(json.dumps(self.to_dict(), ensure_ascii=False).splitlines()) == 1  # PyYAML loses U+0085 and U+2028
        return str(yaml.dump(self.to_dict(), Dumper=Dumper, sort_keys=False, allow_unicode=plain))

    @classmethod
    def from_yaml(cls, text: str) -> RunConfig:
        """Return the config in a YAML text, as `to_yaml` or a user wrote it."""
        return cls.from_dict(yaml_options(text))

    def digest(self) -> str:
        """Return a short checksum of the options, which identifies a run."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:16]


EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
"""Numbers such as 1e-4, which PyYAML reads as text."""


def yaml_options(text: str) -> dict[str, Any]:
    """Return the options in a YAML text of plain values without checking them."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads 1e-4 as a number."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+.0123456789"))
    try:
        values = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise RunError(f"the config is not YAML of plain values: {error}") from error
    if not isinstance(values, dict | None):
        raise RunError(f"the config holds a {type(values).__name__}: expected lines like 'epochs: 100'.")
    return values or {}


def _plain(value: Any) -> Any:
    """Return nested values with dicts for mappings and lists for tuples, as JSON and YAML have them."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def run_seed(config: RunConfig, data: str, *parts: int | str) -> int:
    """Return the 63-bit seed of a run, or of a part of it; `data` is the key that `setup.data_key` returns."""
    key = "\0".join(map(str, (data, config.fold, config.seed, *parts)))
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1
