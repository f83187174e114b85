"""The report: one page that says first which model is best, and needs nothing besides itself."""

from __future__ import annotations

import builtins
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch

from molecule_runs import MOLECULES, small_config
from pathnn.evaluation import Predictions, cross_validate, report, write_evaluation
from pathnn.evaluation.figures import calibration_curve
from pathnn.evaluation.report import errors, verdict
from pathnn.inference.similarity import load_training_molecules
from pathnn.training import TaskSignature, load_task, run, run_ensemble


def test_calibration_curve_has_parts_of_equal_size() -> None:
    curve = calibration_curve(np.array([0, 1, 1, 1]), np.array([0.1, 0.3, 0.8, 1.0]), bins=2)
    assert [part.tolist() for part in curve] == [[0.2, 0.9], [0.5, 1.0]]


class Page(HTMLParser):
    """Checks that tags are closed, and keeps the text and the tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.tags, self.links, self.text = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]
        if tag not in ("meta", "br", "path", "use", "rect", "circle", "ellipse", "line", "polygon", "image"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]

    def handle_endtag(self, tag):
        if tag not in ("path", "use", "rect", "circle", "ellipse", "line", "polygon", "image"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


def page_of(folder: Path) -> Page:
    page = Page((folder / "report.html").read_text())
    assert page.open == []
    assert all(link.startswith(("#", "data:")) for link in page.links), "nothing is loaded"
    assert not {"script", "link", "iframe"} & {*page.tags}
    return page


@pytest.mark.parametrize(
    ("target", "has"),
    [
        ("size", "prediction − target"), (("size", "twice"), "predicted twice"), ("active", "false positive rate"),
        ("letter", "Confusion matrix"),
    ],
)  # fmt: skip
def test_every_kind_of_target_has_a_page(molecules, tmp_path, target, has):
    config = small_config(molecules, target)
    task = load_task(config)
    run(config, tmp_path / "run", task=task)
    assert write_evaluation(tmp_path / "run", task) == {}
    page = page_of(tmp_path / "run")
    assert has in page.text
    assert "of this model is" in page.text
    assert ("95 % interval" in page.text) == (target != ("size", "twice"))
    assert "Fewer than 10 molecules are too few for intervals" in page.text
    assert "48 training, 6 validation, 6 test rows" in page.text
    assert page.text.count("nearest training molecule") == 6, "all of the test part"
    stored = load_training_molecules(tmp_path / "run")
    assert sorted(stored.smiles) == sorted(MOLECULES[i] for i in task.splits[0].train.tolist())


def test_folds_and_seeds_have_a_page(molecules, tmp_path):
    config = small_config(molecules)
    task = load_task(config)
    cross_validate(config, tmp_path / "folds", 2, task=task)
    write_evaluation(tmp_path / "folds", task)
    page = page_of(tmp_path / "folds")
    assert "On 60 molecules that each fold held out, the MAE of this model is" in page.text
    assert "2 folds of 60 rows at random" in page.text
    assert "folds: 2" in page.text
    assert "fold: 2" not in page.text, "the number of all folds together is no option"
    assert page.text.count("nearest training molecule") == 10
    run_ensemble(config, tmp_path / "seeds", 2, task=task)
    write_evaluation(tmp_path / "seeds", task)
    assert "2 networks, one per seed" in page_of(tmp_path / "seeds").text


def test_intervals_have_a_table_and_a_diagram_where_a_test_part_measures_them(molecules, tmp_path):
    for target, title in (
        (("size", "twice"), "Intervals"),
        ("letter", "Sets of classes"),
        ("active", "Sets of classes"),
    ):
        config = small_config(molecules, target, calibration=0.25, epochs=1)
        task, out = load_task(config), tmp_path / title / str(target)
        run(config, out, task=task)
        write_evaluation(out, task)
        page = page_of(out)
        assert title in page.text
        assert "share of targets inside" in page.text
        assert ("share of right predictions" in page.text) == (target == "letter")
        assert ("share of positives" in page.text) == (target == "active")
        assert "36 training, 6 validation, 6 test rows, 12 calibration rows" in page.text
        wide = re.search(r"<td>90 %</td><td>([0-9.]+) %</td>", (out / "report.html").read_text())
        assert wide is not None
        assert float(wide[1]) in [round(100 * i / 6, 1) for i in range(7)]
    cross_validate(small_config(molecules, epochs=1), tmp_path / "folds", 2)
    write_evaluation(tmp_path / "folds", load_task(small_config(molecules)))
    assert "Their coverage is not measured here" in page_of(tmp_path / "folds").text


def test_no_molecule_is_its_own_nearest_in_cross_validation(molecules, tmp_path):
    config = small_config(molecules)
    task = load_task(config)
    cross_validate(config, tmp_path / "folds", 2, task=task)
    write_evaluation(tmp_path / "folds", task)
    text = (tmp_path / "folds" / "report.html").read_text()
    for card in re.findall(r"<article>.*?</article>", text, flags=re.DOTALL):
        asked, near = re.findall(r"class='smiles'>(.*?)<", card)
        assert asked != near


def test_without_a_test_part_there_is_no_report(molecules, tmp_path):
    table = tmp_path / "no_test.csv"
    table.write_text(molecules.read_text().replace(",test", ",train"))
    config = small_config(table, split_by="part", epochs=1)
    task = load_task(config)
    run(config, tmp_path / "run", task=task)
    assert write_evaluation(tmp_path / "run", task) == {}
    assert not (tmp_path / "run" / "report.html").exists()
    assert len(load_training_molecules(tmp_path / "run").smiles) == 48


def test_without_matplotlib_the_report_says_so(molecules, tmp_path, monkeypatch):
    config = small_config(molecules, "letter", epochs=1)
    task = load_task(config)
    run(config, tmp_path / "run", task=task)
    find = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return find(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    write_evaluation(tmp_path / "run", task)
    page = page_of(tmp_path / "run")
    assert "no plots, which need matplotlib" in page.text
    assert "Confusion matrix" in page.text


def test_names_are_escaped(tmp_path):
    table = tmp_path / "my <b> & $data.csv"
    lines = ["smiles,<i>size</i> $y", *(f"{smiles},{len(smiles)}" for smiles in MOLECULES)]
    table.write_text("\n".join(lines) + "\n")
    config = small_config(table, ("<i>size</i> $y",), epochs=1)
    task = load_task(config)
    run(config, tmp_path / "run", task=task)
    write_evaluation(tmp_path / "run", task)
    page = page_of(tmp_path / "run")
    assert "<i>size</i> $y of my <b> & $data.csv" in page.text
    assert "b" not in page.tags


def made(error: float) -> Predictions:
    y = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]
    signature = TaskSignature("t", "regression", 1, 3, None, "MAE", False, 1.0, ["a"])
    sign = torch.tensor([1.0, -1.0]).repeat(20)[:, None]
    return Predictions(signature, tuple(range(40)), ("C",) * 40, y, y + error * sign)


def test_the_first_sentence_names_the_better_model():
    own, good, bad, mean = made(0.2), made(0.1), made(0.3), made(0.5)
    lost = verdict(own, mean, {"random forest, Morgan": good, "LightGBM, Morgan": bad})
    assert lost.startswith('<p class="verdict"><strong>A simpler model is better: the MAE of a random')
    assert "a random forest on Morgan fingerprints is 0.1." in lost
    won = verdict(own, mean, {"random forest, Morgan": bad})
    assert won.startswith('<p class="verdict">On 40 test molecules, the MAE of this model is 0.2')
    assert "a random forest on Morgan fingerprints, is not better: 0.3." in won
    trivial = verdict(own, good, {})
    assert "<strong>This model is no better than predicting the mean of the training targets.</strong>" in trivial
    assert "within what another choice" in verdict(own, mean, {"LightGBM, descriptors": made(0.2)})


def test_errors_are_comparable_between_targets():
    found = made(0.2)
    two = Predictions(
        found.signature, found.rows, found.smiles, torch.cat([found.y, 100 * found.y], 1),
        torch.cat([found.out, 100 * found.out], 1),
    )  # fmt: skip
    assert errors(two).tolist() == pytest.approx(errors(found).tolist())


def several(*models: Predictions) -> Predictions:
    y, out = (torch.cat([getattr(one, name) for one in models], 1) for name in ("y", "out"))
    names = [f"<{i}>" for i in range(len(models))]
    return replace(
        models[0], signature=replace(models[0].signature, classes=names, out_channels=len(models)), y=y, out=out
    )


def test_several_targets_are_compared_one_by_one():
    own, mean = several(made(0.2), made(0.3)), several(made(0.5), made(0.5))
    own.y[:12, 1] = torch.nan
    mean.y[:12, 1] = torch.nan
    better_for_one = several(made(0.1), made(0.4))
    better_for_one.y[:12, 1] = torch.nan
    text = verdict(own, mean, {"LightGBM, Morgan": better_for_one})
    assert "<strong>A simpler model is as good or better for 1 of 2 targets: &lt;0&gt;.</strong>" in text
    assert "&lt;0&gt;: <strong>A simpler model is better: the MAE of LightGBM on Morgan fingerprints is 0.1." in text
    assert "&lt;1&gt;: On 28 test molecules, the MAE of this model is 0.3 (95 % interval 0.3 to 0.3); that of" in text
    assert "0 of 2 targets.</strong>" in verdict(own, mean, {})
    scores = report._scores(own)
    assert "<td>&lt;1&gt;</td><td>28</td><td>0.3</td>" in scores
    assert "<td>mean of the targets</td><td>40</td><td>0.25</td>" in scores
    assert report._models(own, {"LightGBM, Morgan": better_for_one}).count("<h3>") == 2


def test_few_molecules_have_no_intervals_and_are_not_distinguishable():
    def few(error: float, count: int) -> Predictions:
        found = made(error)
        return replace(
            found, rows=found.rows[:count], smiles=(), y=found.y[:count], out=found.out[:count], _resampled={}
        )

    for count in (1, 9, 10):
        own, other = few(0.1, count), few(0.2, count)
        page = (
            verdict(own, other, {"LightGBM, Morgan": other}) + report._scores(own) + report._models(own, {"a": other})
        )
        assert ("95 % interval 0.1 to 0.1" in page) == (count == 10)
        assert page.count("yes</td>") == (count == 10)
        assert page.count("Fewer than 10 molecules are too few") == (0 if count == 10 else 2)
        assert "within what another choice" not in page
