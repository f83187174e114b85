"""SIGKILL at random moments: the resumed run ends with the weights of the undisturbed one."""

from __future__ import annotations

import multiprocessing
import os
import random
from pathlib import Path

import pytest

from engine_tasks import assert_same_files, tiny_config, train_here

KILLS = int(os.environ.get("PATHNN_KILLS", "4"))
"""How often to kill; the full test of issue 4 is `PATHNN_KILLS=20`."""

EPOCHS = max(40, 6 * KILLS)


@pytest.mark.slow
def test_killed_runs_end_like_the_undisturbed_one(tmp_path):
    # A server that has imported torch once, from which children are forked: each starts in milliseconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pathnn.training", "pathnn.data", "engine_tasks"])
    config = tiny_config(epochs=EPOCHS, plateau_factor=0.5, plateau_patience=3).to_dict()

    def start(out: Path, *, resume: bool) -> multiprocessing.Process:
        child = context.Process(target=train_here, args=(str(out), config), kwargs={"resume": resume})
        child.start()
        return child

    whole = start(tmp_path / "whole", resume=False)
    whole.join()
    assert whole.exitcode == 0
    rng, kills, out = random.Random(0), 0, tmp_path / "killed"
    while kills < KILLS:
        child = start(out, resume=True)
        wait_for_start(out, child)
        child.join(timeout=rng.uniform(0.0, 0.4))
        if child.exitcode is None:
            child.kill()
            child.join()
            kills += 1
        elif child.exitcode == 0:
            break
        else:
            pytest.fail(f"a resumed run failed with exit code {child.exitcode}")
    assert kills == KILLS, "the run ended before all kills: raise EPOCHS"
    last = start(out, resume=True)
    last.join()
    assert last.exitcode == 0
    assert_same_files(tmp_path / "whole", out)


def wait_for_start(out: Path, child: multiprocessing.Process) -> None:
    """Most kills are to fall into training, not into loading: wait until the child has written something."""
    before = written(out)
    while child.is_alive() and written(out) == before:
        child.join(timeout=0.005)


def written(out: Path) -> int:
    """When the folder was last changed."""
    try:
        return max(path.stat().st_mtime_ns for path in (out, *out.iterdir()))
    except OSError:
        return 0
