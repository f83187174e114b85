"""Too many paths: refused early, in words that help."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time

import pytest
import torch

from path_checks import clique, cycle, layered, line, random_graph, undirected, union
from pathnn.paths import PathExplosionError, count_paths, extract, extract_paths
from pathnn.paths.count import BYTES_PER_PATH

SECONDS = 8  # of processor time, for what has to be quick


def refusal(*graph, **options) -> str:
    with pytest.raises(PathExplosionError) as caught:
        extract_paths(*graph, **options)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_a_clique_is_refused_quickly_and_without_memory():
    extract_paths(*clique(4), collection="ap", k=2, max_paths=36)  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    message = refusal(*clique(60), collection="ap", k=8)
    assert time.process_time() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB
    assert "at least" in message
    assert "50,000,000" in message


def test_names_count_bytes_limit_and_ways_out():
    message = refusal(*clique(9), collection="ap", k=4, max_paths=5000)
    assert "15,120 simple paths of length 4" in message
    assert "18,720 of all lengths" in message
    assert "max_paths=5,000" in message
    assert re.search(r"[\d.,]+ (bytes|KiB|MiB|GiB)", message)
    for way in ("k", "collection='sp+'", "max_paths_per_source", "raise max_paths"):
        assert way in message
    assert "at least" not in message  # it was counted to the end


def test_bytes_of_a_small_excess_are_not_zero():
    message = refusal(*clique(9), collection="ap", k=4, max_paths=1000)
    assert not re.search(r"(?<![\d.])0(\.0+)? (KiB|MiB|GiB)", message)


@pytest.mark.parametrize(("collection", "way"), [("sp", "k"), ("sp+", "collection='sp'"), ("ap", "collection='sp+'")])
def test_ways_out_fit_the_collection(collection, way):
    message = refusal(*layered(4, 4), collection=collection, k=3, max_paths=10)
    assert way in message
    assert f"collection='{collection}'" not in message


def test_names_the_graph_of_a_batch():
    whole = union([line(3), cycle(5), clique(7), line(4)])
    message = refusal(*whole.graph, collection="ap", k=4, max_paths=1000, batch=whole.batch)
    assert message.startswith("graph 2 ")
    assert "2,520 simple paths of length 4" in message
    assert "graph 2" not in refusal(*whole.graph, collection="ap", k=4, max_paths=1000)


def test_names_the_graph_that_has_the_most_paths_of_all_lengths():
    star = undirected((0, leaf) for leaf in range(1, 26)), 26  # 650 paths, none of them longer than 2
    whole = union([clique(5), star])  # 320 paths, 120 of them of length 4
    message = refusal(*whole.graph, collection="ap", k=4, max_paths=500, batch=whole.batch)
    assert message.startswith("graph 1 has 600 simple paths of length 2 (650 of all lengths")
    assert "970 in all" in message


def test_counts_as_far_as_the_limit(monkeypatch):
    monkeypatch.setattr(extract, "COUNT_TO", 10)
    monkeypatch.setattr(extract, "TRUST_BOUND", 10)
    assert extract_paths(*clique(7), collection="ap", k=4, max_paths=3612).num_paths == 3612
    refusal(*clique(7), collection="ap", k=4, max_paths=3611)


@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_the_limit_is_exact(collection, extend):
    graph = random_graph(3, n=12, edges=20)
    total = int(count_paths(*graph, collection=collection, k=3).sum())
    chosen = {"collection": collection, "k": 3}
    allowed = extract_paths(*graph, max_paths=total, **chosen)
    assert allowed.num_paths == total
    assert allowed.equal(extract_paths(*graph, max_paths=None, **chosen))
    message = refusal(*graph, max_paths=total - 1, extend=extend, **chosen)
    assert f"{total:,}" in message


def test_refuses_before_it_reserves(monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("extraction began")

    monkeypatch.setattr(extract.cpu, "extract", never)
    monkeypatch.setattr(extract.cpu, "enumerate_paths", never)
    for extend in (False, True):
        refusal(*clique(8), collection="ap", k=4, max_paths=10, extend=extend)


def test_a_sample_counts_what_it_keeps():
    kept = extract_paths(*clique(9), collection="ap", k=3, max_paths_per_source=5, max_paths=9 * 15)
    assert kept.num_paths == 9 * 15
    message = refusal(*clique(9), collection="ap", k=3, max_paths_per_source=5, max_paths=9 * 15 - 1)
    assert "135" in message


def test_the_limit_holds_for_extended_paths():
    """Two paths, and dummy tokens that make them a hundred."""
    everything = extract_paths(*line(2), collection="sp", k=50, extend=True)
    assert everything.num_paths == 100
    assert extract_paths(*line(2), collection="sp", k=50, extend=True, max_paths=100).equal(everything)
    refusal(*line(2), collection="sp", k=50, extend=True, max_paths=99)


def test_huge_numbers_of_shortest_paths():
    message = refusal(*layered(64, 14), collection="sp+", k=13)
    numbers = [int(x.replace(",", "")) for x in re.findall(r"-?\d[\d,]*\d", message)]
    assert min(numbers) > 0
    assert max(numbers) > 2**40
    assert "max_paths_per_source" in message


@pytest.mark.parametrize("collection", ["sp+", "ap"])
def test_the_estimate_is_of_the_right_size(collection):
    for graph in (clique(8), random_graph(0, n=40, edges=80), layered(4, 5)):
        trie = extract_paths(*graph, collection=collection, k=4)
        estimate = BYTES_PER_PATH * int(count_paths(*graph, collection=collection, k=4).sum())
        assert trie.nbytes / 4 <= estimate <= trie.nbytes * 4


def refused(statement: str, seconds: float = 40) -> None:
    """Run a statement in a process of its own, and fail if it is not refused in time: compiled loops cannot be
    interrupted.
    """
    code = f"""
from itertools import combinations
import torch
from pathnn.paths import PathExplosionError, extract_paths
def clique(n):
    pairs = torch.tensor(list(combinations(range(n), 2))).t()
    return torch.cat([pairs, pairs.flip(0)], dim=1), n
torch.set_num_threads(1)
try:
    {statement}
except PathExplosionError:
    print("refused")
"""
    try:
        done = subprocess.run([sys.executable, "-c", code], check=True, timeout=seconds, capture_output=True, text=True)
        assert done.stdout == "refused\n"
    except subprocess.TimeoutExpired:
        pytest.fail(f"{statement} took longer than {seconds} s")


def test_refuses_quickly_when_no_path_is_as_long_as_k():
    refused("extract_paths(*clique(20), collection='ap', k=30)")


def test_max_paths_none_never_refuses(monkeypatch):
    monkeypatch.setattr(extract, "TRUST_BOUND", 10)
    trie = extract_paths(*clique(8), collection="ap", k=4, max_paths=None)
    assert trie.num_paths == int(count_paths(*clique(8), collection="ap", k=4).sum())
    assert torch.equal(trie.to_paths()[0].sort(dim=0)[0][:1], torch.tensor([[0, 0]]))
