"""Define what a path is: the table of collections, and the options of an extraction. Needs no torch.

To add a collection whose paths grow step by step:

1. Add its name to `Collection` and a `PathCollection` to `COLLECTIONS`.
2. Add its step rule to `may_step` in `paths/cpu/walks.py` and to `sample_walks` in `paths/cpu/samples.py`. It must
   give the same paths when edges are turned around and paths are read from their far end, as the tries are built.
3. Add its definition to `tests/helpers/path_reference.py`; the tests then compare all implementations with it.

Extraction, counting, models and the command line take everything else from the table. Models read tries and never ask
what a path is.

A collection whose paths do not grow by a rule is listed instead: add it to `OTHER_COLLECTIONS`, and its paths to
`_other_paths` in `paths/extract.py`. A function that returns paths needs no code here (`collection=function`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, cast

from pathnn.checks import check_choice, check_count, check_flag

if TYPE_CHECKING:
    from pathnn.paths.ragged import RaggedTries
    from pathnn.paths.trie import PathTrie

Collection = Literal["sp", "sp+", "ap", "walks", "nb-walks", "cycles", "custom"]
"""`"sp"`: one shortest path per pair; `"sp+"`: all shortest paths; `"ap"`: all simple paths; others: docs/paths.md."""

PathFunction = Callable[[Any, int], Sequence[Any]]
"""From `edge_index` and `num_nodes` to tensors of paths, `[n, length + 1]`, one for each length; source first."""

MAX_K = 255
DEFAULT_MAX_PATHS = 50_000_000
UNLIMITED = 2**62


@dataclass(frozen=True)
class PathCollection:
    """Define a collection of paths."""

    title: str  # in messages
    rule: int  # the step rule of the compiled loops, a constant of paths/cpu/walks.py
    distances: bool  # whether tokens carry their distance to the source by default
    by_distance: bool  # whether paths follow the distance to the root: a token's distance is then its position
    simpler: str  # what to do about too many paths
    simple: bool = True  # no vertex twice, no path twice; otherwise the last level has an entry per occurrence


COLLECTIONS: dict[Collection, PathCollection] = {
    "sp": PathCollection("single shortest paths", 2, False, True, "split the batch"),
    "sp+": PathCollection("shortest paths", 1, False, True, "use collection='sp'"),
    "ap": PathCollection("simple paths", 0, True, False, "use collection='sp+'"),
}
"""The collections of the paper, whose paths grow step by step by a rule."""

OTHER_COLLECTIONS: dict[Collection, PathCollection] = {
    "walks": PathCollection("random walks", -1, False, False, "draw fewer", False),
    "nb-walks": PathCollection("non-backtracking walks", -1, False, False, "draw fewer", False),
    "cycles": PathCollection("cycles", -1, False, False, "split the batch", False),
    "custom": PathCollection("custom paths", -1, False, False, "split the batch", False),
}
"""Collections whose paths are drawn or listed; only extraction knows them."""

WALKS = ("walks", "nb-walks")


def option_help(text: str, *flags: str, metavar: str | None = None) -> dict[str, Any]:
    """Return the metadata that makes a field an option of the command line, by default `--name` of the field."""
    return {"help": text, "flags": flags, "metavar": metavar}


def option(default: Any, text: str, *, flags: tuple[str, ...] = (), metavar: str | None = None) -> Any:
    """Return a field with a default that is an option of the command line."""
    return field(default=default, metadata=option_help(text, *flags, metavar=metavar))


@dataclass(frozen=True)
class PathOptions:
    """Hold the checked options of an extraction; `extract_paths` explains them.

    >>> options = PathOptions("ap", 3)
    >>> options.distances
    True
    >>> options.difference(PathOptions("ap", 2, extend=True))
    'k=3 instead of 2, extend=False instead of True'
    >>> options.definition.title
    'simple paths'
    >>> PathOptions("all", 3)
    Traceback (most recent call last):
    ...
    ValueError: collection='all' is unknown: expected one of 'sp', 'sp+', 'ap', ...

    Attributes:
        definition: the collection's entry in `COLLECTIONS`.
        limit: `max_paths`, as a number even without a limit.

    Raises:
        ValueError: for an option that is wrong, or options that exclude each other.
    """

    collection: Collection = field(
        metadata=option_help(
            "Which paths: one shortest path per pair, all shortest paths, or all simple paths.", "--collection", "-c",
            metavar="sp|sp+|ap",
        )
    )  # fmt: skip
    k: int = field(metadata=option_help("The largest path length, in edges.", "--k", "-k"))
    distances: bool | None = option(
        None, "Tokens carry their distance to the source (default: for ap).", flags=("--distances/--no-distances",)
    )
    extend: bool = option(False, "Extend paths that cannot grow with dummy tokens.", flags=("--extend",))
    max_paths_per_source: int | None = None
    seed: int | None = 0
    max_paths: int | None = option(DEFAULT_MAX_PATHS, "Refuse data with more paths than this.")
    directed: bool = False
    function: PathFunction | None = None
    definition: PathCollection = field(init=False, repr=False, compare=False)
    limit: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = COLLECTIONS | OTHER_COLLECTIONS
        definition = known[check_collection(self.collection, tuple(known))]
        kept = self.max_paths_per_source
        max_paths = None if self.max_paths is None else check_count("max_paths", self.max_paths)
        plain = {
            "k": check_k(self.k),
            "distances": definition.distances if self.distances is None else check_flag("distances", self.distances),
            "extend": check_flag("extend", self.extend),
            "max_paths_per_source": None if kept is None else check_count("max_paths_per_source", kept),
            "seed": _check_seed(self.seed),
            "max_paths": max_paths,
            "directed": check_flag("directed", self.directed),
            "definition": definition,
            "limit": UNLIMITED if max_paths is None else max_paths,
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        name = self.collection
        if name in OTHER_COLLECTIONS and name not in WALKS and kept is not None:
            raise ValueError(f"collection={name!r} with max_paths_per_source: expected None, it has no samples.")
        if name in (*WALKS, "cycles") and self.extend:
            raise ValueError(f"collection={name!r} with extend=True: expected one of 'sp', 'sp+' or 'ap'.")
        if self.extend and self.max_paths_per_source is not None:
            raise ValueError(
                "extend=True with max_paths_per_source: a sample does not say where a path ends. Use one of the two."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name: the arguments that make equal options."""
        return {entry.name: self.__dict__[entry.name] for entry in fields(self) if entry.init}

    def key(self) -> dict[str, Any]:
        """Return the options that determine the tries: all but `max_paths`, and but a function."""
        return {name: value for name, value in self.to_dict().items() if name not in ("max_paths", "function")}

    def difference(self, expected: PathOptions) -> str | None:
        """Say how the tries differ from those of `expected`; None: not at all.

        A trie does not know its seed, so the seed is not compared.
        """
        mine, other = self.key(), expected.key()
        names = [name for name in mine if name != "seed" and mine[name] != other[name]]
        return ", ".join(f"{name}={mine[name]!r} instead of {other[name]!r}" for name in names) or None

    def searched_for_cycles(self) -> PathOptions:
        """Return the options of the simple paths that are searched for cycles: of one edge less."""
        return PathOptions("ap", max(self.k - 1, 1), max_paths=self.max_paths, directed=self.directed)

    @staticmethod
    def of_trie(trie: PathTrie | RaggedTries) -> PathOptions:
        """Return the options that a trie was extracted with, except for the seed."""
        return PathOptions(
            trie.collection, trie.k, trie.distance is not None, trie.extended, trie.sampled, directed=trie.directed
        )


def make_options(collection: Collection | PathFunction, k: int, **options: Any) -> PathOptions:
    """Return the options of a collection, or of paths that a function gives."""
    if callable(collection):
        return PathOptions("custom", k, function=collection, **options)
    return PathOptions(collection, k, **options)


def check_collection(collection: str, known: tuple[Collection, ...] = tuple(COLLECTIONS)) -> Collection:
    """Return `collection` if it is one of the `known`; raise `ValueError` otherwise."""
    if callable(collection):
        raise ValueError("collection is a function: only extract_paths and AddPaths take one; models take 'custom'.")
    return cast("Collection", check_choice("collection", collection, known))


def check_k(k: Any) -> int:
    """Return `k` if a trie can have paths of that length, in edges; raise `ValueError` otherwise."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k={k!r} is no path length: expected an integer of at least 1 (edges, not vertices).")
    if (length := int(k)) > MAX_K:
        raise ValueError(
            f"k={k} is too large: expected at most {MAX_K} "
            "(distances are stored in a byte, tries have k (k + 3) / 2 levels)."
        )
    return length


def _check_seed(seed: Any) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not -(2**63) <= int(seed) < 2**63:
        raise ValueError(f"seed={seed!r}: expected an integer of at most 64 bits, or None for a new draw in each call.")
    return int(seed)
