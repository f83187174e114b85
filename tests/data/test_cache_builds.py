"""Building datasets through the cache: damaged caches, several processes at once, killed builds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from pathnn.data import dataset_status, load_dataset
from pathnn.data.datasets.registry import Built, built_path, get_spec, load_built
from pathnn.data.datasets.synthetic import construct
from pathnn.files import flatten, unflatten

LOAD = """
import hashlib, sys
from pathnn.data import dataset_status, load_dataset
graphs = load_dataset(sys.argv[1]).graphs
print(hashlib.sha256(graphs.edge_index.contiguous().numpy().tobytes()).hexdigest())
"""


@given(where=st.floats(0, 1, exclude_max=True), flip=st.integers(0, 255))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_cache_never_gives_another_dataset(own_cache: Path, where: float, flip: int) -> None:
    expected = load_dataset("csl").graphs
    path = built_path(get_spec("csl"))
    content = bytearray(path.read_bytes())
    position = int(where * len(content))
    if flip:
        content[position] ^= flip
    path.write_bytes(content if flip else content[:position])
    found = load_dataset("csl").validate()
    assert torch.equal(found.graphs.edge_index, expected.edge_index)
    assert torch.equal(found.graphs.y, expected.y)
    assert len(found.splits) == 5


def _loader(name: str) -> subprocess.Popen[str]:
    source = str(Path(__file__).resolve().parents[2] / "src")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen([sys.executable, "-c", LOAD, name], stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
def test_processes_that_build_at_once_get_the_same(own_cache: Path) -> None:
    processes = [_loader("csl") for _ in range(2)]
    answers = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(answers) == 1
    assert [file.name for file in (own_cache / "built").iterdir()] == ["csl.pathnn"]


def test_a_killed_build_is_no_obstacle(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = _loader("csl")
    while process.poll() is None and not (own_cache / "built").exists():
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert torch.equal(load_dataset("csl").graphs.edge_index.long(), construct().edge_index)


def test_what_is_built_comes_back_from_the_cache(mirror: Path, own_cache: Path) -> None:
    spec = get_spec("csl")
    built = load_built(spec)
    tensors: dict[str, torch.Tensor] = {}
    again = Built.from_tree(unflatten(flatten(built.to_tree(), "built", tensors), tensors))
    assert again.graphs.names == built.graphs.names
    assert again.published == built.published
    assert all(torch.equal(a.train, b.train) for a, b in zip(built.splits, again.splits, strict=True))


def test_a_build_of_another_version_or_dataset_is_not_used(own_cache: Path) -> None:
    load_dataset("atlas")
    spec = get_spec("csl")
    built_path(get_spec("atlas")).rename(built_path(spec))
    assert not next(status for status in dataset_status() if status.name == "csl").cached
    assert len(load_dataset("csl").graphs) == 150
    assert next(status for status in dataset_status() if status.name == "csl").cached
    load_built(replace(spec, build=lambda path: pytest.fail("it was built twice")))
    with pytest.raises(ZeroDivisionError):
        load_built(replace(spec, version=spec.version + 1, build=lambda path: 1 / 0))


def test_a_dataset_needs_no_cache_that_can_be_written(own_cache: Path) -> None:
    own_cache.write_text("in the way")
    assert len(load_dataset("csl").graphs) == 150
