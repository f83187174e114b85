"""Scores of the paths of a graph, and their shares for vertices and edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch
from torch import Tensor

Edge = tuple[int, int]
"""Two vertices, the smaller first."""


@dataclass(frozen=True)
class PathScore:
    """The score of a path and its reverse together; `vertices` starts at the end with the smaller number."""

    vertices: tuple[int, ...]
    score: float

    @property
    def length(self) -> int:
        """Return the number of edges."""
        return len(self.vertices) - 1

    @property
    def edges(self) -> list[Edge]:
        """Return the edges along the path."""
        return [(min(edge), max(edge)) for edge in pairwise(self.vertices)]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The scores of the paths of a graph: `prediction = baseline + descriptors + sum of scores + rest`.

    Attributes:
        prediction: the explained output.
        baseline: the reference value, which is the mean prediction for the reference graphs. Without reference graphs,
            it is the output for the vertices without any path, with the mean descriptors of the training graphs.
        paths: a tensor `[num_paths, length + 1]` for each length, source first, -1 for a dummy token. With reference
            graphs, the first tensor has the vertices, as paths of length 0.
        scores: a tensor `[num_paths]` for each length, float64.
        num_nodes: the number of vertices of the graph.
        descriptor_scores: the score of each descriptor of the graph, float64.
    """

    prediction: float
    baseline: float
    paths: tuple[Tensor, ...]
    scores: tuple[Tensor, ...]
    num_nodes: int
    descriptor_scores: Tensor = field(default_factory=lambda: torch.zeros(0).double())

    @property
    def descriptors(self) -> float:
        """Return the sum of the scores of the descriptors."""
        return float(self.descriptor_scores.sum())

    def by_length(self) -> list[tuple[int, float]]:
        """Return each length, and the sum of the scores of its paths.

        >>> Explanation(3.0, 1.0, (torch.tensor([[0, 1]]),), (torch.tensor([2.0]),), 2).by_length()
        [(1, 2.0)]
        """
        return [(p.size(1) - 1, float(s.sum())) for p, s in zip(self.paths, self.scores, strict=True) if len(s)]

    @property
    def rest(self) -> float:
        """Return the numerical error: the part of the prediction that the scores do not explain."""
        return self.prediction - self.baseline - self.descriptors - sum(score for _, score in self.by_length())

    def __repr__(self) -> str:
        number = sum(score.numel() for score in self.scores)
        return (
            f"Explanation(prediction={self.prediction:.4g}, baseline={self.baseline:.4g}, num_paths={number}, "
            f"rest={self.rest:.1g})"
        )

    def ranked(self) -> list[PathScore]:
        """Return the paths, the largest absolute score first; a path and its reverse are one."""
        found: dict[tuple[int, ...], float] = {}
        for paths, scores in zip(self.paths, self.scores, strict=True):
            for path, score in zip(paths.tolist(), scores.tolist(), strict=True):
                vertices = tuple(vertex for vertex in path if vertex >= 0)
                key = min(vertices, vertices[::-1])
                found[key] = found.get(key, 0.0) + score
        return [PathScore(*row) for row in sorted(found.items(), key=lambda row: (-abs(row[1]), row[0]))]

    def vertex_scores(self) -> Tensor:
        """Share the score of each path equally among its vertices; return the sums, `[num_nodes]`, float64."""
        shares = torch.zeros(self.num_nodes + 1, dtype=torch.float64)  # the last is for dummy tokens
        for paths, scores in zip(self.paths, self.scores, strict=True):
            each = scores / (paths >= 0).sum(dim=1).clamp(min=1)
            shares.index_add_(0, paths.flatten() % (self.num_nodes + 1), each.double().repeat_interleave(paths.size(1)))
        return shares[:-1]

    def edge_scores(self) -> dict[Edge, float]:
        """Share the score of each path equally among its edges, and return the sums; paths of length 0 have none."""
        shares: dict[Edge, float] = {}
        for paths, scores in zip(self.paths, self.scores, strict=True):
            each = (scores / ((paths >= 0).sum(dim=1) - 1)).tolist()
            for ends in zip(paths[:, :-1].T.tolist(), paths[:, 1:].T.tolist(), strict=True):
                for u, v, score in zip(*ends, each, strict=True):
                    if v >= 0:
                        edge = (u, v) if u < v else (v, u)
                        shares[edge] = shares.get(edge, 0.0) + score
        return shares

    @staticmethod
    def mean(explanations: Sequence[Explanation]) -> Explanation:
        """Return the explanation of the mean output of several networks for the same graph.

        >>> one = Explanation(3.0, 1.0, (torch.tensor([[0, 1]]),), (torch.tensor([2.0]),), 2)
        >>> Explanation.mean([one, one.rescaled(3.0)])
        Explanation(prediction=6, baseline=2, num_paths=1, rest=0)
        """
        first, number = explanations[0], len(explanations)
        return replace(
            first,
            prediction=sum(one.prediction for one in explanations) / number,
            baseline=sum(one.baseline for one in explanations) / number,
            descriptor_scores=torch.stack([one.descriptor_scores for one in explanations]).mean(dim=0),
            scores=tuple(
                torch.stack(scores).mean(dim=0) for scores in zip(*(e.scores for e in explanations), strict=True)
            ),
        )

    def rescaled(self, factor: float, shift: float = 0.0) -> Explanation:
        """Return the explanation of `factor * output + shift`, for example in the unit of the targets."""
        return replace(
            self,
            prediction=factor * self.prediction + shift,
            baseline=factor * self.baseline + shift,
            descriptor_scores=factor * self.descriptor_scores,
            scores=tuple(factor * score for score in self.scores),
        )

    def renumbered(self, order: Tensor) -> Explanation:
        """Return the same explanation with vertex `i` renumbered as `order[i]`.

        >>> one = Explanation(3.0, 1.0, (torch.tensor([[0, 1], [1, 2]]),), (torch.tensor([2.0, 1.0]),), 3)
        >>> [path.vertices for path in one.renumbered(torch.tensor([2, 0, 1])).ranked()]
        [(0, 2), (0, 1)]
        """
        return replace(self, paths=tuple(torch.where(path < 0, path, order[path]) for path in self.paths))
