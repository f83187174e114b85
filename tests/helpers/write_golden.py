"""Compute the golden values of the restructuring, and write them: `python tests/helpers/write_golden.py [NAME...]`.

Each function returns plain values, uses public names only, and is compared with `NAME.json` by `test_golden.py`.
Rewrite a file only when the change is intended, and say why in the commit.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pathnn import PathNN, extract_paths
from pathnn.data import Categorical, PackedGraphs, Task, load_dataset, task_from_graphs
from pathnn.training import RunConfig, build_model

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "golden"
EDGES = [
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (5, 6), (6, 7), (7, 8), (8, 6)],  # hexagon, bridge, triangle
    [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7), (0, 4), (1, 5), (2, 6), (3, 7)],  # ladder
    [(0, 1), (0, 2), (0, 3), (3, 4), (3, 5), (6, 7)],  # tree, and another component
]
"""Three small graphs with ties between shortest paths, cycles of several lengths and two components."""


def graphs() -> list[Tensor]:
    """Return the `edge_index` of each fixed graph, with both directions of each edge."""
    edges = [torch.tensor(one).t() for one in EDGES]
    return [torch.cat([one, one.flip(0)], dim=1) for one in edges]


def union() -> tuple[Tensor, int, Tensor]:
    """Return `edge_index`, the number of vertices and `batch` of the fixed graphs as one batch."""
    sizes = torch.tensor([int(one.max()) + 1 for one in graphs()])
    starts = (sizes.cumsum(0) - sizes).tolist()
    edge_index = torch.cat([one + start for one, start in zip(graphs(), starts, strict=True)], dim=1)
    return edge_index, int(sizes.sum()), torch.arange(len(sizes)).repeat_interleave(sizes)


def codes(rows: int, sizes: Iterable[int]) -> Tensor:
    """Return deterministic categories, one column for each size."""
    return torch.stack([(torch.arange(rows) * (3 + i) + i) % min(size, 5) for i, size in enumerate(sizes)], dim=1)


def digest(*tensors: Tensor) -> str:
    """Return the SHA-256 of the values of tensors."""
    joined = hashlib.sha256()
    for tensor in tensors:
        joined.update(str(tuple(tensor.shape)).encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return joined.hexdigest()


def models(dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """Outputs of the shipped models, and of each gradient its norm and its product with a fixed vector."""
    edge_index, num_nodes, batch = union()
    found = {}
    for name in sorted(path.stem for path in (ROOT / "models").glob("*.safetensors")):
        model = PathNN.from_pretrained(name).to(dtype)
        x = codes(num_nodes, model.config.in_channels)
        low, high = edge_index.amin(0), edge_index.amax(0)  # both directions of an edge have the same features
        edge_attr = codes(num_nodes**2, model.config.edge_channels)[low * num_nodes + high]
        out = model(x, edge_index, batch=batch, edge_attr=edge_attr)
        (out * probe(out)).sum().backward()
        found[name] = {
            "out": out.tolist(),
            "gradients": {
                key: [float(p.grad.norm()), float((p.grad * probe(p)).sum())] for key, p in model.named_parameters()
            },
        }
    return found


def probe(like: Tensor) -> Tensor:
    """Return a fixed vector in the shape of a tensor."""
    return torch.arange(like.numel(), dtype=torch.float64).cos().reshape(like.shape).to(like.dtype)


def weights() -> dict[str, str]:
    """SHA-256 of the freshly drawn weights of six configs."""
    csl, molecules = load_dataset("csl"), _molecules()
    configs = {
        "csl preset ap": (RunConfig(data="csl", preset="csl", collection="ap", k=5), csl),
        "csl sp+ seed 3": (RunConfig(data="csl", collection="sp+", k=3, seed=3, fold=2), csl),
        "csl extended": (RunConfig(data="csl", k=2, options={"extend": True, "norm": None, "head": "linear"}), csl),
        "zinc preset ap": (RunConfig(data="zinc", preset="zinc", collection="ap", k=4), molecules),
        "zinc gin": (RunConfig(data="zinc", model="gin", options={"hidden_channels": 8}), molecules),
        "zinc gat": (RunConfig(data="zinc", model="gat", options={"hidden_channels": 8}, seed=1), molecules),
    }
    found = {}
    for name, (config, task) in configs.items():
        state = build_model(config, task).state_dict()
        found[name] = hashlib.sha256("".join(key + digest(value) for key, value in state.items()).encode()).hexdigest()
    return found


def _molecules() -> Task:
    """Return a task with the encoders of ZINC."""
    plain = PackedGraphs.from_edges(graphs(), [int(one.max()) + 1 for one in graphs()])
    x, edge_attr = codes(plain.num_nodes, (28,)), codes(plain.num_edges, (4,))
    own = replace(plain, x=x, edge_attr=edge_attr, y=torch.tensor([[0.5], [2.0], [3.0]]))
    return task_from_graphs(own, name="zinc", node_features=Categorical((28,)), edge_features=Categorical((4,)))


def tries() -> dict[str, Any]:
    """SHA-256 of the tries of the fixed graphs: each collection, with and without each option."""
    edge_index, num_nodes, batch = union()
    options: dict[str, dict[str, Any]] = {
        "default": {}, "distances": {"distances": True}, "no distances": {"distances": False},
        "extend": {"extend": True}, "sample": {"max_paths_per_source": 2, "seed": 7},
    }  # fmt: skip
    found = {}
    for collection in ("sp", "sp+", "ap"):
        for name, chosen in options.items():
            trie = extract_paths(edge_index, num_nodes, collection=collection, k=5, batch=batch, **chosen)
            parts = [trie.vertex, trie.parent, trie.edge, *([] if trie.distance is None else [trie.distance])]
            found[f"{collection} {name}"] = [trie.num_paths, trie.num_entries, digest(*(part.long() for part in parts))]
    return found


def json_keys() -> dict[str, list[str]]:
    """The keys of the JSON documents of the command line; `[]` is any entry of a list."""
    from typer.testing import CliRunner

    from pathnn.cli.app import app

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in commands(Path(folder)):
            result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
            if result.exit_code:
                raise RuntimeError(f"pathnn {' '.join(map(str, arguments))}: {result.stderr or result.exception}")
            found[name] = sorted(set(key_paths(json.loads(result.stdout))))
    return found


def commands(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """Yield names and arguments of tiny commands; those of benchmarks, counts, runtime and figures take too long."""
    table, g6, run, two = folder / "molecules.csv", folder / "graphs.g6", folder / "run", folder / "two"
    chains = ["C" * n + tail for n in range(1, 7) for tail in ("O", "N", "Cl", "c1ccccc1")]
    table.write_text("smiles,size\n" + "".join(f"{smiles},{len(smiles) * 10.0}\n" for smiles in chains))
    g6.write_text("EhEG\nEwCW\n")  # a hexagon, two triangles
    small = ["--target", "size", "--epochs", "1", "--hidden", "4", "--k", "2", "--device", "cpu"]
    yield "paths", ["paths", g6, "--k", 3]
    yield "distinguish", ["distinguish", g6, "--k", 3, "--seeds", 1]
    yield "train", ["train", table, "--out", run, *small]
    yield "train --seeds", ["train", table, "--out", two, "--seeds", 2, *small]
    yield "train --folds", ["train", table, "--out", folder / "folds", "--folds", 2, *small]
    yield "compare", ["compare", run, two]
    yield "evaluate", ["evaluate", run, table]
    yield "evaluate, two networks", ["evaluate", two, table]
    yield "predict", ["predict", run, table]
    yield "predict, two networks", ["predict", two, table]
    yield "explain", ["explain", run, table, "--row", 3]
    yield "datasets", ["datasets"]
    yield "datasets fetch", ["datasets", "fetch", "csl"]
    yield "datasets verify", ["datasets", "verify", "csl"]
    yield "reproduce zinc", ["reproduce", "zinc", "--limit", 0, "--results", ROOT / "results"]
    yield "reproduce theory", ["reproduce", "theory", "--max-vertices", 2, "--max-height", 2, "--out", folder]
    yield "reproduce sr", ["reproduce", "sr", "--limit", 0, "--results", ROOT / "results"]
    yield "reproduce brec", ["reproduce", "brec", "--limit", 0, "--results", ROOT / "results"]


def key_paths(value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the keys of nested dictionaries and lists; a key that is no word, such as a path length, becomes `*`.

    >>> list(key_paths({"rows": [{"k": 1}, {"paths": {"3": 5}}]}))
    ['rows', 'rows[].k', 'rows[].paths', 'rows[].paths.*']
    """
    if isinstance(value, dict):
        for word, entry in value.items():
            key = word if word.isidentifier() else "*"
            yield f"{prefix}{key}"
            yield from key_paths(entry, f"{prefix}{key}.")
    elif isinstance(value, list):
        for entry in value:
            yield from key_paths(entry, f"{prefix.removesuffix('.')}[].")


GOLDEN: dict[str, Callable[[], Any]] = {
    "models": models, "weights": weights, "tries": tries, "json_keys": json_keys,
}  # fmt: skip

if __name__ == "__main__":
    for chosen in sys.argv[1:] or GOLDEN:
        (HERE / f"{chosen}.json").write_text(json.dumps(GOLDEN[chosen](), indent=1) + "\n")
