"""Two processes of Fabric (gloo, CPU) learn what one does, and evaluate the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine_tasks import tiny_task
from pathnn.inference import score
from pathnn.training import load_model

SCRIPT = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from engine_tasks import tiny_config, tiny_task
from pathnn.training import run
from pathnn.device import is_first_process

plain = {"hidden_channels": 8, "norm": None, "encoder_norm": False}
config = tiny_config(devices=int(sys.argv[1]), options=plain, batch_size=5, epochs=4, precision="64-true", ema=0.7)
if sys.argv[3:] == ["norm"]:
    config = tiny_config(devices=int(sys.argv[1]), epochs=2, ema=0.7)
result = run(config, Path(sys.argv[2]), task=tiny_task(num_graphs=24))
if is_first_process():
    print(result["processes"])
"""


@pytest.mark.slow
def test_two_processes_learn_what_one_does(tmp_path):
    curves = {}
    for devices in (1, 2):
        out = tmp_path / f"run{devices}"
        start(tmp_path, devices, out)
        curves[devices] = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for one, two in zip(curves[1], curves[2], strict=True):
        for name in ("train_loss", "val_loss", "val_score"):
            assert two[name] == pytest.approx(one[name], rel=1e-7), name
    one, two = (load_file(tmp_path / f"run{n}" / "model.safetensors") for n in (1, 2))
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_two_processes_with_batch_norm_save_a_model_that_scores_what_they_say(tmp_path):
    start(tmp_path, 2, tmp_path / "run", "norm")
    trained = load_model(tmp_path / "run" / "model.safetensors")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    task = tiny_task()
    assert score(trained, task, task.splits[0].test).score == pytest.approx(result["test_score"], rel=1e-5)
    assert result["scores"]["test"]["mae"] == pytest.approx(result["test_score"], rel=1e-5)


def start(folder: Path, devices: int, out: Path, *more: str) -> None:
    (folder / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(folder / "script.py"), str(devices), str(out), *more],
        capture_output=True, text=True, timeout=120, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(devices)]


def environment() -> dict[str, str]:
    """This process' environment, in which the helper module is found and no launcher is running."""
    found = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "LOCAL_RANK"))}
    here = Path(__file__).resolve()
    folders = [str(here.parents[1] / "helpers"), str(here.parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    return {**found, "PYTHONPATH": os.pathsep.join(folders), "OMP_NUM_THREADS": "1"}
