"""`import pathnn` stays light."""

import subprocess
import sys


def test_import_loads_nothing_heavy():
    heavy = ("rdkit", "pandas", "matplotlib", "networkx", "lightning", "torchmetrics")
    code = f"import sys, pathnn; print([m for m in {heavy!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
