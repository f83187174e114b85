"""Add up the gradients of what all layers share: the weights and bias of the LSTM, and the tables of edges and
distances.

No layer waits for them: they are computed on a side stream, and summed once after the last layer, in the backward pass
of `share`, whose result every layer depends on.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pathnn.nn.backends.base import ProjectedInputs
from pathnn.nn.backends.triton.products import LinearParts, SplitWeight, add_grad_of_linear, add_grad_of_weight
from pathnn.nn.backends.triton.sweep import add_small_tables

if TYPE_CHECKING:
    from pathnn.nn.backends.triton.backend import Tokens


class SharedGradients:
    """The sums of one backward pass, in parts."""

    def __init__(self) -> None:
        self._task = -1
        self._running: torch.cuda.Stream | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.weight_hh: Tensor | None = None
        self.vertices: LinearParts | None = None
        self.small: Tensor | None = None
        self.edge: Tensor | None = None
        self.distance: Tensor | None = None
        self.leaves: Tensor | None = None
        self._held: tuple[Any, ...] = ()

    def begin(self) -> None:
        """Wait for the side stream, so that its memory can be reused; forget the sums of another backward pass."""
        self._wait()
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self.reset()
            self._task = task

    def add(
        self,
        tables: ProjectedInputs,
        tokens: Tokens,
        split: SplitWeight,
        grad_gates: Tensor,
        products: tuple[Tensor, Tensor, Tensor],
    ) -> None:
        """Add a layer, or a piece of one; `products` are the gradient of `W_hh h`, its slots, and h."""
        self._wait()  # pieces of one layer come one after the other
        side = _side_stream(grad_gates.device.index)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.weight_hh = add_grad_of_weight(*products, split, self.weight_hh)
            add_small_tables(tables, tokens, grad_gates, self)
        self._running, self._held = side, (grad_gates, products)

    def add_vertices(self, grad_vertex: Tensor, h: Tensor, split: SplitWeight, *, bias: bool) -> None:
        """Add the gradient of the vertices' weight from a layer; of the bias, too, unless `distance` determines it."""
        side = _side_stream(grad_vertex.device.index)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.vertices = add_grad_of_linear(grad_vertex, h, split, self.vertices, bias=bias)
        self._running, self._held = side, (*self._held, grad_vertex, h)

    def add_leaves(self, grad_vertex: Tensor) -> None:
        """Add the gradient of distance 0 from the leaves, given their sums at vertices."""
        total = grad_vertex.sum(dim=0)
        self.leaves = total if self.leaves is None else self.leaves.add_(total)

    def _wait(self) -> None:
        if self._running is not None:  # a CUDA graph may wait only for what it has begun
            torch.cuda.current_stream().wait_stream(self._running)
        self._running, self._held = None, ()

    def totals(self, tables: ProjectedInputs) -> tuple[Tensor | None, ...]:
        """Return the gradients of `W_hh`, the weight of the vertices, and `tables`, with the bias for the vertices."""
        self.begin()
        weight_hh = None if self.weight_hh is None else self.weight_hh.sum(dim=0)
        weight, bias = (None, None) if self.vertices is None else self.vertices.sums()
        edge, distance = self.edge, self.distance
        if self.small is not None:
            total = self.small.sum(dim=0)
            edges = total.size(0) - (0 if tables.distance is None else tables.distance.size(0))
            if tables.edge is not None and edge is None:
                edge = torch.zeros_like(tables.edge)
                edge[:edges] = total[:edges]
            distance = None if tables.distance is None else total[edges:]
        if distance is not None and self.leaves is not None:
            distance[0] += self.leaves
        if distance is not None:  # each token reads one distance, and the bias
            bias = distance.sum(dim=0)
        self.reset()
        return weight_hh, weight, bias, edge, distance


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """Return the one side stream of a GPU: its backward passes run one after the other, on one stream."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def share(collected: SharedGradients, *shared: Tensor | None) -> Tensor:
    """Return a scalar for the layers to depend on; `collected.totals` has the gradients of `shared`, in its order."""
    anchor: Tensor = _Share.apply(collected, *shared)  # type: ignore[no-untyped-call]
    return anchor


def is_wanted(anchor: Tensor) -> bool:
    """Return whether the current backward pass asks for the gradients of what is shared."""
    return anchor.grad_fn is not None and bool(torch._C._will_engine_execute_node(anchor.grad_fn))


class _Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, collected: SharedGradients, weight_hh: Tensor, *others: Tensor | None) -> Tensor:
        ctx.save_for_backward(*others[1:])
        ctx.collected = collected
        return weight_hh.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        bias, edge, distance = ctx.saved_tensors
        with torch.cuda.device(bias.device):
            return None, *ctx.collected.totals(ProjectedInputs(bias, edge, distance))
