"""The training loop (seeded, inductive, stopped early, resumable), its goals, and the logits of every node of a graph.

A goal says how many numbers the model gives for a node, what the truth is, what the model loses by its answers, and by
which merit weights are kept.

Every epoch starts from a random state that is a function of (seed, epoch), so a run that was killed and resumed draws
what it would have drawn. A checkpoint has all that a run needs to go on, and is written whole after every epoch.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from napsets.checks.values import check_list
from napsets.datasets.dataset import NodeDataset
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.paths import reading, replacing
from napsets.gnn.batches import Batch, FeatureTable, ShadowSampler, batch_key, graph_tensor, make_sampler, traits
from napsets.gnn.models import GCN, SageMean, Stack, TrainingSettings
from napsets.graph import Graph

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress


#: What a checkpoint has of the trainer itself.
_RECORDED = ("epoch", "best_accuracy", "best_epoch", "best_weights", "history")
#: Entries of an adjacency that are worked on at once: bounds memory, changes no result.
ENTRIES_AT_ONCE = 4_000_000


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode without gradients, and each of its parts back into the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def all_logits(model: nn.Module, graph: Graph, features: FeatureTable, settings: TrainingSettings, seed: int) -> Tensor:
    """Return the logits of all nodes, exact or sampled as the settings say."""
    if settings.inference == "sampled":
        return sampled_logits(model, graph, features, settings, seed)
    return exact_logits(model, graph, features, settings)


def sampled_logits(
    model: nn.Module, graph: Graph, features: FeatureTable, settings: TrainingSettings, seed: int
) -> Tensor:
    """Return logits from one sample of each node's neighbourhood, as the paper's released code did."""
    sampler = make_sampler(model, graph, features, settings)
    with evaluating(model):
        seeds = sampler.seeds(np.arange(graph.num_nodes), settings.batch_size)
        return torch.cat([batch.logits(model) for batch in sampler.batches(seeds, seed, 2)])


def exact_logits(model: nn.Module, graph: Graph, features: FeatureTable, settings: TrainingSettings) -> Tensor:
    """Return logits for which every neighbour counts.

    For ShaDow that means whole ego-nets. Where no layer can see their edge, all ego-nets agree with the graph itself
    and one pass over it serves all nodes. That is so for fewer layers than steps, and for means or maxima also for as
    many; a graph convolution sees one step further, through the degrees.
    """
    with evaluating(model):
        if isinstance(model, Stack):
            sight = model.num_layers + (model.weighting == "gcn")
            if settings.sampler != "shadow" or sight <= settings.depth or not model.reads_graph:
                return _layer_by_layer(model, graph, features)
        elif settings.sampler != "shadow":
            return model(features.all(), graph_tensor(graph))
        return _whole_egos(model, graph, features, settings)


def _layer_by_layer(model: Stack, graph: Graph, features: FeatureTable) -> Tensor:
    """Compute all nodes of one layer before the next, some rows at a time where rows are wide."""
    x = features.all()
    parts = _row_slices(graph) if isinstance(model, SageMean) else [slice(0, graph.num_nodes)]
    for i in range(model.num_layers):
        adjacency = (graph_tensor(graph, model.weighting, rows) for rows in parts)
        x = torch.cat([model.layer(i, x, x[rows], matrix) for rows, matrix in zip(parts, adjacency, strict=True)])
    return x


def _row_slices(graph: Graph) -> list[slice]:
    """Cut the rows into runs of about as many entries, counting a row as one more."""
    load = graph.indptr[1:] + np.arange(1, graph.num_nodes + 1)
    goals = np.arange(ENTRIES_AT_ONCE, load[-1] if load.size else 0, ENTRIES_AT_ONCE)
    ends = np.unique([0, *np.searchsorted(load, goals), graph.num_nodes]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def _whole_egos(model: nn.Module, graph: Graph, features: FeatureTable, settings: TrainingSettings) -> Tensor:
    if isinstance(model, GCN):
        model, features = _transformed(model, features)
    sampler = ShadowSampler(graph, features, traits(model), settings.depth, -1)
    seeds = sampler.seeds(np.arange(graph.num_nodes), 64 if sampler.traits.aggregates_first else 16)
    return torch.cat([batch.logits(model) for batch in sampler.batches(seeds)])


def _transformed(model: GCN, features: FeatureTable) -> tuple[GCN, FeatureTable]:
    """Apply the first linear map, which acts on nodes one by one, to the graph once instead of to each ego-net."""
    rest = copy.deepcopy(model)
    rest.convs[0].lin, rest.aggregates_first = nn.Identity(), True
    first: Any = model.convs[0]
    return rest, FeatureTable(first.lin(features.all()).numpy())


@dataclass(frozen=True, eq=False)
class Goal:
    """What a model is trained for, the labels of nodes by default: cross entropy, and accuracy."""

    dataset: NodeDataset
    quantiles: tuple[float, ...] = ()
    merit_name: str = "validation_accuracy"  #: what the merit is called in the record of epochs

    def width(self) -> int:
        """Return how many numbers the model gives a node."""
        return self.dataset.num_classes

    def truth(self) -> npt.NDArray[Any]:
        """Return what is true of each node of the dataset."""
        return self.dataset.labels

    def loss(self, outputs: Tensor, truth: Tensor) -> Tensor:
        """Return what is to become small."""
        return nn.functional.cross_entropy(outputs, truth)

    def merit(self, outputs: Tensor, truth: Tensor) -> float:
        """Return by what weights are kept, large is good."""
        return float((outputs.argmax(dim=1) == truth).double().mean())


@dataclass(frozen=True, eq=False)
class QuantileGoal(Goal):
    """Quantiles of the nodes' `targets`, ascending: the mean pinball loss, and no crossing.

    The model's first number is the lowest quantile; each further one is how much the next lies above it, made positive.
    Targets are brought to mean 0 and spread 1 by what the training nodes show.
    """

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

    def width(self) -> int:  # noqa: D102
        return len(self.quantiles)

    def truth(self) -> npt.NDArray[Any]:  # noqa: D102
        mean, spread = self.scale
        scaled: npt.NDArray[Any] = ((self._targets - mean) / spread).astype(np.float32)
        return scaled

    def ordered(self, outputs: Tensor) -> Tensor:
        """Return ascending quantiles from what the model gave."""
        steps = nn.functional.softplus(outputs[:, 1:])
        return torch.cat([outputs[:, :1], outputs[:, :1] + steps.cumsum(dim=1)], dim=1)

    def loss(self, outputs: Tensor, truth: Tensor) -> Tensor:  # noqa: D102
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


def make_goal(dataset: NodeDataset, task: str, quantiles: Sequence[float]) -> Goal:
    """Return what to train for: ``classification`` or ``regression``."""
    if task == "classification":
        return Goal(dataset)
    if task == "regression":
        return QuantileGoal(dataset, tuple(quantiles))
    raise InvalidInputError(f"`task` must be 'classification' or 'regression'; got {task!r}")


@dataclass(frozen=True)
class NodeView:
    """What a stage of training may see: the subgraph of some nodes, their features and labels, and nothing else."""

    graph: Graph
    features: FeatureTable
    labels: Tensor
    scored: npt.NDArray[np.int64]

    @classmethod
    def of(cls, goal: Goal, nodes: npt.NDArray[np.int64], scored: npt.NDArray[np.int64]) -> NodeView:
        """Cut the view of `nodes` out of a dataset; `scored` are those, among them, whose labels count."""
        data: Any = goal.dataset
        labels = torch.from_numpy(goal.truth()[nodes])
        places = np.flatnonzero(np.isin(nodes, scored))
        return cls(data.graph.subgraph(nodes), FeatureTable(data.features[nodes]), labels, places)


@dataclass
class Trainer:
    """The state of a run: model, optimiser, the best weights so far, and the record of epochs."""

    model: nn.Module
    settings: TrainingSettings
    seed: int
    goal: Goal
    epoch: int = 0
    best_accuracy: float = -1.0
    best_epoch: int = -1
    best_weights: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings, data = self.settings, self.goal.dataset
        self.train = NodeView.of(self.goal, data.train, data.train)
        seen = np.sort(np.concatenate([data.train, data.validation]))
        self.validation = NodeView.of(self.goal, seen, data.validation)
        self.optimiser = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.plateau = None
        if settings.plateau_patience is not None:
            self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
                self.optimiser, mode="max", factor=0.5, patience=settings.plateau_patience
            )
        self.sampler = make_sampler(self.model, self.train.graph, self.train.features, settings)

    @property
    def finished(self) -> bool:
        """Whether the epochs, or the patience, are used up."""
        patience = self.settings.patience
        tired = patience is not None and self.epoch - 1 - self.best_epoch >= patience and self.best_epoch >= 0
        return self.epoch >= self.settings.epochs or tired

    def run_epoch(self, progress: Progress | None = None) -> None:
        """Go once through the training nodes, looking at validation accuracy as often as the settings say."""
        torch.manual_seed(batch_key(self.seed, 1, self.epoch))
        order = np.random.default_rng([self.seed, 1, self.epoch]).permutation(self.train.scored)
        seeds = self.sampler.seeds(order, self.settings.batch_size)
        looks = self.settings.validations_per_epoch  # evenly spread, always including the last batch
        after = {max(round((k + 1) * len(seeds) / looks) - 1, 0) for k in range(looks)}
        losses, merit = [], float("nan")
        for i, batch in enumerate(self.sampler.batches(seeds, self.seed, 0, self.epoch)):
            losses.append(self._step(batch))
            if i in after:
                merit = self.validate()
            if progress is not None:
                progress(self.epoch * len(seeds) + i + 1, self.settings.epochs * len(seeds))
        if self.plateau is not None:
            self.plateau.step(merit)
        self.history.append({"loss": float(np.mean(losses)), self.goal.merit_name: merit})
        self.epoch += 1

    def _step(self, batch: Batch) -> float:
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        seeds = torch.from_numpy(batch.seeds)
        loss = self.goal.loss(batch.logits(self.model), self.train.labels[seeds])
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

    def validate(self) -> float:
        """Measure merit on the validation nodes (accuracy, for labels) and keep the weights if they are the best."""
        view, merit = self.validation, float(self.epoch)  # without nodes to look at, the last weights are kept
        if view.scored.size:
            logits = all_logits(self.model, view.graph, view.features, self.settings, self.seed)
            scored = torch.from_numpy(view.scored)
            merit = self.goal.merit(logits[scored], view.labels[scored])
        if merit > self.best_accuracy:
            self.best_accuracy, self.best_epoch = merit, self.epoch
            self.best_weights = copy.deepcopy(self.model.state_dict())
        return merit if view.scored.size else float("nan")

    def state(self) -> dict[str, Any]:
        """Return all that a later process needs to go on."""
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "plateau": None if self.plateau is None else self.plateau.state_dict(),
            **{name: getattr(self, name) for name in _RECORDED},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up the state that `state` returned."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.plateau is not None:
            self.plateau.load_state_dict(state["plateau"])
        for name in _RECORDED:
            setattr(self, name, state[name])


def fingerprint(about: Mapping[str, Any], *arrays: Any) -> str:
    """Return a short hash of what must be the same for a run to be continued: settings, weights and data."""
    digest = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for array in arrays:
        parts = [array] if isinstance(array, np.ndarray) else [array.indptr, array.indices, array.data]
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def save_checkpoint(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state of tensors, numbers, strings, lists and dictionaries."""
    # Through a stream: given a path, PyTorch writes the name of the draft into the file.
    with replacing(path) as draft, open(draft, "wb") as stream:
        torch.save(dict(state), stream)


def load_checkpoint(path: str | os.PathLike[str], expected: str) -> dict[str, Any] | None:
    """Read a state if there is one; refuse that of another run."""
    if not Path(path).exists():
        return None
    with reading(path) as source:
        state = torch.load(source, weights_only=True)
        fingerprint = state["fingerprint"]
    if not isinstance(fingerprint, str):
        raise FileFormatError(f"{path} is not a checkpoint")
    if fingerprint != expected:
        raise InvalidInputError(
            f"`checkpoint` must be of the same data, model, settings and seed; {path} is of another run: "
            "name another file, or remove it"
        )
    return dict(state)
