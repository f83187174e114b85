"""What docs/explain.md says: its code runs, and on real molecules scores tell what happens without the paths."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from pathnn import PathNN
from pathnn.data import load_dataset
from pathnn.explain import explain_paths
from pathnn.explain.attribution import Copies, weighted_copy

DOC = Path(__file__).resolve().parents[2] / "docs" / "explain.md"


def test_the_code_of_the_docs_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.DOTALL)
    exec(compile(block, str(DOC), "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_scores_tell_what_happens_without_the_paths(mirror: Path):
    model, graphs = PathNN.from_pretrained("zinc-ap"), load_dataset("zinc").graphs
    generator = torch.Generator().manual_seed(0)
    for number in range(11000, 11008):
        graph = graphs[number]
        found = explain_paths(model, graph.x, graph.edge_index, edge_attr=graph.edge_attr)
        copies = Copies(weighted_copy(model), [graph])
        order = torch.cat(found.scores).argsort()
        tenth = order.numel() // 10
        some = order[torch.randperm(order.numel(), generator=generator)]
        lowest, random, largest = (without(copies, left) for left in (order[:tenth], some[:tenth], order[-tenth:]))
        assert largest < random < lowest


def without(copies: Copies, left_out: torch.Tensor) -> float:
    """The prediction if some paths, numbered through all lengths, are left out."""
    first = sum(copies.sizes[:2])  # after the weights of the vertices and of descriptors
    weights = copies.weights(torch.ones(1))
    weights[0, left_out + first] = 0.0
    with torch.no_grad():
        return copies.outputs(weights)[0, 0, 0].item()
