"""Train a network of EXP-Class (table 1), and record which test graphs it classifies wrongly after each epoch.

    python reproduction/exp_errors.py exp ap 2

appends a line per epoch to `results/curves/exp_errors.jsonl`. The page on results counts them. A run that is stopped
keeps its epochs, which are those of a whole run: the learning rate is constant.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

from pathnn.device import device_name, resolve
from pathnn.paths.options import Collection
from pathnn.provenance import commit
from pathnn.training import build_model, load_task, model_outputs, recipes
from pathnn.training.loop import train
from pathnn.training.setup import make_loaders, with_paths

FILE = Path(__file__).resolve().parents[1] / "results" / "curves" / "exp_errors.jsonl"


def main(name: str, collection: str, fold: str) -> None:
    """Train the run of the text on a split, with seed 0."""
    config = recipes.exp(cast("Collection", collection), fold=int(fold), name=name)
    device, task = resolve("auto"), load_task(config)
    model = build_model(config, task)
    task = task.with_graphs(with_paths(task.graphs, model, device))
    loaders = make_loaders(task, replace(config, max_entries="auto"), model, device=device)
    test = loaders.test.index.cpu()
    assert task.graphs.y is not None
    classes = task.graphs.y.cpu()[test].reshape(-1)
    run = {"dataset": name, "collection": collection, "fold": int(fold), "seed": config.seed}
    run |= {"commit": commit(), "device": device_name(device)}
    for epoch in train(model, loaders, config):
        outputs = model_outputs(model, loaders.test).cpu()
        found = outputs.argmax(dim=1) if outputs.size(1) > 1 else (outputs.reshape(-1) > 0).long()
        line = {**run, "epoch": epoch.epoch, "val_score": epoch.val_score, "test_graphs": len(test)}
        with FILE.open("a") as file:
            file.write(json.dumps({**line, "wrong": test[found != classes.long()].tolist()}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
