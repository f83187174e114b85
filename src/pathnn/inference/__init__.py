"""Apply trained models to new data."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.inference.embedding import Embedder as Embedder, embed as embed, embed_file as embed_file
    from pathnn.inference.predictor import (
        Predictor as Predictor,
        ensemble_columns as ensemble_columns,
        evaluation_data as evaluation_data,
        load_runs as load_runs,
        prediction_columns as prediction_columns,
        score as score,
    )
    from pathnn.inference.stream import predict_file as predict_file, predict_table as predict_table

__all__, __getattr__, __dir__ = exports(__name__)
