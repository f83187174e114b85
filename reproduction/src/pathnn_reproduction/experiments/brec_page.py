"""The section of the docs on BREC."""

from __future__ import annotations

from pathlib import Path

from pathnn_reproduction.experiments.brec_report import copies, protocol_file, summarize, table
from pathnn_reproduction.markdown import table as markdown_table
from pathnn_reproduction.rows import read_rows


def brec_section(path: Path) -> str:
    """ProjectedInputs of the exact test and of BREC's own protocol, and what relabelled copies say."""
    rows = summarize(path)
    head, lines = table(rows)
    raw = read_rows(path) + read_rows(protocol_file(path))
    seconds = sum(row["seconds"] for row in raw)
    commits = ", ".join(sorted({str(row["commit"]) for row in raw}))
    devices = ", ".join(sorted({row["device"] for row in raw}))
    steps = max((row["max_steps"] for row in raw if "max_steps" in row), default=0)
    trained = [row for row in rows if "unreliable" in row]
    unreliable = ", ".join(
        f"{row['unreliable']} ({row['name'].removesuffix(', trained')}, K = {row['k']})" for row in trained
    )
    partly = ""
    if any(row["over"] for row in trained):
        partly = '\nA dash: no pair of the category was tested; "1 of 10": ten of its pairs were.'
    return f"""## BREC

`pathnn reproduce brec`: 400 pairs that 1-WL does not tell apart (Wang and Zhang, ICML 2024), the number of them
that each test tells apart. Lines at which nothing changes are left out. "Not tested": a graph would have taken more
than {steps:,} steps at that K or before, or the protocol was not run.{partly}

{markdown_table(head, lines)}

SP, SP+ and AP are the exact test: what the best network of that kind could do. BREC's authors keep a list of the pairs
that 3-WL tells apart (60, 50, 0, 100, 60, 0, 0: 270, in the part of their repository on KC-SetGNN): our 3-WL must find
as many. The highest number reported for a network that we know of is N2-GNN's, 287 (Feng et al., NeurIPS 2023). Other
published numbers are left out, as we have not been able to check them against their source.

**Relabelled copies.** A test of isomorphism must not depend on the numbering.

{_copies(path)}

**BREC's own protocol** ("trained"): for each pair a network with 16 outputs is trained for at most 20 epochs on
32 relabelled copies of each graph, so that outputs of different graphs have a small cosine; then Hotelling's T² of
the differences of outputs is compared with 72.34. The same test between copies of one graph must stay below, or the
pair is unreliable and does not count. Pairs that were: {unreliable}.
SP+ and AP give copies the same output up to rounding, so the covariance is next to singular, and 1e-7 is added to its
diagonal, as the protocol's authors advise for that case. SP gives copies of one graph different outputs where shortest
paths tie.
The networks are those of `--phi tanh` above with a linear head, in float64; their BatchNorm takes its statistics
over the batch, in training and in the test. An epoch has 4 steps. For SP each reads 16 of the 64 graphs, as in the
protocol; for SP+ and AP each reads all, which is the same, as copies do not differ.

*{len(raw)} results, {seconds:.0f} s in all, {devices}, commit {commits} (`{path.name}`, `{protocol_file(path).name}`).*
"""


def _copies(path: Path) -> str:
    lines = []
    for row in copies(path):
        if row["unstable"]:
            lines.append(
                f"- {row['name']}, K = {row['k']}: {len(row['unstable'])} of 800 graphs are told apart from one of\n"
                f"  their own {row['copies']} copies. Where shortest paths tie, SP depends on the numbering, so its\n"
                "  lines above hold for the given numbering only. Told apart, with both graphs in agreement with\n"
                f"  all of their copies: {len(row['consistent'])} pairs."
            )
        else:
            lines.append(
                f"- {row['name']}, K = {row['k']}: all 800 graphs agree with all of their {row['copies']} copies."
            )
    return "\n".join(lines) or "Not run yet."
