"""Explain a prediction by its paths: scores that add up to it, as a table and a picture."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.explain.attribution import (
        explain_graphs as explain_graphs,
        explain_paths as explain_paths,
        reference_inputs as reference_inputs,
    )
    from pathnn.explain.explanation import Explanation as Explanation, PathScore as PathScore

__all__, __getattr__, __dir__ = exports(__name__)
