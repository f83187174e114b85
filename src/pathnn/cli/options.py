"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from pathnn.paths.options import check_collection

MAX_K = 255


def check_collection_name(value: str) -> str:
    """The name of a collection in any case; anything else is wrong usage."""
    try:
        return check_collection(value.lower())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A dataset's name (see pathnn datasets), a .csv with a SMILES column, a .g6 file, "
        "or a folder in TU format.",
        show_default=False,
    ),
]

CollectionName = Annotated[
    str,
    typer.Option(
        "--collection",
        "-c",
        metavar="sp|sp+|ap",
        help="Which paths: one shortest path per pair, all shortest paths, or all simple paths.",
        callback=check_collection_name,
    ),
]

K = Annotated[int, typer.Option("--k", "-k", min=1, max=MAX_K, help="The largest path length, in edges.")]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; everything else goes to standard error.")]

SkipInvalid = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave out rows that cannot be read, and say how many.")
]

Smiles = Annotated[
    str | None, typer.Option("--smiles", metavar="COLUMN", help="The SMILES column of a .csv.", show_default=False)
]
