"""YAML of plain values, in which numbers such as 1e-4 are numbers: PyYAML alone reads them as text."""

from __future__ import annotations

import re
from typing import Any

import yaml

EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """Makes nothing but plain values."""


class _Dumper(yaml.SafeDumper):
    """Puts texts that `_Loader` would take for numbers in quotes."""


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+.0123456789"))


def read_yaml(text: str) -> Any:
    """The values in a text; `yaml.YAMLError` where it is no YAML, or asks for more than plain values.

    >>> read_yaml("lr: 1e-4")
    {'lr': 0.0001}
    """
    return yaml.load(text, Loader=_Loader)


def write_yaml(values: Any) -> str:
    """Plain values as a text, in their order.

    >>> write_yaml({"lr": 1e-4, "target": "1e5"})
    "lr: 0.0001\\ntarget: '1e5'\\n"
    """
    return str(yaml.dump(values, Dumper=_Dumper, sort_keys=False))
