"""Train your own module with the trainer of the library: inductively, keeping the best weights.

Run with ``python examples/own_module.py``; needs the extra ``gnn``.
"""

from __future__ import annotations

import torch
from torch_geometric.nn import SAGEConv

import napsets as ns


class Residual(torch.nn.Module):
    """Two GraphSAGE layers with a residual connection; the adjacency is a torch CSR tensor."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 32) -> None:
        super().__init__()
        self.first = SAGEConv(num_features, hidden)
        self.second = SAGEConv(hidden, hidden)
        self.out = torch.nn.Linear(hidden, num_classes)

    def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        h = torch.relu(self.first(x, adjacency))
        return self.out(h + torch.relu(self.second(h, adjacency)))


def main() -> None:
    data = ns.datasets.load("dcsbm", num_nodes=3000, num_features=32, seed=0)
    torch.manual_seed(0)
    module = Residual(data.num_features, data.num_classes)
    predictions = ns.gnn.train(data, module, seed=0, epochs=20)
    print(predictions)


if __name__ == "__main__":
    main()
