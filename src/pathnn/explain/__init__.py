"""Explain predictions by scores of the paths, which add up to the prediction minus a reference value."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.explain.attribution import explain_graphs as explain_graphs
    from pathnn.explain.attribution import explain_paths as explain_paths
    from pathnn.explain.attribution import reference_inputs as reference_inputs
    from pathnn.explain.explanation import Explanation as Explanation
    from pathnn.explain.explanation import PathScore as PathScore

EXPORTS = {
    "attribution": ("explain_graphs", "explain_paths", "reference_inputs"),
    "explanation": ("Explanation", "PathScore"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
