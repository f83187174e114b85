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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from threading import Barrier
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from pathnn.nn.backends import base
from pathnn.nn.backends.base import (
    Budget,
    EdgeTypes,
    Inputs,
    LevelTokens,
    Piece,
    PieceBackend,
    Saved,
    Shared,
    Tensors,
    wide,
)
from pathnn.nn.cells import PathCell, State, is_lstm
from pathnn.paths.trie import LengthTrie

Part = TypeVar("Part")
Result = TypeVar("Result")


class ProjectedInputs(NamedTuple):
    """The projected inputs; a gate before activation is the sum of one row of each.

    Shapes: `vertex` is `[num_nodes, gates * d]`, with the bias added, and one more row for a dummy token; `edge` is
    `[num_types + 1, gates * d]`, whose last row, zeros, is for "no edge"; `distance` is `[rows, gates * d]`.
    """

    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None

    def zeros_like(self) -> ProjectedInputs:
        """Return zeros of the same shapes, to add up gradients."""
        vertex, edge, distance = (None if table is None else torch.zeros_like(table) for table in self)
        assert vertex is not None
        return ProjectedInputs(vertex, edge, distance)


MOST_KEPT = 1 << 26
"""Numbers of `W_hh h` that are kept for the backward pass, 256 MiB in float32; more are recomputed."""


class LevelInput(NamedTuple):
    """The rows of a level together with its parents' `W_hh h`, `[m, gates * d]`, and states, `[m, d]` each."""

    parent: Tensor | None
    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None
    projected: Tensor | None
    state: State


@dataclass(frozen=True, eq=False, kw_only=True)
class LevelsShared(Shared):
    """The projected tables of edges and distances, and the weights; `edges` gives the row of each edge."""

    cell: PathCell
    edges: Tensor | EdgeTypes | None
    weight: Tensor
    bias: Tensor
    edge: Tensor | None
    distance: Tensor | None
    recurrent: Tensor


class Levels(PieceBackend):
    """Compute all levels, one after the other. `Cpu` overrides `forward_level`, `backward_level` and `sum_rows`."""

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
            edge, distance = project_small(
                inputs.distances, inputs.edges, weight_ih=weights.input, channels=cell.channels
            )
        return LevelsShared(
            backend=self,
            budget=budget,
            cell=cell,
            edges=inputs.edges,
            weight=weights.input[:, : cell.channels],
            bias=weights.bias,
            edge=None if edge is None else wide(edge),
            distance=None if distance is None else wide(distance),
            recurrent=wide(weights.recurrent),
        )

    def project(self, shared: LevelsShared, h: Tensor) -> Tensors:
        """Return the projected vertices, edges and distances, and `W_hh`."""
        vertex = wide(F.linear(h, shared.weight, shared.bias))
        return vertex, shared.edge, shared.distance, shared.recurrent

    def tokens(self, shared: LevelsShared, trie: LengthTrie) -> Piece:
        """Return the rows of the tables that each entry reads, level by level."""
        levels = []
        for level in trie.levels:
            vertex = torch.where(level.vertex < 0, trie.num_nodes, level.vertex)
            edge = None if shared.edges is None or level.edge is None else _edge_rows(level.edge, shared.edges)
            distance = None if shared.distance is None else level.distance
            levels.append(LevelTokens(level.parent, vertex.contiguous(), edge, distance))
        return levels

    def forward(
        self, shared: LevelsShared, tensors: Tensors, piece: Piece, out: Tensor, *, summed: bool, keep: bool
    ) -> Saved:
        """Compute the parts of a piece in threads; keep the states of the inner entries, and their products if few."""
        parts = _parts(piece, out)
        rows, first = [], 0
        for part in parts:  # a part has its own sums, or its own rows of `out`
            last = first + part[-1].num_entries
            rows.append(out[first:last] if not summed else out if first == 0 else torch.zeros_like(out))
            first = last
        inner = sum(level.num_entries for level in piece[:-1])
        products = keep and inner * shared.recurrent.size(0) <= MOST_KEPT

        def compute(job: tuple[Piece, Tensor]) -> list[_Inner]:
            levels = self._down(shared.cell, tensors, *job, summed=summed, products=products)
            return levels if keep else []

        kept = run_in_threads(compute, list(zip(parts, rows, strict=True)))
        for more in rows[1:] if summed else ():
            out += more
        counts = [[len(level.products) for level in levels] for levels in kept]
        return Saved(
            [x for levels in kept for level in levels for x in (*level.state, *level.products)], (parts, counts)
        )

    def backward(
        self, shared: LevelsShared, tensors: Tensors, piece: Piece, saved: Saved | None, grad: Tensor, *, summed: bool
    ) -> Tensors:
        """Add up the gradients of the parts of a piece."""
        parts: list[Piece] = _parts(piece, grad) if saved is None else saved.context[0]
        jobs: list[tuple[Piece, Tensor, list[_Inner] | None]] = []
        inner = None if saved is None else _unflatten(saved.tensors, shared.cell.states, saved.context[1])
        first = 0
        for i, part in enumerate(parts):
            last = first + part[-1].num_entries
            jobs.append((part, grad if summed else grad[first:last], None if inner is None else inner[i]))
            first = last

        def compute(job: tuple[Piece, Tensor, list[_Inner] | None]) -> list[Tensor | None]:
            part, rows, kept = job
            kept = self._down(shared.cell, tensors, part, None, summed=summed, products=True) if kept is None else kept
            return self._up(shared.cell, tensors, part, kept, rows, summed=summed)

        totals, *others = run_in_threads(compute, jobs)
        for found in others:
            totals = [base.add(total, more) for total, more in zip(totals, found, strict=True)]
        return tuple(totals)

    def _down(
        self, cell: PathCell, tensors: Tensors, levels: Piece, out: Tensor | None, *, summed: bool, products: bool
    ) -> list[_Inner]:
        """Run all levels and return the inner ones; without `out`, leave out the last level."""
        tables, weight = _split(tensors)
        inner: list[_Inner] = []
        for rows in levels[:-1]:
            state = tuple(tables.vertex.new_empty(rows.num_entries, weight.size(1)) for _ in range(cell.states))
            for block in self._blocks(rows, weight, inner[-1] if inner else None, keep=products):
                self.forward_level(cell, block.level, tables, tuple(x[block.entries] for x in state))
            inner.append(_Inner(state, []))
        for block in [] if out is None else self._blocks(levels[-1], weight, inner[-1], keep=products):
            assert out is not None
            hidden = out.new_empty(block.level.vertex.numel(), out.size(1)) if summed else out[block.entries]
            self.forward_level(cell, block.level, tables, (hidden,))
            if summed:
                self.sum_rows(out, block.level.vertex, hidden)
        return inner

    def _up(
        self, cell: PathCell, tensors: Tensors, levels: Piece, inner: list[_Inner], grad: Tensor, *, summed: bool
    ) -> list[Tensor | None]:
        """Return the gradients of `tensors`, where `grad` is that of the output of `_down`."""
        tables, weight = _split(tensors)
        grads, grad_weight = tables.zeros_like(), torch.zeros_like(weight.t(), memory_format=torch.contiguous_format)
        grad_state: State = () if summed else (grad,)
        scratch: Tensor | None = None  # the gradient of the products of a block; new memory would cost more than zeros
        for t in range(len(levels) - 1, -1, -1):
            parents = inner[t - 1] if t else None
            above = () if parents is None else self._zero_gradients(cell, parents.state)
            for block in self._blocks(levels[t], weight, parents):
                level = block.level
                own = tuple(x[block.entries] for x in grad_state) or (grad.index_select(0, level.vertex),)
                if level.projected is None:
                    self.backward_level(cell, level, tables, own, grads, None, ())
                    continue
                number = level.projected.size(0)
                if scratch is None or scratch.size(0) < number:
                    scratch = torch.empty_like(level.projected)
                d_projected, d_parents = scratch[:number].zero_(), tuple(x[block.parents] for x in above)
                self.backward_level(cell, level, tables, own, grads, d_projected, d_parents)
                through_weight = self.product(d_projected, weight)
                d_parents[0].copy_(through_weight) if is_lstm(cell) else d_parents[0].add_(through_weight)
                grad_weight += self.product(level.state[0].t(), d_projected)
            grad_state = above
        return [*grads, grad_weight.t().contiguous()]

    @staticmethod
    def _zero_gradients(cell: PathCell, state: State) -> State:
        """Return where the gradients of states are added; that of an LSTM's h is written as a whole."""
        hidden = torch.empty_like(state[0]) if is_lstm(cell) else torch.zeros_like(state[0])
        return (hidden, *map(torch.zeros_like, state[1:]))

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Return `a @ b`."""
        return a @ b

    def _blocks(
        self, rows: LevelTokens, weight: Tensor, parents: _Inner | None, *, keep: bool = False
    ) -> Iterator[_Block]:
        """Yield a level in blocks of parents, with `W_hh h` of the parents of each: kept, or computed (and `keep`)."""
        if parents is None or rows.parent is None:
            yield _Block(slice(0, 0), slice(0, rows.num_entries), LevelInput(*rows, projected=None, state=()))
            return
        number, size = parents.state[0].size(0), self.block_parents
        starts = list(range(0, number, size)) if size and number else [0]
        bounds = [0, rows.num_entries]
        if len(starts) > 1:
            inner = torch.tensor(starts[1:], dtype=rows.parent.dtype)
            bounds[1:1] = torch.searchsorted(rows.parent, inner).tolist()
        kept = list(parents.products)
        for i, ((a, b), (first, last)) in enumerate(zip(pairwise([*starts, number]), pairwise(bounds), strict=True)):
            block = rows.slice(first, last, parent_start=a) if len(starts) > 1 else rows
            state = tuple(x[a:b] for x in parents.state)
            projected = kept[i] if kept else self.product(state[0], weight.t())
            if keep:
                parents.products.append(projected)
            yield _Block(slice(a, b), slice(first, last), LevelInput(*block, projected=projected, state=state))

    def forward_level(self, cell: PathCell, level: LevelInput, tables: ProjectedInputs, out: State) -> None:
        """Write the states of a level into `out`, which has only h if no later step reads the others."""
        if not is_lstm(cell):
            state = cell.step(_projected(level, tables), _of_parents(level.projected, level), _parent_state(level))
            for target, value in zip(out, state, strict=False):
                target.copy_(value)
            return
        i, f, g, o = _lstm_gates(level, tables)
        c = torch.mul(i, g, out=out[1]) if len(out) > 1 else i * g
        if level.state:
            c.addcmul_(f, _parent_state(level)[1])
        torch.mul(o, c.tanh(), out=out[0])

    def backward_level(
        self,
        cell: PathCell,
        level: LevelInput,
        tables: ProjectedInputs,
        grad: State,
        grads: ProjectedInputs,
        grad_projected: Tensor | None,
        grad_parents: State,
    ) -> None:
        """Add the gradients of a level to those of the tables, of the parents' `W_hh h` and of their states.

        `grad` is the gradient of the states, or only of h.
        """
        differentiate = _lstm_gradients if is_lstm(cell) else _step_gradients
        grad_z, grad_r, grad_states = differentiate(cell, level, tables, grad)
        self.sum_rows(grads.vertex, level.vertex, grad_z)
        if grads.edge is not None and level.edge is not None:
            self._sum_small_table(grads.edge, level.edge, grad_z)
        if grads.distance is not None and level.distance is not None:
            self._sum_small_table(grads.distance, level.distance, grad_z)
        if grad_projected is not None and level.parent is not None:
            self.sum_rows(grad_projected, level.parent, grad_r)
            for target, rows in zip(grad_parents, grad_states, strict=True):
                if rows is not None:
                    target.index_add_(0, level.parent, rows)

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


def project_small(
    distances: Tensor | None, edges: Tensor | EdgeTypes | None, *, weight_ih: Tensor, channels: int
) -> tuple[Tensor | None, Tensor | None]:
    """Return the projected tables of edges and of distances, which are the same in every layer.

    `W_ih [h; d; e]` is split by columns: one product per vertex, per distance and per edge (or type of edge).
    """
    split = channels if distances is None else 2 * channels
    distance = None if distances is None else F.linear(distances, weight_ih[:, channels:split])
    if edges is None:
        return None, distance
    features = edges.table if isinstance(edges, EdgeTypes) else edges
    edge = _linear(features, weight_ih[:, split:])
    return torch.cat([edge, edge.new_zeros(1, edge.size(1))]), distance


def _linear(features: Tensor, weight: Tensor) -> Tensor:
    if not base.on_triton(features):
        return F.linear(features, weight)
    from pathnn.nn.backends.triton.ops import tall_linear

    return tall_linear(features, weight)


def _edge_rows(edge: Tensor, edges: Tensor | EdgeTypes) -> Tensor:
    """Return the row of each edge; -1, no edge, is the row after the last."""
    if isinstance(edges, EdgeTypes):
        none = edges.table.size(0)
        index = torch.cat([edges.types.to(torch.int32), edges.types.new_full((1,), none, dtype=torch.int32)])
        return index[edge.long()]
    return torch.where(edge < 0, edges.size(0), edge)


def _split(tensors: Tensors) -> tuple[ProjectedInputs, Tensor]:
    vertex, edge, distance, weight = tensors
    assert vertex is not None
    assert weight is not None
    return ProjectedInputs(vertex, edge, distance), weight


class _Inner(NamedTuple):
    """The states of an inner level, and its products `W_hh h`, one for each block of its entries; none: not kept."""

    state: State
    products: list[Tensor]


def _unflatten(tensors: Sequence[Tensor], states: int, counts: list[list[int]]) -> list[list[_Inner]]:
    """Return the inner levels of each part from their tensors, one after the other, and their numbers of products."""
    rest = iter(tensors)
    return [[_Inner(tuple(islice(rest, states)), list(islice(rest, number))) for number in levels] for levels in counts]


class _Block(NamedTuple):
    """Some consecutive parents, all their children, and the inputs of the step of the children."""

    parents: slice
    entries: slice
    level: LevelInput


def _projected(level: LevelInput, tables: ProjectedInputs) -> Tensor:
    """Return the projected token of every entry, `[n, gates * d]`, a new tensor."""
    z = tables.vertex.index_select(0, level.vertex)
    if tables.edge is not None and level.edge is not None:
        z += tables.edge.index_select(0, level.edge)
    if tables.distance is not None and level.distance is not None:
        z += tables.distance.index_select(0, level.distance)
    return z


def _of_parents(rows: Tensor | None, level: LevelInput) -> Tensor | None:
    return None if rows is None or level.parent is None else rows.index_select(0, level.parent)


def _parent_state(level: LevelInput) -> State:
    return () if level.parent is None else tuple(x.index_select(0, level.parent) for x in level.state)


Gradients = tuple[Tensor, Tensor, Sequence[Tensor | None]]
"""The gradients of z, of r and of the parents' states, for each entry."""


def _step_gradients(cell: PathCell, level: LevelInput, tables: ProjectedInputs, grad: State) -> Gradients:
    """Differentiate the step of any cell, with recomputed gates."""
    z, r = _projected(level, tables).requires_grad_(), _of_parents(level.projected, level)
    before = tuple(x.requires_grad_() for x in _parent_state(level))
    with torch.enable_grad():
        after = cell.step(z, None if r is None else r.requires_grad_(), before)
    inputs = [z, *([] if r is None else [r]), *before]
    grad_z, *others = torch.autograd.grad(after[: len(grad)], inputs, grad, allow_unused=True, materialize_grads=True)
    return grad_z, others[0] if others else grad_z, others[1:]


def _lstm_gates(level: LevelInput, tables: ProjectedInputs) -> tuple[Tensor, ...]:
    """Return the activated gates i, f, g, o of every entry, views of one `[n, 4d]` tensor."""
    z = _projected(level, tables)
    r = _of_parents(level.projected, level)
    i, f, g, o = (z if r is None else z.add_(r)).chunk(4, dim=1)
    return i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()


def _lstm_gradients(cell: PathCell, level: LevelInput, tables: ProjectedInputs, grad: State) -> Gradients:
    i, f, g, o = _lstm_gates(level, tables)
    before = _parent_state(level)[1] if level.state else None
    c = i * g if before is None else (i * g).addcmul_(f, before)
    c.tanh_()
    grad_c = grad[0] * o * (1 - c * c)
    if len(grad) > 1:
        grad_c += grad[1]
    grad_f = torch.zeros_like(f) if before is None else grad_c * before * f * (1 - f)
    grad_z = torch.cat([grad_c * g * i * (1 - i), grad_f, grad_c * i * (1 - g * g), grad[0] * c * o * (1 - o)], dim=1)
    return grad_z, grad_z, (None, grad_c * f)


def _parts(levels: Piece, like: Tensor) -> list[Piece]:
    """Return parts for the cores of a CPU; one part on other devices."""
    if like.device.type != "cpu":
        return [levels]
    entries = sum(level.num_entries for level in levels)
    return base.cut_evenly(levels, num_workers(entries * like.size(1)))


MOST_WORKERS = 16
"""The largest number of threads: each has its own gradients of the tables, so memory grows with their number."""


def num_workers(numbers: int, *, at_least: int = 1 << 18) -> int:
    """Return the number of parts for `numbers` numbers: one per thread of torch, each with `at_least` numbers."""
    return max(1, min(torch.get_num_threads(), MOST_WORKERS, numbers // at_least))


def run_in_threads(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Return `[function(part) for part in parts]` without recording gradients, in threads if there are several parts.

    A single part also runs on one core: the threads of a small product mostly wait for each other.
    """
    if len(parts) == 1:
        with _one_thread():
            return [function(parts[0])]
    inference = torch.is_inference_mode_enabled()

    def task(part: Part) -> Result:
        with torch.inference_mode(inference), torch.no_grad():  # both are properties of a thread
            return function(part)

    pool = _pool(os.getpid(), len(parts))
    jobs: list[Future[Result]] = [pool.submit(task, part) for part in parts]
    return [job.result() for job in jobs]


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
