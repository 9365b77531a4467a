"""The settings of a training run, and the models, stacked from PyTorch Geometric's layers.

To add a model, add an entry to `MODELS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv

from napsets.checks.values import choose


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training run, other than data, model and seed.

    Attributes
    ----------
    layers, hidden, dropout
        Shape of the model.
    learning_rate, weight_decay
        Of Adam.
    plateau_patience : int or None
        Divide the learning rate by 10 when validation accuracy has not risen for more than this many epochs, and then
        wait two epochs before counting again.
    sampler : str
        ``neighbours`` (sampled, `fanouts` wide), ``shadow`` (one ego-net per node, `depth` deep and `ego_fanout` wide)
        or ``full`` (all training nodes in one batch).
    batch_size, fanouts, depth, ego_fanout
        Of the samplers; a negative fanout takes all neighbours.
    epochs : int
        The largest number of epochs.
    patience : int or None
        Stop when validation accuracy has not risen for this many epochs.
    validations_per_epoch : int
        How often validation accuracy is measured; the best weights are kept.
    """

    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    plateau_patience: int | None = None
    sampler: str = "neighbours"
    batch_size: int = 512
    fanouts: tuple[int, ...] = (25, 10)
    depth: int = 2
    ego_fanout: int = 20
    epochs: int = 30
    patience: int | None = None
    validations_per_epoch: int = 1


# The paper's text (its appendix on training) leaves open batch sizes, taken from the code, and the number of epochs.
_TEXT = TrainingSettings(learning_rate=0.1, dropout=0.5, epochs=100, patience=20)
# Revision 6fc8783 (January 2023) trains on Amazon Computers; 26bae8f (March 2023) is the last. ShaDow is the same.
_JANUARY = TrainingSettings(learning_rate=0.01, dropout=0.5, epochs=30)
_MARCH = replace(_JANUARY, dropout=0.2, epochs=15)
_SHADOW = TrainingSettings(
    hidden=256, dropout=0.2, learning_rate=0.1, plateau_patience=3, epochs=30, validations_per_epoch=2
)
#: The settings of each preset, by the family of the model: the paper's text, and two revisions of its released code,
#: https://github.com/jase-clarkson/graph_cp.
PRESETS: dict[str, dict[str, TrainingSettings]] = {
    preset: {
        "default": usual,
        "shadow": replace(shadow, sampler="shadow", batch_size=128),
        "full": replace(usual, sampler="full"),
    }
    for preset, usual, shadow in (
        ("paper-text", _TEXT, _TEXT),
        ("graph_cp-6fc8783", _JANUARY, _SHADOW),
        ("graph_cp-26bae8f", _MARCH, _SHADOW),
    )
}


def settings_for(preset: str, family: str = "default", **changes: Any) -> TrainingSettings:
    """Return a preset's settings for a family of models, with some fields of `TrainingSettings` changed."""
    return replace(choose("preset", preset, PRESETS)[family], **changes)


class Stack(nn.Module):
    """Layers with batch normalisation, ReLU and dropout between them."""

    #: Entries of the adjacency: ``ones``, or ``gcn`` for self-loops and 1 / √((dᵢ+1)(dⱼ+1)).
    weighting = "ones"

    def __init__(self, num_features: int, num_outputs: int, settings: TrainingSettings) -> None:
        super().__init__()
        widths = [num_features, *[settings.hidden] * (settings.layers - 1), num_outputs]
        self.convs = nn.ModuleList(self._make_layer(widths[i], widths[i + 1]) for i in range(settings.layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])
        self.dropout = nn.Dropout(settings.dropout)

    def _make_layer(self, width_in: int, width_out: int) -> nn.Module:
        raise NotImplementedError

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        """Apply a layer: `x` are the nodes read, `own` those computed."""
        raise NotImplementedError

    def forward(self, x: Tensor, own: Tensor, adjacency: list[Tensor]) -> Tensor:
        """Return the outputs of the rows of the last adjacency.

        There is one adjacency (torch CSR) per layer: its rows are the nodes computed, its columns the nodes read. Those
        of the first layer are the rows of `x`, and `own` are the features of its rows.
        """
        for i, matrix in enumerate(adjacency):
            x = self._convolve(self.convs[i], x, own[: matrix.shape[0]], matrix)
            own = x = x if i == len(self.norms) else self.dropout(torch.relu(self.norms[i](x)))
        return x


class SageMean(Stack):
    """GraphSAGE: the mean of the neighbours, and the node's own transform."""

    aggregation = "mean"

    def _make_layer(self, width_in: int, width_out: int) -> nn.Module:
        return SAGEConv(width_in, width_out, aggr=self.aggregation)

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        return layer((x, own), adjacency)


class SageMax(SageMean):
    """GraphSAGE with the elementwise maximum of the neighbours."""

    aggregation = "max"


class GCN(Stack):
    """Graph convolutions, whose symmetric normalisation is in the adjacency."""

    weighting = "gcn"

    def _make_layer(self, width_in: int, width_out: int) -> nn.Module:
        return GCNConv(width_in, width_out, normalize=False, add_self_loops=False)

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        if adjacency.shape[0] < x.shape[0]:  # A(XW) = (AX)W, which transforms fewer rows
            return layer.lin(adjacency @ x) + layer.bias
        return layer(x, adjacency)


class MLP(Stack):
    """A plain perceptron on each node's own features."""

    def _make_layer(self, width_in: int, width_out: int) -> nn.Module:
        return nn.Linear(width_in, width_out)

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        return layer(own)


#: The class of each model, and its family of settings.
MODELS: dict[str, tuple[type[Stack], str]] = {
    "graphsage-mean": (SageMean, "default"),
    "graphsage-max": (SageMax, "default"),
    "shadow-sage": (SageMean, "shadow"),
    "shadow-gcn": (GCN, "shadow"),
    "gcn": (GCN, "full"),
    "mlp": (MLP, "full"),
}
