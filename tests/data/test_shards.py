"""Paths on disk: the same as in memory, built once, and anew when they are damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from torch_geometric.data import Data

from data_strategies import data_lists
from pathnn.data import (
    DataError,
    PackedGraphs,
    PackedLoader,
    build_shards,
    from_pyg,
)
from pathnn.data.paths import ShardedTries
from pathnn.paths import PathExplosionError

SLOW = [HealthCheck.function_scoped_fixture]


@given(data=st.data(), graphs=data_lists(), extend=st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
def test_batches_from_disk_equal_batches_from_memory(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, graphs: list[Data], extend: bool
) -> None:
    index = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    packed = from_pyg(graphs)
    options = {"collection": "ap", "k": 3, "extend": extend}
    on_disk = build_shards(packed, tmp_path_factory.mktemp("shards"), max_bytes=200, **options)
    expected = packed.with_paths(**options).select(index)
    found = on_disk.select(index)
    assert found.trie is not None
    assert expected.trie is not None
    assert found.trie.equal(expected.trie)
    assert torch.equal(found.edge_index, expected.edge_index)


def test_shards_are_built_once_and_anew_when_damaged(graphs: PackedGraphs, tmp_path: Path) -> None:
    def build(**options: object) -> PackedGraphs:
        return build_shards(
            replace(graphs, tries=None), tmp_path, **{"collection": "ap", "k": 3, "max_bytes": 3000} | options
        )

    first = build()
    assert isinstance(first.tries, ShardedTries)
    assert len(first.tries.shards) > 1
    assert first.trie().equal(graphs.trie())
    files = sorted(tmp_path.glob("shard*"))
    times = [file.stat().st_mtime_ns for file in files]
    assert build().trie().equal(graphs.trie())
    assert [file.stat().st_mtime_ns for file in files] == times, "they were written again"
    for damage in ("cut", "flip", "manifest", "gone"):
        content = bytearray(files[0].read_bytes())
        if damage == "cut":
            files[0].write_bytes(content[:-3])
        elif damage == "flip":
            content[-2] ^= 1
            files[0].write_bytes(content)
        elif damage == "manifest":
            manifest = json.loads((tmp_path / "manifest.json").read_text())
            manifest["shards"].pop()
            (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        else:
            (tmp_path / "manifest.json").unlink()
        assert build().trie().equal(graphs.trie()), damage
    assert build(collection="sp").trie().collection == "sp"
    assert not list(tmp_path.glob("*.tmp"))


def test_without_checksums_a_damaged_shard_is_taken_and_one_cut_off_is_not(
    graphs: PackedGraphs, tmp_path: Path
) -> None:
    plain, options = replace(graphs, tries=None), {"collection": "ap", "k": 3, "verify": False}
    expected = build_shards(plain, tmp_path, **options).trie()
    (shard,) = tmp_path.glob("*.safetensors")
    whole = shard.read_bytes()
    damaged = whole[:-1] + bytes([whole[-1] ^ 1])
    shard.write_bytes(damaged)
    build_shards(plain, tmp_path, **options)
    assert shard.read_bytes() == damaged
    shard.write_bytes(whole[:-1])
    assert build_shards(plain, tmp_path, **options).trie().equal(expected)
    assert shard.stat().st_size == len(whole)


def test_shards_that_do_not_fit_on_the_disk_are_not_begun(
    graphs: PackedGraphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(PathExplosionError):
        build_shards(replace(graphs, tries=None), tmp_path, collection="ap", k=3)
    assert list(tmp_path.iterdir()) == []


def test_shards_serve_a_loader(graphs: PackedGraphs, tmp_path: Path) -> None:
    on_disk = build_shards(replace(graphs, tries=None), tmp_path, collection="ap", k=3, max_bytes=3000)
    memory = PackedLoader(graphs, batch_size=3, shuffle=True)
    disk = PackedLoader(on_disk, batch_size=3, shuffle=True)
    assert all(a.trie.equal(b.trie) for a, b in zip(memory, disk, strict=True))
    assert torch.equal(on_disk.tries.sizes, graphs.tries.sizes)
    assert on_disk.tries.nbytes == graphs.tries.nbytes
    assert "shards=" in repr(on_disk)


def test_a_file_is_no_folder(graphs: PackedGraphs, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("all of it")
    with pytest.raises(DataError, match="mine is a file: expected a folder"):
        build_shards(replace(graphs, tries=None), tmp_path / "mine", collection="ap", k=3)
    assert (tmp_path / "mine").read_text() == "all of it"
