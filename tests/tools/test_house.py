"""`tools/house.py` finds cycles and imports in the wrong direction, and knows those of today's tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

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


def house(root: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return call("--root", str(root))


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "house.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_tree_in_order_passes(tmp_path: Path) -> None:
    result = house(tmp_path, GOOD)
    assert (result.returncode, result.stderr) == (0, "")
    assert re.search(r"^all +9 +16 +4", result.stdout, re.M)
    assert re.search(r"^nn +2 +4 +1 +paths$", result.stdout, re.M)
    assert re.search(r"^pathnn_reproduction +1 +1 +0 +nn$", result.stdout, re.M), "a name of the root counts as nn"
    assert "modules with a single importer: 5" in result.stdout  # pathnn, checks, paths, build, model
    assert "modules that import each other: pathnn.paths.build, pathnn.paths.trie" in result.stdout


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("src/pathnn/nn/model.py", "def f():\n    from pathnn.data import x\n", "pathnn.nn.model imports pathnn.data"),
        ("src/pathnn/paths/csr.py", "from pathnn import Model\n", "pathnn.paths.csr imports pathnn.nn.model"),
        ("src/pathnn/cli.py", "import pathnn_reproduction\n", "pathnn.cli imports pathnn_reproduction"),
        (
            "src/pathnn/engine.py",
            "import pathnn_reproduction.bench\n",
            "pathnn.training imports pathnn_reproduction.bench",
        ),
    ],
)
def test_an_import_in_the_wrong_direction_fails(tmp_path: Path, name: str, text: str, message: str) -> None:
    result = house(tmp_path, {**GOOD, "src/pathnn/bench.py": "", name: text})
    assert result.returncode == 1
    assert f"wrong direction: {message}\n" in result.stdout


def test_packages_that_import_each_other_fail(tmp_path: Path) -> None:
    """`transforms` has the place of `paths`, so neither direction alone is wrong."""
    one, other = {"src/pathnn/transforms.py": "import pathnn.paths.trie\n"}, "def f():\n    import pathnn.transforms\n"
    assert house(tmp_path, {**GOOD, **one}).returncode == 0
    result = house(tmp_path, {"src/pathnn/paths/csr.py": other})
    assert result.returncode == 1
    assert "packages import each other: paths, transforms\n" in result.stdout


def test_a_package_without_a_place_fails(tmp_path: Path) -> None:
    result = house(tmp_path, {**GOOD, "src/pathnn/utils/__init__.py": ""})
    assert (result.returncode, result.stdout.splitlines()[-1]) == (1, "no place in ORDER: utils")


def test_todays_tree_has_only_known_wrong_imports() -> None:
    result = call()
    assert result.returncode == 0, result.stdout


def test_a_trace_has_calls_in_threads_and_none_of_imports(tmp_path: Path) -> None:
    files = {
        "src/fake/__init__.py": "",
        "src/fake/called.py": "def f():\n    from fake import imported\n",
        "src/fake/imported.py": "from fake.helper import g\ng()\nclass Body: ...\n",
        "src/fake/helper.py": "def g(): ...\n",
    }
    house(tmp_path, files)
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
