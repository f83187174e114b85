"""Names of classes: what stands in a column of words or codes, in an order that does not depend on the rows'."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable


def class_key(name: str) -> Hashable:
    """What makes two names those of one class: the number, if they are numbers.

    >>> class_key("3") == class_key(" 3.0"), class_key("toxic") == class_key("Toxic")
    (True, False)
    """
    number = finite_number(name)
    return name.strip() if number is None else number


def class_names(cells: Iterable[str]) -> tuple[str, ...]:
    """One name per class, the shortest: in the order of numbers if all are numbers, else of text.

    >>> class_names(["10", "9", "9.0"]), class_names(["toxic", "safe", "toxic"])
    (('9', '10'), ('safe', 'toxic'))
    """
    names: dict[Hashable, str] = {}
    for cell in sorted({cell.strip() for cell in cells}, key=lambda cell: (len(cell), cell)):
        names.setdefault(class_key(cell), cell)
    if all(isinstance(key, float) for key in names):
        return tuple(sorted(names.values(), key=float))
    return tuple(sorted(names.values()))


def number_name(value: float) -> str:
    """The name of a class that is given as a number.

    >>> number_name(1234567.0), number_name(-1), number_name(0.5)
    ('1234567', '-1', '0.5')
    """
    return str(int(value)) if value == int(value) else repr(float(value))


def is_missing(cell: str | None) -> bool:
    """Whether a cell names no class: it is empty, or what programs write for a missing number.

    >>> is_missing(" "), is_missing("NaN"), is_missing("none")
    (True, True, False)
    """
    return cell is None or cell.strip().lower() in ("", "nan")


def is_missing_number(cell: str | None) -> bool:
    """Whether a cell of a column of numbers is empty, or what programs write for a missing one.

    >>> is_missing_number("N/A"), is_missing_number("None"), is_missing_number("0")
    (True, True, False)
    """
    return cell is None or cell.strip().lower().strip("<>#") in ("", "nan", "na", "n/a", "null", "none")


def as_number(text: str) -> float | None:
    """The number that a text is, maybe infinite or NaN; None where it is none. 1_2 is a name, though Python reads 12.

    >>> as_number(" 1e3"), as_number("1_2"), as_number("high")
    (1000.0, None, None)
    """
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def finite_number(text: str) -> float | None:
    """The number that a text is, None where it is none."""
    value = as_number(text)
    return value if value is not None and math.isfinite(value) else None
