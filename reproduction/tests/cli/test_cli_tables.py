"""`pathnn reproduce zinc` and its like: the command line of an experiment."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathnn_reproduction import cli as table_runs
from pathnn_reproduction import experiments, runner
from pathnn_reproduction.spec import Experiment
from tiny_experiments import InlinePool, tiny_experiment

Run = Callable[..., Any]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """In place of ZINC, two seeds of a small network on CSL, in this process."""
    plan = tiny_experiment(2)
    monkeypatch.setattr(experiments, "get_experiment", lambda name: plan)
    monkeypatch.setattr(table_runs, "_pool", lambda settings, ray: InlinePool(settings))
    return plan


def test_says_that_it_begins_anew_where_there_are_no_results(cli: Run, tiny: Experiment, tmp_path: Path) -> None:
    arguments = ("reproduce", "zinc", "--results", tmp_path, "--device", "cpu")
    assert "is not there yet" not in cli(*arguments, "--limit", "0").stderr
    assert "zinc.jsonl is not there yet" in cli(*arguments).stderr
    assert "is not there yet" not in cli(*arguments).stderr


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
    monkeypatch.setattr(experiments, "get_experiment", lambda name: tiny_experiment(1, fold=9))
    monkeypatch.setattr(table_runs, "_pool", lambda settings, ray: InlinePool(settings))
    result = cli("reproduce", "zinc", "--results", tmp_path, "--device", "cpu", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed"][0]["error"].startswith("RunError: fold=9")
    assert "failed: csl-sp-k2-s0" in result.stderr


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
    assert f"{option}: " in result.stderr
    assert "is a file: expected a folder" in " ".join(result.stderr.replace("│", " ").split())


def test_the_first_signal_is_a_wish_and_the_second_an_order(capsys: pytest.CaptureFixture[str]) -> None:
    with table_runs.interruptible() as asked:
        assert not asked()
        signal.raise_signal(signal.SIGTERM)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert "stopping after the epochs under way" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize(
    ("device", "gpu", "asked", "ray", "expected"),
    [
        ("auto", True, None, None, table_runs.TOGETHER),
        ("cuda", True, 3, None, 3),
        ("cpu", True, 3, "auto", 1),
        ("auto", False, 3, None, 1),
        ("cuda", False, 3, "auto", 3),
    ],
)
def test_runs_are_grouped_where_a_gpu_trains_them(
    monkeypatch: pytest.MonkeyPatch, device: str, gpu: bool, asked: int | None, ray: str | None, expected: int
) -> None:
    """Elsewhere one process would do a group run by run, and the other --jobs nothing."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    assert table_runs.Place(Path("results"), None, device, 2, asked, ray).settings().together == expected


def test_limits_reach_the_runs_and_an_interrupt_is_exit_130(
    cli: Run, tiny: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {}

    def run_missing(*_: Any, **options: Any) -> runner.Progress:
        asked.update(options)
        return runner.Progress(2, 0, reason="interrupted")

    monkeypatch.setattr(runner, "run_missing", run_missing)
    arguments = ("--results", tmp_path, "--device", "cpu", "--time-limit", 2, "--limit", 3)
    result = cli("reproduce", "zinc", *arguments)
    assert result.exit_code == 130
    assert "2 left (interrupted)" in result.stdout
    assert asked["limit"] == 3
    assert 60 < asked["seconds"] <= 120  # minutes were given


def test_without_a_gpu_no_run_is_begun_on_it(
    cli: Run, tiny: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = cli("reproduce", "zinc", "--results", tmp_path, "--device", "cuda")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--device cuda needs a CUDA device" in result.stderr
    assert not list(tmp_path.iterdir())


def test_runs_are_kept_and_packed_as_asked(cli: Run, tiny: Experiment, tmp_path: Path) -> None:
    arguments = ("reproduce", "zinc", "--results", tmp_path / "results", "--work", tmp_path / "work", "--device", "cpu")
    packed = cli(*arguments, "--pack", tmp_path / "runs.tar", "--pack-part", 0.01)
    assert packed.exit_code == 0, packed.stderr
    assert "packed 1 runs" in packed.stderr
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["tiny"]
    assert not (tmp_path / "results" / ".runs").exists()
    parts = sorted(tmp_path.glob("runs.tar*"))
    assert parts[0].name == "runs.tar.000"
    assert len(parts) > 1
    assert all(part.stat().st_size <= 0.01 * 2**20 for part in parts)
    other = ("reproduce", "zinc", "--results", tmp_path / "other", "--work", tmp_path / "new", "--limit", 0)
    assert "unpacked 1 runs" in cli(*other, "--unpack", tmp_path / "runs.tar").stderr
    assert len(list((tmp_path / "new").rglob("model.safetensors"))) == 1
