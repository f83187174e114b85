"""Checking an option that is one of a few words."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def check_choice(name: str, value: T, choices: tuple[T, ...]) -> T:
    """Return `value` if it is one of `choices`, raise `ValueError` otherwise.

    >>> check_choice("readout", "sum", ("sum", "mean"))
    'sum'
    """
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown: expected one of {', '.join(map(repr, choices))}.")
    return value
