"""The page: self-contained, escaped, with the pictures and the numbers of the explanation."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
import torch
from torch_geometric.data import Data

from pathnn.explain import Explanation, PathScore
from pathnn.explain.page import explanation_page
from pathnn.explain.pictures import GraphPicture
from pathnn.explain.subject import ExplainedGraph, ExplainedOutput, choose_answer
from pathnn.training.checkpoint import TaskSignature

LINE = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
FOUND = Explanation(
    2.0, 0.5, (torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1]]), torch.tensor([[0, 1, 2]])),
    (torch.tensor([1.0, 0.5, -0.5, 0.0]), torch.tensor([0.4])), 3,
)  # fmt: skip
ANSWER = ExplainedOutput(0, "y & z", "a <b>")


def page_of(graph: GraphPicture, top: int = 12) -> str:
    subject = ExplainedGraph("<script>", "here", Data(), torch.arange(3), graph)
    return explanation_page(subject, ANSWER, FOUND, "the output without any path", "me", top=top)


def test_the_page_says_what_was_found():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra plot)")
    page = page_of(GraphPicture(LINE, 3), top=2)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for words in (
        "<b>y &amp; z: 2</b>, a &lt;b&gt;",
        "The reference value is 0.5: the output without any path",
        "+1.5",
        "0–1",
        "-0.5",
        '>the other 1</td><td class="number">+0.400<',
    ):
        assert words in page, words
    pictures = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(pictures) == 3, "the whole, and two paths"
    for picture in pictures:
        ElementTree.fromstring(picture)
    assert "#e69f00" in pictures[0], "the largest score is the deepest orange"
    assert "#56b4e9" in pictures[2]
    assert "#ffffff" in pictures[2], "a vertex without a score is white"
    assert not re.search(r'(src|href)="http', page)
    assert page == page_of(GraphPicture(LINE, 3), top=2)


def test_a_graph_that_no_page_holds_is_left_out():
    assert "<svg" not in page_of(GraphPicture(LINE, 1000))


def test_molecules_are_drawn_and_named():
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    from pathnn.explain.pictures import Molecule

    molecule = Molecule("C=CC#N")
    assert molecule.words(PathScore((0, 1, 2, 3), 1.0)) == "C0=C1–C2≡N3"
    assert molecule.words(PathScore((3, 2), 1.0)) == "N3≡C2"
    assert Molecule("OCC").pattern(PathScore((0, 1, 2), 0.5)) == "C-C-O", "the same in both directions"
    assert Molecule("C[N+](=O)[O-]").pattern(PathScore((1, 3), 0)) == "[N+]-[O-]"
    ElementTree.fromstring(molecule.draw({0: 1.0}, {(0, 1): -1.0}))
    fused = Molecule("C[C@@H]1CC[C@H]2CC[C@@]1(C)C2").draw({}, {})
    assert "atom-9" in fused
    assert "atom-10" not in fused, "no atom that the model did not see"
    with pytest.raises(ValueError, match="not a molecule that rdkit can read"):
        Molecule("C(")


def facts(target: str, outputs: int, classes: list[str], **scale) -> TaskSignature:
    return TaskSignature("a", target, outputs, 3, None, "metric", True, 1.0, classes, **scale)


def test_the_output_follows_from_the_question():
    out = torch.tensor([0.0, 3.0, 1.0])
    names = ["a", "b", "c"]
    for kind in ("class", "multilabel"):
        assert choose_answer(facts(kind, 3, names), out).number == 1
        assert choose_answer(facts(kind, 3, names), out, "c").number == 2
        assert choose_answer(facts(kind, 3, []), out, "2").name == "the logit of '2'"
        several = choose_answer(facts(kind, 3, []), out, "2", networks=2)
        assert (several.name, several.words[:19]) == ("the mean logit of '2'", "a mean probability ")
    assert choose_answer(facts("multilabel", 3, names), out, "a").words == "a probability of 0.5"
    assert choose_answer(facts("class", 3, names), out).words == "a probability of 0.844"
    scaled = facts("regression", 3, names, target_mean=(1.0, 2.0, 3.0), target_std=(4.0, 5.0, 6.0))
    assert choose_answer(scaled, out).number == 0
    chosen = choose_answer(scaled, out, "b")
    assert (chosen.name, chosen.factor, chosen.shift, chosen.words) == ("b", 5.0, 2.0, "")
    assert choose_answer(facts("binary", 1, []), out[:1]).name == "the logit"
    assert choose_answer(facts("regression", 1, []), out[:1]).name == "the prediction"
    with pytest.raises(ValueError, match="output='d' does not exist: expected one of a, b, c"):
        choose_answer(facts("class", 3, names), out, "d")
