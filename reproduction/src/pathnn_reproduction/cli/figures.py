"""`pathnn reproduce figures`: the paper's figures, with graphs that satisfy their captions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathnn.cli.console import print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json

EXAMPLE = "Example: pathnn reproduce figures --out figures --format png"

Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the files go.")]
Format = Annotated[str, typer.Option("--format", metavar="svg|png|pdf", help="The format of the files.")]


def figures_command(out: Out = Path("figures"), format: Format = "svg", json: Json = False) -> None:
    """Draw the figures of section 3 and of the appendix, and three of ours about theorem 3.3.

    The paper's pictures are not in its text: the graphs are our choice, made to satisfy the captions.
    """
    if format not in ("svg", "png", "pdf"):
        raise typer.BadParameter(f"{format!r}: expected svg, png or pdf.", param_hint="--format")
    with result_only(json):
        from pathnn_reproduction.figures.figures import FIGURES, save_figure

        drawn = []
        with progress("drawing", total=len(FIGURES)) as step:
            for name, make in FIGURES.items():
                what = (make.__doc__ or "").split("\n")[0]
                drawn.append({"name": name, "what": what, "file": save_figure(name, out, format)})
                step()
    if json:
        print_json({"target": "figures", "figures": drawn})
    else:
        print_table(("file", "what"), [(str(one["file"]), str(one["what"])) for one in drawn], left=2)
        say(f"drew {len(drawn)} figures into {out}")
