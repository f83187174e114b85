"""Tests of the command line have a cache of their own and no network."""

import pytest


@pytest.fixture(autouse=True)
def _no_network(no_network: None) -> None:
    pass
