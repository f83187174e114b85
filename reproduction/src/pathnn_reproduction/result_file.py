"""Write a result with its provenance: commit, time, device and versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pathnn.files import atomic_write
from pathnn.provenance import provenance


def write_result(path: Path, result: dict[str, Any], *, device: str = "cpu") -> None:
    """Write `result` with its provenance as JSON, atomically; `device` is where it was measured."""
    with atomic_write(path) as file:
        file.write((json.dumps({**provenance(device), **result}, indent=1) + "\n").encode())
