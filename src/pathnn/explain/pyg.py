"""Path scores as masks of edges and vertices, for PyG's `Explainer`."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.config import ModelMode, ModelTaskLevel

from pathnn.explain.attribution import explain_graphs
from pathnn.nn import PathNN


class PathExplainer(ExplainerAlgorithm):
    """Explain a `PathNN` with PyG's `Explainer`: each path shares its score equally among its edges and vertices.

    Masks have signs: an edge with a positive score raises the output. Each direction of an edge has half of its score.

    Args:
        output: the number of the output to explain; None for the predicted class, or for output 0 of other models.
        reference: see `explain_graphs`.

    >>> from torch_geometric.explain import Explainer
    >>> model = PathNN(3, 8, 1, collection="ap", k=2)
    >>> config = {"mode": "regression", "task_level": "graph", "return_type": "raw"}
    >>> explainer = Explainer(
    ...     model, PathExplainer(), explanation_type="model", edge_mask_type="object", model_config=config
    ... )
    >>> explainer(torch.rand(3, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).edge_mask.shape
    torch.Size([4])
    """

    def __init__(self, output: int | None = None, reference: Tensor | None = None) -> None:
        super().__init__()
        self.output, self.reference = output, reference

    def supports(self) -> bool:
        """Return whether the task is one of whole graphs, without masks of features."""
        kinds = (self.explainer_config.node_mask_type, self.explainer_config.edge_mask_type)
        whole = self.model_config.task_level == ModelTaskLevel.graph
        return whole and all(kind is None or kind.value == "object" for kind in kinds)

    def forward(
        self, model: torch.nn.Module, x: Tensor, edge_index: Tensor, *, target: Tensor,
        index: int | Tensor | None = None, **kwargs: Any,
    ) -> Explanation:  # fmt: skip
        """Return the masks of a graph, or of each graph of a batch (`batch=`); `index` chooses some of its graphs."""
        if unknown := set(kwargs) - {"edge_attr", "graph_attr", "batch", "batch_size"}:
            raise ValueError(f"got {sorted(unknown)}: expected edge_attr, graph_attr, batch or batch_size.")
        batch = kwargs.get("batch")
        batch = x.new_zeros(x.size(0), dtype=torch.long) if batch is None else batch
        edge_number = torch.arange(edge_index.size(1), device=edge_index.device)
        whole = Data(x=x, edge_index=edge_index, edge_attr=kwargs.get("edge_attr"), edge_number=edge_number)
        edge_mask, node_mask = torch.zeros(edge_index.size(1)), torch.zeros(x.size(0))
        chosen = torch.arange(target.size(0)) if index is None else torch.as_tensor(index).view(-1)
        for graph in chosen.tolist():
            data = whole.subgraph(batch == graph)
            if (graph_attr := kwargs.get("graph_attr")) is not None:
                data.graph_attr = graph_attr[graph : graph + 1]
            output = self.output
            if output is None:
                output = int(target[graph]) if self.model_config.mode == ModelMode.multiclass_classification else 0
            (found,) = explain_graphs(cast(PathNN, model), [data], output=output, reference=self.reference)
            shares = found.edge_scores()
            ends = (tuple(sorted(pair)) for pair in data.edge_index.t().tolist())
            edge_mask[data.edge_number.cpu()] = torch.tensor([shares.get(pair, 0.0) / 2 for pair in ends])
            node_mask[(batch == graph).cpu()] = found.vertex_scores().float()
        nodes = None if self.explainer_config.node_mask_type is None else node_mask[:, None].to(x)
        return Explanation(edge_mask=edge_mask.to(x.device), node_mask=nodes)
