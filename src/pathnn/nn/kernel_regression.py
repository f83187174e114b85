"""Predict from the similarity of a graph's features to those of training graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MOST_COUNTED = 8
"""Larger counts of a substructure are taken for this one."""

RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""The strengths of the penalty, from which `fit` chooses."""

SHARE, PRIOR = 0.6, 100
"""`fit_share` adds `PRIOR` validation graphs for which `SHARE` is the best share."""


class KernelRegression(nn.Module):
    r"""Kernel ridge regression on standardised features of graphs, which a head averages with its network.

    $$f(z) = b + \sum_i w_i\,k(z, z_i), \qquad
    k(z, z') = \tfrac12\Big(\frac{|c \cap c'|}{|c \cup c'|} + e^{-|u - u'|^2 / 2d}\Big)$$

    $z_i$ are training graphs, $c$ the multisets of substructures that the first features count, compared by their
    Tanimoto similarity, and $u$ the other $d$ features. Without counts or without others, $k$ is the other term.

    Shapes: `inputs` is `[graphs, counts + features]`, as `GraphScale` returns it; returns `[graphs, out_channels]`.

    >>> inputs = torch.tensor([[-1.0], [0.0], [1.0]])
    >>> kernel = KernelRegression.fitted(inputs, torch.tensor([[-1.0], [0.0], [1.0]]))
    >>> kernel(inputs).round(decimals=1).flatten().tolist()
    [-1.0, 0.0, 1.0]
    """

    columns: Tensor  # a substructure plus the number of all substructures times how often it is there, from 0
    members: Tensor  # whether a training graph has it that often and once more
    features: Tensor
    weight: Tensor
    bias: Tensor
    share: Tensor
    factor: Tensor
    left_out: Tensor
    """The prediction for each training graph without this graph, `[graphs, targets]`; only after `fitted`."""

    def __init__(self, graphs: int, columns: int, counts: int, features: int, out_channels: int) -> None:
        super().__init__()
        self.sizes = (graphs, columns, counts, features)
        self.register_buffer("columns", torch.zeros(columns, dtype=torch.long))
        self.register_buffer("members", torch.zeros(graphs, columns, dtype=torch.bool))
        self.register_buffer("features", torch.zeros(graphs, features))
        self.register_buffer("weight", torch.zeros(out_channels, graphs))
        self.register_buffer("bias", torch.zeros(out_channels))
        self.register_buffer("share", torch.zeros(out_channels))
        self.register_buffer("factor", torch.ones(()))

    @classmethod
    def fitted(cls, inputs: Tensor, y: Tensor, *, counts: int = 0, factor: float = 1.0) -> KernelRegression:
        """Return the regression for training graphs with targets `y`, `[graphs, targets]`, NaN where unknown.

        The first `counts` columns of `inputs` are `factor` times the logarithm of 1 + a count. The penalty is the one
        with the least error when each training graph is left out.
        """
        inputs = inputs.double()
        numbers = torch.expm1(inputs[:, :counts] / factor).round()
        reached = numbers.amax(dim=0) > torch.arange(MOST_COUNTED)[:, None]
        columns = reached.flatten().nonzero().flatten()
        out = cls(len(inputs), columns.numel(), counts, inputs.size(1) - counts, y.size(1)).double()
        out.columns, out.factor, out.features = columns, torch.tensor(factor).double(), inputs[:, counts:]
        out.members = out._times(numbers) > 0
        out.left_out = torch.full_like(y, torch.nan, dtype=torch.float64)
        similarity = out.similarity(torch.cat([numbers.log1p() * factor, inputs[:, counts:]], dim=1))
        masks, kinds = torch.unique(~y.isnan(), dim=1, return_inverse=True)
        for kind, known in enumerate(masks.T):  # targets that are known for the same graphs share the work
            targets = (kinds == kind).nonzero().flatten()
            own, rows = y[known][:, targets].double(), known.nonzero().flatten()
            out.bias[targets] = own.mean(dim=0)
            weights, errors = _solve(similarity[known][:, known], own - own.mean(dim=0))
            out.weight[targets[:, None], rows], out.left_out[rows[:, None], targets] = weights.T, own - errors
        return out.float()

    def similarity(self, inputs: Tensor) -> Tensor:
        """Return the similarity to each training graph, `[graphs, training graphs]`."""
        counts, parts = self.sizes[2], []
        if counts:
            numbers = torch.expm1(inputs[:, :counts] / self.factor).clamp(0.0, MOST_COUNTED)
            members = self.members.to(inputs.dtype)
            both = self._times(numbers) @ members.T
            either = numbers.sum(dim=1, keepdim=True) + members.sum(dim=1) - both
            parts.append(both / either.clamp(min=1.0))
        if width := inputs.size(1) - counts:
            far = torch.cdist(inputs[:, counts:], self.features, compute_mode="donot_use_mm_for_euclid_dist")
            parts.append(torch.exp(-far.square() / (2 * width)))
        return torch.stack(parts).mean(dim=0)

    def _times(self, numbers: Tensor) -> Tensor:
        """Return for each of `columns` whether a substructure is there that many times: 1 or 0, linear in between."""
        counts = numbers.size(1)
        return (numbers[:, self.columns % counts] - self.columns // counts).clamp(0.0, 1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the prediction of the regression alone, `[graphs, out_channels]`."""
        with torch.autocast(inputs.device.type, enabled=False):
            return self.similarity(inputs.to(self.features)) @ self.weight.T + self.bias

    def average(self, out: Tensor, inputs: Tensor) -> Tensor:
        """Return the average of a network's outputs and the regression, with the weights `1 - share` and `share`."""
        return out + self.share * (self(inputs[:, -sum(self.sizes[2:]) :]) - out)

    @torch.no_grad()
    def fit_share(self, out: Tensor, own: Tensor, y: Tensor) -> None:
        """Set `share` to what is best for the targets `y` of validation graphs, pulled towards `SHARE`.

        `out` are the outputs of the network for them, and `own` those of the regression without them.
        """
        known = ~y.isnan()
        change, wanted = (own - out).double(), (y - out).double()
        change, wanted = change.where(known, 0.0), wanted.where(known, 0.0)
        best = (change * wanted).sum(dim=0) / change.square().sum(dim=0).clamp(min=1e-12)
        number = known.sum(dim=0)
        self.share.copy_((number * best.clamp(0.0, 1.0) + PRIOR * SHARE) / (number + PRIOR))


def _solve(similarity: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights and the leave-one-out errors of graphs, `[graphs, targets]`, with the penalty of the least."""
    least, best = torch.inf, (y, y)
    eye = torch.eye(len(y), dtype=y.dtype, device=y.device)
    for ridge in RIDGES:
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(similarity + ridge * eye))
        weights = inverse @ y
        errors = weights / inverse.diagonal()[:, None]
        if errors.square().sum() > least:
            break
        least, best = float(errors.square().sum()), (weights, errors)
    return best
