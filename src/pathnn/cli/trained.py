"""What commands that use a trained model share: which one, and where to compute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathnn.training import Ensemble, TrainedModel

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A folder that pathnn train wrote, a model.safetensors file, or "
                         "the name of a trained model (zinc-ap).",
                         show_default=False),
]  # fmt: skip
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda", help="Where to compute.")]


def load_runs(run: Path) -> Ensemble:
    """The best models of a folder of several seeds, or what `load_run` gives, as an ensemble of one."""
    from pathnn.training import Ensemble, EnsembleFolder, load_ensemble

    return load_ensemble(run) if EnsembleFolder(run).begun else Ensemble((load_run(run),))


def load_run(run: Path) -> TrainedModel:
    """The best model of a run folder, of a model file, or a trained model by its name."""
    from pathnn.hub import NON_COMMERCIAL, pretrained_file, pretrained_names
    from pathnn.training import RunFolder, load_model

    if not run.exists():
        names = pretrained_names()
        if str(run) in (*names, *NON_COMMERCIAL):
            return load_model(pretrained_file(str(run)))
        known = f", or the name of a trained model ({', '.join(names)})" if names else ""
        raise ValueError(f"{run} does not exist: expected a folder that pathnn train has written{known}.")
    if run.is_dir() and not RunFolder(run).model.exists():
        raise ValueError(f"{run} holds no model.safetensors: expected a folder in which a run has begun.")
    return load_model(RunFolder(run).model if run.is_dir() else run)


def pick_device(device: str) -> str:
    """Return the device of a name; "auto" is a GPU if there is one."""
    from pathnn.device import resolve

    return str(resolve(device))
