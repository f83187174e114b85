"""The page of the docs on expressive power, written from the result files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from pathnn.data.datasets.pairs import SR_FAMILIES
from pathnn.files import atomic_write
from pathnn_reproduction.experiments.brec_page import brec_section
from pathnn_reproduction.experiments.sr_report import exact_at, mean, percent, summarize, table
from pathnn_reproduction.markdown import table as markdown_table
from pathnn_reproduction.rows import Row, read_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CHART = Path("docs/figures/sr.png")


PAGE = Path("docs/expressive.md")


INTRO = """# Expressive power: which graphs a PathNN tells apart

This page is written by `pathnn reproduce sr --report` from `results/sr.json` and `results/brec.json`. Nothing on it
is typed by hand but the words and other papers' numbers. `pathnn distinguish DATA` makes the same tests on any graphs.

## The tests

**The untrained network** (section 4.1 of the paper): a PathNN with random weights in float64, ones as features, width
16, distances for AP, no head. Two graphs are confused when their representations are closer than 1e-5. Five seeds.

**The exact test**: no network, no threshold. The annotation of a vertex at level k is the multiset, over all paths of
length k from it, of the sequences of level k − 1 annotations (with distances for AP), together with its own
annotation before ([theory](theory.md)). If the multisets of annotations of two graphs are equal, then no PathNN of k
layers tells them apart, whatever its weights; if not, then one made of injective functions does. Annotations are kept
as two random elements of the field of 2⁶¹ − 1 elements: the sum over all paths of the product of one element for each
token. Different multisets get the same elements with a probability below k² / 2¹²⁰. A sum of products can be factored,
so the last step of the paths is never walked.

**1-WL and 3-WL**, the latter as 2-FWL on pairs of vertices.

The network is made cheap by merging: vertices with equal annotations have equal representations, so a layer reads
each different sequence of annotations once and carries along how often it occurs. That is the same network up to
rounding (a test compares them to 1e-9).
"""


def write_page(results: Path, root: Path) -> list[Path]:
    """Write the page and its chart below `root` from a folder of results; returns what was written."""
    if not any((results / name).exists() for name in ("sr.json", "brec.json")):
        raise ValueError(f"{results} has neither sr.json nor brec.json: run pathnn reproduce sr or brec first.")
    if not (root / PAGE).parent.is_dir():
        raise ValueError(f"{root} has no folder docs: --report writes {PAGE} of a clone of pathnn. Run it in one.")
    from pathnn_reproduction.figures.figures import save_picture

    with atomic_write(root / PAGE) as file:
        file.write(expressive_page(results).encode())
    figure = sr_chart(results)
    if figure is None:
        return [root / PAGE]
    save_picture(figure, root / CHART, dpi=160)
    return [root / PAGE, root / CHART]


def expressive_page(folder: Path) -> str:
    """The page as Markdown; a result file that is not there has no section."""
    parts = [INTRO]
    if rows := summarize(folder / "sr.json"):
        parts.append(sr_section(rows, read_rows(folder / "sr.json")))
    if (folder / "brec.json").exists():
        parts.append(brec_section(folder / "brec.json"))
    return "\n".join(parts)


def sr_section(rows: Sequence[Row], raw: Sequence[Row]) -> str:
    """Strongly regular graphs: the main table, the chart, and what follows from them."""
    head, lines = table(rows)
    for line in lines:
        line[0] = title(line[0])
    closed = all(row["closed"] is None or set(row["closed"]) == {exact_at(row, 4)} for row in rows)
    adds_up = all(row["network"] is None or set(row["network"]) == {row["sum"]} for row in rows)
    same = all(row["relu"] in (None, row["network"]) for row in rows)
    relu = "changes no number: no sign differs between vertices." if same else "changes some of the numbers."
    why = "It has the network's numbers for every seed and family: the sums are the whole gap."
    why = why if adds_up else "It does not explain all of the gap."
    closes = "closes the gap: every seed and family has the exact test's number."
    closes = closes if closed else "closes most of the gap."
    gap = f"""**Where the network is weaker than the exact test, and why.** The paper's network adds up twice: the last
layer adds the LSTM's outputs over all paths of a vertex to a representation, and the readout adds up the vertices.
With nothing in between, the result is a sum over all paths of the graph, and which vertex has which of them is lost.
The column "adding up, at best" is the exact test of that: it forgets in the last level which vertex a sequence
belongs to. {why} A ReLU after each layer (the released implementation) {relu} A BatchNorm over all vertices and a
tanh after each layer (`--phi tanh`, still untrained, still K = 4) {closes}"""
    return f"""## Strongly regular graphs

`pathnn reproduce sr`: all pairs of a family, PathNN-AP, K = 4 where nothing else is said; shares of confused pairs in
percent, networks as the mean of 5 seeds. The paper shows these rates as bars without numbers. Its text says that
without distances nothing is told apart, that in most families more than 80 % are, and that SR(29,14,6,7) is hard. The
last two families are not in its figure.

![Failure rates on strongly regular graphs](figures/sr.png)

{markdown_table(head, lines)}

{fill(gap, 118, break_on_hyphens=False)}

{_longer(rows)}
{_speed(raw)}{_origin(raw)}"""


def title(family: str) -> str:
    """The parameters of a family.

    >>> title("sr16622")
    'SR(16,6,2,2)'
    """
    return f"SR({','.join(map(str, SR_FAMILIES[family][0]))})"


def _longer(rows: Sequence[Row]) -> str:
    """What longer paths do, in sentences."""
    lines = [
        "**Longer paths.** An annotation keeps those before, so graphs that are told apart stay so; only the others",
        "are tested again.",
        "",
    ]
    for row in rows:
        zero = next((k for k, count in row["exact"].items() if count == 0), None)
        last = max(row["exact"], default=0)
        if zero is None and last:
            count = row["exact"][last]
            lines.append(f"- {title(row['family'])}: {count:,} of {row['pairs']:,} pairs are left at K = {last}.")
        elif zero is not None:
            lines.append(f"- {title(row['family'])}: all pairs are told apart from K = {zero} on.")
    networks = [
        [title(row["family"]), *name.split(), percent(mean(counts), row["pairs"]), _exact(row, int(name.split()[0]))]
        for row in rows
        for name, counts in row["longer_networks"].items()
    ]
    if networks:
        lines += ["", "Networks that read longer paths:", ""]
        lines.append(markdown_table(["family", "K", "phi", "network", "exact"], networks))
        lines += [
            "",
            "From K = 5 on, representations of graphs that differ may be closer than the threshold of 1e-5, and are",
            "then confused. Adding up is hardly the reason any more: of the four smallest families, it confuses at",
            "best one pair of SR(26,10,3,4) at K = 5, and none of the others (a test checks that).",
        ]
    return "\n".join(lines) + "\n"


def _exact(row: Row, k: int) -> str:
    return percent(exact_at(row, k), row["pairs"])


def _speed(raw: Sequence[Row]) -> str:
    for row in raw:
        if row["test"] == "speed":
            return (
                f"\n**Speed.** {row['paths']:,} paths of length up to {row['k']} in one graph of\n"
                f"{title(row['family'])} took {row['seconds']:.2f} s on one core, "
                f"{row['paths'] / row['seconds']:.2g} paths a second.\n"
            )
    return ""


def _origin(raw: Sequence[Row]) -> str:
    seconds = sum(row["seconds"] for row in raw)
    devices = ", ".join(sorted({row["device"] for row in raw}))
    commits = ", ".join(sorted({str(row["commit"]) for row in raw}))
    last = max(row["time"] for row in raw)
    return f"\n*{len(raw)} results, {seconds:.0f} s in all, {devices}, last {last}, commit {commits} (`sr.json`).*\n"


def sr_chart(folder: Path) -> Figure | None:
    """The bar chart of the main table."""
    from pathnn_reproduction.figures.drawing import draw_failure_rates

    rows = summarize(folder / "sr.json")
    if not rows:
        return None
    last = max((k for row in rows for k in row["exact"]), default=4)
    counts: dict[str, list[float | None]] = {
        "network, K = 4, no distances": [mean(row["without"]) for row in rows],
        "network, K = 4": [mean(row["network"]) for row in rows],
        "network with tanh, K = 4": [mean(row["closed"]) for row in rows],
        "exact, K = 5": [exact_at(row, 5) for row in rows],
        f"exact, K = {last}": [exact_at(row, last) for row in rows],
    }
    rates = {
        test: [None if n is None else 100 * n / row["pairs"] for n, row in zip(values, rows, strict=True)]
        for test, values in counts.items()
    }
    return draw_failure_rates([title(row["family"]) for row in rows], rates)
