"""Test what results record about the computer that made them."""

from __future__ import annotations

import os
import platform

from pathnn.provenance import provenance


def test_a_cpu_is_described_by_its_architecture_and_cores() -> None:
    assert provenance()["device"] == f"{platform.machine()}, {os.cpu_count()} cores"
