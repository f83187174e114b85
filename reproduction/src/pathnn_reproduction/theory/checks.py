"""Check section 3.2 of the paper on all small graphs, and find the smallest counterexamples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Literal

from pathnn.checks import check_count
from pathnn.paths.options import COLLECTIONS, Collection
from pathnn_reproduction.theory import compare, partitions
from pathnn_reproduction.theory.compare import SCOPES, Example
from pathnn_reproduction.theory.partitions import Partitions, PathLevels, path_levels
from pathnn_reproduction.theory.small_graphs import LARGEST, Universe, small_graphs

Question = Literal["in WL-tree", "in next tree", "refines WL", "exceeds WL", "exceeds all WL", "invariant", "stronger"]
"""Asked: lemma 3.2; whether a test distinguishes all that WL-trees of the same height do; whether it distinguishes
what WL-trees of the same height, or of any height, do not; whether isomorphic vertices and graphs are alike to it;
whether all of this makes it a strictly stronger test of isomorphism than 1-WL."""


Kind = Literal["trees", "sets"]


@dataclass(frozen=True)
class PathTest:
    """A test that distinguishes vertices: Path-Trees or annotated path sets, and what they are made of."""

    kind: Kind
    collection: Collection
    extend: bool = False
    residual: bool = False
    distances: bool = False


@dataclass(frozen=True)
class Check:
    """The answer to a question about a test in one scope, for all graphs and heights that were tried.

    `example` is the smallest pair that shows the answer: what refutes "for all", or what proves "can be".
    """

    question: Question
    test: PathTest
    scope: str
    holds: bool
    example: Example | None


@dataclass(frozen=True)
class TheorySettings:
    """Which graphs: all with at most `max_vertices` vertices, and for what depends on numbers in which numberings.

    SP is tried on every labelled graph of up to `all_numberings` vertices; above that, in the atlas's numbering and in
    `copies` random ones. Whether isomorphic vertices are alike to SP⁺ and AP is tried on every labelled graph with one
    vertex less, and above that in `few_copies` random numberings.
    """

    max_vertices: int = LARGEST
    max_height: int = 6
    all_numberings: int = 6
    copies: int = 10
    few_copies: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if check_count("max_height", self.max_height, 0) < 1:
            raise ValueError("max_height=0: expected at least 1, the height of the smallest tree with an edge.")

    def compared(self, collection: Collection) -> Universe:
        """Return the graphs on which a test of this collection is compared with WL-trees."""
        return self.numbered("sp") if collection == "sp" else small_graphs(self.max_vertices)

    def numbered(self, collection: Collection) -> Universe:
        """Return the graphs on which isomorphic vertices are compared."""
        few = collection != "sp"
        return small_graphs(
            self.max_vertices,
            all_up_to=self.all_numberings - few,
            copies=self.few_copies if few else self.copies,
            seed=self.seed,
        )


VARIANTS = tuple((c, e, d) for c, d in ((*product(COLLECTIONS, [False]), ("ap", True))) for e in (False, True))
"""Collection, dummy extension and distances of the tests; each has trees and sets, with and without residual term."""


def theory_checks(settings: TheorySettings) -> Iterator[list[Check]]:
    """Yield all answers, in lists: those of lemma 3.2, then those of each variant.

    >>> first, *_ = theory_checks(TheorySettings(max_vertices=3, max_height=2))
    >>> [(check.question, check.test.collection, check.holds) for check in first][:2]
    [('in WL-tree', 'sp', True), ('in WL-tree', 'sp+', True)]
    """
    height = settings.max_height
    compared = {c: settings.compared(c) for c in COLLECTIONS}
    numbered = {c: settings.numbered(c) for c in COLLECTIONS}
    yield _lemma(compared, height)
    for collection, extend, distances in VARIANTS:
        checks: list[Check] = []
        # Two graphs that so many rounds do not distinguish are never distinguished.
        wl = partitions.wl_partitions(compared[collection], max(height, 2 * settings.max_vertices))
        for universe, ask in ((compared[collection], partial(_against_wl, wl)), (numbered[collection], _invariance)):
            levels = path_levels(universe, collection, height, extend=extend, distances=distances)
            for kind, residual in product(_MAKE, (False, True)):
                test = PathTest(kind, collection, extend, residual, distances)
                checks += ask(test, universe, _MAKE[kind](universe, levels, residual=residual))
        yield checks + _stronger(checks)


_MAKE = {"trees": partitions.tree_partitions, "sets": partitions.annotated_partitions}


def _against_wl(wl: Partitions, test: PathTest, universe: Universe, names: Partitions) -> Iterator[Check]:
    same_height, last = wl[: len(names)], [wl[-1]] * len(names)
    for scope in SCOPES:
        missed = compare.smallest_merged(universe, names, same_height, scope)
        yield Check("refines WL", test, scope.name, missed is None, missed)
        more = compare.smallest_split(universe, names, same_height, scope)
        yield Check("exceeds WL", test, scope.name, more is not None, more)
        more = compare.smallest_split(universe, names, last, scope)
        yield Check("exceeds all WL", test, scope.name, more is not None, more)


def _invariance(test: PathTest, universe: Universe, names: Partitions) -> Iterator[Check]:
    for scope in SCOPES:
        example = compare.smallest_merged(universe, [universe.orbit] * len(names), names, scope)
        yield Check("invariant", test, scope.name, example is None, example)


def _stronger(checks: list[Check]) -> list[Check]:
    """Check the closing remark for graphs: at least as fine as 1-WL, finer, and equal on isomorphic graphs."""
    answers = {(check.question, check.test, check.scope): check for check in checks}
    found = []
    for test, scope in product(dict.fromkeys(check.test for check in checks), SCOPES[3:]):
        needed = [answers[question, test, scope.name] for question in ("invariant", "refines WL", "exceeds all WL")]
        failed = [check for check in needed if not check.holds]
        shown = failed[0] if failed else needed[-1]
        found.append(Check("stronger", test, scope.name, not failed, shown.example))
    return found


def _lemma(universes: dict[Collection, Universe], height: int) -> list[Check]:
    """Check lemma 3.2 and the sentence before it, for SP in all its numberings."""
    checks = []
    levels: dict[Collection, PathLevels] = {c: path_levels(universes[c], c, height) for c in COLLECTIONS}
    for c in COLLECTIONS:
        example = compare.smallest_non_walk(universes[c], levels[c])
        checks.append(Check("in WL-tree", PathTest("trees", c), SCOPES[1].name, example is None, example))
    for small, large in pairwise(COLLECTIONS):
        universe = universes[small]
        example = compare.smallest_missing(universe, levels[small], path_levels(universe, large, height))
        checks.append(Check("in next tree", PathTest("trees", small), SCOPES[1].name, example is None, example))
    return checks
