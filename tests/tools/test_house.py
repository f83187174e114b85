"""`tools/house.py` finds cycles and imports in the wrong direction, and draws the import graph."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
Problems = Callable[..., list[str]]

GOOD = {
    "src/pathnn/__init__.py": "if TYPE_CHECKING:\n    from pathnn.nn import Model as Model\n",
    "src/pathnn/checks.py": "def check(): ...\ndef _private(): ...\n",
    "src/pathnn/paths/__init__.py": "from pathnn.paths.trie import Trie as Trie\n",
    "src/pathnn/paths/trie.py": "class Trie: ...\ndef build():\n    from pathnn.paths.build import build\n",
    "src/pathnn/paths/build.py": "from pathnn.paths.trie import Trie\nfrom pathnn.checks import check\n",
    "src/pathnn/nn/__init__.py": "from pathnn.nn.model import Model as Model\n",
    "src/pathnn/nn/model.py": "import torch\nfrom pathnn.paths import Trie\nclass Model: ...\n",
    "src/pathnn/data/__init__.py": "from pathnn.nn import Model\n",
    "reproduction/src/pathnn_reproduction/__init__.py": "from pathnn import Model\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = spec_from_file_location("house", ROOT / "tools" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def problems(house: ModuleType, tmp_path: Path) -> Problems:
    """Write files and return the problems of the tree; wrong imports in `known` are no problems."""

    def report(files: dict[str, str], known: Iterable[tuple[str, str]] = ()) -> list[str]:
        write(tmp_path, files)
        return list(house.report(tmp_path, frozenset(known)))

    return report


def test_a_tree_in_order_passes(problems: Problems, capsys: pytest.CaptureFixture[str]) -> None:
    assert problems(GOOD) == []
    text = capsys.readouterr().out
    assert re.search(r"^all +9 +16 +4", text, re.M)
    assert re.search(r"^nn +2 +4 +1 +paths$", text, re.M)
    assert re.search(r"^pathnn_reproduction +1 +1 +0 +nn$", text, re.M), "a name of the root counts as nn"
    assert "modules with a single importer: 5" in text  # pathnn, checks, paths, build, model
    assert "modules that import each other: pathnn.paths.build, pathnn.paths.trie" in text


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("nn/model.py", "def f():\n    from pathnn.data import x\n", ("pathnn.nn.model", "pathnn.data")),
        ("paths/csr.py", "from pathnn import Model\n", ("pathnn.paths.csr", "pathnn.nn.model")),
        ("cli.py", "import pathnn_reproduction\n", ("pathnn.cli", "pathnn_reproduction")),
    ],
)
def test_an_import_in_the_wrong_direction_fails(
    problems: Problems, name: str, text: str, wrong: tuple[str, str]
) -> None:
    files = {**GOOD, f"src/pathnn/{name}": text}
    assert f"wrong direction: {wrong[0]} imports {wrong[1]}" in problems(files)
    assert problems(files, [wrong]) == []
    assert problems(GOOD | {f"src/pathnn/{name}": ""}, [wrong]) == [
        f"fixed, remove it from KNOWN: {wrong[0]} imports {wrong[1]}"
    ]


def test_packages_that_import_each_other_fail(problems: Problems) -> None:
    """`transforms` has the place of `paths`, so neither direction alone is wrong."""
    one, other = {"src/pathnn/transforms.py": "import pathnn.paths.trie\n"}, "def f():\n    import pathnn.transforms\n"
    assert problems({**GOOD, **one}) == []
    assert problems({"src/pathnn/paths/csr.py": other}) == ["packages import each other: paths, transforms"]


def test_a_package_without_a_place_fails(problems: Problems) -> None:
    assert problems({**GOOD, "src/pathnn/utils/__init__.py": ""}) == ["no place in ORDER: utils"]


def test_the_imports_of_this_repository_have_the_right_direction(house: ModuleType) -> None:
    assert house.report(ROOT, house.KNOWN) == []


def test_the_picture_has_only_imports_that_do_not_follow_from_others(house: ModuleType, tmp_path: Path) -> None:
    write(tmp_path, {**GOOD, "src/pathnn/data/load.py": "import pathnn.paths.trie\n"})
    svg = ElementTree.fromstring(house.drawing(tmp_path, frozenset()))
    texts = [element.text for element in svg.findall("{*}text")]
    assert texts[1:] == ["paths", "nn", "data", "pathnn_reproduction"]
    assert "checks" in str(texts[0])
    assert len(svg.findall("{*}path")) == 4  # base <- paths <- nn <- data, reproduction


def test_the_picture_in_the_docs_is_current(house: ModuleType) -> None:
    message = "run python tools/house.py --svg docs/figures/imports.svg"
    assert (ROOT / "docs" / "figures" / "imports.svg").read_text() == house.drawing(ROOT), message


def test_a_trace_has_calls_in_threads_and_none_of_imports(tmp_path: Path) -> None:
    files = {
        "src/fake/__init__.py": "",
        "src/fake/called.py": "def f():\n    from fake import imported\n",
        "src/fake/imported.py": "from fake.helper import g\ng()\nclass Body: ...\n",
        "src/fake/helper.py": "def g(): ...\n",
    }
    write(tmp_path, files)
    program = (
        "import pathlib, sys, threading, house, fake.called\n"
        "def call():\n"
        "    thread = threading.Thread(target=fake.called.f)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "house.ROOT = pathlib.Path(sys.argv[1])\n"
        "print(house.trace(call))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(tmp_path / "src")])}
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "['src/fake/called.py']\n"
