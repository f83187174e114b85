"""Results files: rows are complete, several processes may add them, and a kill damages nothing."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pathnn_reproduction.results import Results, ResultsError, config_hash, measured_row, v1_options
from pathnn_reproduction.spec import RunSpec
from tiny_experiments import made_up_row, tiny_experiment, tiny_spec

ROOT = Path(__file__).resolve().parents[2]


def add(results: Results, spec: RunSpec, val: float, **more: Any) -> None:
    results.add({**made_up_row(spec, val), **more}, spec.key)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("sr", [(95, "6edbabada6f7a0e030a6d56fe16f319cac8c83e51a18a97dd25e14b9b06c87b4")]),
        ("brec", [(241, "140972042414c56be0250b02867885387afd4b3585b6d2afdf8d10388293cc6a")]),
    ],
)
def test_rows_that_were_json_documents_are_the_same(name: str, parts: list[tuple[int, str]]) -> None:
    """Compare the first rows with those of `{name}.json` at commit d1f84e5; BREC had two files."""
    rows = Results.open(ROOT / "results" / f"{name}.jsonl").rows
    for count, digest in parts:
        assert hashlib.sha256(json.dumps(rows[:count], sort_keys=True).encode()).hexdigest() == digest


def test_a_file_that_changes_meanwhile_is_read_again(tmp_path: Path) -> None:
    path, specs = tmp_path / "tiny.jsonl", tiny_experiment(4).specs
    lines = [json.dumps({**made_up_row(spec, 1.0), "commit": "x" * 30 * i}) for i, spec in enumerate(specs)]
    path.write_text(lines[0] + "\n")
    results = Results.open(path)
    path.write_text(f"{lines[3]}\n\n{lines[0]}")  # merged with the file of another machine, no newline at the end
    results.add(json.loads(lines[1]), specs[1].key)
    assert {row["seed"] for row in results} == {0, 1, 3}
    assert len(results) == 3
    assert [row["seed"] for row in Results.open(path)] == [3, 0, 1]
    path.write_text(path.read_text() + "damaged\n" + lines[2] + "\n")
    for _ in range(2):
        with pytest.raises(ResultsError, match="is damaged in line 5: "):
            results.add(json.loads(lines[2]), specs[2].key)
    assert len(results) == 3


def test_a_line_cut_off_by_a_kill_is_left_out_and_overwritten(tmp_path: Path) -> None:
    path, specs = tmp_path / "tiny.jsonl", tiny_experiment(3).specs
    add(Results.open(path), specs[0], 1.0)
    with path.open("a") as file:
        file.write('{"model": "pathnn", "dat')
    again = Results.open(path)
    assert len(again) == 1
    add(again, specs[1], 2.0)
    assert [row["val"] for row in Results.open(path)] == [1.0, 2.0]
    assert Results.open(path).find(specs[1].key) is not None
    assert Results.open(path).find(specs[2].key) is None


def test_two_processes_may_add_and_none_adds_twice(tmp_path: Path) -> None:
    path, specs = tmp_path / "tiny.jsonl", tiny_experiment(3).specs
    one, two = Results.open(path), Results.open(path)
    add(one, specs[0], 1.0)
    add(two, specs[1], 2.0)
    add(two, specs[0], 3.0)
    add(one, specs[2], 4.0)
    assert [row["val"] for row in Results.open(path)] == [1.0, 2.0, 4.0]
    assert one.find(specs[1].key) == two.find(specs[1].key)
    assert two.find(specs[0].key) == {**made_up_row(specs[0], 1.0)}
    path.write_text(path.read_text().splitlines(keepends=True)[0])  # someone removes rows by hand
    add(one, specs[1], 5.0)
    assert [row["val"] for row in Results.open(path)] == [1.0, 5.0]


def test_rows_of_threads_are_all_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"

    def write(k: int) -> None:
        spec = RunSpec(target="sr", key={"k": k})
        Results.open(path).add(measured_row(spec, {"seconds": 1.0}), spec.key)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(40)))
    rows = Results.open(path).rows
    assert sorted(row["k"] for row in rows) == list(range(40))
    assert {"commit", "time", "device", "versions"} <= set(rows[0])


def test_a_damaged_row_is_refused(tmp_path: Path) -> None:
    path, row = tmp_path / "tiny.jsonl", made_up_row(tiny_spec(), 1.0)
    for wrong, message in (
        ({**row, "val": "1.0"}, "val='1.0': expected a finite number"),
        ({**row, "test": float("nan")}, "test=nan: expected a finite number"),
        ({**row, "config_hash": "0"}, "does not belong to the config"),
        ({**row, "config": {**row["config"], "lr": 0.5}}, "does not belong to the config"),
        ({**row, "config": 3}, "config=3: expected the options"),
        ({key: value for key, value in row.items() if key != "test"}, "lacks test"),
        ({"k": 1}, "lacks commit, device, time"),
        ([], "is not a row: expected a JSON object"),
    ):
        path.write_text(json.dumps(wrong) + "\n")
        with pytest.raises(ResultsError, match=message):
            Results.open(path)
    path.write_text("{\n")
    with pytest.raises(ResultsError, match="damaged in line 1"):
        Results.open(path)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises((ResultsError, OSError)):
        Results(tmp_path).add(made_up_row(tiny_spec(), 1.0), tiny_spec().key)


def test_the_hash_is_of_what_is_computed() -> None:
    config = tiny_spec().config
    assert config is not None
    options = v1_options(config)
    assert config_hash({**options, "device": "cuda", "max_entries": 64}) == config_hash(options)
    for change in ({"lr": 0.01}, {"seed": 5}, {"options": {"hidden_channels": 8}}):
        assert config_hash({**options, **change}) != config_hash(options)
