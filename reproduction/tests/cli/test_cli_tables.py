"""`pathnn reproduce zinc` and its like: the command line of an experiment."""

from __future__ import annotations

import io
import json
import signal
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pathnn.data.datasets import registry
from pathnn_reproduction import cli as table_runs, runner
from pathnn_reproduction.experiments import get_experiment
from pathnn_reproduction.spec import Experiment, select, training_spec
from tiny_experiments import InlinePool, tiny_experiment

Run = Callable[..., Any]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """In place of ZINC, two seeds of a small network on CSL, in this process."""
    plan = tiny_experiment(2)
    monkeypatch.setattr(table_runs, "get_experiment", lambda name: plan)
    monkeypatch.setattr(table_runs, "_pool", lambda settings, ray: InlinePool(settings))
    return plan


def test_says_that_it_begins_anew_where_there_are_no_results(cli: Run, tiny: Experiment, tmp_path: Path) -> None:
    arguments = ("reproduce", "zinc", "--results", tmp_path, "--device", "cpu")
    assert "does not exist" not in cli(*arguments, "--limit", "0").stderr
    assert "zinc.jsonl does not exist" in cli(*arguments).stderr
    assert "does not exist" not in cli(*arguments).stderr


def test_runs_and_prints_json(cli: Run, tiny: Experiment, tmp_path: Path) -> None:
    arguments = ("reproduce", "zinc", "--results", tmp_path, "--device", "cpu", "--json")
    first = cli(*arguments, "--only", "seed=1")
    assert first.exit_code == 0, first.stderr
    found = json.loads(first.stdout)
    assert (found["total"], found["done"], found["ran"], found["left"]) == (1, 1, ["csl-sp-k2-s1"], 0)
    assert "done: csl-sp-k2-s1" in first.stderr
    second = json.loads(cli(*arguments).stdout)
    assert (second["total"], second["done"], second["ran"]) == (2, 2, ["csl-sp-k2-s0"])
    assert len((tmp_path / "zinc.jsonl").read_text().splitlines()) == 2


def test_time_that_is_up_is_exit_0_and_says_what_is_left(cli: Run, tiny: Experiment, tmp_path: Path) -> None:
    result = cli("reproduce", "zinc", "--results", tmp_path, "--device", "cpu", "--time-limit", "0")
    assert result.exit_code == 0, result.stderr
    assert "0 of 2 runs done, 0 now, 0 failed, 2 left (the time is up)" in result.stdout


def test_tables_are_those_of_the_chosen_datasets(cli: Run, tmp_path: Path) -> None:
    arguments = ("reproduce", "tu", "--results", tmp_path, "--limit", "0")
    assert all(name in cli(*arguments).stdout for name in ("ENZYMES", "NCI1", "IMDB-MULTI"))
    few = cli(*arguments, "--only", "nci1,enzymes,k=2").stdout
    assert [name in few for name in ("ENZYMES", "NCI1", "IMDB-MULTI", "DD")] == [True, True, False, False]


def test_a_failed_run_is_exit_1(cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table_runs, "get_experiment", lambda name: tiny_experiment(1, fold=9))
    monkeypatch.setattr(table_runs, "_pool", lambda settings, ray: InlinePool(settings))
    result = cli("reproduce", "zinc", "--results", tmp_path, "--device", "cpu", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed"][0]["error"].startswith("RunError: fold=9")
    assert "failed: csl-sp-k2-f9-s0" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "bp"), "'bp' is unknown"),
        (("--device", "tpu"), "expected auto, cpu or cuda"),
        (("--jobs", "0"), "--jobs"),
    ],
)
def test_wrong_usage_is_exit_2(cli: Run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli("reproduce", "zinc", "--results", tmp_path, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_a_damaged_results_file_is_exit_1(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "zinc.jsonl").write_text("nonsense\n")
    result = cli("reproduce", "zinc", "--results", tmp_path)
    assert result.exit_code == 1
    assert "damaged in line 1" in result.stderr


def test_report_and_export_train_nothing(cli: Run, tiny: Experiment, tmp_path: Path) -> None:
    results = tmp_path / "results"
    cli("reproduce", "zinc", "--results", results, "--device", "cpu", "--limit", "1")
    exported = cli("reproduce", "zinc", "--results", results, "--export", tmp_path / "models", "--json")
    assert exported.exit_code == 0, exported.stderr
    assert json.loads(exported.stdout)["written"] == [str(tmp_path / "models" / "csl-sp.safetensors")]
    assert len((results / "zinc.jsonl").read_text().splitlines()) == 1


def test_report_writes_its_files(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "zinc.jsonl").touch()
    result = cli("reproduce", "molhiv", "--results", tmp_path / "results", "--report")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("wrote") == 6
    assert "not measured" in (tmp_path / "results" / "molhiv.tex").read_text()


def test_report_without_results_leaves_what_is_there(cli: Run, tmp_path: Path) -> None:
    page = tmp_path / "docs" / "results.md"
    page.parent.mkdir()
    page.write_text("tables")
    result = cli("reproduce", "zinc", "--report", "--results", tmp_path / "reslts")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "reslts holds no results: expected a folder with one of zinc.jsonl, " in result.stderr
    assert page.read_text() == "tables"
    assert not (tmp_path / "reslts").exists()


@pytest.mark.parametrize("option", ["--results", "--work"])
def test_a_file_in_place_of_a_folder_is_exit_2(cli: Run, tiny: Experiment, tmp_path: Path, option: str) -> None:
    (tmp_path / "a.csv").touch()
    result = cli("reproduce", "zinc", "--results", tmp_path, option, tmp_path / "a.csv")
    assert result.exit_code == 2
    assert f"'{option}': " in result.stderr
    assert "is a file: expected a folder" in " ".join(result.stderr.replace("│", " ").split())


def test_the_first_signal_stops_after_the_epoch_and_the_second_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stop = tmp_path / "work" / "stop"
    with table_runs.interruptible(stop):
        assert not stop.exists()
        signal.raise_signal(signal.SIGTERM)
        assert stop.exists()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert "stopping after this epoch" in capsys.readouterr().err
    assert not stop.exists()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_limits_reach_the_runs_and_an_interrupt_is_exit_130(
    cli: Run, tiny: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {}

    def run_missing(*positional: Any, **options: Any) -> runner.Progress:
        asked.update(options, settings=positional[-1])
        return runner.Progress(2, 0, reason="interrupted")

    monkeypatch.setattr(runner, "run_missing", run_missing)
    arguments = ("--results", tmp_path, "--device", "cpu", "--time-limit", 2, "--limit", 3)
    result = cli("reproduce", "zinc", *arguments)
    assert result.exit_code == 130
    assert "2 left (interrupted)" in result.stdout
    assert asked["limit"] == 3
    assert 60 < asked["settings"].deadline - time.time() <= 120  # minutes were given


def test_without_a_gpu_no_run_is_begun_on_it(
    cli: Run, tiny: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = cli("reproduce", "zinc", "--results", tmp_path, "--device", "cuda")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--device cuda needs a CUDA device" in result.stderr
    assert not list(tmp_path.iterdir())


def test_run_folders_are_kept_as_asked(cli: Run, tiny: Experiment, tmp_path: Path) -> None:
    arguments = ("reproduce", "zinc", "--results", tmp_path / "results", "--work", tmp_path / "work", "--device", "cpu")
    done = cli(*arguments)
    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["tiny"]
    assert not (tmp_path / "results" / ".runs").exists()


def test_a_target_without_a_page_has_no_report(cli: Run, tmp_path: Path) -> None:
    result = cli("reproduce", "counts", "--report", "--results", tmp_path)
    assert result.exit_code == 1
    assert "counts has no page" in result.stderr


def write_lrgb(path: Path, targets: int) -> None:
    """A file as LRGB publishes it: three lists of (x, edge_attr, edge_index, y), here of small rings."""
    edges = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    with zipfile.ZipFile(path, "w") as archive:
        for part, count in (("train", 8), ("val", 4), ("test", 4)):
            graphs = [
                (torch.zeros(4, 9).long(), torch.zeros(8, 3).long(), edges, torch.randn(1, targets))
                for _ in range(count)
            ]
            content = io.BytesIO()
            torch.save(graphs, content)
            archive.writestr(f"peptidesstruct/{part}.pt", content.getvalue())


def test_peptides_struct_runs_if_its_published_file_is_there(
    cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The specs of the table, with one epoch; a small file of the published form in place of the published one."""
    whole = get_experiment("peptides")
    short = [
        training_spec("peptides", replace(spec.config, epochs=1))
        for spec in select(whole.specs, "peptides-struct,seed=0")
        if spec.config is not None
    ]
    monkeypatch.setattr(table_runs, "get_experiment", lambda name: replace(whole, specs=tuple(short)))
    monkeypatch.setattr(table_runs, "_pool", lambda settings, ray: InlinePool(settings))
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path / "mirror"))
    arguments = ("reproduce", "peptides", "--results", tmp_path / "results", "--device", "cpu", "--json")
    without = json.loads(cli(*arguments).stdout)
    assert (without["done"], without["failed"], list(without["unavailable"])) == (0, [], ["peptides-struct"])
    few = replace(registry.get_spec("peptides-struct"), num_graphs=16)  # the loader expects all 15,535
    monkeypatch.setitem(registry._specs("molecules"), "peptides-struct", few)
    (tmp_path / "mirror").mkdir()
    write_lrgb(tmp_path / "mirror" / "peptidesstruct.zip", 11)
    result = cli(*arguments)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["done"], found["total"], found["unavailable"]) == (6, 6, {})
    rows = {(row["model"], row["collection"]): row["ours"] for row in found["tables"][0]["rows"]}
    assert all(rows[key] > 0 for key in (("pathnn", "sp"), ("pathnn", "sp+"), ("pathnn", "ap"), ("gin", None)))
