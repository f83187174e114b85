"""Replay plain calls of a model on a GPU: `model(x, edge_index)` and its backward pass are one CUDA graph each.

A call launches hundreds of small kernels, and each launch takes longer than its kernel. From the fourth call with the
same number of graphs on, the batch is copied into a padded one of a fixed shape, and the kernels that were captured
for that shape are replayed. Outputs, gradients and running statistics are those of the call without padding, up to
rounding; dropout draws other random numbers.

Whatever a replay could get wrong is computed operation by operation instead: custom modules, hooks, inputs that need
gradients, a second call before the backward pass of the first, very large batches, other streams.
`model.cuda_graphs = False` turns replays off.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules import module as modules_of_torch

from pathnn.nn.backends.base import Budget, tf32_allowed
from pathnn.nn.graph_model import GraphModel
from pathnn.nn.path_nn import PathNN

CALLS_BEFORE, MOST_ENTRIES = 3, 1 << 20
"""The calls with a number of graphs before the first capture; larger tries keep the GPU busy without a CUDA graph."""

_captured: weakref.WeakKeyDictionary[nn.Module, _Captures] = weakref.WeakKeyDictionary()
"""The captures of each model; not an attribute of it, since a copy or a pickle of the model cannot have them."""


def replay(model: GraphModel, inputs: dict[str, Any]) -> Tensor | None:
    """Return the outputs for the arguments of `forward`; None for a call that cannot be replayed."""
    if not _possible_now(model, inputs):
        return None
    state = _state(model)
    if state is None:
        return None
    signature, training = state
    captures = _captured.get(model)
    if captures is None or captures.signature != signature:
        captures = _captured[model] = _Captures(model, signature)
    if not captures.possible or captures.busy():
        return None
    if inputs["batch"] is None:
        inputs |= {"batch": inputs["x"].new_zeros(inputs["x"].size(0), dtype=torch.int64), "batch_size": 1}
    elif inputs["batch_size"] is None:
        inputs["batch_size"] = int(inputs["batch"].max()) + 1
    graphs, edge_attr, attr = inputs["batch_size"], inputs["edge_attr"], inputs["graph_attr"]
    wrong = inputs["batch"].shape != inputs["x"].shape[:1] or graphs < 1
    wrong = wrong or (edge_attr is not None and edge_attr.size(0) != inputs["trie"].num_edges)
    wrong = wrong or (attr is not None and attr.size(0) != graphs)
    return None if wrong else captures.call(model, training, inputs)  # the plain call says what is wrong


def _possible_now(model: GraphModel, inputs: dict[str, Any]) -> bool:
    """Return whether torch is in a mode that a replay would follow, and the inputs are of a kind that can be copied."""
    x, trie = inputs["x"], inputs["trie"]
    if torch.compiler.is_compiling() or torch.cuda.is_current_stream_capturing():
        return False
    if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
        return False
    if torch._C._are_functorch_transforms_active() or not x.size(0) or x.requires_grad:
        return False
    if any(part is not None and part.requires_grad for part in (inputs["edge_attr"], inputs["graph_attr"])):
        return False
    if trie is None or not trie.edge.numel() or trie.num_entries > MOST_ENTRIES or trie.k != model.config.k:  # type: ignore[attr-defined]
        return False
    return model.training == torch.is_grad_enabled()


def _state(model: GraphModel) -> tuple[Hashable, tuple[bool, ...]] | None:
    """Return what captures depend on, and the modules in training, None with hooks; one walk, as each call needs it."""
    if modules_of_torch._global_forward_hooks or modules_of_torch._global_forward_pre_hooks:
        return None
    if modules_of_torch._global_backward_hooks or modules_of_torch._global_backward_pre_hooks:
        return None
    parts: list[Hashable] = []
    training: list[bool] = []
    modules: list[nn.Module] = [model]
    while modules:
        module = modules.pop()
        own = module.__dict__
        if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]:
            return None
        modules += [child for child in own["_modules"].values() if child is not None]
        training.append(own["training"])
        parts.append((id(module), own.get("p"), own.get("momentum"), own.get("input_dropout")))
        for tensor in (*own["_parameters"].values(), *own["_buffers"].values()):
            if tensor is not None:
                if type(tensor) not in (nn.Parameter, Tensor):
                    return None
                parts.append((tensor.data_ptr(), tensor.requires_grad))
    stream = torch.cuda.current_stream().cuda_stream
    settings = tf32_allowed(), torch.are_deterministic_algorithms_enabled()
    return (*parts, stream, *settings), tuple(training)


def autocast_dtype() -> torch.dtype | None:
    """Return the dtype of `torch.autocast` on GPUs, None where it is off."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


class _Token:
    """A call whose backward pass may still come; it lives as long as autograd's record of the call."""

    def __init__(self, versions: int) -> None:
        self.versions, self.done = versions, False


class _Captures:
    """The captured calls of one model, which share memory: only the last call can run backward."""

    def __init__(self, model: GraphModel, signature: Hashable) -> None:
        from pathnn.nn.cuda_graphs.padded_modules import can_be_padded

        kind = type(model)  # a call must run the methods of the library
        plain = isinstance(model, PathNN) and kind._vertices is PathNN._vertices and kind.embed is GraphModel.embed
        self.signature, self.possible = signature, plain and can_be_padded(model, vertices=True)  # type: ignore[arg-type]
        self._seen: Counter[Hashable] = Counter()
        self._slots: dict[Hashable, list[_Slot]] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self.last: weakref.ref[_Token] | None = None

    def busy(self) -> bool:
        """Return whether the backward pass of the last call may still come."""
        token = None if self.last is None else self.last()
        return token is not None and not token.done

    def call(self, model: GraphModel, training: tuple[bool, ...], inputs: dict[str, Any]) -> Tensor | None:
        from pathnn.nn.cuda_graphs.padded_copies import find_slot

        key = inputs["batch_size"], training, autocast_dtype()  # so that evaluation without autocast keeps training's
        self._seen[key] += 1
        if self._seen[key] <= CALLS_BEFORE:
            return None
        slots = self._slots.setdefault(key, [])
        slot = find_slot(slots, inputs, lambda shape: _Slot(model, inputs, shape, model.training, self._pool))
        return None if slot is None else slot(self, inputs)


class _Slot:
    """A padded shape, and the CUDA graphs of a call and of its backward pass."""

    def __init__(self, model: GraphModel, inputs: dict[str, Any], shape: Any, training: bool, pool: Any) -> None:
        from pathnn.nn.cuda_graphs import capture
        from pathnn.nn.cuda_graphs.padded_copies import PaddedCopies
        from pathnn.nn.cuda_graphs.padded_modules import padded_copy

        self.batches = PaddedCopies(inputs, shape)
        # with leaves of its own: autograd synchronises streams for those of the model
        self._padded = padded_copy(model, self.batches.valid, leaves=True)  # type: ignore[arg-type]
        self._padded.cuda_graphs = False
        self._parameters, self._leaves = (
            [p for p in one.parameters() if p.requires_grad] if training else [] for one in (model, self._padded)
        )
        self._autocast = autocast_dtype()
        self._out = self._grad = inputs["x"]
        self._rows = 0
        self._flat: Tensor | None = None
        self._used: list[bool] = []
        self.batches.load(inputs)
        random, buffers = torch.cuda.get_rng_state(), [(b, b.clone()) for b in self._padded.buffers()]
        runs = [self._run_forward, self._run_backward] if training else [self._run_forward]
        self._graphs = capture.capture_cuda_graphs(runs, pool)
        self._out = self._out.detach()  # frees what autograd recorded
        for buffer, before in buffers:
            buffer.copy_(before)
        torch.cuda.set_rng_state(random)

    def _run_forward(self) -> None:
        rows, batches = self.batches.assemble(), self.batches
        size = batches.capacity.graphs
        # without cached weights: a replay would read the values from its capture
        autocast = torch.autocast("cuda", self._autocast, enabled=self._autocast is not None, cache_enabled=False)
        with torch.set_grad_enabled(bool(self._parameters)), autocast:
            out = self._padded(
                rows.x, trie=batches.trie, batch=batches.batch, batch_size=size + 1, edge_attr=rows.edge_attr,
                graph_attr=rows.graph_attr, budget=Budget(),
            )  # fmt: skip
            self._out = out[:size] if self._padded.readout is not None else out

    def _run_backward(self) -> None:
        if self._flat is None:  # outside of the memory that captures share
            self._grad = torch.zeros_like(self._out)
        with torch.autocast("cuda", enabled=False):  # as in a backward pass after the `with` block of a user
            found = torch.autograd.grad(self._out, self._leaves, self._grad, allow_unused=True)
        self._used = [grad is not None for grad in found]
        grads = [grad for grad in found if grad is not None]
        if self._flat is None:
            self._flat = grads[0].new_zeros(sum(grad.numel() for grad in grads))
        torch._foreach_copy_(self._split(self._flat), grads)

    def _split(self, flat: Tensor) -> list[Tensor]:
        """Return the gradients of the parameters that have one, as views of a flat tensor."""
        shapes = [p.shape for p, used in zip(self._parameters, self._used, strict=True) if used]
        parts = torch.split(flat, [shape.numel() for shape in shapes])
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]

    def versions(self) -> int:
        """Return a number that changes when a parameter is changed in place."""
        return sum(p._version for p in self._parameters)

    def __call__(self, captures: _Captures, inputs: dict[str, Any]) -> Tensor:
        """Return the outputs for a batch that fits."""
        self.batches.load(inputs)
        self._rows = inputs["x"].size(0) if self._padded.readout is None else self._out.size(0)
        if not self._parameters:
            return self.forward()
        token = _Token(self.versions())
        captures.last = weakref.ref(token)
        out: Tensor = _Replayed.apply(self, captures, token, *self._parameters)  # type: ignore[no-untyped-call]
        return out

    def forward(self) -> Tensor:
        """Replay the call for the loaded batch."""
        self._graphs[0].replay()
        return self._out.detach()[: self._rows].clone()

    def backward(self, grad: Tensor) -> list[Tensor | None]:
        """Replay the backward pass; return the gradients of the parameters."""
        self._grad[: self._rows].copy_(grad)
        self._grad[self._rows :].zero_()  # padded vertices of a model without a readout
        self._graphs[1].replay()
        assert self._flat is not None
        grads = iter(self._split(self._flat.clone()))
        return [next(grads) if used else None for used in self._used]


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, slot: _Slot, captures: _Captures, token: _Token, *parameters: Tensor) -> Tensor:
        ctx.slot, ctx.captures, ctx.token = slot, captures, token
        return slot.forward()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        slot, captures, token = ctx.slot, ctx.captures, ctx.token
        if captures.last is None or captures.last() is not token or token.versions != slot.versions():
            raise RuntimeError(
                "the backward pass of a call comes after another call of the model, or after its parameters have "
                "changed: set model.cuda_graphs = False, or call backward() first."
            )
        token.done = True
        return None, None, None, *slot.backward(grad)
