"""Runs in groups as large as can be: all at once, in smaller groups where memory is short, or one of them alone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from pathnn.training.errors import RunStoppedError
from pathnn.training.together import TogetherError

T = TypeVar("T")


def in_groups(
    places: Sequence[int], together: Callable[[list[int]], Iterator[tuple[int, T]]], alone: Callable[[int], T]
) -> Iterator[tuple[int, T | Exception]]:
    """What comes of the runs `places`, as it comes: (which one, its result, or the error that ended it).

    `together` does some of them at once, `alone` one, from where `together` has left it. Where the GPU's memory is
    short they are done in two halves. Where `TogetherError` says that they have to be done one by one, the first is
    done, and the others end with this error at once: others may have time for them.

    >>> def together(places: list[int]) -> Iterator[tuple[int, str]]:
    ...     yield 0, "of all"
    ...     raise TogetherError("not the others")
    >>> list(in_groups([0, 1, 2], together, lambda place: "alone"))
    [(0, 'of all'), (2, TogetherError('not the others')), (1, 'alone')]
    """
    groups = [list(places)] if places else []
    while groups:
        group = groups.pop(0)
        if len(group) == 1:
            outcome = _attempt(alone, group[0])
            release_memory()  # now that nothing is held by an error
            yield group[0], outcome
            continue
        try:
            for place, outcome in together(list(group)):
                group.remove(place)
                yield place, outcome
        except TogetherError as error:
            yield from ((place, error.with_traceback(None)) for place in group[1:])
            groups = [group[:1], *groups]
        except torch.OutOfMemoryError:
            half = (len(group) + 1) // 2
            groups = [part for part in (group[:half], group[half:]) if part] + groups
        release_memory()  # now that nothing is held by an error


def _attempt(alone: Callable[[int], T], place: int) -> T | Exception:
    try:
        return alone(place)
    except (RunStoppedError, BrokenPipeError, ConnectionResetError):  # this is not about one run
        raise
    except Exception as error:
        return error.with_traceback(None)  # which would hold on to memory


def release_memory() -> None:
    """Give back what is not in use."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # the other processes on this GPU may need it
