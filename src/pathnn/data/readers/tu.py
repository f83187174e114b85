"""The TU text format: `NAME_A.txt`, `NAME_graph_indicator.txt` and companions, in a folder or a zip."""

from __future__ import annotations

import re
import warnings
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pathnn.data.errors import DataError, reading
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.task import Vocabulary, number_name

PARTS = r"A|graph_(?:indicator|labels|attributes)|(?:node|edge)_(?:labels|attributes)"
FILE = re.compile(rf"(?:.*/)?([^./][^/]*)_({PARTS})\.txt")  # macOS adds files ._NAME_A.txt to zips and foreign disks
WIDTHS = {"A": 2, "graph_indicator": 1, "graph_labels": 1}
CODED = {
    "node_labels": "_node_labels.txt",
    "edge_labels": "_edge_labels.txt",
    "degrees": "the degrees of the vertices",
}
"""The tables whose numbers become codes, and what they are called in errors."""

Array = NDArray[np.float64]


class TUData(NamedTuple):
    """Graphs in TU format, the names of their classes, and the numbers that the codes of their labels stand for."""

    name: str
    graphs: PackedGraphs
    classes: tuple[str, ...]
    values: Vocabulary


def read_tu(path: Path, known: Vocabulary | None = None, *, attributes: bool = True) -> TUData:
    """Read a folder or a zip in TU format: each edge once and in both directions, sorted, no loops.

    `x` has one-hot labels, then attributes, or else one-hot degrees; `edge_attr` attributes, or else codes of labels.
    """
    name, texts = _open(path)
    tables = {part: _table(f"{name}_{part}.txt", part, text) for part, text in texts.items()}
    graph = tables["graph_indicator"].reshape(-1).astype(np.int64) - 1
    if graph.size == 0 or graph[0] != 0 or not np.isin(np.diff(graph), (0, 1)).all():
        raise DataError("_graph_indicator.txt: expected graph numbers 1, 1, ..., 2, ... that never decrease or skip.")
    num_nodes, num_graphs = graph.size, int(graph[-1]) + 1
    edges, rows = _edges(tables["A"], graph)
    for things, expected in (("node", num_nodes), ("edge", len(tables["A"])), ("graph", num_graphs)):
        for part in (f"{things}_labels", f"{things}_attributes"):
            if part in tables and len(tables[part]) != expected:
                raise DataError(f"_{part}.txt has {len(tables[part])} rows; expected {expected}.")
    floats = {part: tables[part].astype(np.float32) for part in tables if part.endswith("_attributes")}
    if "node_labels" not in tables and not (attributes and "node_attributes" in tables):
        tables["degrees"] = np.bincount(edges[0], minlength=num_nodes)[:, None].astype(np.float64)
    values = {part: [np.unique(column).tolist() for column in tables[part].T] for part in CODED if part in tables}
    values |= {part: known[part] for part in values if known and part in known}
    codes: dict[str, Any] = {part: encode(tables[part], values[part], CODED[part]) for part in values}
    features: list[Any] = [one_hot(codes[part], values[part]) for part in ("node_labels", "degrees") if part in codes]
    features += [floats["node_attributes"]] if attributes and "node_attributes" in floats else []
    edge_attr = floats.get("edge_attributes", codes.get("edge_labels"))
    labels, y = np.unique(tables.get("graph_labels", np.empty(0)), return_inverse=True)
    targets = y.astype(np.int64).reshape(-1) if "graph_labels" in tables else floats.get("graph_attributes")
    edge_graph = graph[edges[0]]
    sizes = [torch.from_numpy(np.bincount(owner, minlength=num_graphs)) for owner in (graph, edge_graph)]
    node_ptr, edge_ptr = map(offsets, sizes)
    graphs = PackedGraphs(
        edge_index=torch.from_numpy((edges - node_ptr.numpy()[edge_graph]).astype(np.int32)),
        node_ptr=node_ptr,
        edge_ptr=edge_ptr,
        x=torch.from_numpy(features[0] if len(features) == 1 else np.hstack(features, dtype=np.float32)),
        edge_attr=None if edge_attr is None else torch.from_numpy(edge_attr[rows]),
        y=None if targets is None else torch.from_numpy(targets),
    )
    return TUData(name, graphs.validate(), tuple(map(number_name, labels.tolist())), values)


def one_hot(codes: NDArray[np.int32], values: list[list[float]]) -> NDArray[np.bool_]:
    """Encode each column one-hot, side by side, `[N, values of all columns]`."""
    return np.hstack([column[:, None] == np.arange(len(known)) for column, known in zip(codes.T, values, strict=True)])


def parse_numbers(text: str) -> Array:
    """Parse rows of numbers separated by commas, `[rows, columns]`; `ValueError` names the first bad row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a table without rows is a table
        return np.loadtxt(StringIO(text), delimiter=",", dtype=np.float64, ndmin=2)


def _open(path: Path) -> tuple[str, dict[str, str]]:
    """Return the name of the set and the text of each of its files."""
    with reading(path, "TU data"):
        if path.is_file():
            with zipfile.ZipFile(path) as archive:
                content = {name: archive.read(name) for name in archive.namelist() if FILE.fullmatch(name)}
        else:
            files = [file for pattern in ("*.txt", "raw/*.txt") for file in sorted(path.glob(pattern))]
            content = {file.name: file.read_bytes() for file in files if FILE.fullmatch(file.name)}
        found = {tuple(FILE.sub(r"\1/\2", name).split("/")): text.decode("utf-8-sig") for name, text in content.items()}
    names = sorted({name for name, part in found if part == "A"})
    if len(names) != 1:
        raise DataError(f"{path}: expected the files of one set, NAME_A.txt and companions; found {names or 'none'}.")
    texts = {part: text for (name, part), text in found.items() if name == names[0]}
    if "graph_indicator" not in texts:
        raise DataError(f"{path}: {names[0]}_graph_indicator.txt is missing; it says which graph each vertex is in.")
    return names[0], texts


def _table(file: str, part: str, text: str) -> Array:
    try:
        table = parse_numbers(text)
    except ValueError as error:
        raise DataError(f"{file}: expected numbers separated by commas: {str(error).rstrip('.')}.") from error
    if not np.isfinite(table).all():
        raise DataError(f"{file}: row {int(np.argmin(np.isfinite(table).all(axis=1))) + 1} is not finite.")
    width = WIDTHS.get(part)
    if width is not None and table.size and table.shape[1] != width:
        raise DataError(f"{file}: {table.shape[1]} columns; expected {width}.")
    broken = (table != np.floor(table)).any(axis=1) if part in ("A", "graph_indicator") else np.zeros(1, bool)
    if broken.any():
        raise DataError(f"{file}: row {int(broken.argmax()) + 1}: expected whole numbers.")
    return table


def _edges(table: Array, graph: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges in both directions, sorted, and the row of `_A.txt` that each comes from."""
    pairs = table.astype(np.int64).reshape(-1, 2) - 1
    u, v = pairs.T
    num_nodes = graph.size
    wrong = (pairs < 0).any(axis=1) | (pairs >= num_nodes).any(axis=1)
    wrong = wrong | (graph[np.clip(u, 0, num_nodes - 1)] != graph[np.clip(v, 0, num_nodes - 1)])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"_A.txt, row {row + 1}: {u[row] + 1}, {v[row] + 1} are not two vertices of the same graph.")
    rows = np.flatnonzero(u != v)
    u, v = u[rows], v[rows]
    keys, first = np.unique(np.concatenate([u * num_nodes + v, v * num_nodes + u]), return_index=True)
    origin = np.concatenate([rows, rows])[first]
    return np.stack([keys // num_nodes, keys % num_nodes]), origin


def encode(table: Array, values: list[list[float]], what: str) -> NDArray[np.int32]:
    """Return the position of each number among the values of its column; raise `DataError` for other numbers."""
    if table.shape[1] != len(values):
        raise DataError(f"{what}: {table.shape[1]} columns; the model was trained on {len(values)}.")
    codes = np.empty(table.shape, dtype=np.int32)
    for i, (column, known) in enumerate(zip(table.T, map(np.asarray, values), strict=True)):
        codes[:, i] = np.searchsorted(known, column).clip(max=len(known) - 1)
        strange = known[codes[:, i]] != column
        if strange.any():
            row = int(strange.argmax())
            raise DataError(f"{what}, row {row + 1}: {column[row]:g}, which the model was not trained on.")
    return codes
