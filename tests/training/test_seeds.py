"""Seeds: of a dataset by its name, of a user's own data by what it holds."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.training import RunConfig, run, run_ensemble
from pathnn.training.config import run_seed
from pathnn.training.setup import data_key

ROWS = [f"{'C' * n}{tail},{n + 0.25 * len(tail)}" for n in range(1, 7) for tail in ("O", "N", "c1ccccc1", "Cl")]


@pytest.mark.parametrize(
    ("data", "fold", "seed", "parts", "expected"),
    [
        ("zinc", 0, 0, (), 4613899625802931305),
        ("zinc", 0, 3, ("weights",), 4340766403447510773),
        ("nci1", 7, 2, ("order",), 3927271956345694919),
        ("csl", 4, 0, ("epoch", 12, 0), 2314663009935098331),
        ("imdb-binary", 0, 1, ("weights",), 8867211737129661458),
        ("peptides-func", 0, 1, ("order",), 8599499378530774272),
        ("molhiv", 0, 9, ("epoch", 0, 0), 6180272044029551411),
    ],
)
def test_the_seeds_of_datasets_are_those_of_the_results(data, fold, seed, parts, expected):
    """The runs in results/ were made with these, whatever task is given."""
    for name in (data, data.upper()):
        config = RunConfig(data=name, fold=fold, seed=seed)
        assert run_seed(config, data_key(config, tiny_task()), *parts) == expected


def test_seeds_depend_on_data_fold_and_seed():
    config, task = tiny_config(), tiny_task()
    key = data_key(config, task)
    changed = [
        (replace(config, fold=1), key),
        (replace(config, seed=1), key),
        (config, data_key(config, tiny_task(23))),
    ]
    assert len({run_seed(*one) for one in ((config, key), *changed)}) == 4
    assert run_seed(config, key) == run_seed(replace(config, lr=0.5), key)


@pytest.mark.parametrize("part", ["x", "y", "edge_index"])
def test_other_content_is_another_seed(part):
    config, task = tiny_config(), tiny_task()
    values = getattr(task.graphs, part).clone()
    values.view(-1)[-1] += 1
    changed = task.with_graphs(replace(task.graphs, **{part: values}))
    assert data_key(config, task) != data_key(config, changed)


def test_the_name_of_own_data_and_its_split_are_no_content():
    config, task = tiny_config(), tiny_task()
    other = replace(task, name="other", splits=task.splits[:0])
    assert data_key(config, task) == data_key(replace(config, data="b", split_seed=3), other)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The same molecules under several names; and, under `changed`, others."""
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    monkeypatch.chdir(folder)
    text = "\n".join(["smiles,y", *ROWS]) + "\n"
    Path("mol.csv").write_text(text)
    Path("sub/copy.csv").write_text(text)
    Path("mol.csv.gz").write_bytes(gzip.compress(text.encode()))
    Path("wide.csv").write_text("\n".join(["id,smiles,y,note", *(f"{i},{row},a" for i, row in enumerate(ROWS))]) + "\n")
    Path("changed.csv").write_text(text.replace(ROWS[3], ROWS[3] + "1"))
    return {
        "plain": "mol.csv", "dot": "./mol.csv", "absolute": str(folder / "mol.csv"), "copy": "sub/copy.csv",
        "compressed": "mol.csv.gz", "wide": "wide.csv", "changed": "changed.csv",
    }  # fmt: skip


def csv_config(data: str) -> RunConfig:
    changes: dict[str, Any] = {"standardize": True, "target": ("y",), "epochs": 2}
    return tiny_config(data=data, **changes)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "last.ckpt")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_however_the_path_is_written_the_model_is_the_same(files, tmp_path):
    results = {name: run(csv_config(data), tmp_path / name) for name, data in files.items()}
    first = weights(tmp_path / "plain")
    for name in ("dot", "absolute", "copy", "compressed", "wide"):
        assert same(first, weights(tmp_path / name)), name
        assert results[name]["test_score"] == results["plain"]["test_score"]
    assert not same(first, weights(tmp_path / "changed"))


def test_so_is_an_ensemble(files, tmp_path):
    each = [
        run_ensemble(csv_config(files[name]), tmp_path / name, 2)["test_each"]
        for name in ("plain", "absolute", "compressed")
    ]
    assert each[0] == each[1] == each[2]
    assert each[0][0] != each[0][1]


def test_a_run_is_resumed_under_another_name_and_ends_the_same(files, tmp_path):
    def stop(epoch, ready) -> None:
        raise KeyboardInterrupt

    run(csv_config(files["plain"]), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(csv_config(files["plain"]), tmp_path / "cut", report=stop)
    run(csv_config(files["copy"]), tmp_path / "cut", resume=True)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
