"""The folder of an ensemble: a run folder for every seed, and what came out of all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathnn.engine.checkpoint import load_model
from pathnn.engine.ensemble import Ensemble
from pathnn.engine.errors import RunError, RunFolderError
from pathnn.engine.run_folder import RunFolder, is_leftover
from pathnn.engine.tensor_file import writing

SEED = re.compile(r"seed-(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class EnsembleFolder:
    """Run folders `seed-0`, `seed-1`, … and a `result.json`."""

    path: Path

    def member(self, seed: int) -> RunFolder:
        """The run of one seed."""
        return RunFolder(self.path / f"seed-{seed}")

    @property
    def result(self) -> Path:
        """`result.json`."""
        return RunFolder(self.path).result

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write `result.json`."""
        RunFolder(self.path).write_result(result)

    def read_result(self) -> dict[str, Any] | None:
        """What came out, or None while the runs are not over."""
        return RunFolder(self.path).read_result()

    @property
    def seeds(self) -> list[int]:
        """The seeds of which a run was begun here."""
        if not self.path.is_dir():
            return []
        found = (SEED.fullmatch(entry.name) for entry in self.path.iterdir())
        return sorted(int(match[1]) for match in found if match is not None and self.member(int(match[1])).begun)

    @property
    def begun(self) -> bool:
        """Whether a run has been written here."""
        return bool(self.seeds)

    def check(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Make sure that the folder may be written to, as `RunFolder.check` does."""
        if resume and overwrite:
            raise RunError("resume and overwrite contradict each other: give one of --resume and --overwrite.")
        if RunFolder(self.path).begun:
            raise RunFolderError(f"{self.path} holds a single run: give another folder for several seeds.")
        with writing(self.path):
            if self.path.is_file():
                raise RunFolderError(f"{self.path} is a file: expected the name of a folder to write to.")
            found = [entry.name for entry in self.path.iterdir()] if self.path.exists() else []
        ours = [name for name in found if SEED.fullmatch(name) or name == self.result.name or is_leftover(name)]
        strange = set(found) - set(ours)
        if strange:
            raise RunFolderError(
                f"{self.path} exists and holds other files ({', '.join(sorted(strange)[:3])}): "
                "give a new or an empty folder."
            )
        seeds = self.seeds
        if seeds and not (resume or overwrite):
            raise RunFolderError(
                f"{self.path} holds runs of {len(seeds)} seeds already. Go on with them (--resume), replace them "
                "(--overwrite), or give another folder."
            )

    def remove(self, seed: int) -> None:
        """Remove the run of a seed, and nothing else."""
        self.member(seed).clear()
        self.member(seed).abandon()

    def load(self) -> Ensemble:
        """The best model of every run; all of them have to be over."""
        members = [self.member(seed) for seed in self.seeds]
        unfinished = [member.path.name for member in members if not member.result.exists()]
        if not members:
            raise RunFolderError(f"{self.path} has no runs: expected a folder that pathnn train --seeds wrote.")
        if unfinished:
            raise RunFolderError(
                f"{self.path} is not whole: {', '.join(unfinished)} of its {len(members)} runs are not over. Go on "
                f"with pathnn train --seeds {len(members)} --resume, or give one of the runs in it."
            )
        return Ensemble(tuple(load_model(member.model) for member in members))
