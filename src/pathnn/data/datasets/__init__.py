"""Datasets by name: `load_dataset("zinc")` gives the task of the paper."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.data.datasets.registry import dataset_names as dataset_names
    from pathnn.data.datasets.registry import get_spec as get_spec
    from pathnn.data.datasets.registry import load_dataset as load_dataset

EXPORTS = {
    "registry": ("dataset_names", "get_spec", "load_dataset"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
