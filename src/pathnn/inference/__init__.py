"""Apply trained models to new data."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.inference.predictor import ensemble_columns as ensemble_columns
    from pathnn.inference.predictor import evaluation_data as evaluation_data
    from pathnn.inference.predictor import load_runs as load_runs
    from pathnn.inference.predictor import predict_table as predict_table
    from pathnn.inference.predictor import prediction_columns as prediction_columns
    from pathnn.inference.predictor import score as score

EXPORTS = {
    "predictor": ("ensemble_columns", "evaluation_data", "load_runs", "predict_table", "prediction_columns", "score"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
