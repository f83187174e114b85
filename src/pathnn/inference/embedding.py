"""Learned fingerprints: the representations of molecules and atoms that the head of a trained model reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pathnn.data.errors import BadRow, BadRowsError
from pathnn.data.readers.pool import MoleculesRead
from pathnn.data.readers.table import Table
from pathnn.data.task import Task
from pathnn.files import atomic_write, check_ending
from pathnn.inference.predictor import ERROR, Columns, Predictor, free_name, load_runs
from pathnn.inference.stream import PredictionTable, Written, csv_bytes, is_table, predict_rows, predict_table
from pathnn.training.checkpoint import TrainedModel
from pathnn.training.ensemble import Ensemble, predict_each

if TYPE_CHECKING:
    from torch_geometric.data import Data

EMBEDDING = "embedding"  # the name of the column; in a file, a number follows it


class Embedder(Predictor):
    """A trained model as a function from molecules or graphs to what its head reads, the columns embedding and error.

    An embedding is an array `[width]`; with `atoms`, it is `[atoms, width]`, in the order of the SMILES. The embeddings
    of several networks are next to each other. Descriptors, which a head may read as well, are left out.

    >>> columns = Embedder("molhiv-ap")(["CCO", "C("])
    >>> columns["embedding"][0].shape, columns["embedding"][1]
    ((128,), None)
    """

    def __init__(self, run: Ensemble | Path | str, device: str = "cpu", *, atoms: bool = False) -> None:
        trained = run if isinstance(run, Ensemble) else load_runs(Path(run))
        super().__init__(Ensemble(tuple(_without_head(one, atoms=atoms) for one in trained.members)), device)
        self.atoms = atoms
        self.width = sum(one.model.config.hidden_channels for one in trained.members)

    def predict_task(self, task: Task | None) -> dict[str, Any]:
        """Return the embeddings of all graphs of a task."""
        if task is None:
            return {EMBEDDING: []}
        rows = torch.cat([*predict_each(self.trained, task, device=self.device)], dim=1).float().cpu()
        parts = torch.split(rows, task.graphs.node_ptr.diff().tolist()) if self.atoms else rows
        return {EMBEDDING: [part.numpy() for part in parts]}

    def predict_molecules(
        self, texts: Sequence[str | None], read: MoleculesRead, table: Table | None = None
    ) -> Columns:
        """Return the embeddings of SMILES that are read already, with atoms in the order of the SMILES."""
        columns = super().predict_molecules(texts, read, table)
        if self.atoms and read.molecules:
            order = np.concatenate([some.order for some in read.molecules])
            sizes = np.concatenate([some.num_atoms for some in read.molecules])
            orders = iter(np.split(order, sizes.cumsum()[:-1]))
            found = columns[EMBEDDING]
            columns[EMBEDDING] = [None if rows is None else rows[np.argsort(next(orders))] for rows in found]
        return columns


def _without_head(trained: TrainedModel, *, atoms: bool) -> TrainedModel:
    """Return a network that ends before its head, or before its readout."""
    config = {**trained.model.config.to_dict(), "head": None, "out_channels": None, "graph_channels": 0}
    model = type(trained.model).from_config({**config, "readout": None} if atoms else config)
    weights = trained.model.state_dict()
    model.to(next(trained.model.parameters())).load_state_dict({name: weights[name] for name in model.state_dict()})
    return replace(trained, model=model.eval(), signature=replace(trained.signature, descriptors=None))


def embed(
    run: Ensemble | Path | str, molecules: Sequence[str] | Sequence[Data], *, atoms: bool = False, device: str = "cpu"
) -> Any:
    """Return the embeddings of SMILES or PyG graphs, `[molecules, width]`; with `atoms`, a list of `[atoms, width]`.

    Raises `BadRowsError` for SMILES that cannot be read; `Embedder` returns the others.

    >>> embed("molhiv-ap", ["CCO", "c1ccccc1"]).shape
    (2, 128)
    """
    embedder = Embedder(run, device, atoms=atoms)
    columns = embedder(molecules)
    bad = [BadRow(i + 1, reason) for i, reason in enumerate(columns[ERROR]) if reason is not None]
    if bad:
        raise BadRowsError("molecules", bad, len(molecules), "leave them out")
    found = columns[EMBEDDING]
    return found if atoms else np.array(found, dtype=np.float32).reshape(-1, embedder.width)


def embed_file(
    embedder: Embedder,
    data: str,
    out: Path,
    *,
    smiles: str | None = None,
    strict: bool = False,
    report: Callable[[PredictionTable], None] | None = None,
) -> Written:
    """Write the embeddings of data to a `.parquet`, `.csv` or `.csv.gz` file, in chunks, as a whole or not at all.

    A row of a table keeps its columns. With `atoms`, there is a row for each atom, with the number of its row (from 1)
    and its own (from 0). A row that cannot be read has no embedding, and an error. `report` is called with each chunk.

    ```python
    embed_file(Embedder("run"), "new.csv", Path("embeddings.parquet"))
    ```
    """
    check_ending(out, ".parquet", ".csv", ".csv.gz")
    if table := is_table(data):
        chunks = predict_rows(embedder, data, smiles=smiles, strict=strict)
    else:
        chunks = iter([predict_table(embedder, data, strict=strict)])
    parquet, width = out.suffix.lower() == ".parquet", embedder.width
    if parquet:
        from pyarrow.parquet import ParquetWriter
    done, writer = Written(), None
    with atomic_write(out) as file, ExitStack() as stack:
        for chunk in chunks:
            part = _atom_rows(chunk, done.rows if table else None) if embedder.atoms else chunk
            *names, _, error = part.header
            header = [*names, *(free_name(f"{EMBEDDING}_{i}", names) for i in range(width)), error]
            if parquet:
                content = _arrow_table(header, part.rows, width, numbers=2 if embedder.atoms else int(not table))
                writer = writer or stack.enter_context(ParquetWriter(file, content.schema))
                writer.write_table(content)
            else:
                rows = ([*cells, *([""] * width if bad else found), bad] for *cells, found, bad in part.rows)
                file.write(csv_bytes(rows if done.chunks else chain([header], rows), out))
            done = done.add(chunk)
            if report is not None:
                report(chunk)
    return done


def _atom_rows(chunk: PredictionTable, before: int | None) -> PredictionTable:
    """Return a row for each atom; `before` rows of the table are before the chunk, None if the graphs have numbers."""
    rows: list[list[Any]] = []
    for i, (first, *_, found, bad) in enumerate(chunk.rows):
        number = first if before is None else before + i + 1
        rows += [[number, None, "", bad]] if bad else [[number, j, row, ""] for j, row in enumerate(found)]
    names = ["graph", "vertex"] if before is None else ["row", "atom"]
    return chunk._replace(header=[*names, EMBEDDING, ERROR], rows=rows)


def _arrow_table(header: list[str], rows: list[list[Any]], width: int, *, numbers: int) -> Any:
    """Return rows as a table of Arrow: the first `numbers` columns are integers, then text, embeddings, errors."""
    import pyarrow

    kinds = [pyarrow.int64()] * numbers + [pyarrow.string()] * (len(header) - width - 1 - numbers)
    missing = np.full(width, np.nan, dtype=np.float32)
    found = np.array([missing if bad else found for *_, found, bad in rows], dtype=np.float32).reshape(-1, width)
    columns = [pyarrow.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    columns += [pyarrow.array(column, from_pandas=True) for column in found.T]  # NaN is null
    columns.append(pyarrow.array([row[-1] or None for row in rows], pyarrow.string()))
    return pyarrow.Table.from_arrays(columns, header)
