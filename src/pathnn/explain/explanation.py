"""The answer: a score for every path, and what they come to for vertices and edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

Edge = tuple[int, int]
"""Two vertices, the smaller first."""


@dataclass(frozen=True)
class PathScore:
    """A path in both directions, the smaller end first, and what it adds to the prediction."""

    vertices: tuple[int, ...]
    score: float

    @property
    def length(self) -> int:
        """Number of edges."""
        return len(self.vertices) - 1

    @property
    def edges(self) -> list[Edge]:
        """The edges along the path."""
        return [(min(edge), max(edge)) for edge in pairwise(self.vertices)]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What the paths of a graph add to a prediction: `prediction = baseline + sum of scores + rest`.

    Attributes:
        prediction: the output that is explained.
        baseline: the same output of the same model if it saw no path, but the vertices' own features alone.
        paths: a tensor `[num_paths, length + 1]` per length, source first, -1 for a dummy token.
        scores: a tensor `[num_paths]` per length, float64.
        num_nodes: number of vertices of the graph.
    """

    prediction: float
    baseline: float
    paths: tuple[Tensor, ...]
    scores: tuple[Tensor, ...]
    num_nodes: int

    @property
    def rest(self) -> float:
        """What the scores miss of the prediction: the error of integrating numerically."""
        return self.prediction - self.baseline - sum(float(score.sum()) for score in self.scores)

    def __repr__(self) -> str:
        number = sum(score.numel() for score in self.scores)
        return (
            f"Explanation(prediction={self.prediction:.4g}, baseline={self.baseline:.4g}, num_paths={number}, "
            f"rest={self.rest:.1g})"
        )

    def ranked(self) -> list[PathScore]:
        """The paths by the size of their scores, the largest first; a path and its reverse are one."""
        found: dict[tuple[int, ...], float] = {}
        for vertices, score in self._rows():
            key = min(vertices, vertices[::-1])
            found[key] = found.get(key, 0.0) + score
        return [PathScore(*row) for row in sorted(found.items(), key=lambda row: (-abs(row[1]), row[0]))]

    def vertex_scores(self) -> Tensor:
        """The scores shared out equally over the vertices of each path, `[num_nodes]`, float64."""
        shares = torch.zeros(self.num_nodes, dtype=torch.float64)
        for vertices, score in self._rows():
            shares[list(vertices)] += score / len(vertices)
        return shares

    def edge_scores(self) -> dict[Edge, float]:
        """The scores shared out equally over the edges of each path."""
        shares: dict[Edge, float] = {}
        for vertices, score in self._rows():
            for edge in PathScore(vertices, score).edges:
                shares[edge] = shares.get(edge, 0.0) + score / (len(vertices) - 1)
        return shares

    @staticmethod
    def mean(explanations: Sequence[Explanation]) -> Explanation:
        """The explanation of the mean output of several networks, from those of each on the same paths.

        >>> one = Explanation(3.0, 1.0, (torch.tensor([[0, 1]]),), (torch.tensor([2.0]),), 2)
        >>> Explanation.mean([one, one.rescaled(3.0)])
        Explanation(prediction=6, baseline=2, num_paths=1, rest=0)
        """
        first, number = explanations[0], len(explanations)
        return replace(
            first,
            prediction=sum(one.prediction for one in explanations) / number,
            baseline=sum(one.baseline for one in explanations) / number,
            scores=tuple(
                torch.stack(scores).mean(dim=0) for scores in zip(*(e.scores for e in explanations), strict=True)
            ),
        )

    def rescaled(self, factor: float, shift: float = 0.0) -> Explanation:
        """The explanation of `factor * output + shift`: in the unit of the targets, for example."""
        return replace(
            self,
            prediction=factor * self.prediction + shift,
            baseline=factor * self.baseline + shift,
            scores=tuple(factor * score for score in self.scores),
        )

    def renumbered(self, order: Tensor) -> Explanation:
        """The same explanation with vertex `i` called `order[i]`.

        >>> one = Explanation(3.0, 1.0, (torch.tensor([[0, 1], [1, 2]]),), (torch.tensor([2.0, 1.0]),), 3)
        >>> [path.vertices for path in one.renumbered(torch.tensor([2, 0, 1])).ranked()]
        [(0, 2), (0, 1)]
        """
        return replace(self, paths=tuple(torch.where(path < 0, path, order[path]) for path in self.paths))

    def _rows(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Each path without its dummy tokens, and its score."""
        for paths, scores in zip(self.paths, self.scores, strict=True):
            for path, score in zip(paths.tolist(), scores.tolist(), strict=True):
                yield tuple(vertex for vertex in path if vertex >= 0), score
