"""Facts that the results page must not leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathnn.nn import PathNN
from pathnn.paths.options import Collection
from pathnn_reproduction.pages import results_page
from pathnn_reproduction.paper import PARAMETERS

PAGE = results_page(Path(__file__).resolve().parents[2] / "results")


@pytest.mark.parametrize("collection", ["sp", "ap"])
@pytest.mark.parametrize("name", PARAMETERS)
def test_the_papers_parameter_counts_have_more_embedding_rows(name: str, collection: Collection) -> None:
    model = PathNN.from_paper(name, collection=collection)
    more = PARAMETERS[name][collection] - sum(p.numel() for p in model.parameters())
    rows = 4 if name == "zinc" else 3
    assert more == rows * model.config.hidden_channels
    (paragraph,) = [text for text in PAGE.split("\n\n") if text.startswith('"Parameters" are')]
    assert f"{rows} ({'ZINC' if name == 'zinc' else 'molhiv, Peptides'})" in paragraph
    assert "embedding rows" in paragraph


def test_the_discarded_runs_of_molhiv_are_named() -> None:
    section = PAGE[PAGE.index("## ogbg-molhiv") : PAGE.index("### ogbg-molhiv")].replace("\n", " ")
    for words in ("Thirteen runs were discarded", "wrong gradients", "benchmarks/NOTES.md"):
        assert words in section
