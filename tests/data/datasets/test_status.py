"""What the command line asks for: the state of the datasets, fetching, checking, and counts of paths."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from pathnn.data import dataset_names, dataset_status, fetch, load_dataset, summarize_paths, verify


def test_the_state_of_every_dataset(mirror: Path, own_cache: Path) -> None:
    before = {status.name: status for status in dataset_status()}
    assert tuple(before) == dataset_names()
    assert not any(status.cached for status in before.values())
    assert before["zinc"].files_at_hand
    assert before["zinc"].downloadable
    assert not before["csl"].downloadable
    assert not before["peptides-struct"].available
    assert before["csl"].available
    path = fetch("enzymes")
    assert path.is_file()
    assert path.is_relative_to(own_cache)
    assert next(status for status in dataset_status() if status.name == "enzymes").cached


def test_files_are_verified(mirror: Path, own_cache: Path) -> None:
    path = fetch("enzymes")
    assert [check.state for check in verify("enzymes")] == ["ok", "ok", "ok"]
    path.write_bytes(path.read_bytes()[:-1])
    assert [check.state for check in verify("enzymes")] == ["ok", "ok", "damaged"]
    assert [check.state for check in verify("zinc")] == ["ok", "missing"]
    assert [check.state for check in verify("peptides-struct")] == ["missing", "missing"]


@pytest.mark.parametrize("name", [n for n in dataset_names() if n != "peptides-struct"])
def test_the_files_at_hand_have_the_known_checksums(name: str, mirror: Path) -> None:
    assert all(check.state == "ok" for check in verify(name)[:-1])


@pytest.mark.parametrize(("collection", "mean"), [("sp", 2465.8), ("sp+", 3583.7), ("ap", 6581.6)])
def test_mean_numbers_of_paths_of_dd(collection: str, mean: float, mirror: Path) -> None:
    summary = summarize_paths(load_dataset("dd"), collection, 2)
    assert summary.mean_paths[2] == pytest.approx(mean, abs=0.06)


def test_a_summary_is_plain_values(mirror: Path) -> None:
    summary = summarize_paths(load_dataset("sr16622"), "ap", 3)
    keys = [
        "dataset",
        "collection",
        "k",
        "graphs",
        "mean_paths",
        "total_paths",
        "entries",
        "bytes",
        "seconds",
    ]
    assert list(json.loads(json.dumps(asdict(summary)))) == keys
    graphs = load_dataset("sr16622").graphs.with_paths(collection="ap", k=3)
    assert graphs.tries is not None
    assert summary.entries == int(graphs.tries.sizes.sum())
    assert summary.bytes == graphs.tries.nbytes
    assert summary.dataset == "sr16622"


def test_a_build_from_a_file_stays_when_the_file_is_gone(
    mirror: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = load_dataset("csl")
    monkeypatch.delenv("PATHNN_MIRROR")
    assert load_dataset("csl").notes == published.notes
    assert load_dataset("csl").splits[0].test.tolist() == published.splits[0].test.tolist()


def test_what_needs_no_files_is_built_in(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    found = {status.name: status for status in dataset_status()}
    assert found["csl"].available
    assert (found["csl"].files_at_hand, found["csl"].built_in, found["zinc"].built_in) == (False, True, False)
    load_dataset("csl")
    assert "made here" in load_dataset("csl").notes
