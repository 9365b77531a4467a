"""The training loop: seeded, inductive, stopped early, resumable.

Every epoch starts from a random state that is a function of (seed, epoch), so a run that was killed and resumed draws
what it would have drawn. A checkpoint has all that a run needs to go on, and is written whole after every epoch.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.places import reading, replacing
from napsets.gnn.batches import FeatureTable, FullSampler, batch_key, chunks, make_sampler, prefetch
from napsets.gnn.goals import Goal, LabelGoal
from napsets.gnn.inference import exact_logits, sampled_logits
from napsets.gnn.settings import Settings
from napsets.graph import Graph

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress


@dataclass(frozen=True)
class NodeView:
    """What a stage of training may see: the subgraph of some nodes, their features and labels, and nothing else."""

    graph: Graph
    features: FeatureTable
    labels: Tensor
    scored: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, dataset: Any, nodes: npt.NDArray[np.int64], scored: npt.NDArray[np.int64], goal: Goal | None = None
    ) -> NodeView:
        """Cut the view of `nodes` out of a dataset; `scored` are those, among them, whose labels count."""
        labels = torch.from_numpy((LabelGoal(dataset) if goal is None else goal).truth()[nodes])
        places = np.flatnonzero(np.isin(nodes, scored))
        return cls(dataset.graph.subgraph(nodes), FeatureTable(dataset.features[nodes]), labels, places)


@dataclass
class Trainer:
    """The state of a run: model, optimiser, the best weights so far, and the record of epochs."""

    model: nn.Module
    settings: Settings
    seed: int
    train: NodeView
    validation: NodeView
    goal: Goal
    epoch: int = 0
    best_accuracy: float = -1.0
    best_epoch: int = -1
    best_weights: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = self.settings
        self.optimiser = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.plateau = None
        if settings.plateau_patience is not None:
            self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
                self.optimiser, mode="max", factor=0.5, patience=settings.plateau_patience
            )
        self.sampler = make_sampler(self.model, self.train.graph, self.train.features, settings)
        self.full = isinstance(self.sampler, FullSampler)
        self.batches_per_epoch = 1 if self.full else len(chunks(self.train.scored, settings.batch_size))

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
        batches = [order] if self.full else chunks(order, self.settings.batch_size)
        looks = _evenly(len(batches), self.settings.validations_per_epoch)
        losses, accuracy = [], float("nan")

        def draw(i: int) -> Any:
            return self.sampler.sample(batches[i], batch_key(self.seed, 0, self.epoch, i))

        # The whole graph is one ready batch: there is nothing to draw ahead.
        drawn = map(draw, range(len(batches))) if self.full else prefetch(draw, len(batches))
        for i, batch in enumerate(drawn):
            losses.append(self._step(batch))
            if i in looks:
                accuracy = self.validate()
            if progress is not None:
                progress(self.epoch * len(batches) + i + 1, self.settings.epochs * self.batches_per_epoch)
        if self.plateau is not None:
            self.plateau.step(accuracy)
        self.history.append({"loss": float(np.mean(losses)), self.goal.merit_name: accuracy})
        self.epoch += 1

    def _step(self, batch: Any) -> float:
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        seeds = torch.from_numpy(batch.seeds)
        loss = self.goal.loss(batch.logits(self.model), self.train.labels[seeds])
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

    def validate(self) -> float:
        """Measure merit on the validation nodes (accuracy, for labels) and keep the weights if they are the best."""
        view = self.validation
        if view.scored.size == 0:  # nothing to stop on: the last weights are kept
            accuracy = float(self.epoch)
        else:
            if self.settings.inference == "sampled":
                logits = sampled_logits(self.model, view.graph, view.features, self.settings, self.seed)
            else:
                logits = exact_logits(self.model, view.graph, view.features, self.settings)
            scored = torch.from_numpy(view.scored)
            accuracy = self.goal.merit(logits[scored], view.labels[scored])
        if accuracy > self.best_accuracy:
            self.best_accuracy, self.best_epoch = accuracy, self.epoch
            self.best_weights = copy.deepcopy(self.model.state_dict())
        return accuracy if view.scored.size else float("nan")

    def state(self) -> dict[str, Any]:
        """Return all that a later process needs to go on."""
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "plateau": None if self.plateau is None else self.plateau.state_dict(),
            "epoch": self.epoch,
            "best_accuracy": self.best_accuracy,
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
            "history": self.history,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up the state that `state` returned."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.plateau is not None:
            self.plateau.load_state_dict(state["plateau"])
        for name in ("epoch", "best_accuracy", "best_epoch", "best_weights", "history"):
            setattr(self, name, state[name])


def _evenly(batches: int, looks: int) -> set[int]:
    """Return the batches after which to evaluate: evenly spread, always including the last."""
    return {max(round((k + 1) * batches / looks) - 1, 0) for k in range(looks)}


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
