"""What docs/explain.md says: its code runs, and on real molecules scores tell what happens without the paths."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from pathnn import PathNN
from pathnn.data import load_dataset
from pathnn.explain import explain_paths
from pathnn.explain.attribution import WeightedBatch

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
        batch = WeightedBatch(model, [graph])
        order = torch.cat(found.scores).argsort()
        tenth = order.numel() // 10
        some = order[torch.randperm(order.numel(), generator=generator)]
        lowest, random, largest = (without(batch, left) for left in (order[:tenth], some[:tenth], order[-tenth:]))
        assert largest < random < lowest


def without(batch: WeightedBatch, left_out: torch.Tensor) -> float:
    """The prediction if some paths, numbered through all lengths, are left out."""
    weights = batch.weights(1.0)
    weights[left_out + sum(batch.sizes[:2])] = 0.0  # after the weights of the vertices and of descriptors
    with torch.no_grad():
        return batch.outputs(weights)[0, 0].item()
