"""What users of PyG pass by habit or by mistake: taken as it is meant, or refused in words of ours."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddSelfLoops

from pathnn import AddPaths, PathNN, PathTrie, extract_paths
from pathnn.data import PackedGraphs
from pathnn.explain import explain_paths
from pathnn.nn import Baseline, PathConv, PathLSTM

RING = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 0, 1, 2, 3, 4]])
OTHER = torch.tensor([0, 2, 4, 1, 3])[RING]
"""The ring with its vertices renumbered."""


def small(**options: Any) -> PathNN:
    return PathNN(**{"in_channels": 3, "hidden_channels": 4, "out_channels": 1, "collection": "sp", "k": 2, **options})


def trie(edge_index: torch.Tensor = RING) -> PathTrie:
    return extract_paths(edge_index, 5, collection="sp", k=2)


X = torch.ones(5, 3)


@pytest.mark.parametrize("options", [{}, {"edge_channels": 2}])
def test_another_graphs_trie_is_refused(options: dict[str, Any]) -> None:
    attr = {"edge_attr": torch.ones(10, 2)} if options else {}
    small(**options)(X, RING, trie=trie(), **attr)
    with pytest.raises(ValueError, match="Extract the paths after all that changes edges"):
        small(**options)(X, OTHER, trie=trie(), **attr)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_edges_that_were_added_to_a_batch_are_refused_on_any_device(device: str) -> None:
    """A GPU's edges are not looked at, but counted; "meta" stands for it."""
    data = Data(x=X, edge_index=RING, edge_attr=torch.ones(10, 2))
    later = [AddSelfLoops("edge_attr")(AddPaths("sp", k=2)(data)) for _ in range(2)]
    batch = Batch.from_data_list(later)
    batch.edge_index = batch.edge_index.to(device)
    with pytest.raises(ValueError, match="edge"):
        PathTrie.from_data(batch)


@pytest.mark.parametrize("name", ["normalize", "encoder_norm", "distances", "extend"])
def test_words_are_no_flags(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}='no': expected True or False"):
        small(**{name: "no"})
    if name in ("distances", "extend"):
        with pytest.raises(ValueError, match=f"{name}='no': expected True or False"):
            extract_paths(RING, 5, collection="sp", k=2, **{name: "no"})  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=f"{name}='no': expected True or False"):
            AddPaths("sp", k=2, **{name: "no"})  # type: ignore[arg-type]


def test_flags_of_parts_are_checked() -> None:
    for make in (
        lambda: PathLSTM(4, extended="no"),  # type: ignore[arg-type]
        lambda: PathConv(4, normalize="no"),  # type: ignore[arg-type]
        lambda: Baseline("gin", 3, 4, 1, residual="no"),  # type: ignore[arg-type]
        lambda: PathTrie.from_paths([RING.t()], RING, 5, collection="sp", extended="no"),  # type: ignore[arg-type]
        lambda: PathTrie.from_paths([RING.t()], RING, 5, collection="sp", distances="no"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="='no': expected True or False"):
            make()
    assert small(normalize=np.True_).config.normalize is True


def test_numpys_numbers_are_numbers() -> None:
    two, rate = np.int64(2), np.float32(0.5)
    numbers: dict[str, Any] = {"in_channels": np.int64(3), "hidden_channels": np.int64(4), "out_channels": np.int64(1)}
    model = small(**numbers, k=two, dropout=rate, edge_channels=(two, two), max_entries=np.int64(100))
    assert json.loads(json.dumps(model.config.to_dict()))["k"] == 2
    assert repr(model.config) == repr(small(dropout=0.5, edge_channels=(2, 2)).config)
    sample: Any = {"k": two, "max_paths_per_source": two, "max_paths": np.int64(99), "seed": np.int64(1)}
    plain: Any = {name: int(value) for name, value in sample.items()}
    found = extract_paths(RING, np.int64(5), collection="ap", **sample)  # type: ignore[arg-type]
    assert found.equal(extract_paths(RING, 5, collection="ap", **plain))
    assert repr(AddPaths("ap", **sample)) == repr(AddPaths("ap", **plain))
    assert repr(PathLSTM(two, edge_channels=two, distances=two)) == repr(PathLSTM(2, edge_channels=2, distances=2))
    assert json.dumps(Baseline("gin", 3, 4, two, dropout=rate).config.to_dict())
    graphs = PackedGraphs.from_edges([RING], [5]).with_paths(collection="ap", **sample)
    assert graphs.trie().equal(found)


def test_explanations_need_edges_and_an_lstm_of_paths() -> None:
    with pytest.raises(ValueError, match="edge_index is a NoneType: expected a tensor"):
        explain_paths(small(), X, None)  # type: ignore[arg-type]
    model = small()
    model.lstm = torch.nn.Identity()  # type: ignore[assignment]
    with pytest.raises(ValueError, match="lstm is a Identity: expected a PathLSTM"):
        explain_paths(model, X, RING)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((X, trie()), {}, r"edge_index is a PathTrie.*model\(x, trie=trie\)"),
        ((X, torch.eye(5).to_sparse()), {}, r"edge_index is a sparse tensor.*to_edge_index\(adj_t\)"),
        ((X[None], RING), {}, r"x is a Tensor of shape \(1, 5, 3\): expected a tensor with a row for each vertex"),
        ((torch.tensor(1.0), RING), {}, r"x is a Tensor of shape \(\)"),
        (
            (X, RING),
            {"edge_attr": torch.tensor(1.0)},
            "edge_attr: expected a tensor with a row for each.*got shape",
        ),
        ((X, RING), {"edge_attr": np.ones((10, 2))}, "edge_attr: expected a tensor.*got a ndarray"),
        ((X,), {"trie": trie(), "batch": torch.zeros(5)}, "batch: expected graph ids, torch.int64, got torch.float32"),
        ((X,), {"trie": trie(), "batch": torch.full((5,), -1)}, "batch holds graph -1: expected ids from 0"),
    ],
)
def test_what_came_and_the_way_out_are_named(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    model = small(edge_channels=2) if "edge_attr" in options else small()
    with pytest.raises(ValueError, match=f"(?s){words}"):
        model(*arguments, **options)


@pytest.mark.parametrize("options", [{"edge_channels": (3,)}, {"edge_channels": 0}, {"dropout": 2.0}])
def test_options_of_an_lstm_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        PathLSTM(4, **options)


def test_a_packed_batch_has_its_trie() -> None:
    batch = PackedGraphs.from_edges([RING], [5]).with_paths(collection="sp", k=2).select(torch.tensor([0]))
    assert PathTrie.from_data(batch).equal(trie())
    with pytest.raises(ValueError, match="has no paths"):
        PathTrie.from_data(PackedGraphs.from_edges([RING], [5]).select(torch.tensor([0])))


def test_a_subclass_is_loaded_as_one() -> None:
    class Own(PathNN):
        """A user's own."""

    loaded, plain = Own.from_pretrained("molhiv-sp+"), PathNN.from_pretrained("molhiv-sp+")
    assert type(loaded) is Own
    assert not loaded.training
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(loaded.parameters(), plain.parameters(), strict=True))


def test_an_lstm_says_what_it_reads() -> None:
    model = small(edge_channels=2, dropout=0.25, distances=True, extend=True, max_entries=100)
    words = "edge_channels=2, distances=4, extended=True, max_entries=100, input_dropout=0.25, backend='auto'"
    assert words in repr(model.lstm)
    assert repr(PathLSTM(8)) == "PathLSTM(8, aggregation='sum', input_dropout=0.0, backend='auto')"


def test_a_trie_moves_like_a_tensor() -> None:
    assert trie().cpu().equal(trie())
