"""The options that the tables of accuracies share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Only = Annotated[
    str | None,
    typer.Option("--only", metavar="WORDS", show_default=False,
                 help="Some of the runs: models, datasets, collections, fields; such as ap,seed=3 or nci1,fold=0-4."),
]  # fmt: skip
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes that share the cores or the GPU.")]
Together = Annotated[
    int | None,
    typer.Option("--together", min=1, show_default="20 on a GPU, else 1",
                 help="On a GPU: runs that differ in fold, seed and dropout alone, trained at once by each job."),
]  # fmt: skip
Results = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="Where TARGET.jsonl is.")]
Work = Annotated[
    Path | None,
    typer.Option("--work", metavar="FOLDER", show_default=False,
                 help="Where run folders are kept, to go on from; default: .runs in the results folder."),
]  # fmt: skip
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda", help="Where to train.")]
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="Begin at most so many runs.", show_default=False)]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="MINUTES", min=0.0, show_default=False,
                 help="Stop after so many minutes; runs under way are saved, and go on the next time."),
]  # fmt: skip
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", show_default=False,
                 help="Run on a Ray cluster (auto, local, or ray://HOST:PORT; extra ray)."),
]  # fmt: skip
Pack = Annotated[
    Path | None,
    typer.Option("--pack", metavar="FILE", show_default=False,
                 help="At the end, pack what the next machine needs (runs under way, best models) into a tar file."),
]  # fmt: skip
PackPart = Annotated[
    float | None,
    typer.Option("--pack-part", metavar="MIB", min=0.001, show_default=False,
                 help="Cut the packed file into FILE.000, FILE.001, … of at most so many MiB."),
]  # fmt: skip
Unpack = Annotated[
    Path | None,
    typer.Option("--unpack", metavar="FILE", help="At the beginning, unpack what --pack wrote.", show_default=False),
]  # fmt: skip
Report = Annotated[
    bool,
    typer.Option("--report", help="Train nothing; write results/TARGET.tex, docs/results.md and the README's table."),
]  # fmt: skip
Export = Annotated[
    Path | None,
    typer.Option("--export", metavar="FOLDER", show_default=False,
                 help="Train nothing; write the best model by validation of every PathNN, with a card, to a folder."),
]  # fmt: skip
