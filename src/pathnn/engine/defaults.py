"""The run for data that the paper does not know: defaults that are sensible for a user's own graphs."""

from __future__ import annotations

from typing import Any

from pathnn.data.task import Categorical, Task

MOLECULES = {"k": 4, "options": {"hidden_channels": 64, "phi": "mlp"}}
OTHERS = {"k": 2, "options": {"hidden_channels": 64}}


def own_options(task: Task) -> dict[str, Any]:
    """Options of a `RunConfig` for a task that comes from a user's file.

    Molecules (categorical vertices and edges) get the paper's model for ZINC, of half its width; other graphs
    its model for the TUDatasets, and short paths, of which even dense graphs do not have too many.

    ```python
    task = load_data("molecules.csv", targets="logS")
    config = RunConfig.from_dict({"data": "molecules.csv", "target": "logS", **own_options(task)})
    ```
    """
    molecules = isinstance(task.node_features, Categorical) and isinstance(task.edge_features, Categorical)
    return {
        **(MOLECULES if molecules else OTHERS),
        "collection": "ap",
        "batch_size": 32,
        "epochs": 200,
        "patience": 50,
        "plateau_factor": 0.5,
        "plateau_patience": 15,
        "standardize": task.target == "regression",
    }
