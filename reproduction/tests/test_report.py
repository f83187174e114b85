"""Reports are written from results, and the project's own agree with its results files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pathnn.data import load_dataset
from pathnn.theory.fingerprints import wl_fingerprints
from pathnn.theory.isomorphism import as_graphs
from pathnn_reproduction.experiments import TABLES as TARGETS, get_experiment
from pathnn_reproduction.pages import (
    RESULTS_BLOCK,
    latex_tables,
    missing_numbers,
    replace_block,
    results_page,
    summary_table,
    write_accuracies,
)
from pathnn_reproduction.paper import TABLES, Score
from pathnn_reproduction.results import Results
from pathnn_reproduction.spec import select
from pathnn_reproduction.tables import compare, texts
from tiny_experiments import made_up_row

ROOT = Path(__file__).resolve().parents[2]


def add(results: Path, target: str, only: str, tests: list[float]) -> None:
    rows = Results.open(results / f"{target}.jsonl")
    specs = get_experiment(target).missing(select(get_experiment(target).specs, only), rows)
    for spec, test in zip(specs, tests, strict=False):
        rows.add(made_up_row(spec, val=spec.key["seed"], test=test), spec.key)


def entry(results: Path, target: str, dataset: str, collection: str | None, k: int | None, model: str = "pathnn"):
    plan = get_experiment(target)
    entries = compare(plan, Results.open(results / f"{target}.jsonl"))[dataset]
    return next(e for e in entries if (e.model, e.collection, e.k) == (model, collection, k))


def test_mean_deviation_and_difference(tmp_path: Path) -> None:
    add(tmp_path, "zinc", "ap", [0.086, 0.090, 0.088])
    ap = entry(tmp_path, "zinc", "zinc", "ap", 4)
    assert (ap.ours.mean, ap.ours.std) == pytest.approx((0.088, 0.002))
    assert (ap.ours.count, ap.ours.planned, ap.ours.unit, ap.ours.runs) == (3, 10, "seeds", 3)
    assert ap.difference == pytest.approx(0.5)  # a smaller error is better
    page = results_page(tmp_path)
    assert "| PathNN-AP (K=4) | 10 | 0.090 ± 0.004 | 0.0880 ± 0.0020 | 3 of 10 seeds | 3 | 3 (CPU) | +0.5 σ |" in page
    gpu, both = (replace(ap, ours=replace(ap.ours, devices=names)) for names in (("GPU",), ("GPU", "cpu")))
    assert [texts(one, ["seconds"]) for one in (gpu, both)] == [["3"], ["3 (CPU, GPU)"]]
    assert "| PathNN-SP (K=4) |  | 0.104 ± 0.002 | not measured |" in page
    assert "0.0880 $\\pm$ 0.0020 & 3 of 10 seeds & +0.5 $\\sigma$" in latex_tables("zinc", tmp_path)
    assert summary_table(tmp_path).partition("\n\n")[0].count("\n") == 2


def test_a_fold_counts_when_its_three_runs_are_done(tmp_path: Path) -> None:
    ten = "enzymes,sp,k=1,fold=0"
    add(tmp_path, "tu", ten, [10.0] * 4)
    assert entry(tmp_path, "tu", "enzymes", "sp", 1).ours is None
    add(tmp_path, "tu", ten, [60.0, 70.0])
    assert entry(tmp_path, "tu", "enzymes", "sp", 1).ours is None
    add(tmp_path, "tu", ten, [80.0])
    ours = entry(tmp_path, "tu", "enzymes", "sp", 1).ours
    assert (ours.mean, ours.std, ours.count, ours.planned, ours.runs) == (70.0, None, 1, 10, 7)
    add(tmp_path, "tu", "enzymes,sp,k=1,fold=4", [10.0] * 4)
    add(tmp_path, "tu", "enzymes,sp,k=1,fold=4", [74.0, 74.0, 74.0])
    ours = entry(tmp_path, "tu", "enzymes", "sp", 1).ours
    assert (ours.mean, ours.count, ours.runs) == (72.0, 2, 14)
    assert "72.00 ± 2.83 | 2 of 10 folds | 14" in results_page(tmp_path)


def test_what_was_not_measured_says_why(tmp_path: Path) -> None:
    page = results_page(tmp_path)
    struct = page[page.index("### Peptides-struct") : page.index("## TUDatasets")]
    assert struct.count("| not measured |") == 6  # SP, SP+, AP, GIN, GCN and MLP
    dd = page[page.index("### DD") : page.index("### PROTEINS")]
    imdb = page[page.index("### IMDB-BINARY") : page.index("### IMDB-MULTI")]
    assert "| PathNN-AP (K=3) |  | out of memory | not measured |" in dd
    assert "| PathNN-SP (K=3) |  | not applicable | not applicable |" in imdb
    assert summary_table(tmp_path) == "Nothing has been measured yet."


def test_numbers_that_are_missing_are_listed_with_their_minutes(tmp_path: Path) -> None:
    found = missing_numbers(tmp_path)
    assert (found["measured"], found["numbers"]) == ("0", "56")
    assert "| ZINC12K | PathNN-AP (K=4) | 0.090 ± 0.004 | 10 | not known |  |" in found["missing"]
    add(tmp_path, "zinc", "ap", [0.09] * 10)
    rows = Results.open(tmp_path / "zinc.jsonl")
    spec = select(get_experiment("zinc").specs, "sp")[0]
    rows.add({**made_up_row(spec, 1.0), "device": "GPU", "seconds": 120.0}, spec.key)
    found = missing_numbers(tmp_path)
    assert found["measured"] == "1"  # one seed of ten is not the protocol
    assert "| ZINC12K | PathNN-SP (K=4) | 0.104 ± 0.002 | 9 | 18 | ZINC12K, K = 4 |" in found["missing"]
    assert "| ZINC12K | PathNN-SP+ (K=4) | 0.131 ± 0.008 | 10 | 20 | ZINC12K, K = 4 |" in found["missing"]


def test_the_gap_before_and_after_a_halving(tmp_path: Path) -> None:
    spec, lost = select(get_experiment("peptides").specs, "peptides-func,pathnn,sp,seed=0-1")
    rows = Results.open(tmp_path / "peptides.jsonl")
    for one in (spec, lost):
        rows.add({**made_up_row(one, 1.0), "best_epoch": 2, "val": 68.0, "test": 67.0}, one.key)
    (tmp_path / "curves").mkdir()
    epochs = [(0, 0.001, 67.0, 64.0), (0, 0.0005, 68.0, 67.0), (1, 0.001, 60.0, 59.0)]  # the curve of seed 1 ends early
    lines = [
        {"collection": "sp", "seed": seed, "epoch": 1 + (lr < 0.001), "lr": lr, "best": True, "val_score": val,
         "test_score": test}
        for seed, lr, val, test in epochs
    ]  # fmt: skip
    (tmp_path / "curves" / "peptides.jsonl").write_text("\n".join(map(json.dumps, lines)))
    page = results_page(tmp_path)
    assert "| SP | 0 | 2 | 68.00 | 67.00 | 1.00 | 1 | 67.00 | 64.00 | 3.00 |" in page
    assert "| SP | 1 | 2 | 68.00 | 67.00 | 1.00 |  |  |  |  |" in page
    assert "by 1.0 to 1.0 points" in page


def test_graphs_that_are_often_wrong_are_named(tmp_path: Path) -> None:
    (tmp_path / "curves").mkdir()
    wrong = [[1, 2, 3, 4, 5], [7, 9], [7]]
    lines = [{"dataset": "exp", "collection": "ap", "fold": 2, "wrong": graphs} for graphs in wrong]
    (tmp_path / "curves" / "exp_errors.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert "| EXP | AP | 2 | 3 | 1 | graph 7 (2 of 2), graph 9 (1 of 2) |" in results_page(tmp_path)


def test_a_deviation_of_zero_is_no_unit(tmp_path: Path) -> None:
    add(tmp_path, "synthetic", "csl,sp+", [100.0] * 5)
    add(tmp_path, "synthetic", "csl,sp", [90.0] * 4 + [80.0])
    page = results_page(tmp_path)
    assert "100.0 ± 0.0 | 100.00 ± 0.00 | 5 folds | 5 | 5 (CPU) | equal |" in page
    assert "90.0 ± 0.0 | 88.00 ± 4.47 | 5 folds | 5 | 5 (CPU) | -2 |" in page
    add(tmp_path, "synthetic", "exp-iso,ap", [3.0] * 5)  # three pairs more than the paper's 0 are worse
    assert "| PathNN-AP (K=5) | 10 | 0 | 3.0 ± 0.0 | 5 seeds | 5 | 5 (CPU) | -3 |" in results_page(tmp_path)


def test_what_the_page_says_of_1_wl_on_exp_and_cexp(mirror: Path) -> None:
    """None of the pairs of EXP, half of those of CEXP."""
    for name, told_apart in (("exp", 0), ("cexp", 300)):
        prints = wl_fingerprints(as_graphs(load_dataset(name).graphs))
        assert int((prints[0::2] != prints[1::2]).any(axis=1).sum()) == told_apart
        assert len(prints) == 1200


def test_files_are_written_and_the_readme_keeps_its_text(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("before\n{}\nold\n{}\nafter\n".format(*RESULTS_BLOCK))
    add(tmp_path / "results", "zinc", "ap", [0.09])
    written = write_accuracies(tmp_path / "results", tmp_path)
    assert {path.name for path in written} == {*(f"{name}.tex" for name in TARGETS), "results.md", "README.md"}
    readme = (tmp_path / "README.md").read_text()
    assert readme.startswith("before\n")
    assert readme.endswith("after\n")
    assert "| ZINC12K, MAE | — (0.104 ± 0.002) | — (0.131 ± 0.008) | 0.0900, 1 of 10 seeds (0.090 ± 0.004) |" in readme
    assert "old" not in readme
    with pytest.raises(ValueError, match="marks"):
        replace_block("no marks", RESULTS_BLOCK, "x")


def test_the_summary_has_five_lines_and_a_link(tmp_path: Path) -> None:
    for fold in range(10):
        for k in (2, 3):
            add(tmp_path, "tu", f"nci1,pathnn,sp,k={k},fold={fold}", [10.0] * 4)
            add(tmp_path, "tu", f"nci1,pathnn,sp,k={k},fold={fold}", [70.0] * 3)
        add(tmp_path, "tu", f"enzymes,sp,k=1,fold={fold}", [10.0] * 4)
        add(tmp_path, "tu", f"enzymes,sp,k=1,fold={fold}", [70.0] * 3)
    add(tmp_path, "synthetic", "csl,ap", [100.0] * 5)
    table, _, words = summary_table(tmp_path).partition("\n\n")
    assert table.splitlines()[2:] == [
        "| NCI1, accuracy, %, K = 3 | 70.00 ± 0.00 (82.2 ± 1.7) | — (82.3 ± 1.9) | — (82.3 ± 1.7) |",
        "| CSL, accuracy, % | — (90.0 ± 0.0) | — (100.0 ± 0.0) | 100.00 ± 0.00 (100.0 ± 0.0) |",
    ]
    assert "ENZYMES" not in words  # 0.6 of the paper's deviations: no miss
    assert "NCI1: PathNN-SP (K=2) -7.5 σ, PathNN-SP (K=3) -7.2 σ" in words
    assert "(docs/results.md)" in words
    project = summary_table(ROOT / "results").partition("\n\n")
    assert [line.split(",")[0] for line in project[0].splitlines()[2:]] == [
        "| ZINC12K", "| ogbg-molhiv", "| Peptides-func", "| NCI1", "| CSL",
    ]  # fmt: skip
    assert "Peptides-func: PathNN-SP" in project[2]
    assert "EXP-Class" in project[2]


def test_the_summary_says_where_ours_are_worse(tmp_path: Path) -> None:
    add(tmp_path, "zinc", "pathnn,sp", [0.107] * 10)  # 1.5 of the paper's deviations above 0.104
    add(tmp_path, "zinc", "pathnn,sp+", [0.138] * 10)  # 0.9 above 0.131
    add(tmp_path, "zinc", "pathnn,ap", [0.2] * 9)  # far above, but a seed is missing
    add(tmp_path, "synthetic", "csl,sp", [90.0] * 5)
    add(tmp_path, "synthetic", "csl,sp+", [100.0] * 4 + [90.0])
    text = summary_table(tmp_path)
    assert "\nZINC12K: PathNN-SP (K=4) -1.5 σ;\nCSL: PathNN-SP+ (K=11) -2.\n" in text


def test_the_papers_tables_are_whole() -> None:
    assert TABLES["zinc"].rows[("pathnn", "ap", 4)] == Score(0.090, 0.004)
    assert TABLES["nci1"].rows[("pathnn", "sp+", 3)] == Score(82.3, 1.9)
    assert TABLES["dd"].rows[("pathnn", "ap", 3)] == Score(note="OOM")
    for table in TABLES.values():
        specs = [spec for spec in get_experiment(table.target).specs if spec.dataset == table.dataset]
        printed = {row for row, score in table.rows.items() if row[0] == "pathnn" and score.note != "-"}
        assert printed == {spec.entry[1:] for spec in specs if spec.key["model"] == "pathnn"}


@pytest.mark.parametrize("target", TARGETS)
def test_every_row_of_the_projects_results_is_a_run_of_its_experiment(target: str) -> None:
    results = Results.open(ROOT / "results" / f"{target}.jsonl")  # opening checks each row
    specs = get_experiment(target).specs
    keys = {tuple(spec.key.values()) for spec in specs}
    for row in results:
        key = tuple(row[name] for name in specs[0].key)
        assert key in keys, f"{key} is no run of {target}: was the experiment changed after it was run?"
    assert len(results) == len({tuple(row[name] for name in ("config_hash", "dataset")) for row in results})


def test_the_projects_pages_agree_with_its_results() -> None:
    """If this fails, run `pathnn reproduce zinc --report`."""
    results = ROOT / "results"
    assert (ROOT / "docs" / "results.md").read_text() == results_page(results)
    readme = (ROOT / "README.md").read_text()
    assert readme == replace_block(readme, RESULTS_BLOCK, summary_table(results))
    for target in TARGETS:
        assert (results / f"{target}.tex").read_text() == latex_tables(target, results)


def test_code_with_changes_is_marked_where_numbers_come_from(tmp_path: Path) -> None:
    spec = get_experiment("zinc").specs[0]
    row = {**made_up_row(spec, val=1.0), "commit": "0123456789abcdef+"}
    Results.open(tmp_path / "zinc.jsonl").add(row, spec.key)
    assert "commits 0123456789ab+.*" in results_page(tmp_path)
