"""What building a dataset gives, and its form in the cache: tensors by name."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Split

PARTS = ("train", "val", "test")
FIELDS = ("edge_index", "node_ptr", "edge_ptr", "x", "edge_attr", "y")


@dataclass(frozen=True, eq=False)
class Built:
    """The parts of a task that are data: graphs and splits. Its other facts are code.

    `published` says whether the splits are the published ones (or were made here because no file was at
    hand).
    """

    graphs: PackedGraphs
    splits: tuple[Split, ...] = ()
    published: bool = True

    def to_tensors(self) -> dict[str, Tensor]:
        """Everything as tensors by name; `from_tensors` reads them back."""
        tensors = self.graphs.tensors()
        if self.graphs.names is not None:
            tensors["names"] = text_to_tensor("\n".join(self.graphs.names))
        for i, split in enumerate(self.splits):
            for part, index in zip(PARTS, (split.train, split.val, split.test), strict=True):
                tensors[f"split.{i}.{part}"] = index
        tensors["published"] = torch.tensor([self.published])
        return tensors

    @staticmethod
    def from_tensors(tensors: dict[str, Tensor]) -> Built:
        """Read back what `to_tensors` wrote."""
        fields = {name: tensors.get(name) for name in FIELDS}
        if fields["edge_index"] is None or fields["node_ptr"] is None or fields["edge_ptr"] is None:
            raise DataError(f"a cached dataset without graphs: it holds {sorted(tensors)}.")
        names = tuple(tensor_to_text(tensors["names"]).split("\n")) if "names" in tensors else None
        graphs = PackedGraphs(
            edge_index=fields["edge_index"],
            node_ptr=fields["node_ptr"],
            edge_ptr=fields["edge_ptr"],
            x=fields["x"],
            edge_attr=fields["edge_attr"],
            y=fields["y"],
            names=names,
        )
        count = len({name.split(".")[1] for name in tensors if name.startswith("split.")})
        splits = tuple(Split(*(tensors[f"split.{i}.{part}"] for part in PARTS)) for i in range(count))
        return Built(graphs, splits, bool(tensors["published"]))


def text_to_tensor(text: str) -> Tensor:
    """Text as UTF-8 bytes.

    >>> tensor_to_text(text_to_tensor("CC=O"))
    'CC=O'
    """
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8) if text else torch.empty(0, dtype=torch.uint8)


def tensor_to_text(tensor: Tensor) -> str:
    """The text that `text_to_tensor` stored."""
    return bytes(tensor.numpy()).decode()
