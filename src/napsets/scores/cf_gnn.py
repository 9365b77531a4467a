"""CF-GNN: the model's probabilities, corrected by a second small graph neural network that is trained for small sets.

Huang, Jin, Candès and Leskovec, "Uncertainty quantification over graph with conformalized graph neural networks",
NeurIPS 2023. The network sees the probabilities P of all nodes and the graph, and nothing else:

    P' = softmax(log P + Â relu(Â P W₁ + b₁) W₂ + b₂),   Â = D^(−½) (A + I) D^(−½), D the degrees of A + I.

Training begins with W₂ = 0, which is the model itself. (In the paper log P is absent, and the network has to learn what
the model knew before it can correct it; ``residual=False`` does so.)

The network learns on the labels of the reference part, which are divided once by chance: three quarters train, one
quarter validates. In each epoch the training labels are divided again. One half gives the threshold q̂, the quantile at
alpha of P'(label), the other half T the size that sets would have with it, made smooth:

    loss = mean of −log P'(label) over all training labels + mean over T of Σ_y σ((P'(y) − q̂) / temperature).

(The paper writes ReLU(Σ_y σ(…)); a sum of positive numbers is its own ReLU.) What is kept is the epoch whose sets of
the validation nodes, made with the score that is to be used, are smallest; the model's own probabilities if none is
smaller.

Everything is computed in float64, by one thread, with the nodes in the order of their uniform numbers: neither the
number of threads nor the order of rows changes a bit. Another processor does, as with every trained model. So what was
learned is kept as the corrected probabilities themselves: files have them, and need neither torch nor training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray, Sealed, sealed
from napsets.checks.values import check_alpha, check_count, check_flag, check_number, check_seed, plain
from napsets.errors import InvalidInputError, imported
from napsets.graph import Graph
from napsets.quantile import ROUNDING
from napsets.scores.base import (
    BOUND,
    SCORES,
    BoundAround,
    BoundScore,
    Labelled,
    bind,
    make_score,
    report_training,
    require_graph,
)
from napsets.scores.rows import APS

#: Share of the reference labels that validate.
_VALIDATED = 0.25
#: With fewer reference labels nothing is learned: what is left to each purpose would say nothing.
_FEWEST = 8
#: A probability below it counts as this much: otherwise no correction could bring a label back.
_LEAST = 1e-6
#: Adam's weight decay, as in the paper's code.
_WEIGHT_DECAY = 5e-4
#: Epochs between two looks at the validation nodes.
_LOOK = 5
#: Nodes × hidden numbers that are computed at a time, once all is learned.
_ENTRIES = 1 << 21


@dataclass(frozen=True)
class Correction:
    """What became of a training."""

    epochs: int  #: the epoch that was kept; 0 where the model's own probabilities were
    #: Mean size of the sets of the validation nodes without the correction, and with it.
    size_before: float
    size_after: float


@SCORES.add("cf-gnn")
@dataclass(frozen=True)
class CFGNN:
    """A score of probabilities that a small trained network has corrected (CF-GNN). Needs an exact level.

    The labels of the reference part train the network and calibrate nothing, so that coverage is exact whatever it has
    learned: 1 − alpha ≤ P(label in set) ≤ 1 − alpha + 1/(held-out labels + 1), if nodes were labelled at random. One
    training serves every alpha. Needs the extra ``gnn``.

    Cost: an epoch takes O(hidden × classes) for each neighbour of a reference node, O(classes) for each of its edges.
    On Amazon Computers (12,000 nodes, 1,800 reference labels) training took 11 to 26 seconds on one busy core, and sets
    at alpha = 0.1 had 1.27 labels instead of 1.51 (mean of five draws of labels; `Informed`: 1.30, in 0.1 seconds). As
    printed (``residual=False, rate=1e-3, epochs=5000, patience=5000``) they had 1.59, on one of these draws.

    Attributes
    ----------
    base : Score or str
        The score of the corrected probabilities, which looks at rows alone.
    alpha : float
        The error rate at which sets are to be small; they are valid at any other.
    hidden : int
        Width of the hidden layer.
    epochs : int
        How long to train at most.
    patience : int
        Training ends earlier after this many epochs in which the sets of the validation nodes became no smaller.
    rate : float
        Learning rate of Adam. The paper's code has 1e-3 by default and searches from 1e-4 to 1e-1.
    temperature : float
        The paper's τ: how smooth the size of a set is made.
    residual : bool
        Add what the network says to the logarithms of the model's probabilities; with False alone, as printed.
    seed : int
        Seed of the first weights and of the divisions of labels. `napsets.make_method` sets that of the method.
    """

    base: Any = field(default_factory=APS)
    alpha: float = 0.1
    hidden: int = 64
    epochs: int = 1000
    patience: int = 200
    rate: float = 1e-2
    temperature: float = 0.1
    residual: bool = True
    seed: int = 0
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        if not all(callable(getattr(self.base, name, None)) for name in ("matrix", "at")):
            raise InvalidInputError(f"`base` must score rows alone; {type(self.base).__name__} does not")
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        object.__setattr__(self, "hidden", check_count("hidden", self.hidden, minimum=1, maximum=1 << 16))
        for name in ("epochs", "patience"):
            object.__setattr__(self, name, check_count(name, getattr(self, name), maximum=10**6))
        for name in ("rate", "temperature"):
            if not check_number(name, getattr(self, name), largest=1e3):
                raise InvalidInputError(f"`{name}` must be more than 0; got 0")
            object.__setattr__(self, name, plain(getattr(self, name)))
        object.__setattr__(self, "residual", check_flag("residual", self.residual))
        object.__setattr__(self, "seed", check_seed(self.seed))

    def bind(
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled
    ) -> BoundCorrected:
        """Train the network on the reference labels, and return the score of the corrected probabilities."""
        probabilities, correction = _corrected(self, outputs, u, require_graph(graph), reference)
        return BoundCorrected(bind(self.base, probabilities, u, graph, reference), correction)


@BOUND.add("cf-gnn")
@dataclass(frozen=True, eq=False)
class BoundCorrected(Sealed, BoundAround):
    """A score of corrected probabilities, and what became of the training."""

    inner: Any  #: the score of the corrected probabilities
    correction: Correction  #: what became of the training

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file keeps of it: a description, and arrays."""
        described, arrays = self.inner.parts()
        return {"name": "cf-gnn", "inner": described, "correction": asdict(self.correction)}, arrays

    @classmethod
    def from_parts(cls, described: dict[str, Any], arrays: dict[str, Any]) -> BoundCorrected:
        """Put together what `parts` gave, checking it."""
        inner: BoundScore = BOUND[described["inner"]["name"]].from_parts(described["inner"], arrays)
        correction = described["correction"]
        sizes = [check_number(name, correction[name], largest=math.inf) for name in ("size_before", "size_after")]
        return cls(inner, Correction(check_count("epochs", correction["epochs"]), *sizes))


# -- training ------------------------------------------------------------------------------------------------------


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Let torch use one thread inside: it cuts its sums among threads, so that their number changes the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _corrected(
    score: CFGNN, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph, reference: Labelled
) -> tuple[npt.NDArray[Any], Correction]:
    """Return the corrected probabilities of all nodes, as wide as the model's, and what became of the training."""
    torch = imported("torch", "gnn")
    order = np.argsort(u, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    by_order = np.argsort(place[reference.nodes])
    nodes, labels = reference.nodes[by_order], reference.labels[by_order]
    network = Network(torch, score, _normalised(graph, order), outputs[order].astype(np.float64))
    with _one_thread(torch):
        correction = Training(network, place[nodes], labels, u[nodes]).run()
        if not correction.epochs:
            return outputs, correction
        corrected = np.empty(outputs.shape)
        corrected[order] = network.probabilities()
    return sealed(corrected.astype(outputs.dtype, copy=False)), correction


def _normalised(graph: Graph, order: IntArray) -> Any:
    """Return Â = D^(−½) (A + I) D^(−½) with the nodes in that order."""
    from scipy.sparse import csr_array, diags_array, eye_array

    size = graph.num_nodes
    ones = csr_array((np.ones(graph.indices.size), graph.indices, graph.indptr), shape=(size, size))
    scale = diags_array(1.0 / np.sqrt(graph.degrees + 1.0))
    ordered = (scale @ (ones + eye_array(size, format="csr")) @ scale).tocsr()[order][:, order].tocsr()
    ordered.sort_indices()  # sums go along rows: in one order, whatever that of the graph was
    return ordered


class Network:
    """Two layers of graph convolution on the probabilities of all nodes; the first sees Â P, which never changes."""

    def __init__(self, torch: Any, score: CFGNN, adjacency: Any, probabilities: FloatArray) -> None:
        self.torch, self.score, self.adjacency, self.outputs = torch, score, adjacency, probabilities
        self.around = adjacency @ probabilities
        self.own = np.log(np.maximum(probabilities, _LEAST)) if score.residual else np.zeros_like(probabilities)
        self.random = np.random.default_rng(score.seed)
        classes = probabilities.shape[1]
        first, second = (self._drawn(*shape) for shape in ((classes, score.hidden), (score.hidden, classes)))
        if score.residual:
            second = torch.zeros_like(second)
        zeros = (torch.zeros(width, dtype=torch.float64) for width in (score.hidden, classes))
        self.weights = [weight.requires_grad_() for weight in (first, next(zeros), second, next(zeros))]

    def _drawn(self, inputs: int, outputs: int) -> Any:
        """Draw weights as Glorot and Bengio do: uniform in ±√(6 / (inputs + outputs))."""
        bound = math.sqrt(6.0 / (inputs + outputs))
        return self.torch.from_numpy(self.random.uniform(-bound, bound, size=(inputs, outputs)))

    def narrowed(self, around: Any) -> Any:
        """Return relu(Â P W₁ + b₁) W₂ of the nodes with these rows of Â P: what neighbours then sum up."""
        first, bias, second, _ = self.weights
        return self.torch.relu(around @ first + bias) @ second

    def probabilities(self) -> FloatArray:
        """Return P' of all nodes; the hidden layer is never held for all of them at once."""
        torch, narrow = self.torch, np.empty(self.outputs.shape)
        step = max(1, _ENTRIES // self.score.hidden)
        with torch.no_grad():
            for start in range(0, len(narrow), step):
                part = slice(start, start + step)
                narrow[part] = self.narrowed(torch.from_numpy(self.around[part])).numpy()
            z = torch.from_numpy(self.own + self.adjacency @ narrow) + self.weights[3]
            corrected: FloatArray = torch.softmax(z, dim=1).numpy()
            return corrected


class Training:
    """Training on the reference nodes: their rows of Â, and the hidden layer of their neighbours alone."""

    def __init__(self, network: Network, nodes: IntArray, labels: IntArray, u: FloatArray) -> None:
        torch = network.torch
        self.network, self.score = network, network.score
        rows = network.adjacency[nodes]
        touched = np.unique(rows.indices)
        self.gather = _multiplication(torch, rows[:, touched].tocsr())
        self.around = torch.from_numpy(network.around[touched])
        self.own = torch.from_numpy(network.own[nodes])
        self.labels = torch.from_numpy(labels.astype(np.int64))
        order = network.random.permutation(nodes.size)
        count = max(1, round(_VALIDATED * nodes.size))
        self.training, self.validation = np.sort(order[count:]), np.sort(order[:count])
        self.outputs, self.u = network.outputs[nodes], u
        self.epochs = 0 if nodes.size < _FEWEST else self.score.epochs

    def logits(self) -> Any:
        """Return what the network says of the reference nodes, before the softmax."""
        return self.own + self.gather(self.network.narrowed(self.around)) + self.network.weights[3]

    def run(self) -> Correction:
        """Train, and leave the network with the weights of the best epoch."""
        torch, weights = self.network.torch, self.network.weights
        before, best, best_epoch, kept = self._size(self.outputs), math.inf, 0, weights
        adam = torch.optim.Adam(weights, lr=self.score.rate, weight_decay=_WEIGHT_DECAY)
        for epoch in range(1, self.epochs + 1):
            self._step(adam)
            report_training(epoch, self.epochs)
            if epoch % _LOOK and epoch != self.epochs:
                continue
            with torch.no_grad():
                size = self._size(torch.softmax(self.logits(), dim=1).numpy())
            if size < best:
                best, best_epoch, kept = size, epoch, [weight.detach().clone() for weight in weights]
            if epoch - best_epoch >= self.score.patience:
                report_training(self.epochs, self.epochs)
                break
        self.network.weights = kept
        return Correction(best_epoch, before, best) if best < before else Correction(0, before, before)

    def _step(self, adam: Any) -> None:
        torch = self.network.torch
        shuffled = torch.from_numpy(self.network.random.permutation(self.training))
        half = shuffled.numel() // 2
        adam.zero_grad()
        _loss(torch, self.logits(), self.labels, shuffled[:half], shuffled[half:], self.score).backward()
        adam.step()

    def _size(self, probabilities: FloatArray) -> float:
        """Return the mean size of the sets of the validation nodes, which an epoch is judged by."""
        rows = self.validation
        scores = self.score.base.matrix(probabilities[rows], self.u[rows])
        at_truth = scores[np.arange(rows.size), self.labels.numpy()[rows]]
        place = min(math.ceil((1.0 - self.score.alpha) * (rows.size + 1) * (1.0 - ROUNDING)), rows.size) - 1
        return float((scores <= np.partition(at_truth, place)[place]).sum(axis=1).mean())


def _multiplication(torch: Any, matrix: Any) -> Any:
    """Return the product of a sparse matrix with a dense one, as torch differentiates it."""
    transposed = matrix.T.tocsr()

    class Multiplication(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(context: Any, dense: Any) -> Any:
            return torch.from_numpy(matrix @ dense.detach().numpy())

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return torch.from_numpy(transposed @ gradient.numpy())

    return Multiplication.apply


def _loss(torch: Any, logits: Any, labels: Any, calibrating: Any, tested: Any, score: CFGNN) -> Any:
    """Return the cross entropy of all, and the smooth size of sets of some with the threshold that the others give."""
    everyone = torch.cat([calibrating, tested])
    entropy = torch.nn.functional.cross_entropy(logits[everyone], labels[everyone])
    p = torch.softmax(logits, dim=1)
    threshold = _smooth_quantile(torch, p[calibrating, labels[calibrating]], score.alpha)
    return entropy + torch.sigmoid((p[tested] - threshold) / score.temperature).sum(dim=1).mean()


def _smooth_quantile(torch: Any, values: Any, alpha: float) -> Any:
    """Return the alpha(n + 1)-th smallest value, between two of them where that is not a whole number."""
    place = min(max(alpha * (values.numel() + 1) - 1.0, 0.0), values.numel() - 1.0)
    below = math.floor(place)
    ascending = torch.sort(values).values
    part = place - below
    return (1.0 - part) * ascending[below] + part * ascending[min(below + 1, values.numel() - 1)]
