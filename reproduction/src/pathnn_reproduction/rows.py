"""Results as rows of a JSON file, written one by one, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pathnn.files import atomic_write, locked_folder
from pathnn.provenance import provenance

Row = dict[str, Any]
Key = TypeVar("Key", bound=Mapping[str, Any])


def read_rows(path: Path) -> list[Row]:
    """The rows of a result file, none where there is no file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: expected a file for results, such as {path / 'results.json'}.")
    if not path.exists():
        return []
    try:
        return list(json.loads(path.read_text())["rows"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} holds no results that can be read ({error}). Mend it, or give another file."
        ) from error


def add_row(path: Path, key: Mapping[str, Any], result: Mapping[str, Any], *, device: str = "cpu") -> Row:
    """Add `{**key, **result}` with commit, time, device and versions to a file; an old row with that key goes.

    Several processes may add to one file.
    """
    row = {**key, **result, **provenance(device)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked_folder(path.parent):
        rows = [old for old in read_rows(path) if not has_key(old, key)]
        with atomic_write(path) as file:
            file.write((json.dumps({"rows": [*rows, row]}, indent=1) + "\n").encode())
    return row


def missing(path: Path, keys: Sequence[Key]) -> list[Key]:
    """Those of `keys` that no row of the file has.

    >>> missing(Path("no such file"), [{"k": 1}])
    [{'k': 1}]
    """
    rows = read_rows(path)
    return [key for key in keys if not any(has_key(row, key) for row in rows)]


def has_key(row: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    """Whether a row has all that the key says.

    >>> has_key({"k": 1, "seconds": 3.0}, {"k": 1})
    True
    """
    return all(name in row and row[name] == value for name, value in key.items())
