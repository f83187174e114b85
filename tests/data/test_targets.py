"""Targets that are known for some graphs only: read from a CSV, and what loss and metric make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from pathnn.data import DataError, PackedGraphs, load_data, load_dataset, task_from_graphs
from pathnn.data.errors import BadRowsError
from pathnn.data.metric_states import MeanOverTargets
from pathnn.data.metrics import mean_absolute_error
from pathnn.data.readers.table import as_number, class_key, class_names, is_missing, is_missing_number
from pathnn.data.task import MaskedLoss, known_fraction, number_name, target_fields, weighted_loss
from pathnn.training.errors import NotFiniteError
from pathnn.training.setup import check_finite_targets

nan = torch.nan
Y = torch.tensor([[1.0, nan, 0.0], [nan, nan, 1.0], [0.0, 1.0, nan], [1.0, 0.0, 0.0]])
OUT = torch.tensor([[0.3, 9.0, -0.2], [7.0, -8.0, 0.9], [0.1, 0.4, 5.0], [-0.6, 0.2, 1.1]])
KNOWN = [(0, 0), (0, 2), (1, 2), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]


@pytest.mark.parametrize("function", [nn.L1Loss, nn.BCEWithLogitsLoss])
def test_the_loss_is_the_mean_over_what_is_known(function):
    out = OUT.clone().requires_grad_()
    loss = MaskedLoss(function, known_fraction(Y))(out, Y)
    expected = sum(function()(OUT[i, j], Y[i, j]) for i, j in KNOWN) / len(KNOWN)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert out.grad is not None
    assert bool(out.grad.isfinite().all())
    assert bool((out.grad[Y.isnan()] == 0).all())
    assert bool((out.grad[~Y.isnan()] != 0).all())


def test_the_loss_of_all_is_the_mean_of_the_losses_of_batches_over_their_graphs():
    loss = MaskedLoss(nn.L1Loss, known_fraction(Y))
    parts = [3 * loss(OUT[:3], Y[:3]), 1 * loss(OUT[3:], Y[3:])]
    torch.testing.assert_close((parts[0] + parts[1]) / 4, loss(OUT, Y))
    loss.reduction = "none"
    torch.testing.assert_close(loss(OUT, Y).mean(dim=1).mean(), MaskedLoss(nn.L1Loss, known_fraction(Y))(OUT, Y))


def test_without_a_share_a_batch_is_all_there_is():
    loss = MaskedLoss(nn.L1Loss)
    expected = [sum(abs(float(OUT[i, j] - Y[i, j])) for i, j in KNOWN if i in rows) for rows in ({0, 1}, {2, 3})]
    assert float(loss(OUT[:2], Y[:2])) == pytest.approx(expected[0] / 3)
    assert float(loss(OUT[2:], Y[2:])) == pytest.approx(expected[1] / 5)
    assert float(loss(OUT, torch.full_like(Y, nan))) == 0.0


@pytest.mark.parametrize("share", [0.0, 1.5, nan])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="share"):
        MaskedLoss(nn.L1Loss, share)


def test_the_error_is_the_mean_over_targets_of_the_mean_over_graphs():
    metric = MeanOverTargets(mean_absolute_error)
    metric.update(OUT[:2], Y[:2])
    metric.update(OUT[2:], Y[2:])
    each = [[abs(float(OUT[i, j] - Y[i, j])) for i, column in KNOWN if column == j] for j in range(3)]
    assert float(metric.compute()) == pytest.approx(sum(sum(e) / len(e) for e in each) / 3)
    metric.reset()
    metric.update(OUT[:1], Y[:1])  # the second target is not known at all
    assert float(metric.compute()) == pytest.approx((0.7 + 0.2) / 2)


def test_all_known_is_as_ever():
    assert target_fields("regression", 2)["loss"] is nn.L1Loss
    assert target_fields("multilabel", 2)["loss"] is nn.BCEWithLogitsLoss
    assert not target_fields("regression", 2)["has_missing_targets"]
    assert known_fraction(torch.zeros(0, 2)) == known_fraction(None) == known_fraction(torch.tensor([1, 2])) == 1.0


def graphs_with(y: torch.Tensor) -> PackedGraphs:
    edge = torch.tensor([[0, 1], [1, 0]])
    return replace(PackedGraphs.from_edges([edge] * len(y), [2] * len(y)), y=y)


def test_labels_of_graphs_may_be_unknown_as_those_of_the_open_graph_benchmark():
    task = task_from_graphs(graphs_with(Y))
    assert (task.target, task.out_channels, task.has_missing_targets) == ("multilabel", 3, True)
    assert task.metric is not None
    metric = task.metric()
    metric.update(*task.metric_inputs(OUT, Y))
    # 1 of 0.3, 0.1, -0.6: ranks 1 and 3; 1 of 0.4, 0.2: rank 1; 1 of -0.2, 0.9, 1.1: rank 2
    assert float(metric.compute()) == pytest.approx(((1 + 2 / 3) / 2 + 1 + 1 / 2) / 3)


def test_one_target_must_be_known():
    with pytest.raises(DataError, match="got nan in graph 1"):
        task_from_graphs(graphs_with(torch.tensor([[0.0], [nan], [1.0]])), kind="binary")
    for y in ([[0.5], [nan], [1.5]], [[0.0], [nan], [1.0]]):
        task = task_from_graphs(graphs_with(torch.tensor(y)))
        assert (task.target, task.has_missing_targets) == ("regression", False)
        with pytest.raises(NotFiniteError, match=r"targets of graph 1 of own, counted from 0, are NaN.*leave out"):
            check_finite_targets(task)


def test_several_targets_are_not_one_yes_or_no():
    with pytest.raises(DataError, match="takes one target, got 3: expected kind='multilabel'"):
        task_from_graphs(graphs_with(Y), kind="binary")


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["smiles,a,b", *rows]) + "\n")
    return path


def test_empty_cells_of_several_targets_are_not_known(tmp_path):
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    path = write(tmp_path / "two.csv", "C,1.5,", "CC,N/A,2", "CCC,3,NaN", "CCCC,4,5", "CCCCC,6")
    task = load_data(path, targets=["a", "b"])
    expected = torch.tensor([[1.5, nan], [nan, 2.0], [3.0, nan], [4.0, 5.0], [6.0, nan]], dtype=torch.float64)
    torch.testing.assert_close(task.graphs.y, expected, equal_nan=True)
    assert (task.target, task.has_missing_targets) == ("regression", True)


def test_a_row_without_any_target_is_bad_and_so_is_text(tmp_path):
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    path = write(tmp_path / "two.csv", "C,1,2", "CC,,", "CCC,high,2", "CCCC,inf,2", "CCCCC,1,")
    with pytest.raises(BadRowsError, match=r"row 2: all targets are missing; row 3: .*'high', not a number.*; row 4"):
        load_data(path, targets=["a", "b"])
    task = load_data(path, targets=["a", "b"], skip_invalid=True)
    assert [bad.row for bad in task.skipped] == [2, 3, 4]
    with pytest.raises(BadRowsError, match="the target 'b' is missing"):
        load_data(path, targets=["b"])


def test_words_for_missing_values_and_names_of_classes() -> None:
    assert [is_missing(word) for word in (None, " ", "NaN", "none")] == [True, True, True, False]
    assert [is_missing_number(word) for word in ("N/A", "<NA>", "None", "0")] == [True, True, True, False]
    assert [as_number(word) for word in (" 1e3", "1_2", "high")] == [1000.0, None, None]
    assert class_names(["10", "9", "9.0"]) == ("9", "10")
    assert class_names(["toxic", "safe", "toxic"]) == ("safe", "toxic")
    assert class_key("3") == class_key(" 3.0")
    assert [number_name(value) for value in (1234567.0, -1, 0.5)] == ["1234567", "-1", "0.5"]


def test_classes_are_weighted_by_their_frequencies() -> None:
    task = replace(load_dataset("csl"), out_channels=2)
    assert weighted_loss(task, torch.tensor([0, 0, 0, 1]))().each.weight.tolist() == pytest.approx([2 / 3, 2.0])
