"""`pathnn reproduce runtime`: the appendix's running times, ours beside them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json

if TYPE_CHECKING:
    from pathnn_reproduction.experiments.runtime import MeasuredTime

EXAMPLE = "Example: pathnn reproduce runtime --dataset zinc --epochs 3"

Datasets = Annotated[
    list[str] | None, typer.Option("--dataset", help="dd or zinc, may be repeated; default: both.", show_default=False)
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Epochs to take the mean of.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Also write the result with commit, time and device.",
                 show_default=False),
]  # fmt: skip


def runtime_command(
    dataset: Datasets = None, epochs: Epochs = 5, device: Device = "auto", save: Save = None, json: Json = False
) -> None:
    """Seconds to extract paths, to train an epoch and to predict the test graphs: DD and ZINC12K (appendix).

    The paper's numbers are of an NVIDIA Tesla T4, ours of the machine that you run this on.
    """
    begin = time.perf_counter()
    chosen = tuple(dict.fromkeys(dataset or ("dd", "zinc")))
    for name in chosen:
        if name not in ("dd", "zinc"):
            raise typer.BadParameter(f"{name!r} is not in the table: expected dd or zinc.", param_hint="--dataset")
    if save is not None and not save.parent.is_dir():
        raise typer.BadParameter(f"the folder {save.parent} does not exist: make it first.", param_hint="--save")
    with result_only(json):
        from pathnn.provenance import provenance
        from pathnn_reproduction.bench.report import RUNTIME, runtime_cells
        from pathnn_reproduction.experiments.runtime import PAPER, runtime
        from pathnn_reproduction.result_file import write_result

        found: list[MeasuredTime] = []
        with progress("measuring", total=sum(row[0] in chosen for row in PAPER)) as step:
            for row in runtime(device=device, epochs=epochs, datasets=chosen):
                found.append(row)
                step()
        rows: list[dict[str, Any]] = [row.as_dict() for row in found]
        if save is not None:
            write_result(save, {"runtime": rows}, device=device)
    if json:
        print_json({**provenance(device), "runtime": rows, "seconds": time.perf_counter() - begin})
        return
    print_table(
        RUNTIME,
        [tuple(runtime_cells(row)) for row in rows],
        title="Running time in seconds: a Tesla T4 (paper), this machine (ours)",
        left=2,
    )
    say(f"device: {provenance(device)['device']}; mean of {epochs} epochs; {time.perf_counter() - begin:.0f} s")
