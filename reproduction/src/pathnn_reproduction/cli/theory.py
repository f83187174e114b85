"""`pathnn reproduce theory`: section 3.2 of the paper on all small graphs."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnn.cli.console import print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json

if TYPE_CHECKING:
    from pathnn_reproduction.theory.table import Row

EXAMPLE = "Example: pathnn reproduce theory --max-vertices 5 --out theory"

MaxVertices = Annotated[int, typer.Option("--max-vertices", min=1, max=7, help="Try all graphs with up to so many.")]
MaxHeight = Annotated[int, typer.Option("--max-height", min=1, max=12, help="Trees up to this height, paths so long.")]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the examples are drawn.")]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Also write the result with commit, time and device.",
                 show_default=False),
]  # fmt: skip
Page = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Also write the table into this page, between its marks, and the "
                 "pictures beside it.", show_default=False),
]  # fmt: skip


def theory_command(
    max_vertices: MaxVertices = 7,
    max_height: MaxHeight = 6,
    out: Out = Path("theory"),
    save: Save = None,
    page: Page = None,
    json: Json = False,
) -> None:
    """Check each statement of section 3.2 on all small graphs, and draw the smallest counterexamples.

    A yes is a check of these graphs, not a proof; a no comes with an example that anyone can verify. The exit code is
    0 whether or not the statements hold.
    """
    begin = time.perf_counter()
    with result_only(json):
        from pathnn.provenance import provenance
        from pathnn_reproduction.result_file import write_result
        from pathnn_reproduction.theory.checks import TheorySettings, theory_checks, theory_steps
        from pathnn_reproduction.theory.report import check_page, draw_examples, example_text, theory_block, write_block
        from pathnn_reproduction.theory.table import theory_table, to_result

        # What would fail at the end fails now, not after some minutes: no matplotlib, no folder, no place on the page.
        import_module("matplotlib")
        out.mkdir(parents=True, exist_ok=True)
        if page is not None:
            check_page(page)
        settings, checks = TheorySettings(max_vertices, max_height), []
        with progress("checking section 3.2", total=theory_steps()) as step:
            for part in theory_checks(settings):
                checks += part
                step()
        result = {**provenance(), **to_result(checks, settings, time.perf_counter() - begin)}
        table = theory_table(checks)
        drawings = draw_examples(table, out)
        if save is not None:
            write_result(save, result)
        if page is not None:
            write_block(page, theory_block(result))
            draw_examples(table, page.parent / "figures" / "theory", "png")
    if json:
        print_json({**result, "drawings": drawings})
        return
    _print(table.rows, max_vertices, max_height)
    for number, example in enumerate(table.examples, start=1):
        say(f"[{number}] {example_text(example)}")
    say(f"{result['graphs']:,} graphs, {result['seconds']:.0f} s; SP in {result['compared']['sp']:,} numbered graphs")
    say(f"drew the {len(drawings)} examples into {out}")


def _print(rows: list[Row], max_vertices: int, max_height: int) -> None:
    from pathnn_reproduction.theory.report import cell_text

    print_table(
        ("statement", "claim", "paths", "vertices: one connected graph", "one graph", "two graphs",
         "graphs: connected", "all"),
        [(r.statement, r.claim, r.about, *map(cell_text, r.cells)) for r in rows],
        title=f"Section 3.2 on all graphs with up to {max_vertices} vertices, heights 1 to {max_height}",
        left=8,
    )  # fmt: skip
