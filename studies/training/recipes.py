"""From a dataset to predictions: `train`, and its two halves `fit` and `predict`.

Every epoch and every batch starts from a random state that is a function of the seed and its number.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from napsets import Graph, InvalidInputError
from napsets.checks.values import check_seed, choose
from napsets.datasets import NodeDataset, NodePredictions
from napsets.gnn.training import evaluating, torch_threads
from studies.training.models import GCN, MODELS, Stack, TrainingSettings, settings_for
from studies.training.samplers import chunks, draw_batches, shadow_batch, whole_batch


@dataclass(frozen=True, eq=False)
class Goal:
    """The goal of a training: here the labels of the nodes, by cross entropy; a subclass may differ."""

    dataset: NodeDataset

    def width(self) -> int:
        """Return the number of outputs per node."""
        return self.dataset.num_classes

    def truth(self) -> npt.NDArray[Any]:
        """Return the truth about each node of the dataset."""
        return self.dataset.labels

    def loss(self, outputs: Tensor, truth: Tensor) -> Tensor:
        """Return the loss that training minimises."""
        return nn.functional.cross_entropy(outputs, truth)

    def merit(self, outputs: Tensor, truth: Tensor) -> float:
        """Return the measure by which weights are kept, positive and large for good ones."""
        return float((outputs.argmax(dim=1) == truth).double().mean())


class NodeView:
    """The subgraph of some nodes with their features and truth: all that a stage of training may see."""

    def __init__(self, goal: Goal, nodes: npt.NDArray[np.int64], scored: npt.NDArray[np.int64]) -> None:
        self.graph: Graph = goal.dataset.graph.subgraph(nodes)
        self.features = torch.from_numpy(goal.dataset.feature_rows(nodes))
        self.truth = torch.from_numpy(goal.truth()[nodes])
        self.scored = torch.from_numpy(np.flatnonzero(np.isin(nodes, scored)))


def sampled_outputs(model: Stack, graph: Graph, features: Tensor, settings: TrainingSettings, seed: int) -> Tensor:
    """Return a model's outputs for all nodes, with neighbours drawn as in training, as the released code does."""
    with evaluating(model):
        batches = draw_batches(graph, model, np.arange(graph.num_nodes), settings, seed, 2)
        return torch.cat([batch.outputs(model, features) for _, _, batch in batches])


def exact_outputs(model: Stack, graph: Graph, features: Tensor, settings: TrainingSettings) -> Tensor:
    """Return a model's outputs for all nodes, in which every neighbour counts; validation uses them.

    For ShaDow these are the outputs of whole ego-nets. One pass over the graph gives the same where no layer can see
    the edge of an ego-net; a graph convolution sees one step further than its depth, through the degrees.
    """
    with evaluating(model):
        if settings.sampler != "shadow" or len(model.convs) + (model.weighting == "gcn") <= settings.depth:
            return whole_batch(graph, model).outputs(model, features)
        if isinstance(model, GCN):  # the first linear map acts on single nodes: once on the graph, not in each ego-net
            model = copy.deepcopy(model)
            first: Any = model.convs[0]
            features, first.lin = first.lin(features), nn.Identity()
        rng = np.random.default_rng(0)  # draws nothing: all neighbours are taken
        parts = chunks(np.arange(graph.num_nodes), settings.batch_size)
        egos = (shadow_batch(graph, model, part, settings.depth, -1, rng) for part in parts)
        return torch.cat([ego.outputs(model, features) for ego in egos])


@dataclass
class _Run:
    """A training run: model and goal, and the best weights so far."""

    model: Stack
    settings: TrainingSettings
    seed: int
    goal: Goal
    best_merit: float = -1.0
    best_epoch: int = -1
    best_weights: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        data = self.goal.dataset
        self.train = NodeView(self.goal, data.train, data.train)
        self.validation = NodeView(self.goal, np.sort(np.concatenate([data.train, data.validation])), data.validation)
        self.optimiser = torch.optim.Adam(
            self.model.parameters(), lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )

    def all_epochs(self) -> None:
        """Run epochs until they, or the patience, are used up."""
        patience, waiting = self.settings.patience, self.settings.plateau_patience
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser, "max", factor=0.1, cooldown=2, patience=self.settings.epochs if waiting is None else waiting
        )
        for epoch in range(self.settings.epochs):
            plateau.step(self._epoch(epoch))
            if patience is not None and epoch - self.best_epoch >= patience:
                break

    def _epoch(self, epoch: int) -> float:
        """Go once through the training nodes, measuring the merit as often as the settings ask; return the last one."""
        state = np.random.SeedSequence([self.seed, 1, epoch]).generate_state(1, np.uint64)[0]
        torch.manual_seed(int(state >> np.uint64(1)))
        order = np.random.default_rng([self.seed, 1, epoch]).permutation(self.train.graph.num_nodes)
        looks, merit = self.settings.validations_per_epoch, float("nan")
        for i, count, batch in draw_batches(self.train.graph, self.model, order, self.settings, self.seed, 0, epoch):
            self.model.train()
            self.optimiser.zero_grad(set_to_none=True)
            outputs = batch.outputs(self.model, self.train.features)
            self.goal.loss(outputs, self.train.truth[torch.from_numpy(batch.seeds)]).backward()
            self.optimiser.step()
            if i in {max(round((k + 1) * count / looks) - 1, 0) for k in range(looks)}:  # the last batch among them
                merit = self._validate(epoch)
        return merit

    def _validate(self, epoch: int) -> float:
        """Measure the merit on the validation nodes, and keep the weights if they are the best."""
        view, merit = self.validation, float(epoch)  # without validation nodes, the last weights are kept
        if view.scored.numel():
            outputs = exact_outputs(self.model, view.graph, view.features, self.settings)
            merit = self.goal.merit(outputs[view.scored], view.truth[view.scored])
        if merit > self.best_merit:
            self.best_merit, self.best_epoch = merit, epoch
            self.best_weights = copy.deepcopy(self.model.state_dict())
        return merit


@dataclass(frozen=True)
class TrainedModel:
    """The result of a training run: the model with its best weights, in evaluation mode, and its record."""

    module: Stack
    name: str
    settings: TrainingSettings
    seed: int
    best_epoch: int  #: from 0
    validation_merit: float  #: NaN without validation nodes


def fit(
    dataset: NodeDataset,
    model: str = "graphsage-mean",
    preset: str = "paper-text",
    seed: int = 0,
    *,
    goal: Goal | None = None,
    threads: int | None = None,
    **changes: Any,
) -> TrainedModel:
    """Train a model (of `MODELS`) on the training nodes, choosing its weights by accuracy on the validation nodes.

    The seed draws initial weights, batches, neighbours and dropout. `goal` is by default the labels; `threads` is the
    number of threads of torch, two by default on every machine, because another number gives other last bits; `changes`
    are fields of `TrainingSettings` that differ from the preset.
    """
    seed, (build, family) = check_seed(seed), choose("model", model, MODELS)
    if dataset.train.size == 0 or dataset.num_features == 0:
        raise InvalidInputError("`dataset` must have training nodes and at least one feature to train on")
    settings, goal = settings_for(preset, family, **changes), goal or Goal(dataset)
    with torch_threads(threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = _Run(build(dataset.num_features, goal.width(), settings), settings, seed, goal)
        run.all_epochs()
    run.model.load_state_dict(run.best_weights)
    merit = run.best_merit if dataset.validation.size else float("nan")
    return TrainedModel(run.model.eval(), model, settings, seed, run.best_epoch, merit)


def outputs_of(trained: TrainedModel, dataset: NodeDataset, threads: int | None = None) -> Tensor:
    """Return a trained model's outputs for all nodes, computed on the whole graph."""
    features = torch.from_numpy(dataset.feature_rows(np.arange(dataset.num_nodes)))
    with torch_threads(threads):
        return sampled_outputs(trained.module, dataset.graph, features, trained.settings, trained.seed)


def predict(trained: TrainedModel, dataset: NodeDataset, *, threads: int | None = None) -> NodePredictions:
    """Return the probabilities of all nodes, computed on the whole graph; `threads` is that of `fit`."""
    probabilities = torch.softmax(outputs_of(trained, dataset, threads).double(), dim=1).float().numpy()
    origin = (dataset.split, dataset.name, trained.name)
    nodes = np.arange(dataset.num_nodes)
    return NodePredictions(nodes, probabilities, dataset.labels, *origin, class_names=dataset.class_names)


def train(
    dataset: NodeDataset, model: str = "graphsage-mean", preset: str = "paper-text", seed: int = 0, **options: Any
) -> NodePredictions:
    """Train a model and return its predictions for all nodes: `fit` with its parameters, then `predict`."""
    return predict(fit(dataset, model, preset, seed, **options), dataset, threads=options.get("threads"))
