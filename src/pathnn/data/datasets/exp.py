"""EXP and CEXP (table 1): pairs of graphs that encode formulas, one satisfiable and one not.

There are four splits, made as in the released implementation. With n graphs and i = 0..3, the validation set is the
i-th block of n / 10 consecutive graphs. The test set is the i-th block of 0.15 n consecutive graphs of the rest. All
other graphs are the training set. With 1200 graphs: 120 to validate, 180 to test, 900 to train. Test sets of different
splits may overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pathnn.data.datasets.base import Built, DatasetSpec, with_ones
from pathnn.data.errors import DataError
from pathnn.data.packed import PackedGraphs
from pathnn.data.readers.table import read_text
from pathnn.data.sources import DataFile
from pathnn.data.targets import classification
from pathnn.data.task import Continuous, Split

FILES = {
    "exp": DataFile("EXP.txt.xz", "4db461607e535873ec6f09db0e194932d6e3f9b22a157f6d065a7445296463e3"),
    "cexp": DataFile("CEXP.txt.xz", "221dbe430cd8c8238a1d23b76ceb3c9a1784b801be618eb8b73aa0360c32b21d"),
}


def consecutive_splits(num_graphs: int, count: int = 4) -> tuple[Split, ...]:
    """Make the splits that the docstring of this module describes.

    >>> consecutive_splits(1200)[1], consecutive_splits(1200)[1].test[[0, -1]].tolist()
    (Split(train=900, val=120, test=180), [300, 479])
    """
    graphs = torch.arange(num_graphs)
    num_val, num_test = num_graphs // 10, num_graphs * 15 // 100
    splits = []
    for i in range(count):
        val = graphs[i * num_val : (i + 1) * num_val]
        rest = torch.cat([graphs[: i * num_val], graphs[(i + 1) * num_val :]])
        test = rest[i * num_test : (i + 1) * num_test]
        train = torch.cat([rest[: i * num_test], rest[(i + 1) * num_test :]])
        splits.append(Split(train, val, test))
    return tuple(splits)


def parse_exp(text: str) -> PackedGraphs:
    """Parse the text format: the number of graphs, then per graph `n y` and n lines `tag degree neighbours...`.

    >>> parse_exp("1\\n2 1\\n0 1 1\\n0 1 0\\n")[0]
    Data(edge_index=[2, 2], x=[2, 1], y=[1], num_nodes=2)
    """
    lines = iter(text.splitlines())
    try:
        graphs = [_graph(lines) for _ in range(int(next(lines)))]
    except (ValueError, StopIteration, IndexError, RuntimeError) as error:
        raise DataError(
            "the file ends early or is not an EXP file: expected the number of graphs, then per graph "
            f"`n y` and n lines `tag degree neighbours...` ({error!r})."
        ) from error
    edges, sizes, labels = zip(*graphs, strict=True)
    return with_ones(PackedGraphs.from_edges(edges, sizes), torch.tensor(labels))


def _graph(lines: Iterator[str]) -> tuple[torch.Tensor, int, int]:
    size, label = (int(word) for word in next(lines).split())
    pairs = set()
    for u in range(size):
        _, degree, *neighbours = (int(word) for word in next(lines).split())
        if len(neighbours) != degree:
            raise ValueError(f"a vertex of degree {degree} lists {len(neighbours)} neighbours")
        pairs |= {(u, v) for v in neighbours} | {(v, u) for v in neighbours}
    return torch.tensor(sorted(pairs)).view(-1, 2).t(), size, label


def _build(path: Path) -> Built:
    graphs = parse_exp(read_text(path))
    return Built(graphs, consecutive_splits(len(graphs)))


def _facts(name: str, built: Built) -> dict[str, Any]:
    return {
        "node_features": Continuous(1),
        "pairs": torch.arange(len(built.graphs)).view(-1, 2),
        "classes": ("unsatisfiable", "satisfiable"),
        "licence": "GPL-3.0 (GNN-RNI)",
        "citation": "Abboud et al., The surprising power of GNNs with random node initialization, IJCAI 2021",
        "notes": (
            "graphs 2i and 2i + 1 are a pair; four splits of consecutive blocks; features are ones. "
            "The paper's text says EXP for EXP-Class, the released configuration "
            "reads CEXP; EXP-Iso reads EXP"
        ),
        **classification(2),
    }


def specs() -> list[DatasetSpec]:
    """Return EXP and CEXP."""
    return [
        DatasetSpec(name, name.upper(), 1200, ((file,),), _build, partial(_facts, name)) for name, file in FILES.items()
    ]
