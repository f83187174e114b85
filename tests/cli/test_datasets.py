"""`pathnn datasets`: the list, fetching, verifying."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathnn.data import dataset_names

Run = Callable[..., Any]


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_list_has_every_dataset(cli: Run, own_cache: Path) -> None:
    result = cli("datasets", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["cache"], found["mirror"]) == (str(own_cache), None)
    assert [row["name"] for row in found["datasets"]] == list(dataset_names())
    state = {row["name"]: row for row in found["datasets"]}
    assert state["atlas"]["available"]
    assert not state["dd"]["available"]


def test_the_table_follows_the_cache(cli: Run, own_cache: Path) -> None:
    assert _line(cli("datasets").stdout, "atlas").split()[-3:] == ["built", "in", "1,253"]
    assert cli("datasets", "fetch", "atlas").exit_code == 0
    assert _line(cli("datasets").stdout, "atlas").split()[-2:] == ["cached", "1,253"]


def _line(table: str, name: str) -> str:
    return next(line for line in table.splitlines() if line.split()[:1] == [name])


def test_fetch_says_where(cli: Run, own_cache: Path) -> None:
    result = cli("datasets", "fetch", "Atlas", "csl", "--json")
    assert result.exit_code == 0, result.stderr
    for row, name in zip(json.loads(result.stdout)["fetched"], ("atlas", "csl"), strict=True):
        assert row["name"] == name
        assert Path(row["path"]).stat().st_size == row["bytes"]
        assert own_cache in Path(row["path"]).parents


def test_sizes_in_the_table_are_each_datasets_own(cli: Run, own_cache: Path) -> None:
    lines = cli("datasets", "fetch", "atlas", "csl").stdout
    assert _line(lines, "atlas").split()[-2:] != _line(lines, "csl").split()[-2:]


def test_an_unknown_name_fetches_nothing(cli: Run, own_cache: Path) -> None:
    result = cli("datasets", "fetch", "atlas", "zink")
    assert result.exit_code == 1
    assert "did you mean zinc" in result.stderr
    assert result.stdout == ""
    assert not (own_cache / "built").exists()


def test_what_is_not_at_hand_cannot_be_fetched(cli: Run, own_cache: Path) -> None:
    result = cli("datasets", "fetch", "dd")
    assert result.exit_code == 1
    assert "PATHNN_MIRROR" in result.stderr
    assert result.stderr.count("\n") == 1


def test_verify_finds_a_damaged_build(cli: Run, own_cache: Path) -> None:
    cli("datasets", "fetch", "atlas")
    sound = cli("datasets", "verify", "atlas", "--json")
    assert sound.exit_code == 0, sound.stderr
    assert json.loads(sound.stdout)["sound"] is True
    (built,) = (own_cache / "built").glob("atlas*")
    content = bytearray(built.read_bytes())
    content[len(content) // 2] ^= 0xFF
    built.write_bytes(content)
    damaged = cli("datasets", "verify", "atlas", "--json")
    assert damaged.exit_code == 1
    assert json.loads(damaged.stdout)["sound"] is False
    assert "damaged" in damaged.stderr


def test_verify_of_what_is_not_there_fails(cli: Run, own_cache: Path) -> None:
    result = cli("datasets", "verify", "dd")
    assert result.exit_code == 1
    assert "pathnn datasets fetch dd" in result.stderr
    assert cli("datasets", "verify", "zink").exit_code == 1


def test_verify_without_names_takes_what_is_at_hand(cli: Run, own_cache: Path) -> None:
    cli("datasets", "fetch", "atlas")
    result = cli("datasets", "verify", "--json")
    assert result.exit_code == 0, result.stderr
    names = {check["dataset"] for check in json.loads(result.stdout)["checks"]}
    assert "atlas" in names
    assert "dd" not in names


def test_json_before_a_subcommand_is_wrong_usage(cli: Run) -> None:
    result = cli("datasets", "--json", "fetch", "atlas")
    assert result.exit_code == 2
    assert result.stdout == ""


def test_the_mirror_is_seen(cli: Run, own_cache: Path, mirror: Path) -> None:
    found = json.loads(cli("datasets", "--json").stdout)
    assert found["mirror"] == str(mirror)
    assert all(row["available"] for row in found["datasets"] if row["name"] != "peptides-struct")
    assert cli("datasets", "verify", "sr16622", "--json").exit_code == 0
