"""The same numbers on a GPU. Needs no hypothesis, so that it runs on a bare machine."""

from __future__ import annotations

import pytest
import torch

from nn_graphs import graph, trie_of
from pathnn.nn import Baseline, PathLSTM, PathNN
from pathnn.nn.baselines import READS_EDGES
from pathnn.testing import assert_backends_agree, relative_difference

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

EDGE_INDEX, N = graph()
BATCH = torch.tensor([0] * 9 + [1] * 3)
BONDS = (EDGE_INDEX.sum(dim=0) % 3).long()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
@pytest.mark.parametrize("options", [{}, {"edge_channels": (3,)}, {"aggregation": "mean", "extend": True}])
def test_trie_equals_dense_on_cuda(collection, dtype, options):
    torch.manual_seed(0)
    model = PathNN(4, 8, 2, collection=collection, k=3, **options).to("cuda", dtype)
    edge_attr = BONDS.cuda() if "edge_channels" in options else None
    x = torch.randn(N, 4, dtype=dtype, device="cuda")
    assert_backends_agree(model, x, EDGE_INDEX.cuda(), edge_attr=edge_attr, batch=BATCH.cuda())


def test_pieces_and_paths_on_cuda():
    torch.manual_seed(0)
    trie = trie_of(EDGE_INDEX, N, "ap", 3)
    lstm, h = PathLSTM(8, distances=4), torch.randn(N, 8)
    expected = lstm(h, trie.length(3)), lstm.path_representations(h, trie.length(3))
    lstm.max_entries = 30
    lstm.cuda()
    length = trie.to("cuda").length(3)
    out = lstm(h.cuda(), length), lstm.path_representations(h.cuda(), length)
    for value, reference in zip(out, expected, strict=True):
        assert relative_difference(value.cpu(), reference) < 1e-5


def test_cuda_equals_cpu():
    torch.manual_seed(0)
    x = torch.randn(N, 4)
    for model in (
        PathNN(4, 8, 1, collection="ap", k=3, edge_channels=(3,)),
        *(Baseline(name, 4, 8, 1, edge_channels=(3,)) for name in READS_EDGES),
    ):
        model.eval()
        expected = model(x, EDGE_INDEX, edge_attr=BONDS, batch=BATCH)
        out = model.cuda()(x.cuda(), EDGE_INDEX.cuda(), edge_attr=BONDS.cuda(), batch=BATCH.cuda())
        assert relative_difference(out.cpu(), expected) < 1e-4
