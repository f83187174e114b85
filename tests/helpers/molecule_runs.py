"""Sixty small molecules as a table, and tiny runs on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pathnn.training import RunConfig

TAILS = ("O", "N", "c1ccccc1", "C(=O)O", "Cl", "C#N", "OC", "C1CC1", "Br", "S")

MOLECULES = ["C" * n + tail for n in range(1, 7) for tail in TAILS]


def write_molecules(path: Path) -> Path:
    """Targets of every kind, and a column with a fixed test part of 12 rows."""
    rows = []
    for i, smiles in enumerate(MOLECULES):
        size, part = len(smiles) + 0.01 * i, "test" if i % 5 == 0 else "val" if i % 5 == 1 else "train"
        unknown = "" if i % 3 == 0 else f"{2 * size}"
        rows.append(f"{smiles},{size},{unknown},{i % 2},{'abc'[i % 3]},{part}")
    path.write_text("\n".join(["smiles,size,twice,active,letter,part", *rows]) + "\n")
    return path


def small_config(data: Path, target: str | tuple[str, ...] = "size", **changes: Any) -> RunConfig:
    """Two epochs of a narrow PathNN on the CPU."""
    options: dict[str, Any] = {
        "data": str(data), "target": target, "collection": "sp", "k": 2, "epochs": 2, "device": "cpu",
        "standardize": target in ("size", ("size", "twice")), "options": {"hidden_channels": 8},
    }  # fmt: skip
    return RunConfig(**{**options, **changes})
