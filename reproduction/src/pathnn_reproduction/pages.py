"""Write the pages of the docs, the README's tables and the LaTeX tables from results files.

The words are in `pages/*.md`, templates with named values; this module computes the values.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from string import Template
from typing import TYPE_CHECKING, Any

from pathnn.data.datasets.synthetic import SR_FAMILIES
from pathnn.files import atomic_write
from pathnn.paths.options import COLLECTIONS
from pathnn_reproduction.experiments import TABLES as TARGETS, TARGETS as ALL_TARGETS, brec, get_experiment, sr
from pathnn_reproduction.experiments.brec_protocol import MAX_STEPS
from pathnn_reproduction.figures.drawing import draw_failure_rates
from pathnn_reproduction.figures.figures import save_picture
from pathnn_reproduction.paper import TABLES
from pathnn_reproduction.results import Results, Row
from pathnn_reproduction.runner import matching, similar
from pathnn_reproduction.spec import Experiment, RunSpec, slots
from pathnn_reproduction.tables import (
    HEAD,
    NOT_MEASURED,
    Entry,
    compare,
    count_text,
    difference_text,
    latex_table,
    markdown_table,
    ours_text,
    paper_text,
    row_label,
    texts,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "pages"
RESULTS_BLOCK = "<!-- results: written by pathnn reproduce TARGET --report -->", "<!-- end of results -->"
MINUTES_BLOCK = "<!-- minutes: written by pathnn reproduce TARGET --report -->", "<!-- end of minutes -->"
CHART = Path("docs/figures/sr.png")
EXPRESSIVE = Path("docs/expressive.md")
PILOT = Path("benchmarks/results/defaults.jsonl")
LATE_ERRORS = 3
"""Epochs of EXP-Class with more wrong test graphs than this do not say which graphs are difficult."""


def fill(template: str, /, **values: object) -> str:
    """Fill a template of `pages/`; a value that is missing is an error.

    >>> fill("models_index", models="- [a](a.md): a model.").splitlines()[-1]
    '- [a](a.md): a model.'
    """
    return Template((TEMPLATES / f"{template}.md").read_text("utf-8")).substitute(values)


def replace_block(text: str, marks: tuple[str, str], block: str) -> str:
    """Return a text with the part between two marks replaced.

    >>> replace_block("a <b> old <e> c", ("<b>", "<e>"), "new")
    'a <b>\\n\\nnew\\n\\n<e> c'
    >>> replace_block("no marks", ("<b>", "<e>"), "new")
    Traceback (most recent call last):
    ...
    ValueError: the marks <b> and <e> are missing: put them around the place of the table.
    """
    begin, end = marks
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"the marks {begin} and {end} are missing: put them around the place of the table.")
    return f"{before}{begin}\n\n{block}\n\n{end}{after}"


def write_pages(pages: Mapping[Path, str]) -> list[Path]:
    """Write files atomically, and return their names."""
    for path, text in pages.items():
        with atomic_write(path) as file:
            file.write(text.encode())
    return list(pages)


def write_report(target: str, results: Path, root: Path) -> list[Path]:
    """Write the pages that show the results of a target, below the project's folder `root`; return their names.

    The minutes in `docs/reproduce.md` are those of all targets, so they are written as well.
    """
    if target in ("sr", "brec"):
        written = write_expressive(results, root)
    elif target == "plus":
        written = write_pages({root / "docs" / "pathnn-plus.md": plus_page(results, root / PILOT)})
    elif target in TARGETS:
        written = write_accuracies(results, root)
    else:
        raise ValueError(f"{target} has no page: pathnn reproduce {target} prints its table.")
    return written + _write_block(root / "docs" / "reproduce.md", MINUTES_BLOCK, minutes_table(results))


def write_accuracies(results: Path, root: Path) -> list[Path]:
    """Write the LaTeX tables next to the results, `docs/results.md` (without a folder docs: next to them too), and
    the table in the README. A folder without results is refused: empty tables would replace those that are there.
    """
    if not any((results / f"{name}.jsonl").exists() for name in TARGETS):
        files = ", ".join(f"{name}.jsonl" for name in TARGETS)
        raise ValueError(f"{results} holds no results: expected a folder with one of {files}, which runs write.")
    written = {results / f"{name}.tex": latex_tables(name, results) for name in TARGETS}
    page = root / "docs" / "results.md" if (root / "docs").is_dir() else results / "results.md"
    written[page] = results_page(results)
    return write_pages(written) + _write_block(root / "README.md", RESULTS_BLOCK, summary_table(results))


def _write_block(path: Path, marks: tuple[str, str], text: str) -> list[Path]:
    """Write a generated block of a page, if there is a page with this block; return what was written."""
    if not path.exists() or marks[0] not in path.read_text():
        return []
    return write_pages({path: replace_block(path.read_text(), marks, text)})


def results_page(results: Path) -> str:
    """Return `docs/results.md`: all tables as Markdown."""
    sections = {}
    for name in TARGETS:
        experiment, rows = get_experiment(name), open_results(name, results)
        for dataset, entries in compare(experiment, rows).items():
            sections[dataset.replace("-", "_")] = _section(dataset, entries, experiment, rows)
    curves = results / "curves"
    return fill(
        "results",
        **sections,
        **missing_numbers(results),
        **_halvings(curves / "peptides.jsonl", open_results("peptides", results).rows),
        **_curves(curves / "synthetic.jsonl"),
        exp_errors=_wrong_graphs(curves / "exp_errors.jsonl"),
    )


def missing_numbers(results: Path) -> dict[str, str]:
    """Count the paper's numbers for PathNN that all seeds or folds are behind, and list the others with GPU minutes.

    An entry without rows takes the mean seconds of the other rows of its dataset, or else of all PathNNs of its table.
    """
    measured, lines = 0, []
    for name in TARGETS:
        experiment, results_file = get_experiment(name), open_results(name, results)
        rows = [row for row in results_file if row["device"] != "cpu"]
        for dataset, entries in compare(experiment, results_file).items():
            for entry in entries:
                # the table of CEXP repeats the numbers of EXP
                if entry.model != "pathnn" or entry.paper.mean is None or dataset == "cexp":
                    continue
                if entry.ours is not None and entry.ours.count == entry.ours.planned:
                    measured += 1
                    continue
                own = (dataset, entry.model, entry.collection, entry.k)
                left = experiment.left([spec for spec in experiment.specs if spec.entry == own], results_file)
                names = similar(left[0])
                alike = next(filter(None, (matching(rows, names[:n]) for n in (len(names), 2, 1))), [])
                seconds = _minutes(len(left) * fmean(row["seconds"] for row in alike)) if alike else "not known"
                known = sorted({(row["dataset"], row["k"]) for row in alike})
                of = ", ".join(f"{TABLES[data].title}, K = {k}" for data, k in known)
                lines.append([TABLES[dataset].title, row_label(entry), paper_text(entry), str(len(left)), seconds, of])
    head = ("dataset", "entry", "paper", "runs", "GPU minutes", "by the rows of")
    table = markdown_table(head, lines) if lines else "None."
    return {"measured": str(measured), "numbers": str(measured + len(lines)), "missing": table}


def _halvings(path: Path, rows: Sequence[Row]) -> dict[str, str]:
    """Compare the best epoch of Peptides-func before the learning rate was first halved with that of the whole run."""
    curves: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for line in read_lines(path):
        curves[line["collection"], line["seed"]].append(line)
    lines, halved = [], []
    for row in rows:
        if row["model"] != "pathnn" or row["dataset"] != "peptides-func":
            continue
        curve = curves[row["collection"], row["seed"]]
        before = [one for one in curve if one["best"] and one["lr"] == curve[0]["lr"]]
        texts = [str(row["best_epoch"]), *_scores(row["val"], row["test"])]
        # curves of runs that were lost with a machine, or that end before the best epoch, say nothing about the row
        if before and any(abs(one["val_score"] - row["val"]) < 1e-9 for one in curve):
            best = before[-1]
            texts += [str(best["epoch"]), *_scores(best["val_score"], best["test_score"])]
            if best["epoch"] < row["best_epoch"]:
                halved.append((row["val"] - best["val_score"], row["test"] - best["test_score"]))
        lines.append([row["collection"].upper(), str(row["seed"]), *texts, *[""] * (8 - len(texts))])
    head = (
        "paths",
        "seed",
        "best epoch",
        "validation",
        "test",
        "gap",
        "best before halving",
        "validation",
        "test",
        "gap",
    )
    others = [row["test"] for row in rows if (row["model"], row["collection"]) == ("pathnn", "sp") and row["seed"] != 2]
    gains = [f"{min(gain):.1f} to {max(gain):.1f}" for gain in zip(*halved, strict=True)] or ["—", "—"]
    return {
        "halvings": markdown_table(head, sorted(lines)),
        "halved": str(len(halved)),
        "val_gain": gains[0],
        "test_gain": gains[1],
        "other_seeds": f"{fmean(others):.2f}" if others else "—",
    }


def _scores(val: float, test: float) -> list[str]:
    return [f"{val:.2f}", f"{test:.2f}", f"{val - test:.2f}"]


def _wrong_graphs(path: Path) -> str:
    """Name the graphs that a watched network of EXP-Class classified wrongly most often; `exp_errors.py` watches."""
    runs: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for line in read_lines(path):
        runs[line["dataset"].upper(), line["collection"].upper(), line["fold"]].append(line)
    lines = []
    for (data, paths, fold), epochs in runs.items():
        fewest = min(len(one["wrong"]) for one in epochs)
        good = [one for one in epochs if len(one["wrong"]) <= LATE_ERRORS]
        counts = Counter(graph for one in good for graph in one["wrong"]).most_common(3)
        names = ", ".join(f"graph {graph} ({count} of {len(good)})" for graph, count in counts)
        lines.append([data, paths, str(fold), str(len(epochs)), str(fewest), names])
    head = ("file", "paths", "split", "epochs", "fewest errors", f"wrong most often, where at most {LATE_ERRORS} are")
    return markdown_table(head, lines) if lines else "Not measured."


def _curves(path: Path) -> dict[str, str]:
    """Say in how many epochs of EXP-Class a network classified all test graphs, split by split."""
    found: dict[tuple[str, str], list[str]] = {}
    never: list[str] = []
    splits: dict[tuple[str, int], bool] = {}
    for row in read_lines(path):
        name, fold = (row["dataset"].upper(), row["collection"].upper()), row["fold"]
        scores = [score for score in row["test_score"] if score is not None]
        right = sum(score > 99.999 for score in scores)
        found.setdefault(name, []).append(f"{right} of {len(scores)}")
        splits[name[0], fold] = splits.get((name[0], fold), False) or right > 0
        never += [] if right else [f"{name[1]} on {name[0]}, split {fold}: at best {max(scores):.2f} %"]
    lines = [[*name, *texts] for name, texts in found.items()]
    table = markdown_table(("file", "paths", *(f"split {i}" for i in range(4))), lines)
    right_splits = f"{sum(splits.values())} of {len(splits)}"
    return {"exp_curves": table, "exp_never": "; ".join(never), "exp_splits": right_splits}


def plus_page(results: Path, pilot: Path) -> str:
    """Return `docs/pathnn-plus.md`: the table of `pathnn reproduce plus`, and PathNN+ next to the default (`pilot`)."""
    experiment, rows = get_experiment("plus"), open_results("plus", results)
    (table,) = experiment.tables(experiment, experiment.specs, rows)
    counts = {"done": len(experiment.done(experiment.specs, rows)), "runs": len(experiment.specs)}
    lines = read_lines(pilot)
    deep = {line["dataset"] for line in lines if line["setting"].startswith("pathnn+")}
    chosen = [
        [line["dataset"], line["setting"], f"{line['rmse']:.3f}", f"{line['cpu_seconds']:.0f}"]
        for line in lines
        if line["dataset"] in deep
        and line["setting"].startswith(("mean", "pathnn+"))
        and "descriptors" not in line["setting"]
    ]
    head = ("dataset", "setting", "RMSE", "CPU seconds")
    measured = markdown_table(head, sorted(chosen)) if chosen else "Not measured."
    return fill("pathnn_plus", **counts, table=markdown_table(table.head, table.rows), pilot=measured)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file; a file that does not exist has none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def all_entries(results: Path) -> dict[str, list[Entry]]:
    """Return the entries of all accuracy tables, by dataset."""
    targets = ((get_experiment(name), open_results(name, results)) for name in TARGETS)
    return {dataset: entries for target in targets for dataset, entries in compare(*target).items()}


def open_results(name: str, results: Path) -> Results:
    """Open the results file of a target."""
    return Results.open(results / f"{name}.jsonl")


def _section(dataset: str, entries: Sequence[Entry], experiment: Experiment, results: Results) -> str:
    """Return a table with its title, and where its numbers come from."""
    table, text = TABLES[dataset], markdown_table(HEAD, list(map(texts, entries)))
    direction = "larger" if table.maximize else "smaller"
    section = f"### {table.title}\n\n{table.metric} ({direction} is better). {table.protocol}\n\n{text}\n"
    rows = [row for _, row in experiment.done(experiment.specs, results) if row["dataset"] == dataset]
    if not rows:
        return section
    counts = sorted(Counter("a CPU" if row["device"] == "cpu" else row["device"] for row in rows).items())
    devices = ", ".join(f"{count} on {name}" for name, count in counts)
    days = sorted({str(row.get("time", ""))[:10] for row in rows})
    span = " to ".join(dict.fromkeys((days[0], days[-1])))
    names = {str(row["commit"]) for row in rows}  # twelve digits, and the + of a tree that had changes
    commits = ", ".join(sorted({name.rstrip("+")[:12] + "+" * name.endswith("+") for name in names}))
    file = f"results/{experiment.name}.jsonl"
    return f"{section}\n*{len(rows)} runs in `{file}`; {devices}; {span}; commits {commits}.*\n"


def latex_tables(name: str, results: Path) -> str:
    """Return the tables of a target as LaTeX (`booktabs`)."""
    found = compare(get_experiment(name), open_results(name, results)).items()
    tables = [latex_table(TABLES[dataset], entries) for dataset, entries in found]
    return "\n\n".join([f"% Written by pathnn reproduce {name} --report.", *tables]) + "\n"


LINES: tuple[tuple[str, int | None], ...] = (
    ("zinc", None), ("molhiv", None), ("peptides-func", None), ("nci1", 3), ("csl", None),
)  # fmt: skip
"""The datasets of the README's table, with K where the paper has several; docs/results.md has all of them."""


def summary_table(results: Path) -> str:
    """Return the README's table, and a list of the entries that are worse than the paper's."""
    every = all_entries(results)
    found = {dataset: [one for one in entries if one.model == "pathnn"] for dataset, entries in every.items()}
    lines = []
    for dataset, k in LINES:
        table, chosen = TABLES[dataset], [entry for entry in found[dataset] if k in (None, entry.k)]
        if any(entry.ours is not None for entry in chosen):
            by_collection = {entry.collection: _summary_text(entry) for entry in chosen}
            label = f"{table.title}, {table.metric}" + ("" if k is None else f", K = {k}")
            lines.append([label, *(by_collection[name] for name in COLLECTIONS)])
    if not lines:
        return "Nothing has been measured yet."
    text = markdown_table(("ours (the paper's)", *(f"PathNN-{name.upper()}" for name in COLLECTIONS)), lines)
    return f"{text}\n\n{_misses(found)}[Results](docs/results.md) has all tables, with what is not measured yet."


def _misses(found: Mapping[str, Sequence[Entry]]) -> str:
    """Name the entries of all datasets where ours are worse."""
    missed = []
    for dataset, entries in found.items():
        worse = [f"{row_label(entry)} {difference_text(entry)}" for entry in entries if is_worse(entry)]
        missed += [f"{TABLES[dataset].title}: {', '.join(worse)}"] if worse else []
    words = "Worse than the paper by more than one of its standard deviations, or at all where that is 0:\n"
    return words + ";\n".join(missed) + ".\n" if missed else ""


def is_worse(entry: Entry) -> bool:
    """Return whether ours, with all its seeds or folds, is worse than the paper's number.

    >>> from pathnn_reproduction.paper import Score
    >>> from pathnn_reproduction.tables import Measured
    >>> ours = Measured(0.2, 0.01, 10, 10, "seeds", 10, 1.0, None, ("cpu",))
    >>> is_worse(Entry("zinc", "pathnn", "sp", 4, Score(0.104, 0.002), ours))  # less is better
    True
    """
    if entry.ours is None or entry.paper.mean is None or entry.ours.count < entry.ours.planned:
        return False
    return entry.difference < -1 if entry.difference is not None else difference_text(entry).startswith("-")


def _summary_text(entry: Entry) -> str:
    paper = f"({paper_text(entry)})"
    if entry.ours is None:
        return f"— {paper}"
    part = "" if entry.ours.count == entry.ours.planned else f", {count_text(entry)}"
    return f"{ours_text(entry)}{part} {paper}"


def write_expressive(results: Path, root: Path) -> list[Path]:
    """Write the page on expressive power and its chart below `root`; return what was written."""
    if not any((results / name).exists() for name in ("sr.jsonl", "brec.jsonl")):
        raise ValueError(f"{results} has neither sr.jsonl nor brec.jsonl: run pathnn reproduce sr or brec first.")
    if not (root / EXPRESSIVE).parent.is_dir():
        raise ValueError(f"{root} has no folder docs: --report writes {EXPRESSIVE} of a clone. Run it in one.")
    written = write_pages({root / EXPRESSIVE: expressive_page(results)})
    figure = sr_chart(open_results("sr", results).rows)
    if figure is not None:
        save_picture(figure, root / CHART, dpi=160)
        written.append(root / CHART)
    return written


def expressive_page(folder: Path) -> str:
    """Return `docs/expressive.md`; a results file that is missing has no section."""
    sr_rows, brec_rows = open_results("sr", folder).rows, open_results("brec", folder).rows
    parts = [fill("expressive")]
    parts += [sr_section(sr_rows)] if sr_rows else []
    parts += [brec_section(brec_rows)] if brec_rows else []
    return "\n".join(parts)


def sr_section(raw: Sequence[Row]) -> str:
    """Return the section on strongly regular graphs: the main table, the chart and their explanation."""
    rows = sr.summarize(raw)
    head, lines = sr.table(rows)
    networks = [
        [title(row["family"]), *name.split(), *(sr.percent(count, row["pairs"]) for count in counts)]
        for row in rows
        for name, seeds in row["longer_networks"].items()
        for counts in [(sr.mean(seeds), sr.exact_at(row, int(name.split()[0])))]
    ]
    speed = next((row for row in raw if row["test"] == "speed"), None)
    return fill(
        "expressive_sr",
        table=markdown_table(head, [[title(family), *texts] for family, *texts in lines]),
        closed=_equal([(row["closed"], [sr.exact_at(row, 4)] * 5) for row in rows]),
        sums=_equal([(row["network"], [row["sum"]] * 5) for row in rows]),
        relu=_equal([(row["relu"], row["network"]) for row in rows]),
        longer="\n".join(filter(None, map(_longer, rows))),
        networks=markdown_table(["family", "K", "phi", "network", "exact"], networks),
        speed="not measured" if speed is None else _speed(speed),
        origin=_rows_origin(raw, "sr.jsonl"),
    )


def _equal(pairs: Sequence[tuple[Sequence[int | None] | None, Sequence[int | None] | None]]) -> str:
    """Say for how many seeds and families two counts are equal."""
    found = [a == b for ours, other in pairs if ours and other for a, b in zip(ours, other, strict=True)]
    return f"{sum(found)} of {len(found)}"


def title(family: str) -> str:
    """Return the name of a family: its parameters.

    >>> title("sr16622")
    'SR(16,6,2,2)'
    """
    return f"SR({','.join(map(str, SR_FAMILIES[family][0]))})"


def _longer(row: Row) -> str:
    last = next((k for k, count in row["exact"].items() if count == 0), max(row["exact"], default=None))
    if last is None:
        return ""
    left = f"{row['exact'][last]:,} of {row['pairs']:,} pairs are left at K = {last}."
    left = left if row["exact"][last] else f"all pairs are distinguished from K = {last} on."
    return f"- {title(row['family'])}: {left}"


def _speed(row: Row) -> str:
    rate = row["paths"] / row["seconds"]
    return (
        f"{row['paths']:,} paths of length up to {row['k']} in one graph of {title(row['family'])}\n"
        f"take {row['seconds']:.2f} s on one core: {rate:.2g} paths per second"
    )


def _rows_origin(raw: Sequence[Row], files: str) -> str:
    devices, commits = (", ".join(sorted({str(row[name]) for row in raw})) for name in ("device", "commit"))
    seconds, last = sum(row["seconds"] for row in raw), max(row["time"] for row in raw)
    return f"*{len(raw)} results, {seconds:.0f} s in all, {devices}, last {last}, commit {commits} ({files}).*"


def sr_chart(raw: Sequence[Row]) -> Figure | None:
    """Draw the bar chart of the main table."""
    rows = sr.summarize(raw)
    if not rows:
        return None
    last = max((k for row in rows for k in row["exact"]), default=4)
    rates: dict[str, list[float | None]] = {}
    for row in rows:
        counts: dict[str, float | None] = {
            "network, K = 4, no distances": sr.mean(row["without"]),
            "network, K = 4": sr.mean(row["network"]),
            "network with tanh, K = 4": sr.mean(row["closed"]),
            "exact, K = 5": sr.exact_at(row, 5),
            f"exact, K = {last}": sr.exact_at(row, last),
        }
        for test, count in counts.items():
            rates.setdefault(test, []).append(None if count is None else 100 * count / row["pairs"])
    return draw_failure_rates([title(row["family"]) for row in rows], rates)


def brec_section(raw: Sequence[Row]) -> str:
    """Return the section on BREC: the exact test, relabelled copies and BREC's own protocol."""
    rows = brec.summarize(raw)
    trained = [row for row in rows if "unreliable" in row]
    unreliable = [f"{row['unreliable']} ({row['name'].removesuffix(', trained')}, K = {row['k']})" for row in trained]
    bounds = next((row for row in raw if row["test"] == "bounds"), None)
    return fill(
        "expressive_brec",
        steps=f"{max((row['max_steps'] for row in raw if row['test'] == 'exact'), default=0):,}",
        table=markdown_table(*brec.table(rows)),
        copies="\n".join(_copies(row) for row in raw if row["test"] == "copies") or "Not run yet.",
        unreliable=", ".join(unreliable) or "none",
        limit=f"{MAX_STEPS:,}",
        bounds="Not counted yet." if bounds is None else markdown_table(*brec.bounds_table(raw, bounds)),
        origin=_rows_origin(raw, "brec.jsonl"),
    )


def _copies(row: Row) -> str:
    lengths = {name: len(row[name]) for name in ("unstable", "consistent")}
    template = "expressive_unstable" if row["unstable"] else "expressive_stable"
    return fill(template, name=brec.variant_name(row), **{**row, **lengths}).strip()


GROUPS = {"pathnn": "PathNN", "pathnn+": "PathNN+ and controls"}
"""Names of groups of runs by the model; all others are baselines."""


def minutes_table(results: Path) -> str:
    """Return the minutes of every table as Markdown, one run at a time."""
    lines = []
    for target in ALL_TARGETS:
        rows = open_results(target, results).rows
        groups: dict[tuple[str, str], list[RunSpec]] = defaultdict(list)
        for spec in get_experiment(target).specs:
            models = "" if spec.config is None else GROUPS.get(spec.config.model, "baselines")
            groups[spec.dataset if models else "all", models].append(spec)
        for group, specs in groups.items():
            minutes = [  # a CPU is "cpu", or the name of a processor with its number of cores
                minutes_text(specs, [row for row in rows if (row["device"] == "cpu" or "core" in row["device"]) == cpu])
                for cpu in (False, True)
            ]
            lines.append([target, *group, f"{slots(specs):,}", *minutes])
    theory = results / "theory.json"
    last = _minutes(json.loads(theory.read_text())["seconds"]) if theory.exists() else NOT_MEASURED
    head = ("target", "data", "models", "runs", "minutes on a GPU", "minutes on a CPU")
    return markdown_table(head, [*lines, ["theory", "all", "", "", "—", last]])


def minutes_text(specs: Sequence[RunSpec], rows: Sequence[Row]) -> str:
    """Return the minutes of all runs by the mean seconds of similar rows, and how much of the table they are."""
    entries: dict[tuple[tuple[str, object], ...], list[RunSpec]] = defaultdict(list)
    for spec in specs:
        entries[similar(spec)].append(spec)
    known: dict[tuple[object, ...], list[float]] = defaultdict(list)
    columns = {tuple(name for name, _ in names) for names in entries}
    for row in rows:
        for names in columns if "seconds" in row else ():
            known[tuple((name, row.get(name)) for name in names)].append(row["seconds"])
    measured = {names: known[names] for names in entries if names in known}
    if not measured:
        return NOT_MEASURED
    seconds = sum(fmean(found) * slots(entries[names]) for names, found in measured.items())
    part = "" if len(measured) == len(entries) else f", {len(measured)} of {len(entries)} rows"
    return f"{_minutes(seconds)}{part}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.0f}" if seconds >= 30 else "less than 1"
