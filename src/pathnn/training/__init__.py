"""Train models, score them, and read and write run folders."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.training.checkpoint import TaskSignature as TaskSignature
    from pathnn.training.checkpoint import TrainedModel as TrainedModel
    from pathnn.training.checkpoint import load_model as load_model
    from pathnn.training.checkpoint import training_overlap as training_overlap
    from pathnn.training.config import RunConfig as RunConfig
    from pathnn.training.cuda_graphs.capture import capture as capture
    from pathnn.training.ensemble import Ensemble as Ensemble
    from pathnn.training.ensemble import load_ensemble as load_ensemble
    from pathnn.training.ensemble import predict as predict
    from pathnn.training.ensemble import predict_each as predict_each
    from pathnn.training.ensemble import run_ensemble as run_ensemble
    from pathnn.training.ensemble import score_ensemble as score_ensemble
    from pathnn.training.errors import CheckpointError as CheckpointError
    from pathnn.training.errors import MismatchError as MismatchError
    from pathnn.training.errors import NotFiniteError as NotFiniteError
    from pathnn.training.errors import RunError as RunError
    from pathnn.training.errors import RunFolderError as RunFolderError
    from pathnn.training.errors import RunStoppedError as RunStoppedError
    from pathnn.training.loop import Epoch as Epoch
    from pathnn.training.loop import TrainState as TrainState
    from pathnn.training.loop import fabric_for as fabric_for
    from pathnn.training.loop import train as train
    from pathnn.training.recipes import default_options as default_options
    from pathnn.training.run_folder import EnsembleFolder as EnsembleFolder
    from pathnn.training.run_folder import RunFolder as RunFolder
    from pathnn.training.runs import Run as Run
    from pathnn.training.runs import load_task as load_task
    from pathnn.training.runs import run as run
    from pathnn.training.scoring import Evaluation as Evaluation
    from pathnn.training.scoring import evaluate as evaluate
    from pathnn.training.scoring import model_outputs as model_outputs
    from pathnn.training.setup import Loaders as Loaders
    from pathnn.training.setup import build_model as build_model
    from pathnn.training.setup import make_loaders as make_loaders
    from pathnn.training.tune import search_options as search_options

EXPORTS = {
    "checkpoint": ("TaskSignature", "TrainedModel", "load_model", "training_overlap"),
    "config": ("RunConfig",),
    "cuda_graphs.capture": ("capture",),
    "ensemble": ("Ensemble", "load_ensemble", "predict", "predict_each", "run_ensemble", "score_ensemble"),
    "errors": ("CheckpointError", "MismatchError", "NotFiniteError", "RunError", "RunFolderError", "RunStoppedError"),
    "loop": ("Epoch", "TrainState", "fabric_for", "train"),
    "recipes": ("default_options",),
    "run_folder": ("EnsembleFolder", "RunFolder"),
    "runs": ("Run", "load_task", "run"),
    "scoring": ("Evaluation", "evaluate", "model_outputs"),
    "setup": ("Loaders", "build_model", "make_loaders"),
    "tune": ("search_options",),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
