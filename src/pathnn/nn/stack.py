"""The weights of several networks of one shape, side by side: what `pathnn.nn.stacked` computes with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pathnn.nn.baselines import Baseline
from pathnn.nn.path_nn import PathNN


class Stack(nn.Module):
    """The weights and running statistics of several networks of one shape.

    `flat` holds all weights: those of all networks for the first parameter, then for the second, and so on; `owner`
    says for each of its numbers which network it is of. `stack[name]`, `[models, *shape]`, are views of it, made by
    `refresh`, through which gradients reach `flat`. `statistics` has the running statistics by name, `dropout` the rate
    of each network.
    """

    owner: Tensor
    dropout: Tensor

    def __init__(self, models: Sequence[PathNN | Baseline]) -> None:
        super().__init__()
        if not models:
            raise ValueError("no models to stack: expected at least one.")
        first = models[0]
        self.models = len(models)
        self.shapes = {name: parameter.shape for name, parameter in first.named_parameters()}
        every = [dict(model.named_parameters()) for model in models]
        for model in every:
            if {name: parameter.shape for name, parameter in model.items()} != self.shapes:
                raise ValueError("models of different shapes: expected the same options for all but their weights.")
        with torch.no_grad():
            blocks = [torch.stack([model[name].detach() for model in every]) for name in self.shapes]
        self.flat = nn.Parameter(torch.cat([block.flatten() for block in blocks]))
        numbers = [
            torch.arange(self.models, dtype=torch.int32).repeat_interleave(size.numel())
            for size in self.shapes.values()
        ]
        self.register_buffer("owner", torch.cat(numbers).to(self.flat.device), persistent=False)
        self.statistics = {
            name: torch.stack([dict(model.named_buffers())[name] for model in models])
            for name, buffer in first.named_buffers()
            if buffer.is_floating_point()
        }
        self.rates = [model.config.dropout for model in models]
        self.register_buffer("dropout", torch.tensor(self.rates, device=self.flat.device), persistent=False)
        self._parts: dict[str, Tensor] = {}

    def refresh(self) -> None:
        """Make the views anew, for one forward pass and its gradients."""
        self._parts = self.views(self.flat)

    def release(self) -> None:
        """Let the views go, and with them what autograd keeps of the stream that they were made on."""
        self._parts = {}

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """`flat`, or what lies like it, by name: `[models, *shape]`."""
        sizes = [self.models * shape.numel() for shape in self.shapes.values()]
        parts = zip(self.shapes.items(), torch.split(flat, sizes), strict=True)
        return {name: part.view(self.models, *shape) for (name, shape), part in parts}

    @property
    def grad(self) -> Tensor:
        """The gradient of `flat`."""
        assert self.flat.grad is not None
        return self.flat.grad

    def __getitem__(self, name: str) -> Tensor:
        return self._parts[name]

    def weights_of(self, model: int) -> dict[str, Tensor]:
        """A copy of one network's weights and statistics, by name."""
        with torch.no_grad():
            named = {**self.views(self.flat.detach()), **self.statistics}
            return {name: stacked[model].clone() for name, stacked in named.items()}
