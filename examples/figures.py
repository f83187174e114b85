"""Draw the figures of docs/theory.md again: `python examples/figures.py [FOLDER]` (default: docs/figures).

`pathnn reproduce figures` does the same; the figures themselves are functions in `pathnn_reproduction.figures.figures`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pathnn_reproduction.figures.figures import FIGURES, save_figure


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs" / "figures"
    for name in FIGURES:
        print(f"wrote {save_figure(name, folder, 'png').name}")


if __name__ == "__main__":
    main()
