"""The trie engine: an LSTM over shared prefixes, level by level, with a backward pass that recomputes the gates.

Forward, for a level with parents p and entries j (Michel et al. 2023, appendix C, inputs projected beforehand):

    z_j = W_hh h_p + V[vertex_j] + E[edge_j] + D[distance_j]        i, f, g, o = activations of z_j
    c_j = f * c_p + i * g                                           h_j = o * tanh(c_j)

`W_hh h_p` is computed once per parent. Kept for the backward pass: h and c of the entries that have children,
nothing else. Under `max_entries` not even that: pieces are recomputed one after the other.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from pathnn.nn.backends.levels import State, backward_sweep, forward_sweep
from pathnn.nn.backends.once import check_once
from pathnn.nn.backends.pieces import cut, cut_evenly
from pathnn.nn.backends.tokens import LevelTokens, ProjectedInputs
from pathnn.nn.backends.workers import num_workers, run_in_threads

Levels = list[LevelTokens]


def path_states(
    tables: ProjectedInputs, weight_hh: Tensor, levels: Levels, *, num_nodes: int | None, max_entries: int | None
) -> Tensor:
    """The last hidden state of every path: summed at the sources, `[num_nodes, d]`, or each, if `num_nodes` is None.

    Differentiable once, with respect to the tables and `weight_hh`.
    """
    return _TrieLSTM.apply(*tables, weight_hh, levels, num_nodes, max_entries)  # type: ignore[no-untyped-call]


class _TrieLSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        vertex: Tensor,
        edge: Tensor | None,
        distance: Tensor | None,
        weight_hh: Tensor,
        levels: Levels,
        num_nodes: int | None,
        max_entries: int | None,
    ) -> Tensor:
        tables = ProjectedInputs(vertex, edge, distance)
        pieces = [_parts(piece, weight_hh) for piece in (cut(levels, max_entries) if max_entries else [levels])]
        outs: list[Tensor] = []
        kept: list[list[State]] = []
        for parts in pieces:
            results = run_in_threads(partial(_forward_part, tables, weight_hh, num_nodes), parts)
            outs += [out for out, _ in results]
            if num_nodes is not None:
                outs = [reduce(Tensor.add_, outs)]
            if len(pieces) == 1:
                kept = [states for _, states in results]
        ctx.save_for_backward(*tables, weight_hh, *(x for states in kept for pair in states for x in pair))
        ctx.pieces, ctx.num_nodes = pieces, num_nodes
        return torch.cat(outs) if len(outs) > 1 else outs[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        check_once()
        vertex, edge, distance, weight_hh, *states = ctx.saved_tensors
        tables = ProjectedInputs(vertex, edge, distance)
        grad = grad.contiguous()
        kept = _unflatten(states, ctx.pieces[0]) if states else None
        sums: list[Tensor | None] = [None] * 4
        first = 0
        for parts in ctx.pieces:
            jobs = []
            for t, part in enumerate(parts):
                rows = grad if ctx.num_nodes is not None else grad[first : first + part[-1].num_entries]
                jobs.append((part, rows, kept[t] if kept is not None else None))
                first += part[-1].num_entries
            with torch.autocast(grad.device.type, enabled=False):  # backward() may be called inside of one
                found = run_in_threads(partial(_backward_part, tables, weight_hh, ctx.num_nodes is not None), jobs)
            for part in found:
                sums = [_add(total, more) for total, more in zip(sums, part, strict=True)]
        return *sums, None, None, None


def _parts(levels: Levels, weight_hh: Tensor) -> list[Levels]:
    """Parts for the cores of a CPU; one part elsewhere."""
    if weight_hh.device.type != "cpu":
        return [levels]
    entries = sum(level.num_entries for level in levels)
    return cut_evenly(levels, num_workers(entries * weight_hh.size(1)))


def _forward_part(
    tables: ProjectedInputs, weight_hh: Tensor, num_nodes: int | None, levels: Levels
) -> tuple[Tensor, list[State]]:
    rows = levels[-1].num_entries if num_nodes is None else num_nodes
    out = tables.vertex.new_zeros(rows, weight_hh.size(1))
    return out, forward_sweep(tables, weight_hh, levels, out, summed=num_nodes is not None)


def _backward_part(
    tables: ProjectedInputs, weight_hh: Tensor, summed: bool, job: tuple[Levels, Tensor, list[State] | None]
) -> tuple[Tensor | None, ...]:
    """The gradients of the three tables and of `weight_hh`; states that were not kept are computed again."""
    levels, grad, kept = job
    if kept is None:
        kept = forward_sweep(tables, weight_hh, levels, None, summed=summed)
    grads, grad_weight = tables.zeros_like(), torch.zeros_like(weight_hh)
    backward_sweep(tables, weight_hh, levels, kept, grad, grads, grad_weight, summed=summed)
    return *grads, grad_weight


def _add(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    """The sum, written over `total`."""
    return more if total is None else total.add_(more) if more is not None else total


def _unflatten(states: list[Tensor], parts: list[Levels]) -> list[list[State]]:
    """The states that were saved one after the other, again per part and level."""
    pairs = iter(zip(states[::2], states[1::2], strict=True))
    return [[next(pairs) for _ in part[:-1]] for part in parts]
