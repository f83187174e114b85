"""`pathnn reproduce TARGET`: do the missing runs of a table or figure, and print it next to the paper's numbers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pathnn.cli.console import note, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Device, Json, check_usage
from pathnn_reproduction.experiments import TARGETS, get_experiment

if TYPE_CHECKING:
    from pathnn_reproduction.pools import Pool
    from pathnn_reproduction.results import Results
    from pathnn_reproduction.runner import Progress
    from pathnn_reproduction.spec import Experiment, RunSpec
    from pathnn_reproduction.tables import Table
    from pathnn_reproduction.worker import Settings

Only = Annotated[
    str | None,
    typer.Option("--only", metavar="WORDS", show_default=False,
                 help="Some of the runs: values and fields, such as ap,seed=3 or nci1,fold=0-4."),
]  # fmt: skip
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at a time, which share the cores or the GPU.")]


def _folder(path: Path | None) -> Path | None:
    if path is not None and path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path} is a file: expected a folder, or a new name.")
    return path


ResultsFolder = Annotated[
    Path, typer.Option("--results", metavar="FOLDER", help="The folder of TARGET.jsonl.", callback=_folder)
]
Work = Annotated[
    Path | None,
    typer.Option("--work", metavar="FOLDER", show_default=False, callback=_folder,
                 help="The folder of the run folders, to resume from; default: .runs in the results folder."),
]  # fmt: skip
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="Start at most this many runs.", show_default=False)]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="MINUTES", min=0.0, show_default=False,
                 help="Stop after this many minutes; unfinished runs are saved, and resumed the next time."),
]  # fmt: skip
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", show_default=False,
                 help="Run on a Ray cluster (auto, local, or ray://HOST:PORT; extra ray)."),
]  # fmt: skip
Report = Annotated[bool, typer.Option("--report", help="Run nothing; write the pages and LaTeX tables of the results.")]
Export = Annotated[
    Path | None,
    typer.Option("--export", metavar="FOLDER", show_default=False,
                 help="Run nothing; write the best model by validation of every PathNN, with a card, to a folder."),
]  # fmt: skip


def experiment_command(target: str, title: str) -> Callable[..., None]:
    """Return the command of an experiment."""

    def command(
        only: Only = None,
        jobs: Jobs = 1,
        results: ResultsFolder = Path("results"),
        work: Work = None,
        device: Device = "auto",
        limit: Limit = None,
        time_limit: TimeLimit = None,
        ray: Ray = None,
        report: Report = False,
        export: Export = None,
        json: Json = False,
    ) -> None:
        if device not in ("auto", "cpu", "cuda"):
            raise typer.BadParameter(f"--device {device}: expected auto, cpu or cuda.")
        deadline = None if time_limit is None else time.time() + 60 * time_limit
        runs = (work or results / ".runs").absolute()
        with result_only(json):
            from pathnn_reproduction.results import Results
            from pathnn_reproduction.spec import select

            experiment = get_experiment(target)
            specs = check_usage(select, experiment.specs, only)
            rows = Results.open(results / f"{target}.jsonl")
            if report or export is not None:
                from pathnn_reproduction.export import export_models
                from pathnn_reproduction.pages import write_report

                written = write_report(target, results, results.absolute().parent) if report else []
                written += [] if export is None else export_models(experiment, specs, rows, runs, export)
            else:
                from pathnn_reproduction.worker import Settings

                stop_file = runs / f".stop-{os.getpid()}"
                settings = Settings(runs, rows.path.absolute(), cast("Any", device), jobs, deadline, stop_file)
                outcome = _run(experiment, specs, rows, settings, ray=ray, limit=limit)
                tables = experiment.tables(experiment, specs, rows)
        if report or export is not None:
            if json:
                print_json({"target": target, "written": written})
            for path in () if json else written:
                say(f"wrote {path}")
            return
        _tell(experiment, tables, rows, outcome, as_json=json)
        if outcome.reason == "interrupted":
            raise typer.Exit(130)
        if outcome.failed or any(table.error for table in tables):
            raise typer.Exit(1)

    command.__doc__ = f"""{title}.

    Do the runs that are missing in results/{target}.jsonl, and print the table. A stopped call loses seconds at most:
    call it again to resume. A run that fails does not stop the others; the exit code is then 1.
    """
    return command


def _run(
    experiment: Experiment, specs: list[RunSpec], rows: Results, settings: Settings, *, ray: str | None,
    limit: int | None,
) -> Progress:  # fmt: skip
    """Do what is missing; refuse a GPU that is not there, and say what the user may not expect."""
    import torch

    from pathnn_reproduction.progress import run_progress
    from pathnn_reproduction.results import Results
    from pathnn_reproduction.runner import run_missing

    has_gpu = torch.cuda.is_available()
    if settings.device == "cuda" and ray is None and not has_gpu:
        raise ValueError("--device cuda needs a CUDA device, and torch finds none: use --device cpu or auto.")
    if limit is None and not rows.path.exists():
        note(
            f"{rows.path} does not exist: all runs start from the beginning (a clone of the repository has our "
            "results). --limit 0 only prints the tables."
        )
    shared = settings.jobs > 1 and settings.device != "cpu" and has_gpu and ray is None
    if shared and "CUDA_MPS_PIPE_DIRECTORY" not in os.environ:
        note("several processes take turns on a GPU unless NVIDIA's MPS runs: see docs/reproduce.md")
    ours = Path("results") / rows.path.name
    reference = () if ours.absolute() == rows.path.absolute() else Results.open(ours).rows
    with interruptible(settings.stop_file), run_progress(experiment.name, settings) as show:
        return run_missing(
            experiment, specs, rows, partial(_pool, settings, ray), settings, limit=limit, show=show,
            reference=reference,
        )  # fmt: skip


def _pool(settings: Settings, ray: str | None) -> Pool:
    from pathnn_reproduction.pools import LocalPool, RayPool

    return LocalPool(settings) if ray is None else RayPool(settings, ray)


@contextmanager
def interruptible(stop_file: Path | None) -> Iterator[None]:
    """Stop runs after their epoch on the first Ctrl-C or SIGTERM, and at once on the second."""
    assert stop_file is not None

    def interrupt(*_: Any) -> None:
        if stop_file.exists():
            raise KeyboardInterrupt
        stop_file.parent.mkdir(parents=True, exist_ok=True)
        stop_file.touch()
        note("stopping after this epoch; press Ctrl-C again to stop at once")

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop_file.unlink(missing_ok=True)


def _tell(experiment: Experiment, tables: list[Table], rows: Results, outcome: Progress, *, as_json: bool) -> None:
    """Print the tables, what failed, and what is left."""
    for spec, error in outcome.failed:
        note(f"failed: {spec.name}: {error}")
    for table in tables:
        if table.error:
            note(f"Error: {table.error}")
    if as_json:
        print_json({
            "target": experiment.name,
            "total": outcome.total,
            "done": outcome.done,
            "ran": [spec.name for spec in outcome.finished],
            "failed": [{"run": spec.name, "error": error} for spec, error in outcome.failed],
            "unavailable": outcome.unavailable,
            "unfinished": [spec.name for spec in outcome.stopped],
            "left": outcome.left,
            "seconds_left": outcome.seconds_left,
            "stopped": outcome.reason or None,
            "seconds": time.monotonic() - outcome.started,
            "results": rows.path,
            "tables": [{"title": table.title, "rows": table.values} for table in tables],
        })  # fmt: skip
        return
    for table in tables:
        print_table(table.head, table.rows, title=table.title, left=table.left)
    why = f" ({outcome.reason})" if outcome.reason else ""
    unfinished = f", {len(outcome.stopped)} of them started" if outcome.stopped else ""
    say(
        f"{outcome.done} of {outcome.total} runs done, {len(outcome.finished)} now, {len(outcome.failed)} failed, "
        f"{outcome.left} left{unfinished}{why}; {rows.path}"
    )


Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Also write the result with commit, time and device.",
                 show_default=False),
]  # fmt: skip
MaxVertices = Annotated[int, typer.Option("--max-vertices", min=1, max=7, help="Check all graphs up to this size.")]
MaxHeight = Annotated[int, typer.Option("--max-height", min=1, max=12, help="The largest height of trees and paths.")]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder for the files.")]
Page = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Also write the table into this page, between its marks, and the "
                 "pictures next to it.", show_default=False),
]  # fmt: skip


def theory_command(
    max_vertices: MaxVertices = 7,
    max_height: MaxHeight = 6,
    out: Out = Path("theory"),
    save: Save = None,
    page: Page = None,
    json: Json = False,
) -> None:
    """Check each statement of section 3.2 on all small graphs, and draw the smallest counterexamples.

    A yes is a check of these graphs, not a proof; a no comes with an example that anyone can verify. The exit code is
    0 whether or not the statements hold.
    """
    begin = time.perf_counter()
    with result_only(json):
        from pathnn_reproduction import pages
        from pathnn_reproduction.results import provenance, write_result
        from pathnn_reproduction.theory import table as tables
        from pathnn_reproduction.theory.checks import VARIANTS, TheorySettings, theory_checks

        # Fail now, not after some minutes: no matplotlib, no folder, no marks on the page.
        import_module("matplotlib")
        out.mkdir(parents=True, exist_ok=True)
        if page is not None:
            pages.replace_block(page.read_text(), tables.THEORY_BLOCK, "")
        settings, checks = TheorySettings(max_vertices, max_height), []
        with progress("checking section 3.2", total=1 + len(VARIANTS)) as step:
            for part in theory_checks(settings):
                checks += part
                step()
        result = {**provenance(), **tables.to_result(checks, settings, time.perf_counter() - begin)}
        table = tables.theory_table(checks)
        drawings = tables.draw_examples(table, out)
        if save is not None:
            write_result(save, result)
        if page is not None:
            text = pages.replace_block(page.read_text(), tables.THEORY_BLOCK, tables.theory_block(result))
            pages.write_pages({page: text})
            tables.draw_examples(table, page.parent / "figures" / "theory", "png")
    if json:
        print_json({**result, "drawings": drawings})
        return
    print_table(
        ("statement", "claim", "paths", "vertices: one connected graph", "one graph", "two graphs",
         "graphs: connected", "all"),
        [(r.statement, r.claim, r.about, *map(tables.entry_text, r.entries)) for r in table.rows],
        title=f"Section 3.2 on all graphs with up to {max_vertices} vertices, heights 1 to {max_height}",
        left=8,
    )  # fmt: skip
    for number, example in enumerate(table.examples, start=1):
        say(f"[{number}] {tables.example_text(example)}")
    say(f"{result['graphs']:,} graphs, {result['seconds']:.0f} s; SP in {result['compared']['sp']:,} numbered graphs")
    say(f"drew the {len(drawings)} examples into {out}")


Format = Annotated[str, typer.Option("--format", metavar="svg|png|pdf", help="The format of the files.")]


def figures_command(out: Out = Path("figures"), format: Format = "svg", json: Json = False) -> None:
    """Draw the figures of section 3 and of the appendix, three of ours about theorem 3.3, and one of path counts.

    The paper's pictures are not in its text: the graphs are our choice, and satisfy the captions.
    """
    if format not in ("svg", "png", "pdf"):
        raise typer.BadParameter(f"{format!r}: expected svg, png or pdf.", param_hint="--format")
    with result_only(json):
        from pathnn_reproduction.figures.figures import FIGURES, save_picture

        drawn = []
        out.mkdir(parents=True, exist_ok=True)
        with progress("drawing", total=len(FIGURES)) as step:
            for name, make in FIGURES.items():
                file, what = out / f"{name}.{format}", (make.__doc__ or "").split("\n")[0]
                save_picture(make(), file, dpi=150)
                drawn.append({"name": name, "what": what, "file": file})
                step()
    if json:
        print_json({"target": "figures", "figures": drawn})
    else:
        print_table(("file", "what"), [(str(one["file"]), str(one["what"])) for one in drawn], left=2)
        say(f"drew {len(drawn)} figures into {out}")


ABOUT = "Repeat a table of the paper, and print it with ours beside it."
reproduce = typer.Typer(no_args_is_help=True, help=ABOUT, epilog="Example: pathnn reproduce counts")


for target, title in TARGETS.items():
    reproduce.command(target, epilog=f"Example: pathnn reproduce {target} --jobs 2")(experiment_command(target, title))
reproduce.command("theory", epilog="Example: pathnn reproduce theory --max-vertices 5 --out theory")(theory_command)
reproduce.command("figures", epilog="Example: pathnn reproduce figures --out figures --format png")(figures_command)
