"""`pathnn embed`: learned fingerprints of molecules or atoms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathnn.cli.console import note, print_json, progress, result_only, say
from pathnn.cli.options import Data, Device, Json, Run, Smiles, check_output, pick_device
from pathnn.cli.predict import Strict, total_rows

Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The .parquet or .csv(.gz) to write.")]
Atoms = Annotated[bool, typer.Option("--atoms", help="Write a row for each atom, not for each molecule.")]


def embed_command(
    run: Run,
    data: Data,
    out: Out,
    atoms: Atoms = False,
    smiles: Smiles = None,
    strict: Strict = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write learned fingerprints: the numbers that the head of a trained model reads for each molecule or atom.

    The columns embedding_0, embedding_1, ... follow the columns of the data; the columns of several networks (train
    --seeds or --folds) are next to each other. If a row cannot be read, the last column, error, says why.
    """
    check_output(out, data)
    with result_only(json):
        from pathnn.inference.embedding import Embedder, embed_file
        from pathnn.inference.stream import is_table

        embedder = Embedder(run, pick_device(device), atoms=atoms)
        total = total_rows(data, (1, 1)) if is_table(data) else None
        with progress(f"embedding {data}", total, unit="molecules") as step:
            done = embed_file(
                embedder, data, out, smiles=smiles, strict=strict, report=lambda chunk: step(len(chunk.rows))
            )
    if done.bad:
        note(f"{done.bad:,} of {done.rows:,} rows cannot be read and have no embedding, the first is {done.first_bad}")
    if json:
        print_json({"rows": done.rows, "bad_rows": done.bad, "width": embedder.width, "out": out})
    else:
        say(f"wrote {embedder.width} numbers per {'atom' if atoms else 'row'} for {done.rows} rows to {out}")
