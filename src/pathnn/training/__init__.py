"""Training, evaluation, prediction, and the run folder."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.training.checkpoint import TrainedModel as TrainedModel
    from pathnn.training.checkpoint import load_model as load_model
    from pathnn.training.checkpoint import training_overlap as training_overlap
    from pathnn.training.config import RunConfig as RunConfig
    from pathnn.training.devices import make_fabric as make_fabric
    from pathnn.training.ensemble import Ensemble as Ensemble
    from pathnn.training.ensemble import infer as infer
    from pathnn.training.ensemble import infer_each as infer_each
    from pathnn.training.ensemble import score_ensemble as score_ensemble
    from pathnn.training.ensemble_folder import EnsembleFolder as EnsembleFolder
    from pathnn.training.ensemble_run import run_ensemble as run_ensemble
    from pathnn.training.errors import CheckpointError as CheckpointError
    from pathnn.training.errors import MismatchError as MismatchError
    from pathnn.training.errors import NotFiniteError as NotFiniteError
    from pathnn.training.errors import RunError as RunError
    from pathnn.training.errors import RunFolderError as RunFolderError
    from pathnn.training.errors import RunStoppedError as RunStoppedError
    from pathnn.training.loop import Epoch as Epoch
    from pathnn.training.loop import train as train
    from pathnn.training.recipes import default_options as default_options
    from pathnn.training.run_folder import RunFolder as RunFolder
    from pathnn.training.runs import Run as Run
    from pathnn.training.runs import load_task as load_task
    from pathnn.training.runs import run as run
    from pathnn.training.scoring import Evaluation as Evaluation
    from pathnn.training.scoring import evaluate as evaluate
    from pathnn.training.scoring import predict as predict
    from pathnn.training.setup import Loaders as Loaders
    from pathnn.training.setup import build_model as build_model
    from pathnn.training.setup import make_loaders as make_loaders
    from pathnn.training.state import TrainState as TrainState

EXPORTS = {
    "checkpoint": ("TrainedModel", "load_model", "training_overlap"),
    "config": ("RunConfig",),
    "devices": ("make_fabric",),
    "ensemble": ("Ensemble", "infer", "infer_each", "score_ensemble"),
    "ensemble_folder": ("EnsembleFolder",),
    "ensemble_run": ("run_ensemble",),
    "errors": ("CheckpointError", "MismatchError", "NotFiniteError", "RunError", "RunFolderError", "RunStoppedError"),
    "loop": ("Epoch", "train"),
    "recipes": ("default_options",),
    "run_folder": ("RunFolder",),
    "runs": ("Run", "load_task", "run"),
    "scoring": ("Evaluation", "evaluate", "predict"),
    "setup": ("Loaders", "build_model", "make_loaders"),
    "state": ("TrainState",),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
