"""The answers about section 3.2 as a result file, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pathnn.experiments.theory import Check, PathTest, TheorySettings
from pathnn.theory.compare import Example


def to_result(checks: list[Check], settings: TheorySettings, seconds: float) -> dict[str, Any]:
    """What the result file holds: settings, how many graphs, every answer, and the examples they refer to by index."""
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
    """The answers that a result file holds.

    >>> from pathnn.experiments.theory import theory_checks
    >>> settings = TheorySettings(max_vertices=3, max_height=2)
    >>> checks = next(theory_checks(settings))
    >>> from_result(to_result(checks, settings, 1.0)) == checks
    True
    """
    examples = [_example(found) for found in result["examples"]]
    checks = []
    for row in result["checks"]:
        test = PathTest(**{name: row[name] for name in PathTest.__dataclass_fields__})
        example = None if row["example"] is None else examples[row["example"]]
        checks.append(Check(row["question"], test, row["scope"], row["holds"], example))
    return checks


def _example(found: dict[str, Any]) -> Example:
    size, graphs = found["size"], found["graphs"]
    listed = tuple((n, tuple((u, v) for u, v in edges)) for n, edges in graphs)
    return Example((size[0], size[1]), found["height"], listed, tuple(found["vertices"]))
