"""The commands of `pathnn reproduce` that train no table: counts, running times, theory, figures, SR and BREC."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pathnn.cli.console import note, print_json, print_table, progress, result_only, say
from pathnn.cli.distinguish import Device
from pathnn.cli.options import Json, check_usage, pick_device
from pathnn.paths.options import MAX_K, check_collection

if TYPE_CHECKING:
    from pathnn.paths.options import Collection
    from pathnn_reproduction.experiments.runtime import MeasuredTime
    from pathnn_reproduction.theory.table import Row


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


Datasets = Annotated[
    list[str] | None, typer.Option("--dataset", help="dd or zinc, may be repeated; default: both.", show_default=False)
]
TimedDevice = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Epochs to take the mean of.")]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Also write the result with commit, time and device.",
                 show_default=False),
]  # fmt: skip


def runtime_command(
    dataset: Datasets = None, epochs: Epochs = 5, device: TimedDevice = "auto", save: Save = None, json: Json = False
) -> None:
    """Seconds to extract paths, to train an epoch and to predict the test graphs: DD and ZINC12K (appendix).

    The paper's numbers are of an NVIDIA Tesla T4, ours of the machine that you run this on.
    """
    begin = time.perf_counter()
    chosen = tuple(dict.fromkeys(dataset or ("dd", "zinc")))
    for name in chosen:
        if name not in ("dd", "zinc"):
            raise typer.BadParameter(f"{name!r} is not in the table: expected dd or zinc.", param_hint="--dataset")
    if save is not None and not save.parent.is_dir():
        raise typer.BadParameter(f"the folder {save.parent} does not exist: make it first.", param_hint="--save")
    with result_only(json):
        from pathnn.provenance import provenance
        from pathnn_reproduction.bench.report import RUNTIME, runtime_cells
        from pathnn_reproduction.experiments.runtime import runtime
        from pathnn_reproduction.paper import TIMES
        from pathnn_reproduction.results import write_result

        found: list[MeasuredTime] = []
        with progress("measuring", total=sum(row[0] in chosen for row in TIMES)) as step:
            for row in runtime(device=device, epochs=epochs, datasets=chosen):
                found.append(row)
                step()
        rows: list[dict[str, Any]] = [row.as_dict() for row in found]
        if save is not None:
            write_result(save, {"runtime": rows}, device=device)
    if json:
        print_json({**provenance(device), "runtime": rows, "seconds": time.perf_counter() - begin})
        return
    print_table(
        RUNTIME,
        [tuple(runtime_cells(row)) for row in rows],
        title="Running time in seconds: a Tesla T4 (paper), this machine (ours)",
        left=2,
    )
    say(f"device: {provenance(device)['device']}; mean of {epochs} epochs; {time.perf_counter() - begin:.0f} s")


MaxVertices = Annotated[int, typer.Option("--max-vertices", min=1, max=7, help="Try all graphs with up to so many.")]
MaxHeight = Annotated[int, typer.Option("--max-height", min=1, max=12, help="Trees up to this height, paths so long.")]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the files go.")]
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
        from pathnn_reproduction import pages
        from pathnn_reproduction.results import write_result
        from pathnn_reproduction.theory.checks import TheorySettings, theory_checks, theory_steps
        from pathnn_reproduction.theory.table import example_text, theory_table, to_result

        # What would fail at the end fails now, not after some minutes: no matplotlib, no folder, no place on the page.
        import_module("matplotlib")
        out.mkdir(parents=True, exist_ok=True)
        if page is not None:
            pages.check_page(page)
        settings, checks = TheorySettings(max_vertices, max_height), []
        with progress("checking section 3.2", total=theory_steps()) as step:
            for part in theory_checks(settings):
                checks += part
                step()
        result = {**provenance(), **to_result(checks, settings, time.perf_counter() - begin)}
        table = theory_table(checks)
        drawings = pages.draw_examples(table, out)
        if save is not None:
            write_result(save, result)
        if page is not None:
            text = pages.replace_block(pages.check_page(page), pages.THEORY_BLOCK, pages.theory_block(result))
            pages.write_pages({page: text})
            pages.draw_examples(table, page.parent / "figures" / "theory", "png")
    if json:
        print_json({**result, "drawings": drawings})
        return
    _print_theory(table.rows, max_vertices, max_height)
    for number, example in enumerate(table.examples, start=1):
        say(f"[{number}] {example_text(example)}")
    say(f"{result['graphs']:,} graphs, {result['seconds']:.0f} s; SP in {result['compared']['sp']:,} numbered graphs")
    say(f"drew the {len(drawings)} examples into {out}")


def _print_theory(rows: list[Row], max_vertices: int, max_height: int) -> None:
    from pathnn_reproduction.theory.table import cell_text

    print_table(
        ("statement", "claim", "paths", "vertices: one connected graph", "one graph", "two graphs",
         "graphs: connected", "all"),
        [(r.statement, r.claim, r.about, *map(cell_text, r.cells)) for r in rows],
        title=f"Section 3.2 on all graphs with up to {max_vertices} vertices, heights 1 to {max_height}",
        left=8,
    )  # fmt: skip


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


Families = Annotated[
    str, typer.Option("--families", help="Comma-separated names, or: figure, all.", show_default="figure")
]
Longest = Annotated[int, typer.Option("--longest", min=1, help="Longest paths of the exact test.")]
K = Annotated[int, typer.Option("--k", "-k", min=1, max=MAX_K, help="The largest path length, in edges.")]
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
    results: Results = Path("results/sr.json"),
    report: Report = False,
    device: Device = "cpu",
    json: Json = False,
) -> None:
    """Failure rates on strongly regular graphs: untrained PathNN-AP, the exact test, 1-WL and 3-WL.

    The paper's figure prints no numbers; its text says that without distances no pair differs at K = 4, that most
    families have less than 20 % failures, and that SR(29, 14, 6, 7) has many.
    """
    if report:
        write_expressive("sr", results, as_json=json)
        return
    begin = time.perf_counter()
    with result_only(json):
        from pathnn_reproduction.experiments.sr import jobs, run, summarize
        from pathnn_reproduction.results import add_row, missing

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
        from pathnn_reproduction.experiments.sr import table

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
    with result_only(as_json):
        from pathnn_reproduction import pages

        written = pages.write_expressive(results.parent, results.parent.absolute().parent)
    if as_json:
        print_json({"target": target, "written": written})
    else:
        for path in written:
            say(f"wrote {path}")


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
        callback=lambda name: check_usage(check_collection, name.lower()),
    ),
]
Protocol = Annotated[
    str,
    typer.Option(
        "--protocol-pairs", metavar="FIRST-LAST", help="Pairs for the protocol, in whole tens: 0-1 does 0 to 9."
    ),
]


def brec_command(
    k: LongestAP = 8,
    k_plain: LongestPlain = 6,
    k_shortest: LongestSP = 20,
    max_steps: MaxSteps = 2_000_000_000,
    protocol_k: ProtocolK = None,
    protocol_collection: ProtocolCollection = "ap",
    protocol_pairs: Protocol = "0-399",
    results: Results = Path("results/brec.json"),
    report: Report = False,
    json: Json = False,
) -> None:
    """How many of BREC's 400 pairs are distinguished by SP, SP+ and AP at best, per category and K, beside 3-WL."""
    if report:
        write_expressive("brec", results, as_json=json)
        return
    begin = time.perf_counter()
    with result_only(json):
        from pathnn_reproduction.experiments.brec import protocol_file, summarize, table

        if protocol_k is None:
            _run_brec(results, (k_shortest, k_shortest, k, k_plain), max_steps)
        else:
            _run_protocol(protocol_file(results), cast("Collection", protocol_collection), protocol_k, protocol_pairs)
        rows = summarize(results)
    if json:
        print_json({"table": "brec", "rows": rows, "seconds": time.perf_counter() - begin})
    else:
        print_table(*table(rows), title="Pairs distinguished, of 400", left=2)
        say(f"{results}: {time.perf_counter() - begin:.1f} s")


def _run_brec(results: Path, longest: tuple[int, ...], max_steps: int) -> None:
    from pathnn_reproduction.experiments import brec
    from pathnn_reproduction.results import add_row, missing

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
    from pathnn_reproduction.results import add_row, missing

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
