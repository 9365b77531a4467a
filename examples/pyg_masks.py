"""A PyTorch Geometric model and its masks: train as usual, then predict sets for the test mask.

Run with ``python examples/pyg_masks.py``; needs the extra ``gnn``.
"""

from __future__ import annotations

import torch
from torch_geometric.nn import GCNConv

import napsets as ns


class GCN(torch.nn.Module):
    """Two layers."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(num_features, 32), GCNConv(32, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.second(torch.relu(self.first(x, edge_index)), edge_index)


def main(epochs: int = 60) -> None:
    # Any Data object with train_mask, val_mask and test_mask; this one is a random block model.
    drawn = ns.datasets.load("dcsbm", num_nodes=3000, num_features=16, mean_degree=12, seed=0)
    data = ns.datasets.to_pyg(drawn)
    assert isinstance(data.y, torch.Tensor)
    torch.manual_seed(0)
    model = GCN(data.num_features, drawn.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        probabilities = model(data.x, data.edge_index).softmax(dim=1)

    # The model is transductive: it has seen all features, but only the training labels. The validation mask may
    # calibrate because it is a random sample and was not used to stop or select the model: see docs/which-labels.md.
    auto = ns.Auto(alpha=0.1).calibrate(data, probabilities, data.y, calibration=data.val_mask)
    sets = auto.predict(data.test_mask)
    print(auto.choice)
    print(sets)
    print(f"coverage {ns.coverage(sets, data.y):.3f}, mean size {ns.mean_size(sets):.2f}")


if __name__ == "__main__":
    main()
