"""Explain a prediction by its paths: scores that add up to it, as a table and a picture."""

from pathnn.explain.attribution import explain_paths as explain_paths
from pathnn.explain.explanation import Explanation as Explanation
from pathnn.explain.explanation import PathScore as PathScore
