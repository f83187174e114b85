"""Show the answers about section 3.2 as a table: a row per statement, a column per scope, examples by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pathnn.paths.options import COLLECTIONS, Collection
from pathnn_reproduction.figures.drawing import draw_example
from pathnn_reproduction.figures.figures import save_picture
from pathnn_reproduction.pages import fill
from pathnn_reproduction.tables import markdown_table
from pathnn_reproduction.theory.checks import Check, Kind, PathTest, Question, TheorySettings
from pathnn_reproduction.theory.compare import SCOPES, Example

NAMES: dict[Collection, str] = {"sp": "SP", "sp+": "SP⁺", "ap": "AP"}


VARIANT_NAMES: dict[frozenset[tuple[bool, bool]], str] = {
    frozenset({(False, False)}): "as defined",
    frozenset({(False, True)}): "with residual term",
    frozenset({(True, False)}): "with dummies",
    frozenset({(True, True)}): "with dummies and residual term",
    frozenset({(True, False), (True, True)}): "with dummies",
    frozenset({(False, True), (True, False), (True, True)}): "with residual term, dummies or both",
    frozenset({(False, False), (True, False)}): "without residual term",
    frozenset({(False, False), (False, True)}): "without dummies",
    frozenset({(False, False), (False, True), (True, False), (True, True)}): "all four variants",
}
"""Names of sets of variants; a variant is whether there are dummy tokens, and a residual term."""

Answer = tuple[str, int | None] | None
"""An entry of the table: "yes" or "no" with the number of an example; None if nothing was checked."""

Answers = tuple[Answer, ...]
"""The entries of a row, one for each scope."""


@dataclass(frozen=True)
class Statement:
    """A sentence of section 3.2 as a question about some tests, and what the paper answers.

    `negated`: the sentence says that the answer to the question is no.
    """

    name: str
    claim: str
    question: Question
    kind: Kind
    collections: tuple[Collection, ...]
    negated: bool = False


STATEMENTS = (
    Statement("Lemma 3.2", "the tree is a subtree of the WL-tree", "in WL-tree", "trees", tuple(COLLECTIONS)),
    Statement("", "and of the tree of the next larger collection", "in next tree", "trees", ("sp", "sp+")),
    Statement("Theorem 3.3", "trees differ where WL-trees do", "refines WL", "trees", ("ap",)),
    Statement("", "they can differ where WL-trees agree", "exceeds WL", "trees", ("ap",)),
    Statement("", "even where WL-trees of all heights agree", "exceeds all WL", "trees", ("ap",)),
    Statement("Proposition 3.4", "trees can agree where WL-trees differ", "refines WL", "trees", ("sp", "sp+"), True),
    Statement("Theorem 3.5", "sets differ where WL-trees do", "refines WL", "sets", tuple(COLLECTIONS)),
    Statement("", "they can differ where WL-trees agree", "exceeds WL", "sets", tuple(COLLECTIONS)),
    Statement("", "even where WL-trees of all heights agree", "exceeds all WL", "sets", tuple(COLLECTIONS)),
    Statement("Closing remark", "sets of isomorphic ones are equal", "invariant", "sets", ("sp+", "ap")),
    Statement("", "sets of isomorphic ones can differ", "invariant", "sets", ("sp",), True),
    Statement("", "strictly stronger than 1-WL", "stronger", "sets", ("sp+", "ap")),
    Statement("", "not strictly stronger than 1-WL", "stronger", "sets", ("sp",), True),
)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    statement: str
    claim: str
    about: str
    entries: Answers


@dataclass
class Table:
    """The rows, and the examples in the order of their numbers, from 1 on."""

    rows: list[Row] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)

    def number(self, example: Example | None) -> int | None:
        """Return the number of an example; a new example gets a new number."""
        if example is None:
            return None
        if example not in self.examples:
            self.examples.append(example)
        return self.examples.index(example) + 1


def theory_table(checks: Sequence[Check]) -> Table:
    """Summarize all answers; variants and collections with the same answers and examples share a row.

    >>> from pathnn_reproduction.theory.checks import TheorySettings, theory_checks
    >>> checks = [check for part in theory_checks(TheorySettings(max_vertices=3, max_height=2)) for check in part]
    >>> theory_table(checks).rows[0].about
    'SP, SP⁺, AP'
    """
    table = Table()
    found = {(check.question, check.test, check.scope): check for check in checks}
    for statement in STATEMENTS:
        asked = dict.fromkeys(check.test for check in checks if check.question == statement.question)
        tests = [t for t in asked if t.kind == statement.kind and t.collection in statement.collections]
        entries = {
            t: tuple(_answer(table, statement, found.get((statement.question, t, scope.name))) for scope in SCOPES)
            for t in tests
        }
        for about, one in _merged(tests, entries):
            table.rows.append(Row(statement.name, statement.claim, about, entries[one]))
    return table


def _answer(table: Table, statement: Statement, check: Check | None) -> Answer:
    if check is None:
        return None
    return "yes" if check.holds != statement.negated else "no", table.number(check.example)


def _merged(tests: list[PathTest], entries: dict[PathTest, Answers]) -> list[tuple[str, PathTest]]:
    """Return what each row is about, and one of its tests."""
    variants: dict[tuple[Collection, bool, Answers], list[PathTest]] = {}
    for test in tests:
        variants.setdefault((test.collection, test.distances, entries[test]), []).append(test)
    several = len({(test.extend, test.residual) for test in tests}) > 1
    alike: dict[tuple[str, Answers], list[PathTest]] = {}
    for (_, _, answer), group in variants.items():
        which = frozenset((test.extend, test.residual) for test in group)
        name = f": {VARIANT_NAMES.get(which, f'{len(which)} variants')}" if several else ""
        alike.setdefault((name, answer), []).append(group[0])
    return [
        (", ".join(NAMES[test.collection] + " and distances" * test.distances for test in group) + name, group[0])
        for (name, _), group in alike.items()
    ]


def to_result(checks: list[Check], settings: TheorySettings, seconds: float) -> dict[str, Any]:
    """Return the content of the result file: settings, numbers of graphs, answers, and examples by index."""
    examples = list(dict.fromkeys(check.example for check in checks if check.example is not None))
    index = {example: i for i, example in enumerate(examples)}
    atlas, labelled, relabelled = settings.compared("ap"), settings.numbered("sp"), settings.numbered("ap")
    return {
        "target": "theory",
        "settings": asdict(settings),
        "seed": settings.seed,
        "graphs": len(atlas),
        "compared": {"sp": len(labelled), "sp+": len(atlas), "ap": len(atlas)},
        "numbered": {"sp": len(labelled), "sp+": len(relabelled), "ap": len(relabelled)},
        "seconds": seconds,
        "examples": [asdict(example) for example in examples],
        "checks": [
            {
                "question": check.question,
                **asdict(check.test),
                "scope": check.scope,
                "holds": check.holds,
                "example": None if check.example is None else index[check.example],
            }
            for check in checks
        ],
    }


def from_result(result: dict[str, Any]) -> list[Check]:
    """Return the answers of a result file.

    >>> from pathnn_reproduction.theory.checks import theory_checks
    >>> settings = TheorySettings(max_vertices=3, max_height=2)
    >>> checks = next(theory_checks(settings))
    >>> from_result(to_result(checks, settings, 1.0)) == checks
    True
    """
    examples = []
    for found in result["examples"]:
        graphs = tuple((n, tuple(map(tuple, edges))) for n, edges in found["graphs"])
        examples.append(Example(tuple(found["size"]), found["height"], graphs, tuple(found["vertices"])))
    checks = []
    for row in result["checks"]:
        test = PathTest(**{name: row[name] for name in PathTest.__dataclass_fields__})
        example = None if row["example"] is None else examples[row["example"]]
        checks.append(Check(row["question"], test, row["scope"], row["holds"], example))
    return checks


THEORY_BLOCK = "<!-- begin: written by pathnn reproduce theory -->", "<!-- end -->"
HEAD = (
    "statement", "claim", "paths", "vertices of one connected graph", "of one graph", "of two graphs",
    "connected graphs", "all graphs",
)  # fmt: skip


def example_text(example: Example) -> str:
    """Return an example in words; vertices are counted from 1, as in the pictures.

    >>> example_text(Example((3, 1), 2, ((1, ()), (2, ((0, 1),))), (0, 0)))
    'height 2: v1 of 1 vertex without edges, and v1 of 2 vertices with edges 1-2'
    """
    graphs = []
    for num_nodes, edges in example.graphs:
        vertices = "1 vertex" if num_nodes == 1 else f"{num_nodes} vertices"
        listed = " ".join(f"{u + 1}-{v + 1}" for u, v in edges)
        graphs.append(f"{vertices} {f'with edges {listed}' if listed else 'without edges'}")
    names = [f"v{v + 1}" for v in example.vertices]
    if not names:
        text = " against ".join(graphs)
    elif len(graphs) == 1:
        text = f"{' and '.join(names)} of {graphs[0]}"
    else:
        text = ", and ".join(f"{name} of {graph}" for name, graph in zip(names, graphs, strict=True))
    return f"height {example.height}: {text}"


def entry_text(entry: Answer) -> str:
    """Return an entry of the table as text: the answer, and the number of its example.

    >>> entry_text(("no", 3)), entry_text(("yes", None)), entry_text(None)
    ('no [3]', 'yes', '')
    """
    if entry is None:
        return ""
    answer, number = entry
    return answer if number is None else f"{answer} [{number}]"


def theory_block(result: dict[str, Any], pictures: str = "figures/theory") -> str:
    """Return the part of `docs/theory.md` that is written from the results file."""
    table, lines = theory_table(from_result(result)), []
    for row in table.rows:
        texts = [entry_text(entry) for entry in row.entries]
        lines.append([row.statement, row.claim, row.about, *(_linked(text, pictures) for text in texts)])
    examples = [
        f"- [{number}]({pictures}/example-{number}.png) {example_text(example)}"
        for number, example in enumerate(table.examples, start=1)
    ]
    settings = result["settings"]
    return fill(
        "theory_block",
        graphs=f"{result['graphs']:,}",
        sp=f"{result['compared']['sp']:,}",
        numbered=f"{result['numbered']['ap']:,}",
        numberings=settings["copies"] + 1,
        seconds=f"{result['seconds']:.0f}",
        table=markdown_table(HEAD, lines),
        examples="\n".join(examples),
        **{name: settings[name] for name in ("max_vertices", "max_height", "all_numberings")},
        **{name: result[name] for name in ("device", "time", "commit", "seed")},
    ).strip()


def _linked(entry: str, pictures: str) -> str:
    """Return an entry with its example linked to the picture."""
    answer, _, number = entry.partition(" ")
    answer = "**no**" if answer == "no" else answer
    return f"{answer} {number}({pictures}/example-{number[1:-1]}.png)" if number else answer


def draw_examples(table: Table, folder: Path, suffix: str = "svg") -> list[Path]:
    """Draw every example of a table into `folder`, as `example-N`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"example-{number}.{suffix}" for number in range(1, len(table.examples) + 1)]
    for path, example in zip(paths, table.examples, strict=True):
        save_picture(draw_example(example), path, dpi=110)
    return paths
