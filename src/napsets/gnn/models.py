"""The settings of a training run, and the models, stacked from PyTorch Geometric's layers.

To add a model, add an entry to `MODELS`.

Adjacencies are torch CSR tensors whose rows are the nodes computed and whose columns are the nodes read. A model's
`forward` takes one square adjacency for all layers, or a sequence of one per layer, each with the rows that the next
one reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from napsets.checks.values import choose
from napsets.errors import InvalidInputError

SAMPLERS = ("neighbours", "shadow", "full", "auto")


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training run, other than data, model and seed.

    Attributes
    ----------
    layers, hidden, dropout
        Shape of the model.
    heads : int
        Attention heads, for models that have them.
    learning_rate, weight_decay
        Of Adam.
    plateau_patience : int or None
        Halve the learning rate when validation accuracy has not risen for more than this many epochs.
    sampler : str
        ``neighbours`` (sampled, `fanouts` wide), ``shadow`` (one ego-net per node, `depth` deep and `ego_fanout` wide),
        ``full`` (all training nodes in one batch) or ``auto`` (full where the graph is small, else neighbours).
    batch_size, fanouts, depth, ego_fanout
        Of the samplers.
    epochs : int
        At most this many.
    patience : int or None
        Stop when validation accuracy has not risen for this many epochs.
    validations_per_epoch : int
        How often validation accuracy is looked at; the best weights are kept.
    inference : str
        ``exact`` (every neighbour counts) or ``sampled`` (as in training).
    """

    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5
    heads: int = 4
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    plateau_patience: int | None = None
    sampler: str = "auto"
    batch_size: int = 512
    fanouts: tuple[int, ...] = (25, 10)
    depth: int = 2
    ego_fanout: int = 20
    epochs: int = 30
    patience: int | None = None
    validations_per_epoch: int = 1
    inference: str = "exact"

    def __post_init__(self) -> None:
        counts = "layers hidden heads batch_size depth ego_fanout epochs validations_per_epoch"
        for name in counts.split():
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InvalidInputError(f"`{name}` must be an integer of at least 1; got {getattr(self, name)!r}")
        if not 0 <= self.dropout < 1:
            raise InvalidInputError(f"`dropout` must be at least 0 and below 1; got {self.dropout}")
        if not self.learning_rate > 0:
            raise InvalidInputError(f"`learning_rate` must be above 0; got {self.learning_rate}")
        choose("sampler", self.sampler, dict.fromkeys(SAMPLERS))
        choose("inference", self.inference, dict.fromkeys(("exact", "sampled")))
        object.__setattr__(self, "fanouts", tuple(self.fanouts))
        if self.sampler in ("neighbours", "auto") and len(self.fanouts) != self.layers:
            raise InvalidInputError(f"`fanouts` must have one entry per layer, {self.layers}; got {self.fanouts}")

    def as_dict(self) -> dict[str, Any]:
        """Return the settings in a form that JSON can hold."""
        return asdict(self) | {"fanouts": list(self.fanouts)}


# The paper's text (its appendix on training): 2 layers of 64, Adam at 0.1, dropout 0.5, early stopping on validation
# accuracy. It leaves open the batch sizes, taken from the released code, and the number of epochs.
_PAPER = TrainingSettings(learning_rate=0.1, dropout=0.5, sampler="neighbours", batch_size=512, epochs=100, patience=20)
# The released code: no early stopping, the best of 30 epochs.
_CODE = TrainingSettings(learning_rate=0.01, dropout=0.2, sampler="neighbours", batch_size=512, epochs=30)

PRESETS: dict[str, dict[str, TrainingSettings]] = {
    "paper": {"default": _PAPER, "shadow": replace(_PAPER, sampler="shadow", batch_size=128)},
    "released-code": {
        "default": _CODE,
        "shadow": replace(
            _CODE,
            sampler="shadow",
            batch_size=128,
            hidden=256,
            learning_rate=0.1,
            plateau_patience=3,
            validations_per_epoch=2,
        ),
    },
}


def settings_for(preset: str, family: str = "default", **changes: Any) -> TrainingSettings:
    """Return a preset's settings for a family of models, with some of them changed.

    Parameters
    ----------
    preset : str
        ``paper`` (the paper's text) or ``released-code``.
    family : str
        ``shadow`` for the ShaDow models, ``default`` for all others.
    **changes
        Fields of `TrainingSettings`.
    """
    chosen = choose("preset", preset, PRESETS)
    known: Mapping[str, Any] = {field.name: None for field in fields(TrainingSettings)}
    for name in changes:
        choose("settings", name, known)
    return replace(chosen.get(family, chosen["default"]), **changes)


class Stack(nn.Module):
    """Layers with batch normalisation, ReLU and dropout between them."""

    #: What the samplers store in the adjacency: ``ones``, or ``gcn`` for self-loops and 1 / √((dᵢ+1)(dⱼ+1)).
    weighting = "ones"
    reads_graph = True  #: whether the model looks at edges at all
    #: Whether a layer gathers neighbours before it transforms them. The first layer can then read the features of the
    #: whole graph where they lie, instead of a copy of those in the batch.
    aggregates_first = False
    sight: int | None = None  #: how many steps its layers see; a module of a user's own may see any number

    def __init__(self, num_features: int, num_classes: int, settings: TrainingSettings) -> None:
        super().__init__()
        widths = [num_features, *[settings.hidden] * (settings.layers - 1), num_classes]
        self.num_layers = self.sight = settings.layers
        self.convs = nn.ModuleList(
            self._make_layer(widths[i], widths[i + 1], settings, last=i == settings.layers - 1)
            for i in range(settings.layers)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])
        self.dropout = nn.Dropout(settings.dropout)

    def _make_layer(self, width_in: int, width_out: int, settings: TrainingSettings, *, last: bool) -> nn.Module:
        raise NotImplementedError

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        """Apply a layer: `x` are the nodes read, `own` those computed."""
        raise NotImplementedError

    def layer(self, i: int, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        """Apply layer i and, unless it is the last, normalise, rectify and drop out."""
        x = self._convolve(self.convs[i], x, own, adjacency)
        return x if i == self.num_layers - 1 else self.dropout(torch.relu(self.norms[i](x)))

    def forward(self, x: Tensor, adjacency: Tensor | Sequence[Tensor], source: Tensor | None = None) -> Tensor:
        """Return logits for the rows of the last adjacency; with `source`, the first layer's columns are its rows."""
        layers = [adjacency] * self.num_layers if isinstance(adjacency, Tensor) else list(adjacency)
        for i, matrix in enumerate(layers):
            read = x if i or source is None else source
            x = self.layer(i, read, x[: matrix.shape[0]], matrix)
        return x


class SageMean(Stack):
    """GraphSAGE: the mean of the neighbours, and the node's own transform."""

    aggregation = "mean"
    aggregates_first = True

    def _make_layer(self, width_in: int, width_out: int, settings: TrainingSettings, *, last: bool) -> nn.Module:
        return SAGEConv(width_in, width_out, aggr=self.aggregation)

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        return layer((x, own), adjacency)


class SageMax(SageMean):
    """GraphSAGE with the elementwise maximum of the neighbours."""

    aggregation = "max"


class GCN(Stack):
    """Graph convolutions, whose symmetric normalisation the samplers put into the adjacency."""

    weighting = "gcn"

    def _make_layer(self, width_in: int, width_out: int, settings: TrainingSettings, *, last: bool) -> nn.Module:
        return GCNConv(width_in, width_out, normalize=False, add_self_loops=False)

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        return layer(x, adjacency)


class GAT(Stack):
    """Graph attention to neighbours and the node itself: heads share the width between layers, at the end the mean."""

    def _make_layer(self, width_in: int, width_out: int, settings: TrainingSettings, *, last: bool) -> nn.Module:
        heads = settings.heads if last or settings.hidden % settings.heads == 0 else 1
        width = width_out if last else width_out // heads
        return GATConv(width_in, width, heads=heads, concat=not last)

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        rows = torch.repeat_interleave(adjacency.crow_indices().diff())
        edges = torch.stack([adjacency.col_indices(), rows]).long()
        return layer((x, own), edges, size=(x.shape[0], own.shape[0]))


class MLP(Stack):
    """A plain perceptron on each node's own features."""

    reads_graph = False

    def _make_layer(self, width_in: int, width_out: int, settings: TrainingSettings, *, last: bool) -> nn.Module:
        return nn.Linear(width_in, width_out)

    def _convolve(self, layer: Any, x: Tensor, own: Tensor, adjacency: Tensor) -> Tensor:
        return layer(own)


@dataclass(frozen=True)
class ModelEntry:
    """A named model: how it is built, which family of settings it takes, what else it needs changed, what it is."""

    build: Callable[[int, int, TrainingSettings], nn.Module]
    family: str
    changes: dict[str, Any]
    summary: str


MODELS: dict[str, ModelEntry] = {
    "graphsage-mean": ModelEntry(SageMean, "default", {}, "GraphSAGE, mean of sampled neighbours"),
    "graphsage-max": ModelEntry(SageMax, "default", {}, "GraphSAGE, maximum over sampled neighbours"),
    "shadow-sage": ModelEntry(SageMean, "shadow", {}, "GraphSAGE on a sampled ego-net of each node"),
    "shadow-gcn": ModelEntry(GCN, "shadow", {}, "graph convolutions on a sampled ego-net of each node"),
    "gcn": ModelEntry(GCN, "default", {"sampler": "auto"}, "graph convolutions"),
    "gat": ModelEntry(GAT, "default", {"sampler": "auto"}, "graph attention"),
    "mlp": ModelEntry(MLP, "default", {"sampler": "auto"}, "a perceptron that sees no edges"),
}


def build_model(name: str, num_features: int, num_classes: int, settings: TrainingSettings) -> nn.Module:
    """Return a fresh model, its weights drawn from torch's current random state."""
    return choose("model", name, MODELS).build(num_features, num_classes, settings)
