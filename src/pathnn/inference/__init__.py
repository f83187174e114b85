"""Apply trained models to new data."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.inference.embedding import Embedder as Embedder
    from pathnn.inference.embedding import embed as embed
    from pathnn.inference.embedding import embed_file as embed_file
    from pathnn.inference.predictor import Predictor as Predictor
    from pathnn.inference.predictor import ensemble_columns as ensemble_columns
    from pathnn.inference.predictor import evaluation_data as evaluation_data
    from pathnn.inference.predictor import load_runs as load_runs
    from pathnn.inference.predictor import prediction_columns as prediction_columns
    from pathnn.inference.predictor import score as score
    from pathnn.inference.stream import predict_file as predict_file
    from pathnn.inference.stream import predict_table as predict_table

EXPORTS = {
    "embedding": ("Embedder", "embed", "embed_file"),
    "predictor": ("Predictor", "ensemble_columns", "evaluation_data", "load_runs", "prediction_columns", "score"),
    "stream": ("predict_file", "predict_table"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
