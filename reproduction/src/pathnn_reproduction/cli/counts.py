"""`pathnn reproduce counts`: the appendix's numbers of paths, ours beside them."""

from __future__ import annotations

import time
from dataclasses import asdict

import typer

from pathnn.cli.console import note, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json


def counts_command(json: Json = False) -> None:
    """Average number of paths per graph (appendix): DD and ZINC12k, SP, SP+ and AP.

    Exit code 1 if a number of ours is not the paper's to the printed digit, rounded or cut off.
    """
    begin = time.perf_counter()
    with result_only(json):
        from pathnn_reproduction.experiments.counts import counts, table_steps

        cells = []
        with progress("counting paths", total=table_steps()) as step:
            for part in counts():
                cells += part
                step()
    seconds = time.perf_counter() - begin
    wrong = [cell for cell in cells if cell.agrees == "no"]
    if json:
        rows = [{**asdict(cell), "agrees": cell.agrees} for cell in cells]
        print_json({"table": "counts", "cells": rows, "all_agree": not wrong, "seconds": seconds})
    else:
        print_table(
            ("dataset", "collection", "agrees", "length", "paper", "ours"),
            [
                (c.dataset, c.collection.upper(), c.agrees, str(c.length), f"{c.paper:,.{c.decimals}f}",
                 f"{c.ours:,.{c.decimals + 2}f}")
                for c in sorted(cells, key=lambda cell: (cell.dataset, cell.length))
            ],
            title="Average number of paths of exactly that length per graph",
            left=3,
        )  # fmt: skip
        say(f"{len(cells) - len(wrong)} of {len(cells)} agree to the printed digit; {seconds:.1f} s")
    if wrong:
        note(f"Error: {len(wrong)} of {len(cells)} numbers differ from the paper's.")
        raise typer.Exit(1)
