"""SP on EXP-Iso distinguishes every graph from its own relabelled copy: what docs/results.md says next to its 0."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pathnn.data import load_dataset
from pathnn.nn import PathNN
from pathnn.paths.options import Collection
from pathnn.theory.fingerprints import hashed_annotations
from pathnn.theory.graphs import Graph
from pathnn.theory.isomorphism import as_graphs, confused_pairs
from pathnn_reproduction.experiments.brec import relabelled
from pathnn_reproduction.experiments.brec_protocol import disjoint_union
from pathnn_reproduction.pages import results_page

RESULTS = Path(__file__).resolve().parents[2] / "results"


def distinguished(graphs: list[Graph], collection: Collection) -> int:
    """The number of graphs that an untrained network of EXP-Iso distinguishes from a relabelled copy of themselves."""
    torch.manual_seed(0)
    model = PathNN.from_paper("exp-iso", collection=collection).double()
    copies = [relabelled(graph, seed) for seed, graph in enumerate(graphs)]
    edge_index, num_nodes, batch = disjoint_union([*graphs, *copies])
    with torch.no_grad():
        rows = model.embed(torch.ones(num_nodes, 1).double(), edge_index, batch=batch, batch_size=2 * len(graphs))
    numbers = torch.arange(len(graphs))
    return int((~confused_pairs(rows, torch.stack([numbers, numbers + len(graphs)], dim=1))).sum())


@pytest.mark.slow
def test_sp_distinguishes_every_graph_from_its_own_copy(mirror: Path) -> None:
    graphs = as_graphs(load_dataset("exp").graphs)
    count = distinguished(graphs, "sp")
    assert count == len(graphs)
    section = results_page(RESULTS).partition("### EXP-Iso")[2]
    assert f"each of the {count:,} graphs" in section.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.parametrize(("collection", "k"), [("sp+", 10), ("ap", 5)])
def test_no_two_graphs_of_exp_have_the_same_annotations(mirror: Path, collection: Collection, k: int) -> None:
    graphs = as_graphs(load_dataset("exp").graphs)
    found = hashed_annotations(graphs, collection=collection, k=k)
    assert len({tuple(one.fingerprints()[k].tolist()) for one in found}) == len(graphs) == 1200


@pytest.mark.parametrize("collection", ["sp+", "ap"])
def test_sp_plus_and_ap_do_not(mirror: Path, collection: Collection) -> None:
    assert distinguished(as_graphs(load_dataset("exp").graphs, range(20)), collection) == 0


def test_the_page_does_not_use_sp_as_an_argument() -> None:
    page = results_page(RESULTS)
    (why,) = [text for text in page.split("\n\n") if text.startswith("**Some rows of EXP-Class")]
    assert "For SP⁺ and AP, expressive power is not the reason" in " ".join(why.split())
    assert "For SP" in why.replace("For SP⁺", "")
    (note,) = [text for text in page.partition("### EXP-Iso")[2].split("\n\n") if "isomorphism.**" in text]
    assert "relabelled copy of itself" in " ".join(note.split())
