"""No option is lost: the options of each command by name, and what `--help` imports."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoints
from importlib.util import find_spec
from typing import Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from pathnn.cli import app as app_module
from pathnn.cli.app import app
from pathnn.cli.options import _option_type

OPTIONS = {
    "paths": "data --collection -c --k -k --json --draw --graph --source --skip-invalid --smiles --max-paths",
    "distinguish": "data --collection -c --k -k --distances --no-distances --extend --residual --no-residual --phi "
    "--hidden --seeds --threshold --pairs --all-pairs --memory --device --max-steps --smiles "
    "--skip-invalid --json",
    "train": "data --out -o --config --resume --overwrite --model --collection -c --k -k --hidden --dropout --epochs "
    "--batch-size --lr --weight-decay --patience --stop-at --clip --seed --seeds --fold --split-seed --split-by "
    "--splits --device --devices --num-nodes --precision --max-entries --target --kind --metric --smiles "
    "--max-paths-per-source --redraw --logger --keep --kernel "
    "--skip-invalid --clean --descriptors --folds --baselines --optimizer --schedule --warmup --ema --loss "
    "--class-weights --calibration --json",
    "tune": "data --out -o --trials --jobs --storage --config --model --collection -c --k -k --hidden --dropout "
    "--epochs --batch-size --lr --weight-decay --patience --stop-at --clip --seed --fold --split-seed --split-by "
    "--splits --device --devices --num-nodes --precision --max-entries --target --kind --metric --smiles "
    "--max-paths-per-source --redraw --logger --keep --kernel "
    "--skip-invalid --clean --descriptors --optimizer --schedule --warmup --ema --loss --class-weights --calibration "
    "--json",
    "compare": "runs --metric --out -o --json",
    "evaluate": "run data --split --target --metric --smiles --skip-invalid --device --json",
    "predict": "run data --out -o --smiles --strict --resume --part --interval --device --json",
    "explain": "run data --row --graph --all --output --out -o --top --smiles --device --json",
    "datasets": "--json",
    "datasets fetch": "names --json",
    "datasets verify": "names --json",
}


def find(names: str) -> Any:
    command = typer.main.get_command(app)
    for name in names.split():
        command = command.get_command(None, name)
    return command


@pytest.mark.parametrize("name", OPTIONS)
def test_no_option_is_lost_or_without_help(name: str) -> None:
    params = find(name).params
    assert {word for param in params for word in (*param.opts, *param.secondary_opts)} == set(OPTIONS[name].split())
    assert all(param.help for param in params)
    shown = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=200).stdout
    assert all(word in shown for word in OPTIONS[name].split() if word.startswith("-"))


def test_a_field_has_the_type_of_its_option() -> None:
    assert _option_type(int | Literal["auto"] | None) == (int, ())
    assert _option_type(Literal["cpu", "cuda"]) == (str, ("cpu", "cuda"))


@pytest.mark.skipif(find_spec("pathnn._lazy") is None, reason="needs packages that export names lazily")
@pytest.mark.parametrize("command", ["", *OPTIONS])
def test_help_imports_neither_torch_nor_numpy(command: str) -> None:
    code = (
        "import sys; from pathnn.cli.app import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "print('loaded', sorted({'torch', 'numpy', 'numba', 'lightning_fabric', 'matplotlib'} & set(sys.modules)))"
    )
    arguments = [sys.executable, "-c", code, *command.split(), "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded []\n")


@pytest.mark.parametrize("name", ["reproduce", "bench"])
def test_without_the_package_a_command_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(app_module, "entry_points", lambda **_: EntryPoints())
    listed = CliRunner().invoke(app, ["--help"])
    assert (listed.exit_code, f" {name} " in listed.stdout) == (0, True)
    for arguments in ([], ["zinc", "--limit", "0"]):
        missing = CliRunner().invoke(app, [name, *arguments])
        assert (missing.exit_code, missing.stdout) == (1, "")
        assert f"pathnn {name} is in the package pathnn-reproduction" in missing.stderr
        assert "pip install ./reproduction" in missing.stderr
