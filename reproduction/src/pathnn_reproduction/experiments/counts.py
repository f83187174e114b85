"""The average number of paths per graph (appendix): DD and ZINC12K, the paper's numbers and ours."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal, cast

from pathnn.data import load_dataset
from pathnn.data.paths import count_per_graph
from pathnn.paths.options import COLLECTIONS, Collection, PathOptions
from pathnn_reproduction.paper import COUNTS
from pathnn_reproduction.results import Results, Row, measured_row
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import Table
from pathnn_reproduction.worker import Settings


def counts() -> Iterator[RunSpec]:
    """Yield the runs of the table: one per dataset and collection."""
    for dataset, collection in product(COUNTS, COLLECTIONS):
        yield RunSpec(target="counts", key={"dataset": dataset, "collection": collection}, run=count_run)


def printed(dataset: str, collection: str) -> dict[int, float]:
    """Return the numbers that the paper prints, by the length of the paths.

    >>> sorted(printed("zinc", "ap"))
    [2, 3, 4]
    """
    means = COUNTS[dataset]["means"]
    return {int(key.split()[1]): value for key, value in means.items() if key.split()[0] == collection}


def count_run(spec: RunSpec, settings: Settings) -> Row:
    """Count the paths of each length that the paper reports: `means[i]` is the mean of length i + 1."""
    begin = time.perf_counter()
    collection = cast("Collection", spec.key["collection"])
    longest = max(printed(spec.dataset, collection))
    found = count_per_graph(load_dataset(spec.dataset).graphs, PathOptions(collection, longest))
    result = {"means": found.double().mean(dim=0).tolist(), "seconds": time.perf_counter() - begin}
    return measured_row(spec, result)


def agreement(ours: float, paper: float, decimals: int) -> Literal["rounded", "truncated", "no"]:
    """Return whether ours, rounded or cut off at the decimals that the paper prints, is the paper's number.

    >>> agreement(6581.6, 6581, 0), agreement(69.4, 69.2, 1)
    ('truncated', 'no')
    """
    if round(ours, decimals) == paper:
        return "rounded"
    unit = 10**decimals
    return "truncated" if math.floor(ours * unit) / unit == paper else "no"


def tables(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> list[Table]:
    """Return the table; a number that differs from the paper's is an error."""
    values = []
    for spec, row in experiment.done(specs, results):
        decimals = COUNTS[spec.dataset]["decimals"]
        for length, paper in printed(spec.dataset, row["collection"]).items():
            ours = row["means"][length - 1]
            values.append({
                "dataset": spec.dataset, "collection": row["collection"], "agrees": agreement(ours, paper, decimals),
                "length": length, "paper": paper, "ours": ours, "decimals": decimals,
            })  # fmt: skip
    rows = [
        [v["dataset"], v["collection"].upper(), v["agrees"], str(v["length"]), f"{v['paper']:,.{v['decimals']}f}",
         f"{v['ours']:,.{v['decimals'] + 2}f}"]
        for v in sorted(values, key=lambda v: (v["dataset"], v["length"]))
    ]  # fmt: skip
    wrong = sum(v["agrees"] == "no" for v in values)
    error = f"{wrong} of {len(values)} numbers differ from the paper's." if wrong else ""
    head = ("dataset", "collection", "agrees", "length", "paper", "ours")
    return [Table("Average number of paths of exactly that length per graph", head, rows, values, 3, error)]
