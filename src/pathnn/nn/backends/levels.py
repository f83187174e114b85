"""The backend "torch": any cell over shared prefixes, level by level, in plain torch, for any device and dtype.

Forward, for a level with parents p and entries j (Michel et al. 2023, appendix C, inputs projected beforehand):

    z_j = V[vertex_j] + E[edge_j] + D[distance_j],  r_p = W_hh h_p,  state_j = step(z_j, r_p, state_p)

`W_hh h_p` is computed once per parent. The forward pass keeps the states of entries with children; the backward pass
recomputes gates. On a CPU, parts of a trie run in threads, each with matrix products on one core: small products and
loops alternate, and threads inside each of them would mostly wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from threading import Barrier
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget, Inputs, LevelTokens, Piece, ProjectedInputs, Shared, wide
from pathnn.nn.cells import PathCell, State
from pathnn.paths.trie import LengthTrie

Part = TypeVar("Part")
Result = TypeVar("Result")

MOST_KEPT = 1 << 26
"""Numbers of `W_hh h` that are kept for the backward pass, 256 MiB in float32; more are recomputed."""


class Block(NamedTuple):
    """Consecutive parents with `projected` (`W_hh h`) and states, and the entries below them with their `tokens`."""

    parents: slice
    entries: slice
    tokens: LevelTokens
    projected: Tensor | None
    state: State


class BlockGrads(NamedTuple):
    """The gradients to which a block adds its own: of the tables, of its parents' `W_hh h`, and of their states."""

    tables: ProjectedInputs
    projected: Tensor | None
    parents: State


@dataclass(frozen=True, eq=False, kw_only=True)
class LevelsShared(Shared):
    """The projected tables of edges and distances, and the weights."""

    weight: Tensor
    bias: Tensor
    edge: Tensor | None
    distance: Tensor | None
    recurrent: Tensor | None


class Levels:
    """Compute all levels, one after the other. `Cpu` overrides what computes a block, products and sums."""

    name = "torch"
    block_parents: int | None = None
    """The number of parents per block; None for all parents of a level, in few large operations."""

    def supports(self, cell: PathCell, like: Tensor) -> bool:
        """Return True."""
        return True

    def prepare(self, cell: PathCell, inputs: Inputs, budget: Budget) -> LevelsShared:
        """Project edges and distances."""
        weights = cell.weights()
        with torch.autocast(weights.input.device.type, enabled=False):
            small = base.project_small(inputs, weights.input, cell.channels)
        edge, distance, recurrent = (None if x is None else wide(x) for x in (*small, weights.recurrent))
        return LevelsShared(
            backend=self, budget=budget, cell=cell, inputs=inputs, weight=weights.input[:, : cell.channels],
            bias=weights.bias, edge=edge, distance=distance, recurrent=recurrent,
        )  # fmt: skip

    def run(self, shared: LevelsShared, h: Tensor, trie: LengthTrie, *, summed: bool) -> Tensor:
        """Return the last hidden state of every path, or their sums at the sources; differentiable once."""
        tokens, most = self.tokens(shared, trie), shared.budget.max_entries
        pieces = base.cut(tokens, most) if most else [tokens]
        tables = ProjectedInputs(self.project(shared, h), shared.edge, shared.distance, shared.recurrent)
        keep = torch.is_grad_enabled() and any(table is not None and table.requires_grad for table in tables)
        job = _Job(self, shared.cell, pieces, summed, keep and len(pieces) == 1, trie.prefixes)
        rows = trie.num_nodes if summed else trie.num_paths
        return _Run.apply(job, rows, *tables).to(h.dtype)  # type: ignore[no-untyped-call]

    def project(self, shared: LevelsShared, h: Tensor) -> Tensor:
        """Return the projected vertices, no narrower than float32."""
        return wide(F.linear(h, shared.weight, shared.bias))

    def tokens(self, shared: LevelsShared, trie: LengthTrie) -> Piece:
        """Return the rows of the tables that each entry reads, level by level."""
        levels, edges = [], shared.inputs.edges
        for level in trie.levels:
            vertex = torch.where(level.vertex < 0, trie.num_nodes, level.vertex)
            edge = None if edges is None or level.edge is None else base.edge_rows(level.edge, edges)
            distance = None if shared.distance is None else level.distance
            levels.append(LevelTokens(level.parent, vertex.contiguous(), edge, distance))
        return levels

    def forward(self, job: _Job, tables: ProjectedInputs, piece: Piece, out: Tensor) -> list[_Kept]:
        """Write or add up the paths of a piece, in threads; return its parts, with their inner states if `job.keep`."""
        parts = _with_rows(_parts(piece, out), out, summed=job.summed)
        if job.summed:  # each part has its own sums
            parts[1:] = [(part, torch.zeros_like(out)) for part, _ in parts[1:]]
        inner = sum(level.num_entries for level in piece[:-1])
        products = job.keep and inner * tables.vertex.size(1) <= MOST_KEPT

        def compute(one: tuple[Piece, Tensor]) -> _Kept:
            part, rows = one
            levels = self._down(job, tables, part, rows, products=products)
            return part, levels if job.keep else None

        kept = run_in_threads(compute, parts)
        for _, more in parts[1:] if job.summed else ():
            out += more
        return kept

    def backward(self, job: _Job, tables: ProjectedInputs, kept: list[_Kept], grad: Tensor) -> list[Tensor | None]:
        """Add up the gradients of the parts of a piece; states that were not kept are recomputed."""
        parts = _with_rows([part for part, _ in kept], grad, summed=job.summed)

        def compute(one: tuple[_Kept, tuple[Piece, Tensor]]) -> list[Tensor | None]:
            (part, inner), (_, rows) = one
            inner = self._down(job, tables, part, None, products=True) if inner is None else inner
            return self._up(job, tables, part, inner, rows)

        totals, *others = run_in_threads(compute, list(zip(kept, parts, strict=True)))
        for found in others:
            totals = _add(totals, found)
        return totals

    def _down(
        self, job: _Job, tables: ProjectedInputs, levels: Piece, out: Tensor | None, *, products: bool
    ) -> list[_Inner]:
        """Run all levels and return the inner ones; without `out`, leave out the last level, and sums."""
        cell, inner = job.cell, list[_Inner]()
        for rows in levels[:-1]:
            state = tuple(tables.vertex.new_empty(rows.num_entries, cell.channels) for _ in range(cell.states))
            for block in self._blocks(rows, tables.recurrent, inner[-1] if inner else None, keep=products):
                self.forward_block(cell, block, tables, tuple(x[block.entries] for x in state))
            if job.prefixes and out is not None:
                self.sum_rows(out, rows.vertex, state[0])
            inner.append(_Inner(state, []))
        if out is None:
            return inner
        for block in self._blocks(levels[-1], tables.recurrent, inner[-1], keep=products):
            hidden = out.new_empty(block.tokens.num_entries, out.size(1)) if job.summed else out[block.entries]
            self.forward_block(cell, block, tables, (hidden,))
            if job.summed:
                self.sum_rows(out, block.tokens.vertex, hidden)
        return inner

    def _up(
        self, job: _Job, tables: ProjectedInputs, levels: Piece, inner: list[_Inner], grad: Tensor
    ) -> list[Tensor | None]:
        """Return the gradients of `tables`, where `grad` is that of the output of `_down`."""
        cell, weight = job.cell, tables.recurrent
        vertex, edge, distance = (None if table is None else torch.zeros_like(table) for table in tables[:3])
        assert vertex is not None
        grads = ProjectedInputs(vertex, edge, distance)
        grad_weight = None if weight is None else weight.new_zeros(weight.size(1), weight.size(0))
        grad_state: State = () if job.summed else (grad,)
        scratch: Tensor | None = None  # the gradient of the products of a block; new memory would cost more than zeros
        for t in range(len(levels) - 1, -1, -1):
            parents = inner[t - 1] if t else None
            if job.prefixes and grad_state:
                grad_state[0].add_(grad.index_select(0, levels[t].vertex))
            above = () if parents is None else tuple(map(torch.zeros_like, parents.state))
            for block in self._blocks(levels[t], weight, parents):
                own = tuple(x[block.entries] for x in grad_state) or (grad.index_select(0, block.tokens.vertex),)
                d_parents = tuple(x[block.parents] for x in above)
                if block.projected is None or weight is None or grad_weight is None:
                    self.backward_block(cell, block, tables, own, BlockGrads(grads, None, d_parents))
                    continue
                number = block.projected.size(0)
                if scratch is None or scratch.size(0) < number:
                    scratch = torch.empty_like(block.projected)
                d_projected = scratch[:number].zero_()
                self.backward_block(cell, block, tables, own, BlockGrads(grads, d_projected, d_parents))
                d_parents[0].add_(self.product(d_projected, weight))
                grad_weight += self.product(block.state[0].t(), d_projected)
            grad_state = above
        return [vertex, edge, distance, None if grad_weight is None else grad_weight.t().contiguous()]

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Return `a @ b`."""
        return a @ b

    def _blocks(
        self, rows: LevelTokens, weight: Tensor | None, parents: _Inner | None, *, keep: bool = False
    ) -> Iterator[Block]:
        """Yield a level in blocks of parents, with `W_hh h` of the parents of each: kept, or computed (and `keep`)."""
        if parents is None or rows.parent is None:
            yield Block(slice(0, 0), slice(0, rows.num_entries), rows, None, ())
            return
        number, size = parents.state[0].size(0), self.block_parents
        starts = list(range(0, number, size)) if size and number else [0]
        bounds = [0, rows.num_entries]
        if len(starts) > 1:
            inner = torch.tensor(starts[1:], dtype=rows.parent.dtype)
            bounds[1:1] = torch.searchsorted(rows.parent, inner).tolist()
        kept = list(parents.products)
        for i, ((a, b), (first, last)) in enumerate(zip(pairwise([*starts, number]), pairwise(bounds), strict=True)):
            tokens = rows.slice(first, last, parent_start=a) if len(starts) > 1 else rows
            state = tuple(x[a:b] for x in parents.state)
            projected = kept[i] if kept else None if weight is None else self.product(state[0], weight.t())
            if keep and projected is not None:
                parents.products.append(projected)
            yield Block(slice(a, b), slice(first, last), tokens, projected, state)

    def forward_block(self, cell: PathCell, block: Block, tables: ProjectedInputs, out: State) -> None:
        """Write the states of a block into `out`, which has only h if no later step reads the others."""
        for target, value in zip(out, cell.step(*_step_inputs(block, tables)), strict=False):
            target.copy_(value)

    def backward_block(
        self, cell: PathCell, block: Block, tables: ProjectedInputs, grad: State, to: BlockGrads
    ) -> None:
        """Add the gradients of a block, where `grad` is that of its states, or only of h."""
        z, r, before = _step_inputs(block, tables)
        inputs = [x.requires_grad_() for x in (z, r, *before) if x is not None]
        with torch.enable_grad():
            after = cell.step(z, r, before)  # recomputed
        grad_z, *others = torch.autograd.grad(
            after[: len(grad)], inputs, grad, allow_unused=True, materialize_grads=True
        )
        parent, vertex, edge, distance = block.tokens
        self.sum_rows(to.tables.vertex, vertex, grad_z)
        for table, index in ((to.tables.edge, edge), (to.tables.distance, distance)):
            if table is not None and index is not None:
                self._sum_small_table(table, index, grad_z)
        if parent is None:
            return
        if to.projected is not None:
            self.sum_rows(to.projected, parent, others.pop(0))
        for target, rows in zip(to.parents, others, strict=True):
            target.index_add_(0, parent, rows)

    def sum_rows(self, target: Tensor, index: Tensor, rows: Tensor) -> None:
        """Add row j to `target[index[j]]` for every j, in order on a CPU, in any order on other devices."""
        target.index_add_(0, index, rows)

    def _sum_small_table(self, target: Tensor, index: Tensor, rows: Tensor) -> None:
        """Do the same for a small table by a matrix product: no contention, and the same sum every time."""
        if target.size(0) > 64:
            self.sum_rows(target, index, rows)
            return
        one_hot = torch.zeros(target.size(0), rows.size(0), dtype=rows.dtype, device=rows.device)
        one_hot[index.long(), torch.arange(rows.size(0), device=rows.device)] = 1
        target.addmm_(one_hot, rows)


class _Inner(NamedTuple):
    """The states of an inner level, and its products `W_hh h`, one for each block of its entries; none: not kept."""

    state: State
    products: list[Tensor]


_Kept = tuple[Piece, list[_Inner] | None]
"""A part of a trie, and its inner levels; None: not kept."""


class _Job(NamedTuple):
    """The arguments of `_Run`: with `keep`, states are kept for the backward pass; `prefixes` as in `LengthTrie`."""

    backend: Levels
    cell: PathCell
    pieces: list[Piece]
    summed: bool
    keep: bool
    prefixes: bool


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, job: _Job, rows: int, *tensors: Any) -> Tensor:
        tables = ProjectedInputs(*tensors)
        out = tables.vertex.new_zeros(rows, job.cell.channels)
        ctx.job, ctx.kept = job, None
        for piece, own in _with_rows(job.pieces, out, summed=job.summed):
            kept = job.backend.forward(job, tables, piece, own)
            ctx.kept = kept if job.keep else None
        ctx.save_for_backward(*tensors)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        base.check_once()
        job, tables, totals = ctx.job, ProjectedInputs(*ctx.saved_tensors), list[Tensor | None]([None] * 4)
        all_kept, ctx.kept = ctx.kept, None  # frees the states; another backward pass recomputes them
        with torch.autocast(grad.device.type, enabled=False):  # backward() may be called under autocast
            for piece, rows in _with_rows(job.pieces, grad.contiguous(), summed=job.summed):
                kept = all_kept or [(part, None) for part in _parts(piece, grad)]
                totals = _add(totals, job.backend.backward(job, tables, kept, rows))
        return None, None, *totals


def _add(totals: list[Tensor | None], found: list[Tensor | None]) -> list[Tensor | None]:
    """Return the sums, computed in place in `totals`."""
    return [
        more if total is None else total if more is None else total.add_(more)
        for total, more in zip(totals, found, strict=True)
    ]


def _with_rows(pieces: list[Piece], rows: Tensor, *, summed: bool) -> list[tuple[Piece, Tensor]]:
    """Return each piece with its paths' rows of the output or its gradient: all rows if `summed`."""
    bounds = accumulate((piece[-1].num_entries for piece in pieces), initial=0)
    return [
        (piece, rows if summed else rows[first:last])
        for piece, (first, last) in zip(pieces, pairwise(bounds), strict=True)
    ]


def _step_inputs(block: Block, tables: ProjectedInputs) -> tuple[Tensor, Tensor | None, State]:
    """Return the projected token of every entry, a new tensor, and `W_hh h` and the states of its parent."""
    parent, vertex, edge, distance = block.tokens
    z = tables.vertex.index_select(0, vertex)
    for table, index in ((tables.edge, edge), (tables.distance, distance)):
        if table is not None and index is not None:
            z += table.index_select(0, index)
    if parent is None:
        return z, None, ()
    r = None if block.projected is None else block.projected.index_select(0, parent)
    return z, r, tuple(x.index_select(0, parent) for x in block.state)


def _parts(levels: Piece, like: Tensor) -> list[Piece]:
    """Return parts for the cores of a CPU; one part on other devices."""
    if like.device.type != "cpu":
        return [levels]
    entries = sum(level.num_entries for level in levels)
    return base.cut_evenly(levels, num_workers(entries * like.size(1)))


MOST_WORKERS = 16
"""The largest number of threads: each has its own gradients of the tables, so memory grows with their number."""


def num_workers(numbers: int) -> int:
    """Return the number of parts for `numbers` numbers: one per thread of torch, each with at least 2**18 numbers."""
    return max(1, min(torch.get_num_threads(), MOST_WORKERS, numbers >> 18))


def run_in_threads(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Return `[function(part) for part in parts]` without gradients, in threads; each part runs on one core."""
    if len(parts) == 1:
        with _one_thread():
            return [function(parts[0])]
    inference = torch.is_inference_mode_enabled()

    def task(part: Part) -> Result:
        with torch.inference_mode(inference), torch.no_grad():  # both are properties of a thread
            return function(part)

    return list(_pool(os.getpid(), len(parts)).map(task, parts))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run the operations of torch in this thread on one core."""
    threads = torch.get_num_threads()
    if threads > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads > 1:
            torch.set_num_threads(threads)


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Return threads that use one core each; a forked process has another id and gets its own threads."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="pathnn")
    threads, started = torch.get_num_threads(), Barrier(workers)

    def start(_: int) -> None:
        torch.set_num_threads(1)
        started.wait()

    list(pool.map(start, range(workers)))
    torch.set_num_threads(threads)  # torch hands the last number set anywhere to threads that start later
    return pool
