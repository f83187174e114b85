"""Import late: exported names when they are used (PEP 562), and torch's compiler when something is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def exports(package: str, homes: Mapping[str, Iterable[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package that exports names of its modules.

    `homes` gives the names by module, relative to the package. Submodules resolve as well: `pathnn.data` is imported
    when it is first used.
    """
    home = {name: f"{package}.{module}" for module, names in homes.items() for name in names}

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

    return get, lambda: sorted(home)


def not_compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that `torch.compile` leaves as it is.

    `torch.compiler.disable` does the same, and imports torch's compiler at once, which takes a second.
    """
    import torch

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(function)(*args, **kwargs)  # type: ignore[no-untyped-call]
        return function(*args, **kwargs)

    return call
