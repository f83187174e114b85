"""TrainedModel models on new data."""

from pathnn.inference.predictor import ensemble_columns as ensemble_columns
from pathnn.inference.predictor import prediction_columns as prediction_columns
from pathnn.inference.predictor import score as score
