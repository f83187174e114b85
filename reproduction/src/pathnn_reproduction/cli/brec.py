"""`pathnn reproduce brec`: the 400 pairs of BREC by the exact test, for ever longer paths."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pathnn.cli.console import note, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json, check_collection_name
from pathnn_reproduction.cli.sr import write_expressive

if TYPE_CHECKING:
    from pathnn.paths.options import Collection

EXAMPLE = "Example: pathnn reproduce brec --k 6"

RESULTS = Path("results/brec.json")

LongestAP = Annotated[int, typer.Option("--k", "-k", min=1, help="Longest paths of AP.")]
LongestPlain = Annotated[int, typer.Option("--k-plain", min=1, help="Longest paths of AP without distances.")]
LongestSP = Annotated[int, typer.Option("--k-shortest", min=1, help="Longest paths of SP and SP+.")]
MaxSteps = Annotated[
    int, typer.Option("--max-steps", min=1, help="A pair with a graph that takes more steps at some K is left there.")
]
ProtocolK = Annotated[
    int | None,
    typer.Option(
        "--protocol-k",
        min=1,
        help="Instead of the exact test, BREC's own protocol, with paths up to this length.",
        show_default=False,
    ),
]
ProtocolCollection = Annotated[
    str,
    typer.Option(
        "--protocol-collection",
        metavar="sp|sp+|ap",
        help="Which paths the protocol's networks read.",
        callback=check_collection_name,
    ),
]
Protocol = Annotated[
    str,
    typer.Option(
        "--protocol-pairs", metavar="FIRST-LAST", help="Pairs for the protocol, in whole tens: 0-1 does 0 to 9."
    ),
]
Results = Annotated[
    Path, typer.Option("--results", metavar="FILE", help="Where results are kept; what is there is not run again.")
]
Report = Annotated[bool, typer.Option("--report", help="Run nothing; write docs/expressive.md from the results.")]


def brec_command(
    k: LongestAP = 8,
    k_plain: LongestPlain = 6,
    k_shortest: LongestSP = 20,
    max_steps: MaxSteps = 2_000_000_000,
    protocol_k: ProtocolK = None,
    protocol_collection: ProtocolCollection = "ap",
    protocol_pairs: Protocol = "0-399",
    results: Results = RESULTS,
    report: Report = False,
    json: Json = False,
) -> None:
    """How many of BREC's 400 pairs are told apart by SP, SP+ and AP at best, per category and K, beside 3-WL."""
    if report:
        write_expressive("brec", results, as_json=json)
        return
    begin = time.perf_counter()
    with result_only(json):
        from pathnn_reproduction.experiments.brec_report import protocol_file, summarize, table

        if protocol_k is None:
            _run(results, (k_shortest, k_shortest, k, k_plain), max_steps)
        else:
            _run_protocol(protocol_file(results), cast("Collection", protocol_collection), protocol_k, protocol_pairs)
        rows = summarize(results)
    if json:
        print_json({"table": "brec", "rows": rows, "seconds": time.perf_counter() - begin})
    else:
        print_table(*table(rows), title="Pairs told apart, of 400", left=2)
        say(f"{results}: {time.perf_counter() - begin:.1f} s")


def _run(results: Path, longest: tuple[int, ...], max_steps: int) -> None:
    from pathnn_reproduction.experiments import brec
    from pathnn_reproduction.rows import add_row, missing

    def once(key: dict[str, object], what: str) -> bool:
        if missing(results, [key]):
            note(what)
            return True
        return False

    graphs = brec.brec_graphs()
    if once({"test": "wl"}, "1-WL and 3-WL"):
        add_row(results, {"test": "wl"}, brec.wl_row(graphs))
    with progress("testing pairs"):
        for variant, last in zip(brec.VARIANTS, longest, strict=True):
            for length in range(1, last + 1):
                key = {**variant.key(), "k": length}
                if once(key, f"{variant.collection}, distances={variant.distances}, k = {length}"):
                    add_row(results, key, brec.exact_row(graphs, variant, length, results, max_steps=max_steps))
        for variant, length in ((brec.VARIANTS[0], 8), (brec.VARIANTS[1], 8), (brec.VARIANTS[2], 4)):
            key = {**variant.key(), "test": "copies", "k": length}
            if once(key, f"relabelled copies, {variant.collection}, k = {length}"):
                add_row(results, key, brec.invariance_row(graphs, variant, length))


BLOCK = 10
"""Pairs of one row: what is lost at the most when a run is stopped."""


def _run_protocol(results: Path, collection: Collection, k: int, pairs: str) -> None:
    from pathnn_reproduction.experiments.brec import brec_graphs
    from pathnn_reproduction.experiments.brec_protocol import run_block
    from pathnn_reproduction.rows import add_row, missing

    first, last = _range(pairs)
    key = {"test": "protocol", "collection": collection, "k": k, "seed": 0}
    keys = [{**key, "first": start} for start in range(first - first % BLOCK, last + 1, BLOCK)]
    todo = missing(results, keys)
    graphs = brec_graphs()
    with progress("training on pairs", total=len(todo)) as step:
        for one in todo:
            start = int(str(one["first"]))
            if not missing(results, [one]):  # another process, which began meanwhile, has done it
                step()
                continue
            note(f"protocol, {collection}, k = {k}: pairs {start} to {start + BLOCK - 1}")
            add_row(results, one, run_block(graphs, range(start, start + BLOCK), collection=collection, k=k))
            step()


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdigit() and last.isdigit() and int(first) <= int(last) < 400):
        raise ValueError(f"--protocol-pairs {text}: expected two numbers from 0 to 399 such as 0-59.")
    return int(first), int(last)
