"""`pathnn paths`: count the paths of a dataset, measure their tries, and draw some of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note_not_read, number_text, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Data, Json, SkipInvalid, Smiles, check_usage, options_from
from pathnn.paths.options import PathOptions

if TYPE_CHECKING:
    from pathnn.data import PathSummary

EXAMPLE = "Example: pathnn paths zinc --collection ap --k 4 --draw paths.svg --graph 3 --source 0"

Draw = Annotated[
    Path | None,
    typer.Option("--draw", metavar="FILE", help="Draw a graph, the paths from a vertex, and their tree, as "
                 ".svg, .pdf or .png."),
]  # fmt: skip
Graph = Annotated[int, typer.Option("--graph", min=0, help="Which graph to draw, counted from 0.")]
Source = Annotated[int, typer.Option("--source", min=0, help="The vertex whose paths are drawn, counted from 0.")]


@options_from(PathOptions, collection="ap", k=4, max_paths=500_000_000)
def paths_command(
    data: Data,
    given: dict[str, Any],
    json: Json = False,
    draw: Draw = None,
    graph: Graph = 0,
    source: Source = 0,
    skip_invalid: SkipInvalid = False,
    smiles: Smiles = None,
) -> None:
    """Count the paths of each length, and measure their tries."""
    options = check_usage(PathOptions, **given)
    with result_only(json):
        from pathnn.data import load_data
        from pathnn.data.paths import refuse_too_many, summarize_paths

        collection, k = options.collection, options.k
        with progress(f"reading {data}"):
            # OGB's features keep the order of the atoms in the SMILES, which --source counts
            task = load_data(data, smiles=smiles, targets=[], skip_invalid=skip_invalid, features="ogb")
        note_not_read(task)
        if draw is not None:
            from pathnn.plots.trees import draw_paths_and_tree, save

            if graph >= len(task.graphs):
                raise ValueError(f"--graph {graph} does not exist: expected 0 to {len(task.graphs) - 1}.")
            one = task.graphs[graph]
            save(draw_paths_and_tree(one.edge_index, one.num_nodes, source, collection=collection, k=k), draw)
        with progress(f"extracting the paths of {task.name}"):
            refuse_too_many(task.graphs, collection=collection, k=k, max_paths=options.limit)
            summary = summarize_paths(task, collection, k)
    if json:
        print_json(asdict(summary))
    else:
        _print_summary(summary)
        if draw is not None:
            say(f"wrote {draw}")


def _print_summary(summary: PathSummary) -> None:
    from pathnn.paths.count import size_text

    rows = [(str(length), f"{mean:,.1f}") for length, mean in summary.mean_paths.items()]
    title = f"{summary.dataset}: {number_text(summary.graphs, 'graph')}, {summary.collection.upper()}, k = {summary.k}"
    print_table(("length", "mean paths per graph"), rows, title=title)
    say(f"{summary.total_paths:,} paths in {summary.entries:,} trie entries")
    say(f"{size_text(summary.bytes)} in memory, extracted in {summary.seconds:.2f} s")
