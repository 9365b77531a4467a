"""What a model is trained for (labels of nodes, or quantiles of their numbers) and how: settings, published ways.

A goal says how many numbers the model gives for a node, what the truth is, what the model loses by its answers, and by
which merit weights are kept. `NodeQuantiles` is what a model of quantiles gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from napsets.checks.arguments import FloatArray, IntArray, Sealed, frozen
from napsets.checks.names import choose
from napsets.checks.values import check_list
from napsets.datasets.dataset import NodeDataset
from napsets.errors import InvalidInputError

SAMPLERS = ("neighbours", "shadow", "full", "auto")


@dataclass(frozen=True)
class Settings:
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
        for name in [
            "layers",
            "hidden",
            "heads",
            "batch_size",
            "depth",
            "ego_fanout",
            "epochs",
            "validations_per_epoch",
        ]:
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
_PAPER = Settings(learning_rate=0.1, dropout=0.5, sampler="neighbours", batch_size=512, epochs=100, patience=20)
# The released code: no early stopping, the best of 30 epochs.
_CODE = Settings(learning_rate=0.01, dropout=0.2, sampler="neighbours", batch_size=512, epochs=30)

PRESETS: dict[str, dict[str, Settings]] = {
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


def settings_for(preset: str, family: str = "default", **changes: Any) -> Settings:
    """Return a preset's settings for a family of models, with some of them changed.

    Parameters
    ----------
    preset : str
        ``paper`` (the paper's text) or ``released-code``.
    family : str
        ``shadow`` for the ShaDow models, ``default`` for all others.
    **changes
        Fields of `Settings`.
    """
    chosen = choose("preset", preset, PRESETS)
    known: Mapping[str, Any] = {field.name: None for field in fields(Settings)}
    for name in changes:
        choose("settings", name, known)
    return replace(chosen.get(family, chosen["default"]), **changes)


@dataclass(frozen=True, eq=False)
class LabelGoal:
    """The labels of nodes: cross entropy, and accuracy."""

    dataset: NodeDataset
    merit_name: str = "validation_accuracy"  #: what the merit is called in the record of epochs

    def width(self) -> int:
        """Return how many numbers the model gives a node: the classes."""
        return self.dataset.num_classes

    def truth(self) -> npt.NDArray[Any]:
        """Return what is true of each node of the dataset: the labels."""
        return self.dataset.labels

    def loss(self, outputs: Tensor, truth: Tensor) -> Tensor:
        """Return what is to become small: the cross entropy."""
        return nn.functional.cross_entropy(outputs, truth)

    def merit(self, outputs: Tensor, truth: Tensor) -> float:
        """Return by what weights are kept, large is good: the accuracy."""
        return float((outputs.argmax(dim=1) == truth).double().mean())


@dataclass(frozen=True, eq=False)
class QuantileGoal:
    """Quantiles of the nodes' numbers: the pinball loss, and no crossing.

    The model's first number is the lowest quantile; each further one is how much the next lies above it, made positive.
    Targets are brought to mean 0 and spread 1 by what the training nodes show.
    """

    dataset: NodeDataset  #: with `targets`
    quantiles: tuple[float, ...]  #: ascending, between 0 and 1
    merit_name: str = "validation_merit"

    def __post_init__(self) -> None:
        levels = tuple(float(level) for level in check_list("quantiles", self.quantiles, "quantiles"))
        if not levels or not all(0 < a < 1 for a in levels) or list(levels) != sorted(set(levels)):
            raise InvalidInputError(f"`quantiles` must ascend, each between 0 and 1; got {levels}")
        object.__setattr__(self, "quantiles", levels)
        if self.dataset.targets is None:
            raise InvalidInputError("`dataset` must have targets for task='regression'; it has none")
        seen = self._targets[np.concatenate([self.dataset.train, self.dataset.validation])]
        if not np.isfinite(seen).all():
            raise InvalidInputError("`dataset` must have finite targets on its training and validation nodes")

    @property
    def _targets(self) -> Any:
        return np.asarray(self.dataset.targets, dtype=np.float64)

    @property
    def scale(self) -> tuple[float, float]:
        """Mean and standard deviation of the training targets."""
        known = self._targets[self.dataset.train]
        return float(known.mean()), float(known.std()) or 1.0

    def width(self) -> int:
        """Return the number of quantiles."""
        return len(self.quantiles)

    def truth(self) -> npt.NDArray[Any]:
        """Return the targets, scaled."""
        mean, spread = self.scale
        scaled: npt.NDArray[Any] = ((self._targets - mean) / spread).astype(np.float32)
        return scaled

    def ordered(self, outputs: Tensor) -> Tensor:
        """Return ascending quantiles from what the model gave."""
        steps = nn.functional.softplus(outputs[:, 1:])
        return torch.cat([outputs[:, :1], outputs[:, :1] + steps.cumsum(dim=1)], dim=1)

    def loss(self, outputs: Tensor, truth: Tensor) -> Tensor:
        """Return the mean pinball loss."""
        levels = torch.tensor(self.quantiles, dtype=outputs.dtype)
        errors = truth[:, None] - self.ordered(outputs)
        return torch.maximum(levels * errors, (levels - 1.0) * errors).mean()

    def merit(self, outputs: Tensor, truth: Tensor) -> float:
        """Return 1 / (1 + loss), which is positive and grows as the loss falls."""
        return 1.0 / (1.0 + float(self.loss(outputs.double(), truth.double())))

    def unscaled(self, outputs: Tensor) -> Any:
        """Return the quantiles on the scale of the targets."""
        mean, spread = self.scale
        return mean + spread * self.ordered(outputs.double()).numpy()


#: What a model is trained for: both have a width, a truth, a loss and a merit.
Goal = LabelGoal | QuantileGoal


def make_goal(dataset: NodeDataset, task: str, quantiles: Sequence[float]) -> Goal:
    """Return what to train for: ``classification`` or ``regression``."""
    if task == "classification":
        return LabelGoal(dataset)
    if task == "regression":
        return QuantileGoal(dataset, tuple(quantiles))
    raise InvalidInputError(f"`task` must be 'classification' or 'regression'; got {task!r}")


@dataclass(frozen=True, eq=False, repr=False)
class NodeQuantiles(Sealed):
    """Quantiles of the numbers of all nodes of a dataset.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, 0..n−1.
    outputs : numpy.ndarray
        One row per node, ascending: what `napsets.CQR` takes, where there are two.
    quantiles : tuple of float
        Which quantiles the columns are.
    targets : numpy.ndarray
        The truth; NaN where unknown.
    split : numpy.ndarray
        The part each node lay in: train, validation, test, or an empty string.
    dataset, model : str
        Their names.
    settings : mapping
        How the model was trained.
    """

    nodes: IntArray
    outputs: FloatArray
    quantiles: tuple[float, ...]
    targets: FloatArray
    split: npt.NDArray[np.str_]
    dataset: str = ""
    model: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("nodes", "outputs", "targets", "split"):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name))))

    @property
    def loss(self) -> float:
        """Mean pinball loss on the test nodes; NaN where there are none."""
        rows = (self.split == "test") & np.isfinite(self.targets)
        errors = self.targets[rows, None] - self.outputs[rows]
        levels = np.array(self.quantiles)
        losses = np.maximum(levels * errors, (levels - 1.0) * errors)
        return float(losses.mean()) if losses.size else float("nan")

    def to_arrow(self) -> Any:
        """Return a PyArrow table: node, lower and upper (or one column per quantile), target, split."""
        import pyarrow as pa

        names = ["lower", "upper"] if len(self.quantiles) == 2 else [f"q{level:g}" for level in self.quantiles]
        columns = {name: pa.array(self.outputs[:, i]) for i, name in enumerate(names)}
        return pa.table({"node": self.nodes, **columns, "target": self.targets, "split": self.split})

    def __repr__(self) -> str:
        levels = ", ".join(f"{level:g}" for level in self.quantiles)
        return (
            f"NodeQuantiles({self.model!r} on {self.dataset!r}: {self.nodes.size:,} nodes, quantiles {levels}, "
            f"pinball loss {self.loss:.4g} on test nodes)"
        )
