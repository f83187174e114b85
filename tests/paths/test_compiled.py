"""Compiled loops are compiled once: few types of arguments, and a cache also where the package cannot be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pathnn

VARIANTS = """
import sys, warnings
import numpy as np, torch
from numba.core.dispatcher import Dispatcher
from pathnn.paths import count_paths, extract_paths
warnings.simplefilter("ignore")  # torch warns of arrays that cannot be written
edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
frozen = edges.numpy().copy()
frozen.setflags(write=False)
strided, unsorted = edges.t().contiguous().t(), edges.flip(1)
for given in (edges, edges.int(), torch.from_numpy(frozen), strided, unsorted):
    for collection in ("ap", "sp", "sp+"):
        for distances in (None, True):
            extract_paths(given, 4, collection=collection, k=3, distances=distances)
        count_paths(given, 4, collection=collection, k=3)
found = [
    (value.py_func.__name__, len(value.nopython_signatures))
    for name, module in list(sys.modules.items()) if name.startswith("pathnn.paths")
    for value in vars(module).values() if isinstance(value, Dispatcher)
]
print(max(count for _, count in found), [name for name, count in found if count > 1])
"""

EXTRACT = """
import torch
from pathnn.paths import extract_paths
from pathnn.paths.cpu.token_tries import write_tries
extract_paths(torch.tensor([[0, 1], [1, 0]]), 2, collection="sp", k=2)
print(len(write_tries.stats.cache_hits), len(write_tries.stats.cache_misses))
"""


def call(code: str, **environment: str) -> str:
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout


def test_each_loop_is_compiled_for_one_type_of_arguments() -> None:
    assert call(VARIANTS).strip() == "1 []"


@pytest.mark.slow
def test_a_package_that_cannot_be_written_has_its_cache_in_the_users_folder(tmp_path: Path) -> None:
    """A file where numba wants a folder stands for a folder that is read-only, which root would still write."""
    source = tmp_path / "src" / "pathnn"
    shutil.copytree(Path(pathnn.__file__).parent, source, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("paths", "paths/cpu"):
        (source / folder / "__pycache__").touch()
    paths = {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": ""}
    paths |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "LOCALAPPDATA": str(tmp_path / "cache")}
    assert call(EXTRACT, **paths).split() == ["0", "1"]
    assert call(EXTRACT, **paths).split() == ["1", "0"]
