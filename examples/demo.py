"""`make demo`: train on molecules, predict with error bars, and show the paths that mattered, in about a minute.

Runs four commands of the command line, with the setting `examples/demo.yaml`, and compares the test error with those
of the mean of the training targets and of a random forest. The results are in `demo/`.
"""

from __future__ import annotations

import csv
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from sklearn.ensemble import RandomForestRegressor

from pathnn.cli.app import app
from pathnn.data import Task, load_data
from pathnn.training import load_ensemble, score_ensemble

EXAMPLES = Path(__file__).resolve().parent
FOLDER = Path("demo")
DATA, NEW, SETTING = (EXAMPLES / name for name in ("solubility.csv", "molecules.csv", "demo.yaml"))
MODEL, PREDICTIONS, PAGE, PICTURE = (FOLDER / name for name in ("model", "predictions.csv", "why.html", "why.svg"))


def main() -> None:
    started = time.monotonic()
    print(
        "The solubility of 1,128 molecules in water (ESOL, Delaney 2004): logS, the logarithm of mol/l.\n"
        "The split is by scaffold: no test molecule has the scaffold of a training molecule."
    )
    say("Train three networks that differ in the seed. The demo trains for a few epochs and reads only the graph.")
    pathnn("train", DATA, "--config", SETTING, "--seeds", 3, "--out", MODEL, "--overwrite")
    say("Predict. The error bar is the standard deviation over the three networks.")
    pathnn("predict", MODEL, NEW, "--out", PREDICTIONS)
    print(prediction_table())
    say("Explain the first prediction, aspirin: how much does each path raise (+) or lower (-) it?")
    pathnn("explain", MODEL, NEW, "--row", 1, "--top", 6, "--out", PAGE)
    PICTURE.write_text(large_picture(PAGE.read_text()))
    say("Compare the errors on the same test molecules.")
    print(score_table())
    say(f"Done in {time.monotonic() - started:.0f} s. Open these files:")
    print(
        f"  {PREDICTIONS!s:22} predictions with error bars\n"
        f"  {PAGE!s:22} the paths that mattered for aspirin, in a browser\n"
        f"  {PICTURE!s:22} the picture of that page alone"
    )


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


def pathnn(*words: object) -> None:
    """Run a command of the command line in this process, after printing it."""
    shown = [os.path.relpath(word) if isinstance(word, Path) else str(word) for word in words]
    print(f"$ pathnn {' '.join(shown)}", flush=True)
    app([str(word) for word in words], standalone_mode=False)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def prediction_table() -> str:
    """Predictions next to what was measured, where the molecule is in the data."""
    measured = {canonical(row["smiles"]): row["logS"] for row in rows_of(DATA)}
    lines = [f"{'':14}{'predicted logS':>18}   measured"]
    for row in rows_of(PREDICTIONS):
        bar = f"{float(row['predicted_logS']):.2f} ± {float(row['predicted_logS_std']):.2f}"
        known = measured.get(canonical(row["smiles"]))
        lines.append(f"{row['name']:14}{bar:>18}   {'not in the data' if known is None else known}")
    return "\n".join(lines)


def canonical(smiles: str) -> str:
    return str(Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False))


def large_picture(page: str) -> str:
    """The first picture of the page as a document of its own: on white, and as large as the window."""
    picture = page[page.index("<svg") : page.index("</svg>") + len("</svg>")]
    picture = re.sub(r"width='\d+px' height='\d+px'", "", picture, count=1)
    return picture.replace(">", '><rect width="100%" height="100%" fill="white"/>', 1)


def score_table() -> str:
    """The test errors of the networks' mean and of two baselines that were fitted to the same molecules."""
    task = load_data(DATA, targets="logS", split_by="scaffold")
    y, split = task.graphs.y.numpy().ravel(), task.splits[0]
    mean = np.full(len(split.test), y[split.train].mean())
    rows = {
        "mean of the training molecules": errors(mean, y[split.test]),
        "random forest, Morgan fingerprints": errors(random_forest(task), y[split.test]),
        "PathNN, demo setting": tuple(path_nn_score(task, metric) for metric in ("rmse", "mae")),
    }
    lines = [f"{name:36}{rmse:8.2f}{mae:8.2f}" for name, (rmse, mae) in rows.items()]
    return "\n".join([f"{'':36}{'RMSE':>8}{'MAE':>8}", *lines])


def path_nn_score(task: Task, metric: str) -> float:
    networks = load_ensemble(MODEL)
    return score_ensemble(networks, task, task.splits[0].test, metric=metric).together.score


def random_forest(task: Task) -> Any:
    """Predictions for the test molecules by scikit-learn's defaults, on counts of the atoms' surroundings."""
    fingerprint = GetMorganGenerator(radius=2, fpSize=2048).GetCountFingerprintAsNumPy
    inputs = np.stack([fingerprint(Chem.MolFromSmiles(row["smiles"])) for row in rows_of(DATA)])
    y, split = task.graphs.y.numpy().ravel(), task.splits[0]
    forest = RandomForestRegressor(random_state=0, n_jobs=2).fit(inputs[split.train], y[split.train])
    return forest.predict(inputs[split.test])


def errors(predicted: Any, measured: Any) -> tuple[float, float]:
    """RMSE and MAE."""
    difference = predicted - measured
    return float(np.sqrt((difference**2).mean())), float(np.abs(difference).mean())


if __name__ == "__main__":
    main()
