"""Evaluate models on molecules: cross-validation, baselines, comparisons, and a report as one page."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.evaluation.baselines import fit_baselines as fit_baselines
    from pathnn.evaluation.comparison import Comparison as Comparison, compare_runs as compare_runs
    from pathnn.evaluation.held_out import cross_validate as cross_validate, write_evaluation as write_evaluation
    from pathnn.evaluation.predictions import Predictions as Predictions

__all__, __getattr__, __dir__ = exports(__name__)
