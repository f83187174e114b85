"""The graph6 format: simple graphs as lines of printable characters (McKay)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathnn.data.errors import BadRow, BadRowsError, DataError
from pathnn.data.packed import PackedGraphs
from pathnn.data.readers.table import read_text

HEADER = ">>graph6<<"
OTHER_FORMATS = {":": "sparse6", ";": "incremental sparse6", "&": "digraph6"}  # by the first character of a line


def read_graph6(path: Path, *, skip_invalid: bool = False) -> tuple[PackedGraphs, list[BadRow]]:
    """Read a graph6 file (plain, `.gz`, `.xz`); return the graphs, named by their lines, and the lines left out."""
    return parse_graph6(read_text(path).splitlines(), source=str(path), skip_invalid=skip_invalid)


def parse_graph6(
    lines: Sequence[str], *, source: str = "graph6", skip_invalid: bool = False
) -> tuple[PackedGraphs, list[BadRow]]:
    """Parse graph6 lines: both directions of each edge, sorted; empty lines are not counted."""
    rows = [line for line in (line.strip().removeprefix(HEADER) for line in lines) if line]
    faults = [_fault(line) for line in rows]
    bad = [BadRow(i, fault) for i, fault in enumerate(faults, start=1) if fault]
    good = [line for line, fault in zip(rows, faults, strict=True) if not fault]
    if bad and not skip_invalid:
        raise BadRowsError(source, bad, len(rows))
    if bad and not good:
        raise BadRowsError(source, bad, len(rows), "give a file with one graph6 line per graph")
    if not good:
        raise DataError(f"{source} has no graphs: expected one graph6 line per graph.")
    sizes = [_size(line)[0] for line in good]
    pairs = {size: np.tril_indices(size, -1) for size in set(sizes)}  # (1, 0), (2, 0), (2, 1), (3, 0), ...
    edges = [_edges(line, *pairs[size]) for line, size in zip(good, sizes, strict=True)]
    graphs = PackedGraphs.from_edges(edges, sizes)
    return replace(graphs, edge_index=graphs.edge_index.int(), names=tuple(good)), bad


def _size(line: str) -> tuple[int, int]:
    """Return the number of vertices and the number of characters that encode it."""
    codes = [ord(c) - 63 for c in line[:8]]
    if codes[0] < 63:
        return codes[0], 1
    digits, used = (codes[2:8], 8) if len(codes) > 1 and codes[1] == 63 else (codes[1:4], 4)
    return sum(digit * 64**place for place, digit in enumerate(reversed(digits))), used


def _fault(line: str) -> str | None:
    if line[0] in OTHER_FORMATS:
        return f"a line of {OTHER_FORMATS[line[0]]}, which is not read: expected graph6"
    if not all(63 <= ord(c) <= 126 for c in line):
        return "a character that graph6 does not have (expected codes 63 to 126)"
    size, used = _size(line)
    expected = used + -(-(size * (size - 1) // 2) // 6)
    if used != (1 if size <= 62 else 4 if size <= 258047 else 8):
        return f"{size} vertices written in {used} characters: graph6 has the shortest form only"
    if len(line) != expected:
        return f"{len(line)} characters; a graph6 line of {size} vertices has {expected}"
    return None


def _edges(line: str, first: NDArray[np.int64], second: NDArray[np.int64]) -> Tensor:
    """Return the edges of a line in both directions, sorted; its bits are the pairs `first`, `second`."""
    size, used = _size(line)
    codes = np.frombuffer(line[used:].encode(), dtype=np.uint8) - 63
    bits = np.unpackbits(codes[:, None], axis=1)[:, 2:].ravel()
    matrix = np.zeros((size, size), dtype=bool)
    matrix[first, second] = matrix[second, first] = bits[: len(first)]
    return torch.from_numpy(np.stack(matrix.nonzero()))
