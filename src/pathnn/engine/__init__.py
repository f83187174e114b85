"""Training, evaluation, prediction, and the run folder."""

from pathnn.engine.build import build_model as build_model
from pathnn.engine.checkpoint import Trained as Trained
from pathnn.engine.checkpoint import load_model as load_model
from pathnn.engine.config import RunConfig as RunConfig
from pathnn.engine.defaults import own_options as own_options
from pathnn.engine.devices import make_fabric as make_fabric
from pathnn.engine.errors import CheckpointError as CheckpointError
from pathnn.engine.errors import MismatchError as MismatchError
from pathnn.engine.errors import NotFiniteError as NotFiniteError
from pathnn.engine.errors import RunError as RunError
from pathnn.engine.errors import RunFolderError as RunFolderError
from pathnn.engine.evaluate import Evaluation as Evaluation
from pathnn.engine.evaluate import evaluate as evaluate
from pathnn.engine.inference import infer as infer
from pathnn.engine.inference import prediction_columns as prediction_columns
from pathnn.engine.inference import score as score
from pathnn.engine.loaders import Loaders as Loaders
from pathnn.engine.loaders import make_loaders as make_loaders
from pathnn.engine.predict import predict as predict
from pathnn.engine.run import Run as Run
from pathnn.engine.run import load_task as load_task
from pathnn.engine.run import run as run
from pathnn.engine.run_folder import RunFolder as RunFolder
from pathnn.engine.state import TrainState as TrainState
from pathnn.engine.train import Epoch as Epoch
from pathnn.engine.train import train as train
