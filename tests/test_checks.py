"""Checks of arguments name the argument, its value and what was expected."""

from __future__ import annotations

import pytest

from pathnn.checks import check_choice, check_count, check_flag


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"^extend='no': expected True or False\.$"):
        check_flag("extend", "no")
    with pytest.raises(ValueError, match=r"^hidden_channels=0: expected an integer of at least 1\.$"):
        check_count("hidden_channels", 0)
    with pytest.raises(ValueError, match=r"^readout='max' is unknown: expected one of 'sum', 'mean'\.$"):
        check_choice("readout", "max", ("sum", "mean"))


def test_right_arguments_are_returned() -> None:
    assert check_flag("extend", 1) is True
    assert check_count("k", 3) == 3
    assert check_choice("readout", "sum", ("sum", "mean")) == "sum"
