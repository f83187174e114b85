"""The numbers that we put beside ours are those that the paper prints, all of them and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pathnn_reproduction.paper import PARAMETERS, TABLES, TIMES, PaperTime, RowKey, Score
from pathnn_reproduction.tables import NAMES

TU_DATA = [name for name, table in TABLES.items() if table.target == "tu"]
COLUMNS = {
    "csl": 1, "exp": 2, "cexp": 2, "exp-iso": 3, "zinc": 2, "molhiv": 1, "peptides-func": 2, "peptides-struct": 4,
    **{dataset: i for i, dataset in enumerate(TU_DATA, start=1)},
}  # fmt: skip


@pytest.fixture
def paper(mirror: Path) -> str:
    path = mirror.parent / "paper.tex"
    if not path.is_file():
        pytest.skip("the paper's source is not at hand: expected paper.tex beside the folder of the reference data")
    return path.read_text()


def printed(paper: str, label: str) -> list[list[str]]:
    """The rows of a table, as plain text."""
    body = paper[paper.index(rf"\label{{{label}}}") :]
    body = body[: body.index(r"\end{table")]
    body = re.sub(r"\\(cite|phantom|vspace)\{[^}]*\}+|\\color\{[^}]*\} *0|~|\$|\\,|\\multirow\{2\}\{\*\}", "", body)
    body = re.sub(r"\\(textbf|mathcal|phantom)", "", body).replace(r"\pm", "±")
    rows = [" ".join(row.replace("{", "").replace("}", "").split()) for row in body.split(r"\\")]
    rows = [re.sub(r"\\(midrule|bottomrule|toprule|end)\w*", "", row).strip() for row in rows]
    return [[" ".join(cell.split()) for cell in row.split("&")] for row in rows if "&" in row]


def score(text: str) -> Score:
    if text in ("OOM", "NA", "-"):
        return Score(note=text)
    mean, _, std = text.partition("±")
    return Score(float(mean), float(std) if std else None)


def row_name(cell: RowKey, with_k: bool) -> str:
    model, collection, k = cell
    if collection is None:
        return NAMES.get(model, model)
    name = "P" if k == 1 else collection.upper().replace("+", "^+")
    return f"PathNN-{name} (K={k})" if with_k else f"PathNN-{name}"


@pytest.mark.parametrize("dataset", TABLES)
def test_every_number_of_a_table(paper: str, dataset: str) -> None:
    table, column = TABLES[dataset], COLUMNS[dataset]
    rows = {row[0]: row for row in printed(paper, table.label)}
    with_k = table.target in ("tu", "molhiv")
    ours = {row_name(cell, with_k): value for cell, value in table.rows.items() if cell[0] != "pathnn-released"}
    theirs = {name: row[column] for name, row in rows.items() if len(row) > column and row[column]}
    theirs = {name: text for name, text in theirs.items() if re.match(r"\d|OOM|NA|-", text) and name}
    assert {name: score(text) for name, text in theirs.items()} == ours
    if not with_k and table.target != "synthetic":
        ks = {row_name(cell, with_k): str(cell[2]) for cell in table.rows if cell[0] == "pathnn"}
        assert {name: rows[name][column - 1] for name in ks} == ks


def test_every_running_time(paper: str) -> None:
    body = paper[paper.index(r"\label{tab:running_time}") :]
    first, second = body.split(r"\begin{tabular}")[1:3]
    for dataset, part in (("dd", first), ("zinc", second)):
        rows = printed(rf"\label{{x}}{part}\end{{table", "x")
        found = {row[0]: row[1:] for row in rows}
        for (data, model, collection, k), time in TIMES.items():
            if data == dataset:
                name = row_name((model, collection, k), True) if collection else f"{model} (K={k})"
                name = name.replace("gin (K", "GIN (L")
                texts = [text.split("(")[0].strip() for text in found[name]]
                assert PaperTime(*(None if text == "-" else float(text) for text in texts)) == time
        assert len([row for row in found if "=" in row]) == len([key for key in TIMES if key[0] == dataset])


def test_every_number_of_parameters(paper: str) -> None:
    for counts in PARAMETERS.values():
        assert all(re.search(rf"\b{count}\b", paper) for count in counts.values())
