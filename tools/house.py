"""Report the size and the import graph of the code: `python tools/house.py [--traces] [--svg FILE]`.

Exits 1 on an import in the wrong direction, on packages that import each other, and on an entry of `KNOWN` that is
fixed. Imports inside functions count; imports for type checkers alone do not. A name that a package exports counts as
an import of the module that defines it. `--traces` lists the files that three calls pass through; `--svg` draws the
import graph, as in docs/architecture.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "reproduction/src")

BASE = ("_lazy", "checks", "files", "device", "provenance", "hub")
ORDER = (
    *BASE, "paths", "nn", "data", "training", "inference", "theory", "plots", "explain", "evaluation", "app", "cli",
    "pathnn_reproduction",
)  # fmt: skip
"""A package or root module imports only itself and what is to its left."""

LEVEL = {"transforms": "paths", "testing": "nn", "estimators": "inference"}
"""Root modules that have the place of a package."""

PLACE = {name: number for number, name in enumerate(ORDER)} | {"pathnn": -1}
PLACE |= {name: PLACE[other] for name, other in LEVEL.items()}

KNOWN: frozenset[tuple[str, str]] = frozenset()
"""Wrong imports that are not fixed yet: (module, imported module)."""

TRACES = {"model": 16, "train": 48, "reproduce": 20}
"""Calls to trace, and the largest number of files of each."""

Graph = Mapping[str, Iterable[str]]


def find_modules(root: Path) -> dict[str, Path]:
    """Return the files of all packages below `root` by the names of their modules."""
    files = [(path.relative_to(root / part), path) for part in SOURCES for path in (root / part).glob("*/**/*.py")]
    return {".".join(short.with_suffix("").parts).removesuffix(".__init__"): path for short, path in sorted(files)}


def unit(module: str) -> str:
    """Return the package or root module that a module belongs to.

    >>> unit("pathnn.nn.backends.base"), unit("pathnn.transforms"), unit("pathnn_reproduction.bench.cli")
    ('nn', 'transforms', 'pathnn_reproduction')
    """
    package, *parts = module.split(".")
    return parts[0] if package == "pathnn" and parts else package


def imports(path: Path, modules: Mapping[str, Path], *, types: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (module, imported name or "") of the absolute imports of a file; `types`: also those for type checkers."""
    tree = ast.parse(path.read_text())
    skipped = set()
    for node in ast.walk(tree):
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped |= {inner for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in skipped:
            yield from ((alias.name, "") for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node not in skipped and node.module and node.module in modules:
            yield from ((node.module, alias.name) for alias in node.names)


def import_graph(modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return for each module the modules that it imports; exported names are followed to where they are defined."""
    packages = {module: path for module, path in modules.items() if path.name == "__init__.py"}
    exports = {(a, name): b for a, path in packages.items() for b, name in imports(path, modules, types=True)}

    def home(base: str, name: str) -> str:
        if f"{base}.{name}" in modules:
            return f"{base}.{name}"
        return home(exports[base, name], name) if (base, name) in exports else base

    return {a: {home(b, name) for b, name in imports(path, modules)} - {a} for a, path in modules.items()}


def wrong_imports(graph: Graph) -> list[tuple[str, str]]:
    """Return the imports that point to the right in `ORDER`, except those of the root, which exports names."""
    edges = [(a, b) for a, targets in graph.items() for b in sorted(targets) if a != "pathnn"]
    return [(a, b) for a, b in edges if PLACE.get(unit(a), 0) < PLACE.get(unit(b), 0)]


def unit_graph(graph: Graph, left_out: Iterable[tuple[str, str]] = ()) -> dict[str, set[str]]:
    """Return the imports between packages and root modules, without some imports between modules."""
    units: dict[str, set[str]] = {unit(module): set() for module in graph}
    for a, targets in graph.items():
        units[unit(a)] |= {unit(b) for b in targets if (a, b) not in left_out} - {unit(a), "pathnn"}
    return {name: targets for name, targets in units.items() if name != "pathnn"}


def reachable(graph: Graph) -> dict[str, set[str]]:
    """Return for each node the nodes at the end of a path of one or more edges from it.

    >>> sorted(reachable({"a": ["b"], "b": ["c"], "c": []})["a"])
    ['b', 'c']
    """
    reach: dict[str, set[str]] = {}
    for start in graph:
        reach[start], waiting = set(), [start]
        while waiting:
            new = set(graph.get(waiting.pop(), ())) - reach[start]
            reach[start] |= new
            waiting += new
    return reach


def cycles(graph: Graph) -> list[tuple[str, ...]]:
    """Return the strongly connected components of more than one node.

    >>> cycles({"a": ["b"], "b": ["a", "c"], "c": []})
    [('a', 'b')]
    """
    reach = reachable(graph)
    parts = {tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in graph}
    return sorted(part for part in parts if len(part) > 1)


def public_names(path: Path) -> list[str]:
    """Return the functions and classes that a file defines, without those that begin with _."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text()).body
    return [node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_")]


def single_importer(modules: Mapping[str, Path]) -> list[str]:
    """Return the modules that only one other file imports; imports for type checkers count."""
    importers: dict[str, set[str]] = {module: set() for module in modules}
    for module, path in modules.items():
        for base, name in imports(path, modules, types=True):
            importers[f"{base}.{name}" if f"{base}.{name}" in modules else base].add(module)
    return [module for module, found in importers.items() if len(found - {module}) == 1]


def report(root: Path, known: frozenset[tuple[str, str]]) -> list[str]:
    """Print sizes and the import graph of the packages below `root`; return the problems."""
    modules = find_modules(root)
    graph = import_graph(modules)
    units, line = unit_graph(graph), "{:<20} {:>5} {:>7} {:>5}  {}"
    sizes: dict[str, list[tuple[int, int, int]]] = {}
    for module, path in modules.items():
        size = (1, len(path.read_text().splitlines()), len(public_names(path)))
        sizes.setdefault(unit(module), []).append(size)
    print(line.format("package", "files", "lines", "names", "imports"))
    for name in sorted(sizes, key=lambda name: PLACE.get(name, len(ORDER))):
        print(line.format(name, *map(sum, zip(*sizes[name], strict=True)), " ".join(sorted(units.get(name, ())))))
    every = [size for part in sizes.values() for size in part]
    print(line.format("all", *map(sum, zip(*every, strict=True)), ""))
    print(f"modules with a single importer: {len(single_importer(modules))}")
    for cycle in cycles(graph):
        print(f"modules that import each other: {', '.join(cycle)}")
    present = {(a, b) for a, b in known if b in graph.get(a, ())}
    for a, b in sorted(present):
        print(f"known: {a} imports {b}")
    problems = [f"no place in ORDER: {name}" for name in sorted(sizes.keys() - PLACE.keys())]
    problems += [f"wrong direction: {a} imports {b}" for a, b in wrong_imports(graph) if (a, b) not in known]
    problems += [f"packages import each other: {', '.join(cycle)}" for cycle in cycles(unit_graph(graph, known))]
    problems += [f"fixed, remove it from KNOWN: {a} imports {b}" for a, b in sorted(known - present)]
    print(*problems, sep="\n", end="\n" * bool(problems))
    return problems


def drawing(root: Path, known: frozenset[tuple[str, str]] = KNOWN) -> str:
    """Return an SVG of the imports between packages, without those that follow from others.

    The root modules are drawn as one package, or as a part of the package whose place they have.
    """
    names = dict.fromkeys(BASE, "base") | LEVEL
    graph: dict[str, set[str]] = {}
    for name, targets in unit_graph(import_graph(find_modules(root)), known).items():
        name = names.get(name, name)
        graph.setdefault(name, set()).update({names.get(target, target) for target in targets} - {name})
    reach = reachable(graph)
    graph = {a: {b for b in targets if not any(b in reach[c] for c in targets)} for a, targets in graph.items()}
    level: dict[str, int] = {}
    for name in sorted(graph, key=lambda name: PLACE.get(name, -1)):  # what a package imports comes before it
        level[name] = 1 + max((level[target] for target in graph[name]), default=-1)
    spot: dict[str, tuple[float, int]] = {}
    for row in range(max(level.values()) + 1):
        boxes = [name for name in level if level[name] == row]
        spot |= {name: (350 + 170 * (i - (len(boxes) - 1) / 2), row) for i, name in enumerate(boxes)}
    height = 80 * max(level.values()) + 60
    half = dict.fromkeys(spot, 75) | {"base": 190}  # widths of the boxes

    def arrow(name: str, target: str) -> str:
        (x, row), (end, below) = spot[name], spot[target]
        y, bottom = height - 80 * row - 30, height - 80 * below - 30
        if row - below == 1:
            return f"M{x:g},{y + 18} L{end:g},{bottom - 19}"
        left, end = x - half[name], end - half[target]  # around the boxes between them
        return f"M{left:g},{y} C{min(left, end) - 80:g},{y} {min(left, end) - 60:g},{bottom} {end - 1:g},{bottom}"

    def lines() -> Iterator[str]:
        yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {height}" font-family="sans-serif">'
        yield '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        yield '<path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>'
        yield f'<rect width="700" height="{height}" fill="white"/>'
        for name, targets in graph.items():
            for target in sorted(targets):
                yield f'<path d="{arrow(name, target)}" fill="none" stroke="#888" marker-end="url(#tip)"/>'
        for name, (x, row) in spot.items():
            y, text = height - 80 * row - 30, ", ".join(BASE[1:]) if name == "base" else name
            box = f'x="{x - half[name]:g}" y="{y - 18}" width="{2 * half[name]}" height="36" rx="6"'
            yield f'<rect {box} fill="#eef4fb" stroke="#4477aa"/>'
            yield f'<text x="{x:g}" y="{y + 5}" font-size="14" text-anchor="middle">{text}</text>'
        yield "</svg>"

    return "\n".join(lines()) + "\n"


def trace(call: Callable[[], object]) -> list[str]:
    """Return the files of our packages whose functions `call` calls, in any thread, outside of imports."""
    found: set[str] = set()
    importing: dict[int, int] = {}  # by thread, how many bodies of modules are being executed

    def record(frame: FrameType, event: str, _: object) -> None:
        code, thread = frame.f_code, threading.get_ident()
        if code.co_name == "<module>" and event in ("call", "return"):
            importing[thread] = importing.get(thread, 0) + (1 if event == "call" else -1)
        elif event == "call" and code.co_flags & CO_OPTIMIZED and not importing.get(thread):  # no body of a class
            found.add(code.co_filename)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        call()
    except SystemExit as end:  # a command ends with it
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    ours = [ROOT / source for source in SOURCES]
    return sorted(os.path.relpath(name, ROOT) for name in found if any(Path(name).is_relative_to(one) for one in ours))


def prepare_call(name: str, folder: Path) -> Callable[[], object]:
    """Return the call that a trace follows; it may write into `folder`."""
    if name == "model":
        import torch

        from pathnn import PathNN

        edge_index = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
        model = PathNN(4, 8, 2, collection="ap", k=3)
        return lambda: model(torch.ones(4, 4), edge_index).sum().backward()
    from pathnn.cli import main

    if name == "train":
        table = folder / "molecules.csv"
        rows = ["C" * n + end for n in range(1, 7) for end in ("O", "N", "Cl", "c1ccccc1")]
        table.write_text("smiles,size\n" + "".join(f"{smiles},{len(smiles)}\n" for smiles in rows))
        options = [str(table), "--target", "size", "--epochs", "2", "--out", str(folder / "run")]
    else:
        options = ["zinc", "--limit", "0", "--results", str(ROOT / "results")]
    sys.argv = ["pathnn", name, *options, "--device", "cpu"]
    return main


def traced_files(name: str) -> list[str]:
    """Run a trace in another process, with numba's kernels as plain functions: compiled ones are invisible to it."""
    path = os.pathsep.join([*(str(ROOT / source) for source in SOURCES), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PYTHONPATH": path, "PATHNN_DATA": folder, "CUDA_VISIBLE_DEVICES": "", "NUMBA_DISABLE_JIT": "1"}
        command = [sys.executable, "-W", "ignore", __file__, "--trace", name, folder]
        done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the trace of {name} failed: {done.stderr}")
        return list(json.loads((Path(folder) / "trace.json").read_text()))


def main() -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description="Report the size and the import graph of the code.")
    parser.add_argument("--traces", action="store_true", help="also list the files of three call traces")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the import graph into this file")
    parser.add_argument("--trace", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        name, folder = options.trace
        files = trace(prepare_call(name, Path(folder)))
        (Path(folder) / "trace.json").write_text(json.dumps(files))
        return 0
    problems = report(ROOT, KNOWN)
    if options.svg:
        options.svg.write_text(drawing(ROOT))
    for name, most in TRACES.items() if options.traces else ():
        files = traced_files(name)
        print(f"trace of {name}: {len(files)} files (expected at most {most})", *files, sep="\n  ")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
