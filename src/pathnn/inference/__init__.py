"""TrainedModel models on new data."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.inference.predictor import ensemble_columns as ensemble_columns
    from pathnn.inference.predictor import prediction_columns as prediction_columns
    from pathnn.inference.predictor import score as score

EXPORTS = {
    "predictor": ("ensemble_columns", "prediction_columns", "score"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
