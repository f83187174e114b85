"""Examples of public functions run: those in docstrings of `pathnn.data` and `pathnn.training` that need files."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import pathnn.data
import pathnn.inference
import pathnn.training
from pathnn import PathNN

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
MOLECULES = ("CCO", "CCC", "CCN", "c1ccccc1", "CC(C)O", "CCCl", "CO", "CC=O", "CCOC", "NCCO", "OCCO", "CCCC")


def public_functions() -> dict[str, Any]:
    modules = (pathnn.data, pathnn.training, pathnn.inference)
    exported = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {name: value for name, value in exported.items() if inspect.isfunction(value)}


MAKE_RUNS = ("run", "run_ensemble")
"""Their examples come first, as others read what they write."""

NAMES = [name for name, function in public_functions().items() if BLOCK.search(function.__doc__ or "")]


def run_example(name: str) -> None:
    modules = (pathnn.data, pathnn.training, pathnn.inference)
    exported = {name: getattr(module, name) for module in modules for name in module.__all__}
    names = {**exported, "Path": Path, "PathNN": PathNN, "replace": replace}
    for code in BLOCK.findall(inspect.cleandoc(public_functions()[name].__doc__ or "")):
        exec(code, {**names, "torch": torch})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder to work in, with the files that the examples name."""
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    folder = tmp_path_factory.mktemp("desk")
    parts = ["train"] * 8 + ["val"] * 2 + ["test"] * 2
    rows = [f"{smiles},{i / 7:.3f},{part}" for i, (smiles, part) in enumerate(zip(MOLECULES, parts, strict=True))]
    (folder / "molecules.csv").write_text("\n".join(["smiles,logS,part", *rows]) + "\n")
    (folder / "new.csv").write_text("smiles\nCCO\nCCN\n")
    (folder / "graphs.g6").write_text("Bw\nA_\n")
    tu = folder / "PAIRS"
    tu.mkdir()
    (tu / "PAIRS_A.txt").write_text("".join(f"{2 * i + 1}, {2 * i + 2}\n{2 * i + 2}, {2 * i + 1}\n" for i in range(10)))
    (tu / "PAIRS_graph_indicator.txt").write_text("".join(f"{i + 1}\n{i + 1}\n" for i in range(10)))
    (tu / "PAIRS_graph_labels.txt").write_text("1\n2\n" * 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PATHNN_DATA", str(folder / "cache"))
        patch.delenv("PATHNN_MIRROR", raising=False)
        for name in MAKE_RUNS:
            run_example(name)
        yield folder


def test_every_public_function_has_an_example() -> None:
    found = public_functions()
    assert len(NAMES) > 15
    assert [name for name in found if ">>>" not in (found[name].__doc__ or "") and name not in NAMES] == []


def test_runs_were_made(desk: Path) -> None:
    assert all((desk / name / "result.json").is_file() for name in ("run", "three"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MAKE_RUNS])
def test_an_example_runs(name: str, desk: Path) -> None:
    run_example(name)


def test_the_example_of_paths_that_are_not_stored_runs(desk: Path) -> None:
    page = (ROOT / "docs" / "data.md").read_text()
    (code,) = (block for block in BLOCK.findall(page) if "store=False" in block)
    exec(code, {})
    assert (desk / "run-of-batches" / "result.json").is_file()
