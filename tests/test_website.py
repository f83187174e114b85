"""The documentation website: its code runs, and it has every public name. `make docs` executes the tutorials."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import typer

from pathnn.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
NAV = re.findall(r"^ +- (?:Home: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / "website" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ten_lines_run() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    assert len(block.splitlines()) <= 11
    names: dict[str, object] = {}
    exec(compile(block, "index.md", "exec"), names)
    assert names["loss"].item() > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_charts_have_the_numbers_of_the_results(mode: str) -> None:
    charts = tool("charts")
    times = [bar for bars in charts.step_times(ROOT / "benchmarks" / "results").values() for bar in bars]
    errors = charts.zinc_errors(ROOT / "results")
    for name, expected in (
        ("speed", [f">{ms:,.1f} ms<" for _, ms, _ in times]),
        ("accuracy", [f">{e:.3f}<" for _, e, _ in errors]),
    ):
        picture = (DOCS / "figures" / f"{name}-{mode}.svg").read_text()
        assert [text for text in expected if text not in picture] == [], "run python tools/website/charts.py"
    assert len(times) == 6
    assert len(errors) == 11


def test_badges_are_those_of_pyproject() -> None:
    for name, picture in tool("charts").badges(ROOT).items():
        assert (DOCS / "figures" / f"badge-{name}.svg").read_text() == picture, "run python tools/website/charts.py"
        assert f"](docs/figures/badge-{name}.svg)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", ["how-to.md", "trie.md"])
def test_examples_run(page: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize("line", re.findall(r"^pathnn .*", (DOCS / "how-to.md").read_text(), re.MULTILINE))
def test_commands_parse(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    typer.main.get_command(app).commands[name].make_context(name, arguments)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_every_page_is_in_the_navigation() -> None:
    pages = tool("pages")
    written = set(pages.site_places().values()) | {f"reference/{name}.md" for name in pages.reference_pages()}
    cards = {page for page in written if re.match(r"models/.*-", page)}
    assert {page for page in written if page.endswith(".md")} - cards == set(NAV)


def test_the_reference_has_every_public_name() -> None:
    pages = tool("pages").reference_pages()
    described = {line.removeprefix("::: ") for text in pages.values() for line in text.splitlines() if ":::" in line}
    root = set(importlib.import_module("pathnn").__all__)
    expected = {f"pathnn.{name}" for name in root}
    for package in ("paths", "nn", "data", "training", "inference", "theory", "plots", "explain", "evaluation"):
        names = importlib.import_module(f"pathnn.{package}").__all__
        expected |= {f"pathnn.{package}.{name}" for name in names if name not in root}
    assert expected <= described


EXAMPLES = tool("pages").class_examples()


def test_every_public_name_has_an_example() -> None:
    pages = tool("pages")
    modules = ["pathnn", *(f"pathnn.{name}" for name in pages.public_packages())]
    found = {
        f"{module}.{name}": getattr(importlib.import_module(module), name)
        for module in modules
        for name in pages.public_names(module)
        if module == "pathnn" or name not in pages.public_names("pathnn")
    }
    without = {name for name, value in found.items() if not re.search(r">>>|```python", value.__doc__ or "")}
    assert len(found) > 100
    assert without == set(EXAMPLES)
    assert not any(inspect.isfunction(found[name]) for name in without), "a function has its example in its docstring"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with what tools/website/examples.md names."""
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    folder = tmp_path_factory.mktemp("desk")
    molecules = ("CCO", "CCC", "CCN", "c1ccccc1", "CC(C)O", "CCCl", "CO", "CC=O", "CCOC", "NCCO", "OCCO", "CCCC")
    parts = ["train"] * 8 + ["val"] * 2 + ["test"] * 2
    rows = [f"{smiles},{i / 7:.3f},{part}" for i, (smiles, part) in enumerate(zip(molecules, parts, strict=True))]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("molecules.csv").write_text("\n".join(["smiles,logS,part", *rows]) + "\n")
        for out in ("run", "three --seeds 3"):
            options = f"train molecules.csv --target logS --split-by part --collection sp --k 2 --epochs 2 --out {out}"
            app(options.split(), standalone_mode=False)
        yield folder


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_of_a_class_runs(name: str, desk: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    code = EXAMPLES[name].removeprefix("```python\n").removesuffix("```")
    test = doctest.DocTestParser().get_doctest(code, {}, name, "examples.md", 0)
    result = doctest.DocTestRunner(optionflags=flags).run(test)
    assert result.attempted > 1
    assert result.failed == 0


def test_links_of_the_repository_become_links_of_the_website(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = tool("pages")
    places = pages.site_places()
    text = "[How](CONTRIBUTING.md#x) [`f`](src/pathnn/files.py) `[C](=O)` ![p](docs/figures/paths.png)\n"
    monkeypatch.delenv("PATHNN_REPOSITORY", raising=False)
    assert pages.page_text(text, "CHANGELOG.md", places) == (
        "[How](contributing.md#x) `f` `[C](=O)` ![p](figures/paths.png)\n"
    )
    monkeypatch.setenv("PATHNN_REPOSITORY", "https://example.org/pathnn")
    assert "[`f`](https://example.org/pathnn/blob/main/src/pathnn/files.py)" in pages.page_text(
        text, "CHANGELOG.md", places
    )


def test_the_check_finds_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<h1 id='top'>A</h1><a href='b.html'>b</a> <a href='#top'>top</a> <a href='#none'>none</a>"
        "<script src='https://cdn.example.org/x.js'></script> <a href='https://example.org'>elsewhere</a>"
    )
    found = list(tool("check").problems(tmp_path))
    assert found == [
        "a.html: b.html is missing",
        "a.html: #none has no such anchor",
        "a.html loads https://cdn.example.org/x.js",
    ]
