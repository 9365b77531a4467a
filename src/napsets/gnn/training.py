"""From a dataset to predictions: `train`, and its two halves `fit` and `predict`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from napsets.checks.arguments import FloatArray, IntArray, Sealed
from napsets.checks.values import check_count, check_progress, check_seed, choose
from napsets.datasets.dataset import NodeDataset
from napsets.errors import InvalidInputError
from napsets.files.predictions import NodePredictions
from napsets.gnn.batches import FeatureTable
from napsets.gnn.models import MODELS, TrainingSettings, build_model, settings_for
from napsets.gnn.trainer import (
    QuantileGoal,
    Trainer,
    all_logits,
    fingerprint,
    load_checkpoint,
    make_goal,
    save_checkpoint,
)

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

#: Torch cuts its sums among threads, so their number changes the last bits, and training carries these into the result.
#: It is therefore a setting with one default, not whatever the machine has.
THREADS = 2


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


@contextmanager
def torch_threads(count: int | None = None) -> Iterator[None]:
    """Let torch use this many threads inside, `THREADS` by default, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(check_count("threads", THREADS if count is None else count, minimum=1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class TrainedModel:
    """A model with its best weights, and how it came to them.

    Attributes
    ----------
    module : torch.nn.Module
        The model, in evaluation mode.
    name : str
        Its name in `MODELS`, or its class.
    settings : TrainingSettings
    seed : int
    best_epoch : int
        The epoch, from 0, whose weights were kept.
    validation_accuracy : float
        Accuracy on the validation nodes with those weights; NaN where there are none.
    history : list of dict
        Mean loss and last validation accuracy of each epoch; for quantiles `validation_merit`, 1 / (1 + loss).
    quantiles : tuple of float
        Which quantiles it gives, where it was trained for numbers.
    """

    module: nn.Module
    name: str
    settings: TrainingSettings
    seed: int
    best_epoch: int
    validation_accuracy: float
    history: list[dict[str, float]] = field(default_factory=list)
    quantiles: tuple[float, ...] = ()


def fit(
    dataset: NodeDataset,
    model: str | nn.Module = "graphsage-mean",
    preset: str = "paper",
    seed: int = 0,
    *,
    task: str = "classification",
    quantiles: Sequence[float] = (0.05, 0.95),
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    **changes: Any,
) -> TrainedModel:
    """Train a model on the training nodes, choosing its weights by accuracy on the validation nodes.

    Training sees the subgraph of the training nodes only, validation that of training and validation nodes; test
    nodes, their features, labels and edges, are not looked at.

    Parameters
    ----------
    dataset : NodeDataset
    model : str or torch.nn.Module
        A name from `MODELS`, or a module of your own: called as ``module(x, adjacency)`` with a torch CSR adjacency
        (rows are the nodes computed), it returns one row of logits per node. It is trained in place.
    preset : str
        ``paper`` or ``released-code``; see `settings_for`.
    seed : int
        Draws initial weights, batches, neighbours and dropout.
    task : {"classification", "regression"}
        Labels, by cross entropy; or quantiles of `dataset.targets`, by the pinball loss, none crossing another.
    quantiles : sequence of float
        Which, for regression: ascending, between 0 and 1.
    checkpoint : path, optional
        Written after every epoch; if the file exists, the run continues from it, with the same result.
    progress : callable, optional
        Called as ``progress(done, total)`` in batches; training may stop before the total.
    threads : int, optional
        Threads that torch uses: two by default on every machine, because another number gives other last bits.
    **changes
        Fields of `TrainingSettings` that differ from the preset.
    """
    seed = check_seed(seed)
    progress = check_progress(progress)
    if dataset.train.size == 0 or dataset.num_features == 0:
        raise InvalidInputError("`dataset` must have training nodes and at least one feature to train on")
    with torch_threads(threads), torch.random.fork_rng(devices=[]):
        goal = make_goal(dataset, task, quantiles)
        if isinstance(model, nn.Module):
            settings = settings_for(preset, **({"sampler": "auto"} | changes))
            module, name = model, type(model).__name__
        else:
            entry = choose("model", model, MODELS)
            settings = settings_for(preset, entry.family, **(entry.changes | changes))
            torch.manual_seed(seed)
            module, name = build_model(model, dataset.num_features, goal.width(), settings), model
        trainer = Trainer(module, settings, seed, goal)
        _run(trainer, name, checkpoint, progress)
    module.load_state_dict(trainer.best_weights)
    module.eval()
    is_accuracy = dataset.validation.size and not goal.quantiles
    accuracy = trainer.best_accuracy if is_accuracy else float("nan")
    best = trainer.best_epoch
    return TrainedModel(module, name, settings, seed, best, accuracy, trainer.history, goal.quantiles)


def _run(trainer: Trainer, name: str, checkpoint: str | os.PathLike[str] | None, progress: Progress | None) -> None:
    """Run the epochs that are left, from the checkpoint if there is one."""
    mark = ""
    if checkpoint is not None:
        about: dict[str, Any] = {"model": name, "seed": trainer.seed, "settings": trainer.settings.as_dict()}
        if trainer.goal.quantiles:
            about["quantiles"] = list(trainer.goal.quantiles)
        weights = [value.numpy() for value in trainer.model.state_dict().values()]
        views = (trainer.train, trainer.validation)
        graphs = [array for view in views for array in (view.graph.indptr, view.graph.indices, view.labels.numpy())]
        data: Any = trainer.goal.dataset
        seen = (data.train, data.validation, data.features[data.train], data.features[data.validation])
        mark = fingerprint(about, *weights, *graphs, *seen)
        state = load_checkpoint(checkpoint, mark)
        if state is not None:
            trainer.restore(state)
    while not trainer.finished:
        trainer.run_epoch(progress)
        if checkpoint is not None:
            save_checkpoint(checkpoint, {"fingerprint": mark, **trainer.state()})


def predict(
    trained: TrainedModel, dataset: NodeDataset, *, inference: str | None = None, threads: int | None = None
) -> NodePredictions | NodeQuantiles:
    """Return the probabilities of all nodes, computed on the whole graph; of a model of quantiles, `NodeQuantiles`.

    Parameters
    ----------
    trained : TrainedModel
        What `fit` returned.
    dataset : NodeDataset
        The dataset it was trained on, or another with the same features and classes.
    inference : str, optional
        ``exact`` or ``sampled``; by default as in the settings.
    threads : int, optional
        As in `fit`.
    """
    settings = replace(trained.settings, inference=inference or trained.settings.inference)
    features = FeatureTable(dataset.features)
    with torch_threads(threads):
        logits = all_logits(trained.module, dataset.graph, features, settings, trained.seed)
    about = {
        **settings.as_dict(),
        "seed": trained.seed,
        "best_epoch": trained.best_epoch,
        "validation_accuracy": trained.validation_accuracy,
        "dataset": dict(dataset.settings),
    }
    nodes, origin = np.arange(dataset.num_nodes), (dataset.split, dataset.name, trained.name, about)
    if trained.quantiles:
        outputs = QuantileGoal(dataset, trained.quantiles).unscaled(logits)
        return NodeQuantiles(nodes, outputs, trained.quantiles, np.asarray(dataset.targets, dtype=np.float64), *origin)
    probabilities = torch.softmax(logits.double(), dim=1).float().numpy()
    return NodePredictions(nodes, probabilities, dataset.labels, *origin, class_names=dataset.class_names)


@overload
def train(
    dataset: NodeDataset, model: str | nn.Module = ..., preset: str = ..., seed: int = ..., *,
    task: Literal["classification"] = ..., checkpoint: str | os.PathLike[str] | None = ...,
    progress: Progress | None = ..., threads: int | None = ..., **changes: Any,
) -> NodePredictions: ...  # fmt: skip


@overload
def train(
    dataset: NodeDataset, model: str | nn.Module = ..., preset: str = ..., seed: int = ..., *,
    task: Literal["regression"], quantiles: Sequence[float] = ..., checkpoint: str | os.PathLike[str] | None = ...,
    progress: Progress | None = ..., threads: int | None = ..., **changes: Any,
) -> NodeQuantiles: ...  # fmt: skip


def train(
    dataset: NodeDataset,
    model: str | nn.Module = "graphsage-mean",
    preset: str = "paper",
    seed: int = 0,
    *,
    task: str = "classification",
    quantiles: Sequence[float] = (0.05, 0.95),
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    **changes: Any,
) -> NodePredictions | NodeQuantiles:
    """Train a model and return what it says of all nodes: `fit`, then `predict`, with the parameters of `fit`.

    For labels, that is `NodePredictions`; with ``task="regression"``, `NodeQuantiles`.

    Examples
    --------
    >>> from napsets.datasets import load
    >>> predictions = train(load("sbm", block_size=100), "mlp", "released-code", epochs=3)
    >>> predictions.probabilities.shape
    (200, 4)
    """
    trained = fit(
        dataset, model, preset, seed, task=task, quantiles=quantiles, checkpoint=checkpoint, progress=progress,
        threads=threads, **changes,
    )  # fmt: skip
    return predict(trained, dataset, threads=threads)
