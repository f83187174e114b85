"""The folder of an ensemble: a run folder for every seed, and what came out of all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathnn.training.checkpoint import load_model
from pathnn.training.ensemble import Ensemble
from pathnn.training.errors import CheckpointError, RunFolderError
from pathnn.training.run_folder import LOCK, RunFolder, check_free, check_wishes, is_leftover, is_run_file
from pathnn.training.tensor_file import write_file

SEED = re.compile(r"seed-(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class EnsembleFolder:
    """`ensemble.json` has the seeds that were asked for, `seed-0`, `seed-1`, … are run folders, and `result.json` says
    what came out; it is there while all runs are over.
    """

    path: Path

    @property
    def plan(self) -> Path:
        """`ensemble.json`."""
        return self.path / "ensemble.json"

    @property
    def result(self) -> Path:
        """`result.json`."""
        return RunFolder(self.path).result

    def member(self, seed: int) -> RunFolder:
        """The run of one seed."""
        return RunFolder(self.path / f"seed-{seed}")

    @property
    def begun(self) -> bool:
        """Whether an ensemble has been written here. A run folder is none, whatever else lies in it."""
        return self.plan.is_file() and not RunFolder(self.path).begun

    @property
    def seeds(self) -> list[int]:
        """The seeds that were asked for; none where no ensemble has been begun."""
        if not self.begun:
            return []
        try:
            return [int(seed) for seed in json.loads(self.plan.read_text())["seeds"]]
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self.plan} is damaged: {error!r}. Remove it, and go on with pathnn train DATA --seeds N --out "
                f"{self.path} --resume, which keeps the runs."
            ) from error

    def check(self, wanted: Iterable[int] = (), *, resume: bool = False, overwrite: bool = False) -> None:
        """Make sure that the runs of the seeds `wanted` may be written, as `RunFolder.check` does for one."""
        check_wishes(resume=resume, overwrite=overwrite)
        if RunFolder(self.path).begun:
            raise RunFolderError(f"{self.path} holds a single run: give another folder for several seeds.")
        check_free(self.path, _ours)
        if self.begun and not (resume or overwrite):
            raise RunFolderError(
                f"{self.path} holds runs of {len(self.seeds)} seeds already. Go on with them (--resume), replace them "
                "(--overwrite), or give another folder."
            )
        for member in map(self.member, wanted):
            member.check(resume=resume, overwrite=overwrite)
            if overwrite:
                check_free(member.path, is_run_file)

    def write_plan(self, seeds: Iterable[int]) -> None:
        """Note down which seeds are wanted. What came out of others before counts no more."""
        self.result.unlink(missing_ok=True)
        write_file(self.plan, (json.dumps({"seeds": list(seeds)}) + "\n").encode())

    def clear(self, seeds: Iterable[int]) -> None:
        """Remove the runs of some seeds, and nothing else; none of them if another process is at work on one."""
        members = [self.member(seed) for seed in seeds if self.member(seed).path.is_dir()]
        with ExitStack() as locks:
            for member in members:
                locks.enter_context(member.lock())
            self.plan.unlink(missing_ok=True)
            self.result.unlink(missing_ok=True)
            for member in members:
                member.clear()
                member.abandon()

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write `result.json`."""
        RunFolder(self.path).write_result(result)

    def read_result(self) -> dict[str, Any] | None:
        """What came out, or None while the runs are not over."""
        return RunFolder(self.path).read_result()

    def load(self) -> Ensemble:
        """The best model of every run; all of them have to be over."""
        if not self.begun:
            raise RunFolderError(f"{self.path} has no runs: expected a folder that pathnn train --seeds wrote.")
        if not self.result.exists():
            raise RunFolderError(
                f"the runs of the {len(self.seeds)} seeds in {self.path} are not all over. Go on with pathnn train "
                f"DATA --seeds {len(self.seeds)} --out {self.path} --resume, or give one of the runs in it."
            )
        return self.load_members()

    def load_members(self) -> Ensemble:
        """The best model of every run, as far as it is."""
        return Ensemble(tuple(load_model(self.member(seed).model) for seed in self.seeds))


def _ours(name: str) -> bool:
    known = ("ensemble.json", "result.json", LOCK)
    return name in known or SEED.fullmatch(name) is not None or is_leftover(name, known)
