"""Explanations of all graphs of a dataset: what is added up, and how faithful the scores are."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from pathnn import PathNN
from pathnn.explain.attribution import explain_graphs, reference_inputs
from pathnn.explain.dataset import (
    FRACTIONS,
    OutputSummary,
    Pattern,
    explain_dataset,
    faithfulness,
    inputs_of,
    write_patterns,
)  # fmt: skip
from pathnn.explain.explanation import PathScore
from pathnn.explain.pictures import GraphPicture, Molecule
from pathnn.explain.subject import ExplainedGraph, ExplainedOutput

Run = Callable[..., Any]
LINE = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def graph(seed: int) -> ExplainedGraph:
    x = torch.rand(4, 3, generator=torch.Generator().manual_seed(seed))
    picture = GraphPicture(LINE, 4, [[0], [1], [0], [2]])
    return ExplainedGraph(f"graph {seed}", f"row {seed}", Data(x, LINE), torch.arange(4), picture)


def networks() -> list[PathNN]:
    torch.manual_seed(0)
    return [PathNN(3, 8, 2, collection="ap", k=2).eval() for _ in range(2)]


def summaries() -> list[OutputSummary]:
    outputs = [ExplainedOutput(0, "a", "", 2.0, 1.0), ExplainedOutput(1, "b", "")]
    return explain_dataset(networks(), map(graph, range(40)), outputs, [graph(i) for i in range(50, 60)])


def test_patterns_add_up_to_predictions_minus_the_reference() -> None:
    models = networks()
    for number, (factor, shift, summary) in enumerate(zip((2.0, 1.0), (1.0, 0.0), summaries(), strict=True)):
        out = torch.stack([torch.cat([m(graph(i).data.x, LINE) for i in range(60)]) for m in models]).mean(dim=0)
        predicted = factor * out[:, number].detach() + shift
        assert summary.graphs == 40
        assert summary.baseline == pytest.approx(predicted[50:].mean().item(), rel=1e-4)
        total = sum(one.total for one in summary.patterns.values())
        expected = float((predicted[:40] - summary.baseline).sum())
        assert total == pytest.approx(expected, abs=40 * summary.rest + 1e-4)
        line = summary.patterns["0–1"]
        assert (line.graphs, line.occurrences, line.length) == (40, 80, 1), "0–1 and 1–0: kinds of vertices"


def test_mean_and_spread_are_those_of_the_occurrences() -> None:
    models = networks()
    (summary,) = explain_dataset(models[:1], [graph(1), graph(2)], [ExplainedOutput(1, "b", "")], [graph(3)])
    inputs = reference_inputs(models[0], [graph(3).data])
    found = explain_graphs(models[0], [graph(1).data, graph(2).data], output=1, reference=inputs)
    scores = [p.score for one in found for p in one.ranked() if p.vertices in ((0, 1), (1, 2))]
    pattern = summary.patterns["0–1"]
    assert pattern.mean == pytest.approx(sum(scores) / 4, rel=1e-4)
    assert pattern.std == pytest.approx(torch.tensor(scores).std(correction=0).item(), rel=1e-3)


@pytest.mark.parametrize("references", [True, False])
def test_curves_begin_and_end_at_the_prediction_and_the_reference(references: bool) -> None:
    models, one = networks(), graph(7)
    inputs = inputs_of(models, [graph(i) for i in range(5)] if references else [])
    both = faithfulness(models, [graph(8).data, one.data], inputs, 0)
    assert both.shape == (2, 3, 2, len(FRACTIONS))
    curves = both[1]
    prediction = torch.stack([m(one.data.x, LINE)[0, 0] for m in models]).mean().item()
    none = [explain_graphs(m, [one.data], reference=i)[0].baseline for m, i in zip(models, inputs, strict=True)]
    for kind in range(3):
        assert curves[kind, 0, 0].item() == pytest.approx(prediction, rel=1e-4)
        assert curves[kind, 1, -1].item() == pytest.approx(prediction, rel=1e-4)
        assert curves[kind, 0, -1].item() == pytest.approx(sum(none) / 2, rel=1e-4)
        assert curves[kind, 1, 0].item() == pytest.approx(sum(none) / 2, rel=1e-4)


def test_path_scores_are_more_faithful_than_random_ones() -> None:
    for summary in summaries():
        areas = summary.areas()
        assert areas["path scores"][0] < areas["random"][0], "the output falls early"
        assert areas["path scores"][1] > areas["random"][1], "the output rises early"


def test_the_table_has_every_pattern(tmp_path: Path) -> None:
    found = summaries()
    write_patterns(tmp_path / "paths.csv", found)
    rows = list(csv.DictReader((tmp_path / "paths.csv").read_text().splitlines()))
    assert len(rows) == sum(len(one.patterns) for one in found)
    assert {row["output"] for row in rows} == {"a", "b"}


def test_examples_have_the_sign_of_the_mean() -> None:
    pattern, scores = Pattern("C", 0), [3.0, -1.0, -2.0, -0.5, -2.5]
    for i, score in enumerate(scores):
        pattern.add(graph(i), [PathScore((0,), score), PathScore((1,), -0.1)])
    assert pattern.mean < 0
    found = [(one.place, path.score) for one, path in pattern.examples]
    assert found == [("row 4", -2.5), ("row 2", -2.0), ("row 1", -1.0)]
    pattern.add(graph(9), [PathScore((0,), 9.0)])
    assert pattern.mean > 0
    assert [(one.place, path.score) for one, path in pattern.examples[:2]] == [("row 9", 9.0), ("row 0", 3.0)]


def test_a_large_molecule_has_pictures_of_its_paths_only() -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    large = Molecule("C" * 600 + "O")
    every = dict.fromkeys(range(601), 1.0)
    assert large.draw(every, {}) == ""
    part = large.draw({599: 1.0, 600: 1.0}, {(599, 600): 1.0})
    assert "<svg" in part
    assert "#e69f00" in part.lower()


@pytest.fixture
def molecules(tmp_path: Path) -> Path:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    rows = [f"{'C' * n}{end},{n - 3 * len(end)},{n}" for n in range(1, 13) for end in ("", "O", "N", "Cl")]
    table = tmp_path / "chains.csv"
    table.write_text("\n".join(["smiles,y,z", *rows, "C(,1,1", ""]))
    return table


def test_the_command_explains_a_dataset(cli: Run, molecules: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "all"
    options = ["--target", "y", "--target", "z", "--skip-invalid", "--epochs", 2, "--k", 2, "--seeds", 2]
    assert cli("train", molecules, "--out", run, *options, "--device", "cpu").exit_code == 0
    result = cli("explain", run, molecules, "--all", "-o", out, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert "training molecules" in found["reference"]
    assert [one["output"] for one in found["outputs"]] == ["y", "z"]
    assert {one["graphs"] for one in found["outputs"]} == {48}
    assert "1 row cannot be read" in result.stderr
    page = (out / "explanation.html").read_text()
    assert not re.search(r'(src|href)="http', page)
    assert "color-scheme: light dark" in page
    texts = {row["path"] for row in csv.DictReader((out / "paths.csv").read_text().splitlines())}
    assert {"C", "O", "C-O", "C-C-O", "C-C-Cl"} <= texts
    one = json.loads(cli("explain", run, molecules, "--row", 1, "--output", "y", "--json").stdout)
    assert one["baseline"] == pytest.approx(found["outputs"][0]["baseline"], rel=1e-4), "the same reference"
    assert cli("explain", run, molecules, "--all").exit_code == 2
    assert cli("explain", run, molecules, "--all", "-o", out, "--row", 1).exit_code == 2


def test_pyg_explains_with_path_scores() -> None:
    from torch_geometric.explain import Explainer

    from pathnn.explain.pyg import PathExplainer

    model, one, two = networks()[0], graph(1), graph(2)
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    options = {"explanation_type": "model", "node_mask_type": "object", "edge_mask_type": "object"}
    explainer = Explainer(model, PathExplainer(), **options, model_config=config)
    x, edges, batch = (
        torch.cat([one.data.x, two.data.x]),
        torch.cat([LINE, LINE + 4], dim=1),
        torch.arange(2).repeat_interleave(4),
    )
    found = explainer(x, edges, batch=batch)
    classes = model(x, edges, batch=batch).argmax(dim=1).tolist()
    for i, part in enumerate((one, two)):
        (alone,) = explain_graphs(model, [Data(x=part.data.x, edge_index=LINE)], output=classes[i])
        mask = found.edge_mask[6 * i : 6 * i + 6]
        assert mask.sum().item() == pytest.approx(sum(alone.edge_scores().values()), rel=1e-3, abs=1e-5)
        assert mask[0].item() == pytest.approx(alone.edge_scores()[0, 1] / 2, rel=1e-3, abs=1e-5)
        torch.testing.assert_close(
            found.node_mask[4 * i : 4 * i + 4, 0], alone.vertex_scores().float(), rtol=1e-3, atol=1e-5
        )
    with pytest.raises(ValueError, match="does not support"):
        Explainer(model, PathExplainer(), **options, model_config={**config, "task_level": "node"})
