"""Import late: exported names when they are used (PEP 562), and torch's compiler when something is compiled."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def exports(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package that exports what it imports for type checkers.

    Submodules resolve as well: `pathnn.data` is imported when it is first used.
    """
    source: Any = sys.modules[package].__spec__
    blocks = (node for node in ast.parse(source.loader.get_source(package)).body if isinstance(node, ast.If))
    imports = [node for node in next(blocks).body if isinstance(node, ast.ImportFrom) and node.module != package]
    home = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name in home:
            return getattr(import_module(home[name]), name)
        module = f"{package}.{name}"
        try:
            if not name.startswith("_"):
                return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return list(home), get, lambda: sorted(home)


def not_compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that `torch.compile` skips; `torch.compiler.disable` alone imports the compiler at once."""
    import torch

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(function)(*args, **kwargs)  # type: ignore[no-untyped-call]
        return function(*args, **kwargs)

    return call
