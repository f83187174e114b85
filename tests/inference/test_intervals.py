"""Intervals and sets: the definition in the papers word for word, their coverage, and the file that calibrates them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from molecule_runs import small_config, write_molecules
from pathnn.evaluation import cross_validate, write_evaluation
from pathnn.inference import Predictor, intervals, load_runs, predict_file, predict_table
from pathnn.inference.intervals import Calibration
from pathnn.training import CheckpointError, RunError, TaskSignature, load_task, run, run_ensemble, setup
from pathnn.training.setup import calibration_part, choose_split, splits_of

SEEN = (0.5, 0.8, 0.9, 0.99)


def ensemble_of(kind: str, names: list[str], **options: Any) -> Any:
    """What `Calibration.of` reads of an ensemble, without networks."""
    signature = TaskSignature("t", kind, len(names), 3, None, "MAE", False, 1.0, names, **options)
    return SimpleNamespace(signature=signature, config=SimpleNamespace(target=("kind",)), members=())


def slow_interval(predictions: list[float], errors: list[float], level: float) -> tuple[float, float]:
    """CV+ of Barber et al. (2021), section 1.3: the prediction of each left-out molecule's network, and its error."""
    n, alpha = len(errors), 1 - Fraction(str(level))
    lower = sorted(mu - error for mu, error in zip(predictions, errors, strict=True))
    upper = sorted(mu + error for mu, error in zip(predictions, errors, strict=True))
    low, high = math.floor(alpha * (n + 1)), math.ceil((1 - alpha) * (n + 1))
    ends = lower[low - 1] if low >= 1 else -math.inf, upper[high - 1] if high <= n else math.inf
    return min(ends), max(ends)


def slow_set(scores: list[list[float]], errors: list[float], level: float) -> list[bool]:
    """CV+ of Romano et al. (2020), equation 11: scores of each class by the network of each left-out molecule."""
    least = Fraction(str(level)) * (len(errors) + 1)
    return [
        sum(error < row[c] for row, error in zip(scores, errors, strict=True)) < least for c in range(len(scores[0]))
    ]


@pytest.mark.parametrize("level", SEEN)
@pytest.mark.parametrize("folds", [0, 3])
def test_bounds_are_those_of_the_definition(monkeypatch, level, folds):
    """For two targets, of which one has unknown values and too few known ones for a high level; in small pieces."""
    monkeypatch.setattr(intervals, "AT_ONCE", 90)
    random = np.random.default_rng(0)
    ensemble = ensemble_of("regression", ["a", "b"], target_mean=(1.0, -2.0), target_std=(2.0, 0.5))
    scale, number = ensemble.signature.target_scale, np.arange(40) % (folds or 1)
    y = torch.from_numpy(random.normal(size=(40, 2)))
    y[8:, 1] = math.nan
    networks = 3
    known = torch.from_numpy(random.normal(size=(1 if folds else networks, 40, 2)))
    new = torch.from_numpy(random.normal(size=(networks, 11, 2)))
    found = Calibration.of(ensemble, known, y, number.tolist() if folds else ())
    lower, upper = found.bounds(new, level)
    decoded, values = scale.decode(known).numpy(), scale.decode(new).numpy()
    least = 0.01 * np.array([2.0, 0.5])
    for target, count in ((0, 40), (1, 8)):
        for i in range(11):
            error = np.abs(y[:, target].numpy() - decoded.mean(axis=0)[:, target])
            centre, unit = values[number, i, target], 1.0
            if not folds:
                error = error / (decoded.std(axis=0, ddof=1)[:, target] + least[target])
                centre = np.full(40, values[:, i, target].mean())
                unit = values[:, i, target].std(ddof=1) + least[target]
            slow = slow_interval(centre[:count].tolist(), (unit * error[:count]).tolist(), level)
            assert (lower[i, target], upper[i, target]) == pytest.approx(slow)
    few = {"a": (40, 99), "b": (8, 99)} if level == 0.99 else {"b": (8, 9)} if level == 0.9 else {}
    assert found.too_few(level) == few
    infinite = np.isinf(upper).all(axis=0)
    assert [name for name, wide in zip(("a", "b"), infinite, strict=True) if wide] == list(few)


@pytest.mark.parametrize("level", SEEN)
@pytest.mark.parametrize("kind", ["class", "multilabel"])
@pytest.mark.parametrize("folds", [0, 3])
def test_sets_are_those_of_the_definition(level, kind, folds):
    random, number = np.random.default_rng(1), np.arange(30) % (folds or 1)
    ensemble = ensemble_of(kind, ["a", "b", "c"])
    known, new = (torch.from_numpy(random.normal(size=(n, m, 3))) for n, m in ((1 if folds else 2, 30), (3, 7)))
    y = torch.from_numpy(random.integers(3, size=30) if kind == "class" else random.integers(2, size=(30, 3)) * 1.0)
    if kind == "multilabel":
        y[::4, 1] = math.nan
    found = Calibration.of(ensemble, known, y, number.tolist() if folds else ())
    sets = found.sets(new, level)
    assert sets.shape == ((7, 1, 3) if kind == "class" else (7, 3, 2))

    def scores(outputs: torch.Tensor, target: int) -> np.ndarray:
        p = outputs.double().softmax(-1) if kind == "class" else outputs.double().sigmoid()[..., target]
        return 1 - (p if kind == "class" else torch.stack([1 - p, p], -1)).numpy()

    for target in range(sets.shape[1]):
        right = (y if kind == "class" else y[:, target]).double().numpy()
        rows = np.flatnonzero(~np.isnan(right))
        before, after = scores(known, target).mean(axis=0), scores(new, target)
        errors = [before[i, int(right[i])] for i in rows]
        for i in range(7):
            each = [after[number[row], i] if folds else after.mean(axis=0)[i] for row in rows]
            assert sets[i, target].tolist() == slow_set([row.tolist() for row in each], errors, level)


@pytest.mark.parametrize(("number", "level"), [(14, 0.9), (99, 0.9), (99, 0.5)])
@pytest.mark.parametrize("kind", ["regression", "seeds", "class", "binary"])
def test_a_calibration_part_gives_exactly_the_promised_coverage(kind, number, level):
    """Exchangeable molecules: the mean coverage is rank / (n + 1), whatever the networks predict."""
    random, inside = np.random.default_rng(2), []
    ensemble = ensemble_of("regression" if kind == "seeds" else kind, ["a", "b", "c"] if kind == "class" else ["a"])
    for _ in range(400):
        x = torch.from_numpy(random.normal(size=(number + 100, 1)))
        noise = torch.from_numpy(random.normal(size=(number + 100, 3)))
        if kind in ("regression", "seeds"):
            y, outputs = x + noise[:, :1] * (0.1 + x.abs()), torch.stack([0.8 * x - 1])  # wrong, and uneven noise
            outputs = torch.stack([x + noise[:, i : i + 1] * x for i in (1, 2)]) if kind == "seeds" else outputs
        elif kind == "binary":
            y, outputs = (x + noise[:, :1] > 0.5).double(), torch.stack([3 * x])
        else:
            y, outputs = (noise + x * torch.tensor([1.0, 0.0, -1.0])).argmax(dim=1), (noise[None] + x) * 2
        found = Calibration.of(ensemble, outputs[:, :number], y[:number])
        if kind in ("regression", "seeds"):
            lower, upper = found.bounds(outputs[:, number:], level)
            inside.append(((lower <= y[number:].numpy()) & (y[number:].numpy() <= upper)).mean())
        else:
            sets, right = found.sets(outputs[:, number:], level)[:, 0], y[number:].long().flatten()
            inside.append(sets[np.arange(100), right].mean())
    expected = math.ceil(level * (number + 1)) / (number + 1)
    assert np.mean(inside) == pytest.approx(expected, abs=4 * np.std(inside) / math.sqrt(len(inside)))


def folds_of_a_line(random: np.random.Generator, number: int) -> tuple[float, float]:
    """Fit a polynomial without each of five folds, and return the coverage of 90 % CV+ and of training errors."""
    x = random.uniform(-1, 1, size=number + 200)
    y = np.sin(3 * x) + random.normal(size=len(x)) * 0.3
    fold, ensemble = np.arange(number) % 5, ensemble_of("regression", ["a"])
    fits = [np.polyfit(x[:number][fold != i], y[:number][fold != i], 8) for i in range(5)]
    outputs = torch.from_numpy(np.stack([np.polyval(fit, x) for fit in fits]))[..., None]
    own = outputs[torch.from_numpy(fold), torch.arange(number)][None]
    found = Calibration.of(ensemble, own, torch.from_numpy(y[:number, None]), fold.tolist())
    lower, upper = found.bounds(outputs[:, number:], 0.9)
    whole = np.polyfit(x[:number], y[:number], 8)
    narrow = np.quantile(np.abs(np.polyval(whole, x[:number]) - y[:number]), 0.9)
    new = y[number:, None]
    naive = np.abs(np.polyval(whole, x[number:]) - y[number:]) <= narrow
    return float(((lower <= new) & (new <= upper)).mean()), float(naive.mean())


def test_folds_cover_new_molecules_and_training_errors_do_not():
    random = np.random.default_rng(3)
    found, naive = np.mean([folds_of_a_line(random, 60) for _ in range(150)], axis=0)
    assert 0.89 < found < 0.95
    assert naive < 0.86, "the test would see intervals that are too narrow"


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    return write_molecules(tmp_path_factory.mktemp("data") / "molecules.csv")


@pytest.fixture(scope="module")
def runs(molecules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folds of two targets with unknown values, seeds with a calibration part, classes, labels, and a plain run."""
    folder = tmp_path_factory.mktemp("runs")
    cross_validate(small_config(molecules, ("size", "twice")), folder / "folds", 3)
    for name, target, options in (
        ("seeds", "size", {"calibration": 0.2}), ("class", "letter", {"calibration": 0.2}),
        ("label", "active", {"calibration": 0.2}), ("plain", "size", {}),
    ):  # fmt: skip
        config = small_config(molecules, target, **options)
        task = load_task(config)
        if name == "seeds":
            run_ensemble(config, folder / name, 2, task=task)
        else:
            run(config, folder / name, task=task)
        write_evaluation(folder / name, task)
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_every_kind_of_run_adds_its_columns(runs, molecules):
    added = {
        "folds": ["size_lower", "size_upper", "twice_lower", "twice_upper"], "seeds": ["size_lower", "size_upper"],
        "class": ["letter_set"], "label": ["active_set"],
    }  # fmt: skip
    for name, columns in added.items():
        plain, table = (predict_table(Predictor(runs / name, interval=level), str(molecules)) for level in (None, 0.8))
        assert [column for column in table.predicted if column not in plain.predicted] == columns
        assert Predictor(runs / name, interval=0.8)(["C("])[columns[0]] == [None]
        for row in table.rows:
            values = dict(zip(table.header, row, strict=True))
            if name in ("folds", "seeds"):
                assert values["size_lower"] <= values["predicted_size"] <= values["size_upper"]
            else:
                words = {"a", "b", "c"} if name == "class" else {"0", "1"}
                assert {*filter(None, values[columns[0]].split("|"))} <= words


def test_the_columns_are_those_of_the_calibration_in_chunks(runs, molecules, tmp_path, monkeypatch):
    predictor = Predictor(runs / "folds", interval=0.8)
    predict_file(predictor, str(molecules), tmp_path / "whole.csv")
    monkeypatch.setattr("pathnn.inference.stream.CHUNK_ROWS", 7)
    predict_file(predictor, str(molecules), tmp_path / "chunks.csv")
    rows, others = (rows_of(tmp_path / name) for name in ("whole.csv", "chunks.csv"))
    for name in ("size_lower", "twice_upper"):
        assert [float(row[name]) for row in rows] == pytest.approx([float(row[name]) for row in others], rel=1e-5)
    partial = tmp_path / "stopped.csv"

    def stop(chunk: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_file(predictor, str(molecules), partial, report=stop)
    with pytest.raises(ValueError, match="this has changed: --interval"):
        predict_file(Predictor(runs / "folds", interval=0.5), str(molecules), partial, resume=True)


def test_the_file_of_folds_has_the_errors_of_held_out_molecules(runs):
    found = json.loads((runs / "folds" / "intervals.json").read_text())
    rows = rows_of(runs / "folds" / "out_of_fold.csv")
    assert (found["targets"], found["folds"]) == (["size", "twice"], [int(row["fold"]) for row in rows])
    for i, name in enumerate(found["targets"]):
        for row, score in zip(rows, found["scores"], strict=True):
            error = abs(float(row[name]) - float(row[f"predicted_{name}"])) if row[name] else None
            assert score[i] == pytest.approx(error, abs=1e-4)


def test_what_calibrates_trains_no_network_and_chooses_no_epoch(molecules, tmp_path, monkeypatch):
    """Other targets of these molecules give the same networks. A run is seeded by its data: by a fixed text here."""
    monkeypatch.setattr(setup, "data_key", lambda config, task: "fixed")
    for options in ({"calibration": 0.2}, {"folds": 3, "fold": 1}):
        config = small_config(molecules, epochs=3, **options)
        task = load_task(config)
        split = choose_split(task, config)
        part = calibration_part(task, config) if config.calibration else split.test
        joined = torch.cat([split.train, split.val, part, *([split.test] if config.calibration else [])])
        assert sorted(joined.tolist()) == list(range(60)), "the parts are disjoint"
        y = task.graphs.y.clone()
        y[part] = 100 - 3 * y[part]
        weights = []
        for name, one in (("one", task), ("two", task.with_graphs(replace(task.graphs, y=y)))):
            out = tmp_path / f"{config.folds}-{name}"
            run(config, out, task=one)
            weights.append(load_runs(out).members[0])
        assert weights[0].epoch == weights[1].epoch
        for one, two in zip(*(member.model.state_dict().values() for member in weights), strict=True):
            assert torch.equal(one, two)


def test_the_calibration_part_is_random_and_keeps_copies_together(molecules):
    config = small_config(molecules, calibration=0.25)
    task = load_task(config)
    whole = splits_of(task, config)[0].train
    copied = replace(task, groups=torch.arange(60) // 2)
    part = {*calibration_part(copied, config).tolist()}
    assert abs(len(part) - 0.25 * whole.numel()) <= 2
    for one, two in zip(range(0, 60, 2), range(1, 60, 2), strict=True):
        if {one, two} <= {*whole.tolist()}:
            assert (one in part) == (two in part)
    with pytest.raises(RunError, match=r"calibration=0.001 of 48 training graphs is none"):
        choose_split(task, replace(config, calibration=0.001))
    with pytest.raises(RunError, match="leave out calibration"):
        replace(config, folds=3)
    with pytest.raises(RunError, match=r"calibration=1.5"):
        replace(config, calibration=1.5)


def test_a_run_without_calibration_and_wrong_files_are_refused(runs, tmp_path):
    for source in (runs / "plain", runs / "folds" / "fold-0", runs / "seeds" / "seed-0", "zinc-ap"):
        with pytest.raises(ValueError, match=r"no intervals.json.*--folds 5 or with --calibration 0.1"):
            Predictor(source, interval=0.9)
    for level in (0, 1, 90):
        with pytest.raises(ValueError, match="expected a level between 0 and 1"):
            Predictor(runs / "seeds", interval=level)
    with pytest.raises(ValueError, match="folder of the run"):
        Predictor(load_runs(runs / "seeds"), interval=0.9)
    file = runs / "label" / "intervals.json"
    content = file.read_text()
    try:
        for damaged in ("{", "[]", "{}", content.replace("intervals-1", "intervals-2"), content.replace("[]", "[7]")):
            file.write_text(damaged)
            with pytest.raises(CheckpointError, match="cannot be read"):
                Predictor(runs / "label", interval=0.9)
        file.write_text((runs / "class" / "intervals.json").read_text())
        with pytest.raises(CheckpointError, match="other networks"):
            Predictor(runs / "label", interval=0.9)
    finally:
        file.write_text(content)
