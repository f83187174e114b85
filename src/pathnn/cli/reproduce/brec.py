"""`pathnn reproduce brec`: the 400 pairs of BREC by the exact test, for ever longer paths."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from pathnn.cli.console import note, print_json, print_table, result_only, say
from pathnn.cli.options import Json
from pathnn.cli.progress import progress

EXAMPLE = "Example: pathnn reproduce brec --k 6"

RESULTS = Path("results/brec.json")

LongestAP = Annotated[int, typer.Option("--k", "-k", min=1, help="Longest paths of AP.")]
LongestSP = Annotated[int, typer.Option("--k-shortest", min=1, help="Longest paths of SP and SP+.")]
MaxSteps = Annotated[
    int, typer.Option("--max-steps", min=1, help="A pair with a graph that takes more steps at some K is left there.")
]
Results = Annotated[Path, typer.Option("--results", help="Where results are kept; what is there is not run again.")]
Report = Annotated[bool, typer.Option("--report", help="Run nothing; write docs/expressive.md from the results.")]


def brec_command(
    k: LongestAP = 8,
    k_shortest: LongestSP = 20,
    max_steps: MaxSteps = 2_000_000_000,
    results: Results = RESULTS,
    report: Report = False,
    json: Json = False,
) -> None:
    """How many of BREC's 400 pairs are told apart by SP, SP+ and AP at best, per category and K, beside 3-WL."""
    begin = time.perf_counter()
    with result_only(json):
        from pathnn.experiments.brec_report import summarize, table

        if report:
            from pathnn.experiments.expressive import write_page

            for path in write_page(Path()):
                say(f"wrote {path}")
            return
        _run(results, k, k_shortest, max_steps)
        rows = summarize(results)
    if json:
        print_json({"table": "brec", "rows": rows, "seconds": time.perf_counter() - begin})
    else:
        print_table(*table(rows), title="Pairs told apart, of 400", left=2)
        say(f"{results}: {time.perf_counter() - begin:.1f} s")


def _run(results: Path, k: int, k_shortest: int, max_steps: int) -> None:
    from pathnn.experiments import brec
    from pathnn.experiments.rows import add_row, missing

    def once(key: dict[str, object], what: str) -> bool:
        if missing(results, [key]):
            note(what)
            return True
        return False

    graphs = brec.brec_graphs()
    if once({"test": "wl"}, "1-WL and 3-WL"):
        add_row(results, {"test": "wl"}, brec.wl_row(graphs))
    with progress("testing pairs"):
        for variant in brec.VARIANTS:
            for length in range(1, (k if variant.collection == "ap" else k_shortest) + 1):
                key = {**variant.key(), "k": length}
                if once(key, f"{variant.collection}, distances={variant.distances}, k = {length}"):
                    add_row(results, key, brec.exact_row(graphs, variant, length, results, max_steps=max_steps))
        for variant, length in ((brec.VARIANTS[0], 8), (brec.VARIANTS[1], 8), (brec.VARIANTS[2], 4)):
            key = {**variant.key(), "test": "copies", "k": length}
            if once(key, f"relabelled copies, {variant.collection}, k = {length}"):
                add_row(results, key, brec.invariance_row(graphs, variant, length))
