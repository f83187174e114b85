"""Data: packed graphs, tasks by name or from a user's files, batches with their paths."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.data.datasets.registry import dataset_names as dataset_names
    from pathnn.data.datasets.registry import dataset_status as dataset_status
    from pathnn.data.datasets.registry import fetch as fetch
    from pathnn.data.datasets.registry import load_dataset as load_dataset
    from pathnn.data.datasets.registry import verify as verify
    from pathnn.data.errors import BadRow as BadRow
    from pathnn.data.errors import BadRowsError as BadRowsError
    from pathnn.data.errors import DataError as DataError
    from pathnn.data.errors import DatasetNotFoundError as DatasetNotFoundError
    from pathnn.data.errors import UnknownDatasetError as UnknownDatasetError
    from pathnn.data.fingerprints import Copies as Copies
    from pathnn.data.fingerprints import count_copies as count_copies
    from pathnn.data.load import DataSource as DataSource
    from pathnn.data.load import find_data as find_data
    from pathnn.data.load import load_data as load_data
    from pathnn.data.load import task_from_graphs as task_from_graphs
    from pathnn.data.loader import BudgetSampler as BudgetSampler
    from pathnn.data.loader import PackedLoader as PackedLoader
    from pathnn.data.loader import SizeSampler as SizeSampler
    from pathnn.data.packed import GraphBatch as GraphBatch
    from pathnn.data.packed import PackedGraphs as PackedGraphs
    from pathnn.data.packed import from_networkx as from_networkx
    from pathnn.data.packed import from_pyg as from_pyg
    from pathnn.data.paths import PathSummary as PathSummary
    from pathnn.data.paths import build_shards as build_shards
    from pathnn.data.paths import summarize_paths as summarize_paths
    from pathnn.data.splits import fold_splits as fold_splits
    from pathnn.data.splits import stratified_folds as stratified_folds
    from pathnn.data.splits import write_split as write_split
    from pathnn.data.task import Categorical as Categorical
    from pathnn.data.task import Continuous as Continuous
    from pathnn.data.task import Split as Split
    from pathnn.data.task import Task as Task
    from pathnn.data.task import random_split as random_split

EXPORTS = {
    "datasets.registry": ("dataset_names", "dataset_status", "fetch", "load_dataset", "verify"),
    "errors": ("BadRow", "BadRowsError", "DataError", "DatasetNotFoundError", "UnknownDatasetError"),
    "fingerprints": ("Copies", "count_copies"),
    "load": ("DataSource", "find_data", "load_data", "task_from_graphs"),
    "loader": ("BudgetSampler", "PackedLoader", "SizeSampler"),
    "packed": ("GraphBatch", "PackedGraphs", "from_networkx", "from_pyg"),
    "paths": ("PathSummary", "build_shards", "summarize_paths"),
    "splits": ("fold_splits", "stratified_folds", "write_split"),
    "task": ("Categorical", "Continuous", "Split", "Task", "random_split"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
