"""`import pathnn` stays light, and its packages export the names that their tables list."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import pathnn

SOURCE = Path(pathnn.__file__).parent
PACKAGES = [
    ".".join(("pathnn", *path.parent.relative_to(SOURCE).parts))
    for path in sorted(SOURCE.rglob("__init__.py"))
    if "exports(__name__)" in path.read_text()
]


def _loaded(code: str, modules: tuple[str, ...]) -> str:
    code = f"import sys; {code}; print([m for m in {modules!r} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _typed_exports(package: str) -> dict[str, str]:
    """Return the names that type checkers see in a package, and the modules that they come from."""
    tree = ast.parse(Path(import_module(package).__file__ or "").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_import_loads_nothing_heavy():
    packages = "import pathnn, pathnn.paths.options, pathnn.nn, pathnn.data, pathnn.training"
    assert _loaded(packages, ("torch", "numpy", "rdkit", "pandas", "matplotlib", "networkx")) == "[]"


def test_using_the_library_loads_nothing_it_does_not_need():  # PyG imports pandas where it is installed
    heavy = ("rdkit", "matplotlib", "networkx", "lightning", "lightning_fabric", "torchmetrics")
    assert _loaded("from pathnn import AddPaths, PathNN, extract_paths", heavy) == "[]"


def test_training_and_predicting_load_no_compiler_and_no_torchmetrics():
    heavy = ("torch._dynamo", "sympy", "rdkit", "torchmetrics", "matplotlib")
    assert _loaded("import pathnn.training.runs, pathnn.inference.stream", heavy) == "[]"


def test_submodules_resolve_after_import_pathnn():
    names = ("pathnn.data.load_data", "pathnn.training.config.RunConfig", "pathnn.theory.isomorphism_test")
    assert _loaded(f"import pathnn; {'; '.join(names)}", ("torch",)) == "['torch']"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_there(package):
    module = import_module(package)
    typed = _typed_exports(package)
    assert typed
    assert (
        [name for name, home in typed.items() if home != package]
        == module.__all__
        == list(dict.fromkeys(module.__all__))
    )
    assert sorted(module.__all__) == dir(module)
    assert all(getattr(module, name) is getattr(import_module(home), name) for name, home in typed.items())
    assert not hasattr(module, "no_such_thing")
    assert not hasattr(module, "_no_such_thing")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_exported_name_is_the_name_of_a_submodule(package):
    module = import_module(package)
    assert not set(module.__all__) & {info.name for info in iter_modules(module.__path__)}


def test_a_submodule_with_a_missing_dependency_is_not_a_missing_attribute(monkeypatch):
    monkeypatch.delattr(pathnn, "testing", raising=False)
    monkeypatch.delitem(sys.modules, "pathnn.testing", raising=False)  # second: looking for the attribute imports it
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match="torch"):
        _ = pathnn.testing
