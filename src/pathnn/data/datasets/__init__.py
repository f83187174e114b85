"""Datasets by name: `load_dataset("zinc")` gives the task of the paper."""

from pathnn.data.datasets.registry import dataset_names as dataset_names
from pathnn.data.datasets.registry import get_spec as get_spec
from pathnn.data.datasets.registry import load_dataset as load_dataset

__all__ = ["dataset_names", "get_spec", "load_dataset"]
