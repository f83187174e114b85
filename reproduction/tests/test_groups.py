"""Runs that cannot be trained at once are trained in smaller groups, or given back; one that fails ends alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pathnn.training import RunStoppedError
from pathnn.training.loop import Epoch
from pathnn.training.together import TogetherError
from pathnn_reproduction import execute, groups, pool
from pathnn_reproduction.execute import Executor
from pathnn_reproduction.groups import in_groups
from pathnn_reproduction.pool import outcomes
from pathnn_reproduction.settings import Settings
from tiny_experiments import tiny_experiment, tiny_run


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path_factory.getbasetemp() / "experiments-cache"))
    monkeypatch.setenv("PATHNN_OFFLINE", "1")


def test_where_memory_is_short_groups_are_halved() -> None:
    tried: list[list[int]] = []

    def together(places: list[int]) -> Iterator[tuple[int, str]]:
        tried.append(list(places))
        if len(places) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        yield places[0], "together"
        if 3 in places:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        yield places[1], "together"

    found = dict(in_groups([0, 1, 2, 3, 4], together, lambda place: "alone"))
    assert tried == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 1], [3, 4]]
    assert found == {0: "together", 1: "together", 2: "alone", 3: "together", 4: "alone"}
    assert list(in_groups([], together, lambda place: "alone")) == []


def test_one_that_fails_alone_ends_alone_and_a_stop_ends_all() -> None:
    def together(places: list[int]) -> Iterator[tuple[int, str]]:
        raise torch.OutOfMemoryError("CUDA out of memory.")
        yield 0, ""

    def alone(place: int) -> str:
        if place == 3:
            raise RunStoppedError("stopped")
        if place:
            return "done"
        raise ValueError("wrong")

    found = in_groups([0, 1, 3, 2], together, alone)
    place, error = next(found)
    assert (place, repr(error)) == (0, "ValueError('wrong')")
    assert next(found) == (1, "done")
    with pytest.raises(RunStoppedError):
        next(found)


def test_of_runs_that_cannot_be_trained_together_one_is_trained(tmp_path: Path) -> None:
    """Without a GPU: the first has a damaged result, the second a damaged checkpoint, the others are well."""
    execute_run, runs = Executor(Settings(tmp_path, "cpu", together=4)), tiny_experiment(4).runs
    for run, file in zip(runs[:2], ("result.json", "last.ckpt"), strict=True):
        (tmp_path / "tiny" / run.folder).mkdir(parents=True)
        (tmp_path / "tiny" / run.folder / "config.yaml").write_text(run.config.to_yaml())
        (tmp_path / "tiny" / run.folder / file).write_text("damaged")
    told: set[int] = set()

    def report(place: int, epoch: Epoch) -> None:
        told.add(place)

    found = dict(execute_run.together(runs, report=report))
    assert "result.json is damaged" in str(found[0])
    assert "last.ckpt is damaged" in str(found[1])
    assert isinstance(found[3], TogetherError)
    assert told == {2}
    messages = list(outcomes(execute_run, [*runs, tiny_run(4)], lambda: False))
    assert [(kind, values["place"]) for kind, values in messages] == [
        ("failed", 0), ("done", 2), ("failed", 1), ("apart", 4), ("done", 3),
    ]  # fmt: skip


@pytest.mark.parametrize("number", [1, 2])
def test_what_a_run_that_failed_held_is_given_back_before_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    class Held:
        pass

    alive: list[weakref.ref[Held]] = []
    left: list[int] = []

    def no_room(*arguments: object, **options: object) -> None:
        held = Held()  # as a tensor in a frame of the traceback
        alive.append(weakref.ref(held))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    def no_room_together(*arguments: object, **options: object) -> Iterator[tuple[int, dict[str, object]]]:
        no_room()
        yield 0, {}

    def free() -> None:
        gc.collect()
        left.append(sum(reference() is not None for reference in alive))

    monkeypatch.setattr(execute, "train_run", no_room)
    monkeypatch.setattr(execute, "run_together", no_room_together)
    for module in (execute, groups, pool):
        monkeypatch.setattr(module, "release_memory", free)
    executor = Executor(Settings(tmp_path, "cpu", together=2))
    for kind, _ in pool.outcomes(executor, tiny_experiment(number).runs, lambda: False):
        assert (kind, left[-1]) == ("failed", 0)


def test_a_group_that_takes_too_much_memory_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*arguments: object, **options: object) -> Iterator[tuple[int, dict[str, object]]]:
        raise torch.OutOfMemoryError("CUDA out of memory.")
        yield 0, {}

    monkeypatch.setattr(execute, "run_together", no_room)
    found = dict(Executor(Settings(tmp_path, "cpu", together=3)).together(tiny_experiment(3).runs))
    assert [found[place]["seed"] for place in range(3)] == [0, 1, 2]  # type: ignore[index]


def test_processes_share_the_memory_and_a_run_that_goes_on_keeps_its_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = {"entries": 4096}
    monkeypatch.setattr("pathnn_reproduction.execute.default_max_entries", lambda *_, **__: room["entries"])
    for jobs, expected in ((1, 4096), (3, 1024)):
        executor = Executor(Settings(tmp_path / str(jobs), "cpu", jobs))
        assert executor(tiny_run())["config"]["max_entries"] == expected
    with pytest.raises(RunStoppedError):
        executor(tiny_run(1), stop=lambda: True)
    room["entries"] = 600
    assert executor(tiny_run(1))["config"]["max_entries"] == 1024


@pytest.mark.parametrize("lost", [BrokenPipeError, ConnectionResetError])
def test_a_lost_connection_is_not_about_one_run(lost: type[Exception]) -> None:
    def alone(place: int) -> str:
        raise lost

    with pytest.raises(lost):
        list(in_groups([0], lambda places: iter(()), alone))
