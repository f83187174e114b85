"""`import pathnn` stays light, and everything it promises is there."""

import subprocess
import sys

import pathnn


def _loaded(code: str, modules: tuple[str, ...]) -> str:
    code = f"import sys; {code}; print([m for m in {modules!r} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_nothing_heavy():
    assert _loaded("import pathnn", ("torch", "rdkit", "pandas", "matplotlib", "networkx")) == "[]"


def test_using_the_library_loads_nothing_it_does_not_need():
    heavy = ("rdkit", "pandas", "matplotlib", "networkx", "lightning", "torchmetrics")
    assert _loaded("from pathnn import AddPaths, PathNN, extract_paths", heavy) == "[]"


def test_every_public_name_is_there():
    assert all(getattr(pathnn, name) is not None for name in pathnn.__all__)
    assert set(pathnn.__all__) == {name for names in pathnn.HOMES.values() for name in names}
    assert not hasattr(pathnn, "no_such_thing")
