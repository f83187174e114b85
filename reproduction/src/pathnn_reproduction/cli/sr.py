"""`pathnn reproduce sr`: the paper's figure of strongly regular graphs, and longer paths than its K = 4."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from pathnn.cli.console import note, print_json, print_table, progress, result_only, say
from pathnn.cli.distinguish import Device
from pathnn.cli.options import Json, K, pick_device

EXAMPLE = "Example: pathnn reproduce sr --families sr16622,sr251256 --longest 5"

RESULTS = Path("results/sr.json")

Families = Annotated[
    str, typer.Option("--families", help="Comma-separated names, or: figure, all.", show_default="figure")
]
Longest = Annotated[int, typer.Option("--longest", min=1, help="Longest paths of the exact test.")]
NetworkK = Annotated[
    int | None,
    typer.Option("--network-k", min=1, help="Networks read paths up to this length, too.", show_default=False),
]
Results = Annotated[
    Path, typer.Option("--results", metavar="FILE", help="Where results are kept; what is there is not run again.")
]
Report = Annotated[
    bool, typer.Option("--report", help="Run nothing; write docs/expressive.md and its chart from the results.")
]


def sr_command(
    k: K = 4,
    families: Families = "figure",
    longest: Longest = 6,
    network_k: NetworkK = None,
    results: Results = RESULTS,
    report: Report = False,
    device: Device = "cpu",
    json: Json = False,
) -> None:
    """Failure rates on strongly regular graphs: untrained PathNN-AP, the exact test, 1-WL and 3-WL.

    The paper's figure prints no numbers; its text says that without distances nothing is told apart at K = 4, that most
    families have less than 20 % failures, and that SR(29, 14, 6, 7) has many.
    """
    if report:
        write_expressive("sr", results, as_json=json)
        return
    begin = time.perf_counter()
    with result_only(json):
        from pathnn_reproduction.experiments.sr import jobs, run
        from pathnn_reproduction.experiments.sr_report import summarize
        from pathnn_reproduction.rows import add_row, missing

        wanted = jobs(_families(families), k=k, longest=longest, network_k=network_k)
        todo = missing(results, [job.key() for job in wanted])
        with progress("testing families", total=len(todo)) as step:
            for job in wanted:
                if job.key() in todo:
                    note(f"{job.family}: {job.test}{f', k = {job.k}' if job.k else ''}")
                    add_row(results, job.key(), run(job, device=pick_device(device)), device=device)
                    step()
        rows = [row for row in summarize(results) if row["family"] in {job.family for job in wanted}]
    if json:
        print_json({"table": "sr", "rows": rows, "ran": len(todo), "seconds": time.perf_counter() - begin})
    else:
        from pathnn_reproduction.experiments.sr_report import table

        print_table(*table(rows), title="Share of the pairs that are confused, in percent", left=1)
        say(f"{results}: {len(todo)} new results in {time.perf_counter() - begin:.1f} s")


def _families(text: str) -> list[str]:
    from pathnn.data.datasets.pairs import IN_THE_FIGURE, SR_FAMILIES
    from pathnn_reproduction.experiments.sr import ALL

    named = {"figure": list(IN_THE_FIGURE), "all": list(ALL)}.get(text) or [name.strip() for name in text.split(",")]
    for name in named:
        if name not in SR_FAMILIES:
            raise ValueError(
                f"--families: {name!r} is unknown: expected figure, all, or some of {', '.join(SR_FAMILIES)}."
            )
    return named


def write_expressive(target: str, results: Path, *, as_json: bool) -> None:
    """Write docs/expressive.md beside the folder of a results file, and say what was written."""
    from pathnn_reproduction.cli.table_output import tell_files

    with result_only(as_json):
        from pathnn_reproduction.experiments.expressive import write_page

        written = write_page(results.parent, results.parent.absolute().parent)
    tell_files(target, written, as_json=as_json)
