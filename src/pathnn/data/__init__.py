"""Data: packed graphs, tasks by name or from a user's files, batches with their paths."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.data.datasets.registry import (
        dataset_names as dataset_names,
        dataset_status as dataset_status,
        fetch as fetch,
        load_dataset as load_dataset,
        verify as verify,
    )
    from pathnn.data.errors import (
        BadRow as BadRow,
        BadRowsError as BadRowsError,
        DataError as DataError,
        DatasetNotFoundError as DatasetNotFoundError,
        UnknownDatasetError as UnknownDatasetError,
    )
    from pathnn.data.fingerprints import Copies as Copies, count_copies as count_copies
    from pathnn.data.load import (
        DataSource as DataSource,
        find_data as find_data,
        load_data as load_data,
        task_from_graphs as task_from_graphs,
    )
    from pathnn.data.loader import (
        BudgetSampler as BudgetSampler,
        PackedLoader as PackedLoader,
        SizeSampler as SizeSampler,
    )
    from pathnn.data.packed import (
        GraphBatch as GraphBatch,
        PackedGraphs as PackedGraphs,
        from_networkx as from_networkx,
        from_pyg as from_pyg,
    )
    from pathnn.data.paths import PathSummary as PathSummary, summarize_paths as summarize_paths
    from pathnn.data.splits import (
        fold_splits as fold_splits,
        stratified_folds as stratified_folds,
        write_split as write_split,
    )
    from pathnn.data.task import (
        Categorical as Categorical,
        Continuous as Continuous,
        Split as Split,
        Task as Task,
        random_split as random_split,
    )

__all__, __getattr__, __dir__ = exports(__name__)
