"""Arguments and options that several commands share, and options derived from the fields of a config."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

T = TypeVar("T")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The name of a dataset (see pathnn datasets), a table of molecules (.csv, .tsv, .smi, .sdf, .parquet; "
        "- for a CSV from standard input), a .g6 file, or a folder in TU format.",
    ),
]

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A folder that pathnn train wrote, a model.safetensors file, or "
                         "the name of a trained model (zinc-ap)."),
]  # fmt: skip

Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda", help="Where to compute.")]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; everything else goes to standard error.")]

SkipInvalid = Annotated[bool, typer.Option("--skip-invalid", help="Skip rows that cannot be read, and count them.")]

Smiles = Annotated[str | None, typer.Option("--smiles", metavar="COLUMN", help="The SMILES column of a table.")]


def pick_device(device: str) -> str:
    """Return the device of a name; "auto" is a GPU if there is one."""
    from pathnn.device import resolve

    return str(resolve(device))


def check_output(out: Path | None, data: str) -> None:
    """Refuse to write to the file that is read."""
    path = Path(data).expanduser()
    if out is not None and out.exists() and path.exists() and out.samefile(path):
        raise typer.BadParameter("it is the file to read: give another name.", param_hint="--out")


def check_usage(make: Callable[..., T], *args: Any, **options: Any) -> T:
    """Return a config made of options; an option that it refuses is wrong usage."""
    try:
        return make(*args, **options)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def options_from(*configs: type, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add an option to a command for each field of dataclasses that has a help text (`paths.options.option_help`).

    The command gets those that were set as `given`, whose place they take in the help. They have no defaults: those of
    the fields, or of a config file, count. With `defaults`, only the fields named there become options.
    """
    added = [
        _parameter(entry, get_type_hints(config)[entry.name], defaults.get(entry.name))
        for config in configs
        for entry in fields(config)
        if "help" in entry.metadata and (not defaults or entry.name in defaults)
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(command, eval_str=True).parameters.values()]
        place = [p.name for p in own].index("given")
        parameters = [*own[:place], *added, *own[place + 1 :]]

        def run(**values: Any) -> None:
            derived = {parameter.name: values.pop(parameter.name) for parameter in added}
            command(**values, given={name: value for name, value in derived.items() if value not in (None, [], ())})

        run.__doc__, run.__name__ = command.__doc__, command.__name__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(entry: Field[Any], kind: Any, default: Any) -> inspect.Parameter:
    """Return the parameter of a command for a field."""
    flags = entry.metadata.get("flags") or (f"--{entry.name.replace('_', '-')}",)
    given, choices = _option_type(kind)
    option = typer.Option(
        *flags,
        help=entry.metadata["help"],
        metavar=entry.metadata.get("metavar"),
        show_default=default is not None,
        callback=one_of(*choices) if choices else None,
    )
    return inspect.Parameter(
        entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[given | None, option]
    )


def _option_type(kind: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the type of an option for the type of a field, and its choices if it is a `Literal`."""
    if get_origin(kind) is Literal:
        return str, get_args(kind)
    if get_origin(kind) is tuple:
        return list[get_args(kind)[0]], ()  # type: ignore[misc]
    parts = [part for part in get_args(kind) if part is not NoneType]
    return _option_type(parts[0]) if parts else (kind, ())


def one_of(*choices: str) -> Callable[[str | None], str | None]:
    """Return the callback of an option that must be one of some names, in upper or lower case."""

    def check(value: str | None) -> str | None:
        if value is None or value.lower() in choices:
            return value and value.lower()
        raise typer.BadParameter(f"{value!r} is unknown: expected one of {', '.join(map(repr, choices))}.")

    return check
