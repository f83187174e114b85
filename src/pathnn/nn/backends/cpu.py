"""The backend "cpu": one level of the trie in one pass over its entries, compiled by numba. float32, LSTM.

Gates are never written to memory. Entries are read in order, and their gradients are added directly to the tables:
nothing is sorted, and the order of every sum is fixed. The loops release the GIL; `levels` has the threads.

A few entries at a time are gathered into scratch rows that stay in the first-level cache, gate by gate, so that the
arithmetic runs in long contiguous loops over few arrays, which LLVM vectorises. Indices are cast to unsigned integers;
otherwise each access would handle negative ones.
"""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from torch import Tensor

from pathnn.nn.backends.base import ProjectedInputs, check_once, wide
from pathnn.nn.backends.levels import Block, BlockGrads, Levels, LevelsShared
from pathnn.nn.cells import PathCell, State, lstm_step

_ONE_DNN = torch._C._has_mkldnn and platform.machine() in ("x86_64", "AMD64")

LARGE = 1 << 27
"""Multiplications of a product that take longer than oneDNN compiles, a quarter of a millisecond."""


class Cpu(Levels):
    """`Levels` with compiled loops."""

    name = "cpu"
    block_parents = 512  # their products stay in the cache until their children have read them

    def supports(self, cell: PathCell, like: Tensor) -> bool:
        """Return whether it is an LSTM on a CPU in float32 or in half precision, which is widened."""
        narrow = like.dtype in (torch.float32, torch.bfloat16, torch.float16)
        return cell.step is lstm_step and like.device.type == "cpu" and narrow

    def forward_block(self, cell: PathCell, block: Block, tables: ProjectedInputs, out: State) -> None:
        """Write the states of a block into `out`, which has only h if no later step reads c."""
        _forward_block(_inputs(block, tables), _array(out[0]), _array(out[1] if len(out) > 1 else None))

    def backward_block(
        self, cell: PathCell, block: Block, tables: ProjectedInputs, grad: State, to: BlockGrads
    ) -> None:
        """Add the gradients of a block; parents' h gets none, since only `W_hh h` reads it."""
        c, c_of_parents = grad[1] if len(grad) > 1 else None, to.parents[1] if to.parents else None
        edge = None if block.tokens.edge is None else to.tables.edge
        distance = None if block.tokens.distance is None else to.tables.distance
        rows = grad[0], c, to.tables.vertex, edge, distance, to.projected, c_of_parents
        _backward_block(_inputs(block, tables), Gradients(*map(_array, rows)))

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Return `a @ b`: on AMD, oneDNN is twice as fast as MKL, but compiles a kernel for each new shape."""
        full = self.block_parents in a.shape  # all full blocks have one shape
        if not _ONE_DNN or a.numel() == 0 or not (full or a.numel() * b.size(1) >= LARGE):
            return a @ b
        return torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")

    def project(self, shared: LevelsShared, h: Tensor) -> Tensor:
        """Return the projected vertices."""
        return _Linear.apply(wide(h), wide(shared.weight).contiguous(), wide(shared.bias), self)  # type: ignore[no-untyped-call]

    def sum_rows(self, target: Tensor, index: Tensor, rows: Tensor) -> None:
        """Add row j to `target[index[j]]`, for every j, in order."""
        _sum_rows(_array(target), index.numpy(), _array(rows))


class _Linear(torch.autograd.Function):
    """`x @ weight.t() + bias` with the products of the backend."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, backend: Cpu) -> Tensor:
        ctx.backend = backend
        ctx.save_for_backward(x, weight)
        return backend.product(x, weight.t()).add_(bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        check_once()
        x, weight = ctx.saved_tensors
        product = ctx.backend.product
        return product(grad, weight), product(grad.t(), x), grad.sum(dim=0), None


def _inputs(block: Block, tables: ProjectedInputs) -> LoopInputs:
    width, nothing = tables.vertex.size(1), np.zeros(block.tokens.num_entries, dtype=np.int32)
    rows = (nothing if index is None else index.numpy() for index in block.tokens)
    cell = _array(block.state[1] if block.state else None, (1, width // 4))
    edges = _array(tables.edge if block.tokens.edge is not None else None, (1, width))
    distances = _array(tables.distance if block.tokens.distance is not None else None, (1, width))
    projected, vertices = _array(block.projected, (1, width)), _array(tables.vertex)
    return LoopInputs._make((*rows, projected, cell, vertices, edges, distances))


def _array(tensor: Tensor | None, absent: tuple[int, int] = (0, 0)) -> np.ndarray[Any, Any]:
    """Return the memory of a tensor as an array, or zeros of shape `absent`."""
    if tensor is None:
        return np.zeros(absent, dtype=np.float32)
    assert tensor.is_contiguous()
    return tensor.detach().numpy()


Array = Any
"""A numpy array; a gradient without rows is not wanted."""

ENTRIES = 8
"""The number of entries that are computed at a time."""

UNROLLED = 128
"""Numbers per iteration of a vectorised and unrolled loop: scratch is padded to a multiple of it."""
_f = np.float32
_u = np.uintp
_HALF, _QUARTER, _ONE = np.float32(0.5), np.float32(0.25), np.float32(1.0)
_loop = numba.njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
_inline = numba.njit(inline="always", fastmath={"contract"}, error_model="numpy")


class LoopInputs(NamedTuple):
    """The arrays of `Block` and `ProjectedInputs`; an absent input is one row of zeros for all entries."""

    parent: Array
    vertex: Array
    edge: Array
    distance: Array
    projected: Array
    cell: Array
    vertex_table: Array
    edge_table: Array
    distance_table: Array


class Gradients(NamedTuple):
    """The gradients of the states of a block, which are read, and of its inputs, which are added to."""

    hidden: Array
    cell: Array
    vertex_table: Array
    edge_table: Array
    distance_table: Array
    projected: Array
    parent_cell: Array


@_inline
def _tanh(x: Any) -> Any:
    """Compute tanh within 4e-7 by a rational function, which LLVM vectorises; the comparisons keep NaN."""
    x = _f(9.02) if x > _f(9.02) else x
    x = _f(-9.02) if x < _f(-9.02) else x
    s = x * x
    p = _f(1.331779314798475e-08)
    p = p * s + _f(2.0582559206336345e-05)
    p = p * s + _f(0.003493979393094199)
    p = p * s + _f(0.13379672105820856)
    p = p * s + _f(0.9999999791775924)
    q = _f(7.761495052480753e-07)
    q = q * s + _f(0.00032830018219103104)
    q = q * s + _f(0.02587086502919748)
    q = q * s + _f(0.4671298740957489)
    q = q * s + _ONE
    return x * p / q


@_loop
def _copy(target: Array, at: int, source: Array, first: int, number: int) -> None:
    """Copy consecutive numbers, from `source[first]` on, to `target[at]` and those after it."""
    for q in range(number):
        target[_u(at + q)] = source[_u(first + q)]


@_loop
def _gather_inputs(z: Array, before: Array, inputs: LoopInputs, first: int, count: int, size: int) -> None:
    """Write the gates before activation, `z[gate, entry, column]`, and c of the parents, for `count` entries."""
    padded = before.shape[0]
    vertices, parents = inputs.vertex_table, inputs.projected
    edges, distances, cells = inputs.edge_table, inputs.distance_table, inputs.cell
    for t in range(count):
        j = _u(first + t)
        v, p, e, d = _u(inputs.vertex[j]), _u(inputs.parent[j]), _u(inputs.edge[j]), _u(inputs.distance[j])
        for gate in range(4):
            column, offset = gate * size, gate * padded + t * size
            for q in range(size):
                c = _u(column + q)
                z[_u(offset + q)] = (vertices[v, c] + parents[p, c]) + (edges[e, c] + distances[d, c])
        for q in range(size):
            before[_u(t * size + q)] = cells[p, _u(q)]


@_loop
def _activate(z: Array, scale: Array) -> None:
    """Compute tanh(z) for gate g and tanh(z / 2) for the others: sigmoid(z) = (tanh(z / 2) + 1) / 2."""
    for q in range(z.shape[0]):
        z[q] = _tanh(z[q] * scale[q])


@_loop
def _next_state(state: Array, i: Array, f: Array, g: Array, before: Array) -> None:
    for q in range(state.shape[0]):
        state[q] = _HALF * ((i[q] + _ONE) * g[q] + (f[q] + _ONE) * before[q])


@_loop
def _tanh_all(state: Array) -> None:
    for q in range(state.shape[0]):
        state[q] = _tanh(state[q])


@_loop
def _scatter(target: Array, index: int, source: Array, offset: int, size: int) -> None:
    """Add `size` numbers of `source`, from `offset` on, to a row."""
    r = _u(index)
    for q in range(size):
        target[r, _u(q)] += source[_u(offset + q)]


@_loop
def _scales(padded: int) -> Array:
    scale = np.full(4 * padded, _HALF)
    scale[2 * padded : 3 * padded] = _ONE
    return scale


@_loop
def _forward_block(inputs: LoopInputs, hidden: Array, cell: Array) -> None:
    """Write the states of a block; `cell` may have no rows."""
    size, n = inputs.cell.shape[1], inputs.vertex.shape[0]
    padded = -(-(ENTRIES * size) // UNROLLED) * UNROLLED
    z, scale = np.zeros(4 * padded, dtype=np.float32), _scales(padded)
    before, state = np.zeros(padded, dtype=np.float32), np.zeros(padded, dtype=np.float32)
    i, f, g, o = z[:padded], z[padded : 2 * padded], z[2 * padded : 3 * padded], z[3 * padded :]
    for first in range(0, n, ENTRIES):
        count = min(ENTRIES, n - first)
        _gather_inputs(z, before, inputs, first, count, size)
        _activate(z, scale)
        _next_state(state, i, f, g, before)
        if cell.shape[0]:
            _copy(cell.ravel(), first * size, state, 0, count * size)
        _tanh_all(state)
        for q in range(padded):
            state[q] *= _HALF * (o[q] + _ONE)
        _copy(hidden.ravel(), first * size, state, 0, count * size)


@_loop
def _backward_block(inputs: LoopInputs, grads: Gradients) -> None:
    """Recompute the gates of each entry, compute their gradients, and add these to the inputs of the gates."""
    size, n = inputs.cell.shape[1], inputs.vertex.shape[0]
    padded = -(-(ENTRIES * size) // UNROLLED) * UNROLLED
    z, scale, dz = np.zeros(4 * padded, dtype=np.float32), _scales(padded), np.zeros(4 * padded, dtype=np.float32)
    before, state = np.zeros(padded, dtype=np.float32), np.zeros(padded, dtype=np.float32)
    d_hidden, d_state = np.zeros(padded, dtype=np.float32), np.zeros(padded, dtype=np.float32)
    row = np.zeros(4 * size, dtype=np.float32)
    for first in range(0, n, ENTRIES):
        count = min(ENTRIES, n - first)
        _gather_inputs(z, before, inputs, first, count, size)
        _copy(d_hidden, 0, grads.hidden.ravel(), first * size, count * size)
        _activate(z, scale)
        _output_gradients(z, dz, before, state, d_hidden, d_state)
        if grads.cell.shape[0]:
            _copy(d_hidden, 0, grads.cell.ravel(), first * size, count * size)
            for q in range(padded):
                d_state[q] += d_hidden[q]
        _gate_gradients(z, dz, before, d_state)
        if grads.parent_cell.shape[0]:
            for t in range(count):
                _scatter(grads.parent_cell, inputs.parent[_u(first + t)], d_state, t * size, size)
        _scatter_gates(dz, row, padded, inputs, grads, first, count, size)


@_loop
def _output_gradients(z: Array, dz: Array, before: Array, state: Array, d_hidden: Array, d_state: Array) -> None:
    """Compute the gradients of gate o and of c from dh."""
    n = before.shape[0]
    o, d_o = z[3 * n :], dz[3 * n :]
    _next_state(state, z[:n], z[n : 2 * n], z[2 * n : 3 * n], before)
    _tanh_all(state)
    for q in range(n):
        d_state[q] = d_hidden[q] * (_HALF * (o[q] + _ONE)) * (_ONE - state[q] * state[q])
    for q in range(n):
        d_o[q] = d_hidden[q] * state[q] * (_QUARTER * (_ONE - o[q] * o[q]))


@_loop
def _gate_gradients(z: Array, dz: Array, before: Array, d_state: Array) -> None:
    """Compute the gradients of the gates i, f and g from dc, which becomes the gradient of c of the parent."""
    n = before.shape[0]
    i, f, g = z[:n], z[n : 2 * n], z[2 * n : 3 * n]
    d_i, d_f, d_g = dz[:n], dz[n : 2 * n], dz[2 * n : 3 * n]
    for q in range(n):
        d_i[q] = d_state[q] * g[q] * (_QUARTER * (_ONE - i[q] * i[q]))
    for q in range(n):
        d_g[q] = d_state[q] * (_HALF * (i[q] + _ONE)) * (_ONE - g[q] * g[q])
    for q in range(n):
        d_f[q] = d_state[q] * before[q] * (_QUARTER * (_ONE - f[q] * f[q]))
    for q in range(n):
        d_state[q] *= _HALF * (f[q] + _ONE)


@_loop
def _scatter_gates(
    dz: Array, row: Array, padded: int, inputs: LoopInputs, grads: Gradients, first: int, count: int, size: int
) -> None:
    """Add the gradients of `count` entries to the tables, all gates of an entry at once: few long loops, not many."""
    for t in range(count):
        j = _u(first + t)
        for gate in range(4):
            _copy(row, gate * size, dz, gate * padded + t * size, size)
        _scatter(grads.vertex_table, inputs.vertex[j], row, 0, 4 * size)
        if grads.edge_table.shape[0]:
            _scatter(grads.edge_table, inputs.edge[j], row, 0, 4 * size)
        if grads.distance_table.shape[0]:
            _scatter(grads.distance_table, inputs.distance[j], row, 0, 4 * size)
        if grads.projected.shape[0]:
            _scatter(grads.projected, inputs.parent[j], row, 0, 4 * size)


@_loop
def _sum_rows(target: Array, index: Array, rows: Array) -> None:
    """Add `rows[j]` to `target[index[j]]` for every `j`, in order."""
    for j in range(index.shape[0]):
        r, s = _u(index[_u(j)]), _u(j)
        for q in range(rows.shape[1]):
            target[r, _u(q)] += rows[s, _u(q)]
