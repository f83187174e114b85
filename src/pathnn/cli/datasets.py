"""`pathnn datasets`: list, fetch and verify datasets."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, print_table, progress, result_only, say
from pathnn.cli.options import Json

if TYPE_CHECKING:
    from pathnn.data.datasets.registry import DatasetStatus

datasets = typer.Typer(
    invoke_without_command=True,
    help="List the datasets and where they are; fetch or verify some.",
    epilog="Example: pathnn datasets fetch zinc dd",
)

Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of datasets.")]
SomeNames = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME...]", help="Names of datasets; by default all that are at hand.")
]


@datasets.callback()
def list_command(context: typer.Context, json: Json = False) -> None:
    """List the datasets and where they are; fetch or verify some."""
    if context.invoked_subcommand is not None:
        if json:
            raise typer.BadParameter("put --json after fetch or verify.", param_hint="--json")
        return
    with result_only(json):
        from pathnn.data import dataset_status
        from pathnn.files import cache_dir, mirror_dir

        with progress("looking at the datasets"):
            found = dataset_status()
    if json:
        listed = [{**asdict(status), "available": status.available} for status in found]
        print_json({"cache": cache_dir(), "mirror": mirror_dir(), "datasets": listed})
        return
    rows = [(s.name, s.title, s.source or "-", _where(s), f"{s.graphs:,}") for s in found]
    print_table(("name", "title", "public file", "where", "graphs"), rows, left=4)
    say(f"cache (PATHNN_DATA): {cache_dir()}")
    say(f"mirror (PATHNN_MIRROR): {mirror_dir() or 'not set'}")


def _where(status: DatasetStatus) -> str:
    if status.cached:
        return "cached"
    if status.files_at_hand:
        return "files at hand"
    if status.built_in:
        return "built in"
    return "network" if status.downloadable else "missing: needs a mirror"


@datasets.command("fetch", epilog="Example: pathnn datasets fetch zinc dd")
def fetch_command(names: Names, json: Json = False) -> None:
    """Make datasets available in the cache: from the mirror, else from the network."""
    with result_only(json):
        from pathnn.data import fetch
        from pathnn.data.datasets.registry import get_spec
        from pathnn.paths.count import size_text

        for name in names:
            get_spec(name)  # check all names before fetching
        fetched: list[dict[str, Any]] = []
        with progress("fetching", total=len(names)) as step:
            for name in names:
                path = fetch(name)
                fetched.append({"name": get_spec(name).name, "path": path, "bytes": path.stat().st_size})
                step()
    if json:
        print_json({"fetched": fetched})
        return
    rows = [(one["name"], str(one["path"]), size_text(one["bytes"])) for one in fetched]
    print_table(("name", "path", "size"), rows, left=2)


@datasets.command("verify", epilog="Example: pathnn datasets verify zinc")
def verify_command(names: SomeNames = None, json: Json = False) -> None:
    """Check the files of datasets and the builds in the cache against their checksums.

    The exit code is 1 if a file is damaged, or if a named dataset is not at hand.
    """
    with result_only(json):
        from pathnn.data import dataset_status, verify

        chosen = names or [status.name for status in dataset_status() if status.cached or status.files_at_hand]
        checks = []
        with progress("verifying", total=len(chosen)) as step:
            for name in chosen:
                checks += [{"dataset": name.lower(), "file": c.name, "state": c.state} for c in verify(name)]
                step()
    damaged = [check for check in checks if check["state"] == "damaged"]
    lost = _not_at_hand(checks) if names else []
    if json:
        print_json({"checks": checks, "sound": not damaged and not lost})
    else:
        print_table(("dataset", "file", "state"), [tuple(check.values()) for check in checks], left=3)
    for check in damaged:
        note(f"Error: {check['file']} of {check['dataset']} is damaged: replace it by an intact copy.")
    for name in lost:
        note(f"Error: {name} is not at hand: pathnn datasets fetch {name}.")
    if damaged or lost:
        raise typer.Exit(1)


def _not_at_hand(checks: list[dict[str, str]]) -> list[str]:
    """Return the datasets without all their files and without an intact build, the last check of a dataset."""
    states: dict[str, list[str]] = {}
    for check in checks:
        states.setdefault(check["dataset"], []).append(check["state"])
    return [name for name, (*files, built) in states.items() if built == "missing" and (not files or built in files)]
