"""Checks of arguments: an error names the argument, its value and what was expected."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, TypeVar


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool; raise `ValueError` for anything else, such as the text "no"."""
    if type(value).__name__ not in ("bool", "bool_") and not (isinstance(value, Integral) and value in (0, 1)):
        raise ValueError(f"{name}={value!r}: expected True or False.")
    return bool(value)


T = TypeVar("T")


def check_choice(name: str, value: T, choices: tuple[T, ...]) -> T:
    """Return `value` if it is one of `choices`; raise `ValueError` otherwise."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown: expected one of {', '.join(map(repr, choices))}.")
    return value


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return `value` if it is an integer of at least `least`; raise `ValueError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r}: expected an integer of at least {least}.")
    return int(value)


def check_dropout(value: object) -> None:
    """Raise `ValueError` unless `value` is a rate of dropout."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) < 1.0:
        raise ValueError(f"dropout={value!r}: expected a rate from 0 up to, but not including, 1.")


def check_widths(name: str, value: Any) -> int | tuple[int, ...] | None:
    """Return a width as an integer, and sizes of categories as a tuple of integers."""
    if value is None and name == "edge_channels":
        return None
    try:
        if not isinstance(value, list | tuple):
            return check_count(name, value)
        if value:
            return tuple(check_count(name, size) for size in value)
    except ValueError:
        pass
    raise ValueError(f"{name}={value!r}: expected a positive width, or the sizes of the categories as a tuple.")
