"""`pathnn distinguish`: which graphs a PathNN distinguishes, untrained and at best, next to 1-WL and 3-WL."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pathnn.cli.console import note, number_text, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Data, Json, SkipInvalid, Smiles, check_usage, one_of, options_from, pick_device
from pathnn.paths.options import PathOptions

if TYPE_CHECKING:
    from pathnn.theory.isomorphism import IsomorphismTest, UntrainedPhi

EXAMPLE = "Example: pathnn distinguish sr251256 --collection ap --k 4"

PHIS = ("identity", "relu", "tanh", "mlp")

Residual = Annotated[
    bool,
    typer.Option(
        "--residual/--no-residual",
        help="The exact test keeps the representation of the layer before, as the network does.",
    ),
]
Hidden = Annotated[int, typer.Option("--hidden", min=1, help="Width of the untrained networks.")]
Seeds = Annotated[int, typer.Option("--seeds", min=0, help="Number of untrained networks; 0 for the exact test only.")]
Phi = Annotated[
    str,
    typer.Option("--phi", metavar="|".join(PHIS), callback=one_of(*PHIS),
                 help="The function after each layer: identity in the paper; tanh (with BatchNorm over all graphs) "
                 "distinguishes as much as the exact test."),
]  # fmt: skip
Threshold = Annotated[
    float, typer.Option("--threshold", min=0, help="Representations that are closer are not distinguished.")
]
OwnPairs = Annotated[
    bool, typer.Option("--pairs/--all-pairs", help="The pairs of the dataset, if it has any, or all pairs.")
]
Memory = Annotated[int, typer.Option("--memory", min=1, metavar="MIB", help="Memory of the network, roughly.")]
MaxSteps = Annotated[
    int, typer.Option("--max-steps", min=1, help="Refuse a graph that takes the exact test more steps than this.")
]
Device = Annotated[str, typer.Option("--device", help="Where the network runs: auto, cpu, cuda, cuda:1, ...")]


@options_from(PathOptions, collection="ap", k=4, distances=None, extend=False)
def distinguish_command(
    data: Data,
    given: dict[str, Any],
    residual: Residual = True,
    phi: Phi = "identity",
    hidden: Hidden = 16,
    seeds: Seeds = 5,
    threshold: Threshold = 1e-5,
    own_pairs: OwnPairs = True,
    memory: Memory = 1024,
    device: Device = "cpu",
    max_steps: MaxSteps = 2_000_000_000,
    smiles: Smiles = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
) -> None:
    """Find the pairs of graphs that are distinguished by untrained networks, annotated path sets, 1-WL and 3-WL.

    Only the structure counts: all vertices start alike. The defaults are the paper's.
    """
    options = check_usage(PathOptions, **given)
    collection, k = options.collection, options.k
    with result_only(json):
        from pathnn.data import load_data
        from pathnn.theory.isomorphism import isomorphism_test

        with progress(f"reading {data}"):
            task = load_data(data, smiles=smiles, targets=[], skip_invalid=skip_invalid)
        if len(task.graphs) < 2:
            raise ValueError(f"{task.name} has 1 graph: expected at least two graphs to compare.")
        pairs = task.pair_index() if own_pairs and task.pairs is not None else None
        with progress(f"testing {number_text(len(task.graphs), 'graph')}"):
            found = isomorphism_test(
                task.graphs, pairs, collection=collection, k=k, distances=options.distances,
                extend=options.extend, residual=residual, phi=cast("UntrainedPhi", phi), hidden_channels=hidden,
                seeds=seeds, threshold=threshold, memory=memory * 2**20, device=pick_device(device),
                max_steps=max_steps,
            )  # fmt: skip
    if collection == "sp":
        note("SP depends on the numbering of the vertices: it may distinguish relabelled copies of one graph.")
    if json:
        asked = {"dataset": task.name, "collection": collection, "k": k, "phi": phi}
        print_json({**asked, **asdict(found)})
    else:
        _print(found, f"{task.name}: {number_text(len(task.graphs), 'graph')}, {collection.upper()}, k = {k}")


def _print(found: IsomorphismTest, title: str) -> None:
    rows: list[tuple[str, Any]] = [(f"untrained network, seed {i}", rate) for i, rate in enumerate(found.failure_rate)]
    rows += [
        ("at best, if the last layer only adds up", found.sum_failure_rate),
        ("at best (annotated path sets)", found.exact_failure_rate),
        ("1-WL", found.wl1_failure_rate),
        ("3-WL", found.wl3_failure_rate),
    ]
    cells = [
        (name, "-", "not tested") if rate is None else (name, f"{rate * found.pairs:,.0f}", f"{100 * rate:.2f} %")
        for name, rate in rows
    ]
    print_table(("test", "confused", "failure rate"), cells, title=f"{title}, {number_text(found.pairs, 'pair')}")
    for name, pairs in (("the exact test", found.confused), ("the network", found.confused_by_network)):
        if pairs:
            say(f"confused by {name}, the first: {', '.join(f'{a}-{b}' for a, b in pairs)}")
    say(f"{found.seconds:.1f} s, including {found.exact_seconds:.1f} s exact, {found.network_seconds:.1f} s network")
