"""Write the sources of the documentation website to build/website: `python tools/website/pages.py`.

They are the pages of docs, some Markdown files of other folders, the tutorials (notebooks, which are executed), the
charts of the landing page, and a page of the reference for each public package. `mkdocs build` makes HTML of them.

Links to files that are no pages lead to the repository if PATHNN_REPOSITORY has its address, and are dropped otherwise.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import os
import pkgutil
import posixpath
import re
import resource
import shutil
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "website"
RUNS = ROOT / "build" / "tutorials"  # as deep as docs/tutorials: ../../examples is the same folder
OTHER_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "examples/README.md": "examples.md",
    **{f"models/{path.name}": f"models/{path.name}" for path in sorted((ROOT / "models").glob("*.md"))},
}
"""Pages of other folders than docs: their place in the repository, and on the website."""

LINK = re.compile(r"\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def main() -> None:
    """Write all pages."""
    started = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(ROOT / "docs", OUT, ignore=shutil.ignore_patterns("*.md", "*.ipynb", "*.toml", "website"))
    places = site_places()
    for source in places:
        if source.endswith(".md"):
            write(OUT / places[source], page_text((ROOT / source).read_text(), source, places))
    for name, text in reference_pages().items():
        write(OUT / "reference" / f"{name}.md", text)
    from charts import write_charts  # this folder, as a script's folder is on sys.path

    write_charts(ROOT, OUT / "figures")
    print(f"pages and charts: {time.monotonic() - started:.0f} s")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write_tutorial, sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"tutorials: {used.ru_utime + used.ru_stime:.0f} s of one core")


def write(path: Path, text: str) -> None:
    """Write a page, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def site_places() -> dict[str, str]:
    """Return where the pages of the repository are on the website: docs/model.md is model.md."""
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
    places = {page: page.removeprefix("docs/").replace(".ipynb", ".md") for page in pages - {"docs/README.md"}}
    return places | OTHER_PAGES


def page_text(text: str, source: str, places: Mapping[str, str]) -> str:
    """Return a page of the repository with the links of the website; consoles of Python are marked as such."""
    parts = re.split(r"(^```.*?^```)", text.replace("```python\n>>>", "```pycon\n>>>"), flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [LINK.sub(lambda match: site_link(match, source, places), part) for part in parts[::2]]
    return "".join(parts)


def site_link(match: re.Match[str], source: str, places: Mapping[str, str]) -> str:
    """Return a Markdown link as it is on the website.

    >>> places = {"docs/model.md": "model.md", "CONTRIBUTING.md": "contributing.md"}
    >>> site_link(LINK.search("[How](../CONTRIBUTING.md#tests)"), "docs/model.md", places)
    '[How](contributing.md#tests)'
    >>> site_link(LINK.search("[files](../src/pathnn/files.py)"), "docs/model.md", places)
    'files'
    """
    text, link, anchor = match[1], match[2], match[3] or ""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if target in places:
        place = posixpath.relpath(places[target], posixpath.dirname(places[source]) or ".")
        return f"[{text}]({place}{anchor})"
    if "://" in link or not (ROOT / target).exists():
        return match[0]
    repository = os.environ.get("PATHNN_REPOSITORY")
    return f"[{text}]({repository}/blob/main/{target}{anchor})" if repository else text


def public_packages() -> list[str]:
    """Return the public packages and modules: those that say what they export, and two modules without `__all__`."""
    import pathnn

    names = [found.name for found in pkgutil.iter_modules(pathnn.__path__) if not found.name.startswith("_")]
    exporting = [name for name in names if hasattr(importlib.import_module(f"pathnn.{name}"), "__all__")]
    return [*(name for name in exporting if name != "cli"), "explain.pyg", "testing"]


def public_names(module: str) -> list[str]:
    """Return what a module exports: its `__all__`, or the functions and classes that it defines."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return list(found.__all__)
    return [
        name
        for name, value in vars(found).items()
        if getattr(value, "__module__", None) == module and callable(value) and not name.startswith("_")
    ]


def class_examples() -> dict[str, str]:
    """Return the examples of examples.md by the full name of what they show, each as a code block."""
    text = (Path(__file__).parent / "examples.md").read_text()
    return dict(re.findall(r"^## (\S+)\n\n(```python\n.*?^```)", text, re.DOTALL | re.MULTILINE))


def reference_pages() -> dict[str, str]:
    """Return the pages of the reference by name. What the root exports is described there alone."""
    root = public_names("pathnn")
    pages = {"pathnn": reference_page("pathnn", root, ())}
    for name in public_packages():
        pages[name] = reference_page(f"pathnn.{name}", public_names(f"pathnn.{name}"), root)
    rows = [f"| [`{title(name)}`]({name}.md) | {first_line(name)} |" for name in pages]
    rows.append("| [the command line](../cli.md) | Every command and its options. |")
    head = ["# Reference", "", "Every public name, from its docstring. The examples run as tests.", "", "| module | |"]
    return pages | {"index": "\n".join([*head, "|---|---|", *rows, ""])}


def title(page: str) -> str:
    """Return the module that a page of the reference describes.

    >>> title("pathnn"), title("nn")
    ('pathnn', 'pathnn.nn')
    """
    return "pathnn" if page == "pathnn" else f"pathnn.{page}"


def first_line(page: str) -> str:
    """Return the first line of the docstring of the module that a page describes."""
    return (importlib.import_module(title(page)).__doc__ or "").strip().splitlines()[0]


def reference_page(module: str, names: list[str], root: list[str] | tuple[str, ...]) -> str:
    """Return a page with a table of the names and their docstrings; names of the root are links to its page."""
    rows, parts, examples = [], [], class_examples()
    for name in names:
        elsewhere = name in root and module != "pathnn"
        target = f"pathnn.md#pathnn.{name}" if elsewhere else f"#{module}.{name}"
        value = getattr(importlib.import_module(module), name)
        described = inspect.isroutine(value) or inspect.isclass(value)
        rows.append(f"| [`{name}`]({target}) | {summary(inspect.getdoc(value) or '') if described else f'`{value}`'} |")
        parts += [] if elsewhere else [f"::: {module}.{name}"]
        if not elsewhere and f"{module}.{name}" in examples:
            parts += [f"Example of `{name}`:", examples[f"{module}.{name}"].replace("```python", "```pycon")]
    about = (importlib.import_module(module).__doc__ or "").strip()
    return "\n\n".join([f"# {module}", about, "| name | |\n|---|---|\n" + "\n".join(rows), *parts]) + "\n"


def summary(doc: str) -> str:
    """Return the first sentence of a docstring, for a table.

    >>> summary("Count paths, see\\nthe paper. More.")
    'Count paths, see the paper.'
    """
    first = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<=[^.A-Z]\.) (?=[A-Z`])", first)[0].replace("|", "\\|")


def write_tutorial(notebook: Path) -> None:
    """Execute a notebook and write it as a page, with its pictures."""
    import nbformat
    from nbclient import NotebookClient

    started = time.monotonic()
    RUNS.mkdir(parents=True, exist_ok=True)
    found = nbformat.read(notebook, as_version=4)
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    options = {"kernel_name": "python3", "startup_timeout": 300, "extra_arguments": ["--log-level=ERROR"]}
    client = NotebookClient(found, timeout=300, resources={"metadata": {"path": str(RUNS)}}, **options)
    client.execute(env={**os.environ, "PATH": search, "GOMP_SPINCOUNT": "1000"})
    places = site_places()
    text = page_text(tutorial_text(found.cells, notebook.stem), notebook.relative_to(ROOT).as_posix(), places)
    write(OUT / "tutorials" / f"{notebook.stem}.md", text)
    print(f"{notebook.name}: {time.monotonic() - started:.0f} s", flush=True)


def tutorial_text(cells: list[Any], name: str) -> str:
    """Return the cells of an executed notebook as Markdown; write their pictures beside the page."""
    parts = []
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        code = "\n".join(line for line in cell.source.splitlines() if not line.startswith("%"))
        language = "sh" if cell.source.startswith("%%bash") else "python"
        parts += [f"```{language}\n{code}\n```"] if code else []
        parts += [output_text(output, OUT / "tutorials" / f"{name}-{number}") for output in joined(cell.outputs)]
    return "\n\n".join(part for part in parts if part) + "\n"


def joined(outputs: list[Any]) -> list[dict[str, Any]]:
    """Return the outputs of a cell, with all that was printed as one."""
    printed = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    rest = [dict(output.data) for output in outputs if output.output_type in ("execute_result", "display_data")]
    return [*([{"text/plain": printed.rstrip()}] if printed else []), *rest]


def output_text(data: Mapping[str, str], path: Path) -> str:
    """Return an output as Markdown: a picture, HTML or text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for kind, suffix in (("image/svg+xml", ".svg"), ("image/png", ".png")):
        if kind in data:
            picture = path.with_suffix(suffix)
            content = data[kind]
            picture.write_bytes(content.encode() if suffix == ".svg" else base64.b64decode(content))
            return f"![output of the code above]({picture.name}){{.output}}"
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data["text/plain"])  # colours of a terminal
    return f"```{{.text .output}}\n{text}\n```"


if __name__ == "__main__":
    main()
