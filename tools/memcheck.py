"""A small run of the kernels, for a memory checker: `compute-sanitizer python tools/memcheck.py`."""

from __future__ import annotations

import os

import torch

from pathnn import PathNN
from pathnn.paths.extract import extract_paths

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    """Forward and backward of AP and SP+ networks with edges, distances and dummy tokens, of odd widths."""
    os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")  # so that each tensor has its own bounds
    torch.manual_seed(0)
    one_way = torch.tensor([[0, 1, 2, 2, 3, 4, 5, 5, 6], [1, 2, 0, 3, 4, 5, 2, 6, 7]])
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    for collection, extend, channels in (("ap", True, 21), ("sp+", False, 140)):
        trie = extract_paths(edge_index, 9, collection=collection, k=3, distances=True, extend=extend).to(DEVICE)
        model = PathNN(5, channels, 1, collection=collection, k=3, distances=True, extend=extend, edge_channels=3).to(
            DEVICE
        )
        out = model(torch.randn(9, 5).to(DEVICE), trie=trie, edge_attr=torch.randn(edge_index.size(1), 3).to(DEVICE))
        out.sum().backward()
        print(collection, float(out.detach().sum()), float(sum(p.grad.norm() for p in model.parameters())))


if __name__ == "__main__":
    main()
