"""Train models, score them, and read and write run folders."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.training.checkpoint import (
        TaskSignature as TaskSignature,
        TrainedModel as TrainedModel,
        load_model as load_model,
        training_overlap as training_overlap,
    )
    from pathnn.training.config import RunConfig as RunConfig
    from pathnn.training.cuda_graphs.capture import capture as capture
    from pathnn.training.ensemble import (
        Ensemble as Ensemble,
        load_ensemble as load_ensemble,
        predict as predict,
        predict_each as predict_each,
        run_ensemble as run_ensemble,
        score_ensemble as score_ensemble,
    )
    from pathnn.training.errors import (
        CheckpointError as CheckpointError,
        MismatchError as MismatchError,
        NotFiniteError as NotFiniteError,
        RunError as RunError,
        RunFolderError as RunFolderError,
        RunStoppedError as RunStoppedError,
    )
    from pathnn.training.loop import Epoch as Epoch, TrainState as TrainState, fabric_for as fabric_for, train as train
    from pathnn.training.recipes import default_options as default_options
    from pathnn.training.run_folder import EnsembleFolder as EnsembleFolder, RunFolder as RunFolder
    from pathnn.training.runs import Run as Run, load_task as load_task, run as run
    from pathnn.training.scoring import Evaluation as Evaluation, evaluate as evaluate, model_outputs as model_outputs
    from pathnn.training.setup import Loaders as Loaders, build_model as build_model, make_loaders as make_loaders
    from pathnn.training.tune import search_options as search_options

__all__, __getattr__, __dir__ = exports(__name__)
