"""Where a run was done: one leg for each device and commit, as a run that is stopped may go on elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Leg = dict[str, Any]
"""`device`, `commit`, and `epochs`: the number of the last epoch that was done there."""


@dataclass(frozen=True)
class Legs:
    """The legs of a run: those `before`, and the one under way.

    >>> Legs("cpu", "a1").until(3)
    [{'device': 'cpu', 'commit': 'a1', 'epochs': 3}]
    >>> Legs.after([{"device": "cpu", "commit": "a1", "epochs": 3}], 3, "cpu", "a1").until(7)
    [{'device': 'cpu', 'commit': 'a1', 'epochs': 7}]
    """

    device: str
    commit: str | None
    before: tuple[Leg, ...] = ()

    @staticmethod
    def after(before: Sequence[Leg] | None, epoch: int, device: str, commit: str | None) -> Legs:
        """Those of a run that goes on after `epoch`; `before` is None where its state does not say."""
        legs = [{"device": None, "commit": None, "epochs": epoch}] if before is None else list(before)
        if legs and (legs[-1]["device"], legs[-1]["commit"]) == (device, commit):
            legs.pop()
        return Legs(device, commit, tuple(legs))

    def until(self, epoch: int) -> list[Leg]:
        """All of them, when `epoch` is done; one that has brought no epoch is none."""
        done = self.before[-1]["epochs"] if self.before else 0
        here = {"device": self.device, "commit": self.commit, "epochs": epoch}
        return [*self.before, *([here] if epoch > done else [])]
