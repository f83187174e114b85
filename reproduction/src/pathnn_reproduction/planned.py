"""One run of an experiment: which cell of which table it belongs to, and the config it is trained with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pathnn.nn.presets import PRESETS, paper_config
from pathnn.paths.options import Collection
from pathnn.training.config import RunConfig
from pathnn.training.cuda_graphs.capture import FIXED
from pathnn.training.together import common
from pathnn_reproduction.frozen_hash import config_hash, v1_options

Kind = Literal["train", "isomorphism"]
"""What a run does: train a model, or count the pairs of graphs that an untrained one confuses."""

Key = tuple[str, str, str | None, int | None, int, int, str]
"""What tells two runs of a target apart: model, dataset, collection, k, fold, seed, hash of the config."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A run that can be done on its own, anywhere, at any time.

    Attributes:
        target: the experiment, such as "zinc".
        model: "pathnn", "pathnn-released" (the authors' code where it departs from the text), or a baseline's name.
        collection, k: of a PathNN; None for a baseline.
        grid: the point of a hyperparameter grid, such as "hidden=32,dropout=0.5"; "" where there is none.
        assess: whether the run waits until its grid point has won its fold by validation score.
        config: everything that training needs.
    """

    target: str
    model: str
    dataset: str
    collection: Collection | None
    k: int | None
    fold: int = 0
    seed: int = 0
    grid: str = ""
    assess: bool = False
    kind: Kind = "train"
    config: RunConfig

    @property
    def cell(self) -> tuple[str, str, str | None, int | None]:
        """The cell of the table that the run belongs to."""
        return (self.dataset, self.model, self.collection, self.k)

    @cached_property
    def key(self) -> Key:
        """What tells it apart from the other runs of its target."""
        chosen = config_hash(v1_options(self.config))
        return (self.model, self.dataset, self.collection, self.k, self.fold, self.seed, chosen)

    @property
    def slot(self) -> tuple[Any, ...]:
        """The place in the protocol that the run fills: of runs that differ in the winning grid point alone, one
        is needed.
        """
        return (*self.cell, self.fold, self.seed, None if self.assess else self.grid)

    @property
    def name(self) -> str:
        """A name for people and folders.

        >>> from pathnn.training.recipes import zinc
        >>> run = RunSpec(target="zinc", model="pathnn", dataset="zinc", collection="ap", k=4, seed=3, config=zinc())
        >>> run.name
        'zinc-ap-k4-s3'
        """
        model = [self.model] if self.collection is None else [self.collection, f"k{self.k}"]
        model += ["released"] if self.model == "pathnn-released" else []
        grid = [self.grid.replace("=", "").replace(",", "-")] if self.grid else []
        return "-".join([self.dataset, *model, *([f"f{self.fold}"] if self.fold else []), *grid, f"s{self.seed}"])

    @property
    def folder(self) -> str:
        """The name of its run folder: `name` with the hash of the config, so that another config has another."""
        return f"{self.name}-{self.key[-1][:8]}"


def together_key(run: RunSpec) -> str | None:
    """Runs with the same key can be trained together on a GPU (`training.together`): they differ in fold, seed and
    dropout alone. None for a run that has to be trained alone.

    >>> from pathnn.training.recipes import tu, zinc
    >>> runs = [
    ...     RunSpec(target="tu", model="pathnn", dataset="nci1", collection="sp", k=2, fold=fold,
    ...                config=tu("nci1", "sp", fold=fold))
    ...     for fold in (0, 1)
    ... ]
    >>> together_key(runs[0]) == together_key(runs[1])
    True
    >>> together_key(
    ...     RunSpec(target="zinc", model="pathnn", dataset="zinc", collection="ap", k=4, config=zinc())
    ... ) is None
    True
    """
    if run.kind != "train" or not _can_be_stacked(run):
        return None
    return f"{run.cell} {config_hash(v1_options(common(run.config)))}"


def _can_be_stacked(run: RunSpec) -> bool:
    """Whether networks of this kind can be trained as one; see `pathnn.nn.stacked`."""
    if run.collection is None:
        return run.config.model in FIXED
    preset = run.config.preset
    return preset in PRESETS and paper_config(preset, collection=run.collection).edge_channels is None
