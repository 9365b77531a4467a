"""CF-GNN: the model's probabilities, corrected by a second small graph neural network that is trained for small sets.

Huang, Jin, Candès and Leskovec, *Uncertainty quantification over graph with conformalized graph neural networks*,
NeurIPS 2023. The network sees the probabilities P of all nodes and the graph, and nothing else:

    P' = softmax(log P + Â relu(Â P W₁ + b₁) W₂ + b₂),   Â = D^(−½) (A + I) D^(−½), D the degrees of A + I.

Training begins with W₂ = 0, which is the model itself. (In the paper log P is absent; ``residual=False`` is its form.)

Three quarters of the reference labels train, one quarter validates. In each epoch the training labels are divided
again: one half gives the threshold q̂, the quantile at alpha of P'(label), the other half T the smooth size of sets:

    loss = mean of −log P'(label) over all training labels + mean over T of Σ_y σ((P'(y) − q̂) / temperature).

The epoch is kept whose sets of the validation nodes, made with the score that is to be used, are smallest; the model's
own probabilities if none has smaller sets.

*Guarantee*: with an exact level, coverage is 1 − alpha in finite samples, whatever was learned. *Cost*: on Amazon
Computers (12,000 nodes) seconds to minutes of training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from napsets import APS, Exact, Graph, InvalidInputError
from napsets.errors import imported
from napsets.methods import METHODS, Method
from napsets.quantile import ROUNDING
from napsets.scores import SCORES, Labelled, make_score
from napsets.scores.base import bind, require_graph

#: Share of the reference labels that validate.
_VALIDATED = 0.25
#: With fewer reference labels the network is not trained.
_FEWEST = 8
#: A probability below it counts as this much: otherwise no correction could bring a label back.
_LEAST = 1e-6
#: Adam's weight decay, as in the paper's code.
_WEIGHT_DECAY = 5e-4
#: Epochs between two looks at the validation nodes.
_LOOK = 5


@SCORES.add("cf-gnn")
@dataclass(frozen=True)
class CFGNN:
    """A score of probabilities that a small trained network has corrected. Needs an exact level.

    `base` is the score of the corrected probabilities, which looks at rows alone; `alpha` the error rate at which sets
    are to be small; `patience` the epochs without smaller validation sets after which training ends; `temperature` the
    paper's τ.
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

    def bind(self, outputs: Any, u: Any, graph: Graph | None, reference: Labelled) -> Any:
        """Train the network on the reference labels, and return the score of the corrected probabilities."""
        graph = require_graph(graph)
        imported("torch_geometric", "gnn")
        import torch

        order = np.argsort(u[reference.nodes])  # the order in which nodes are numbered changes no division of labels
        nodes, labels = reference.nodes[order], reference.labels[order]
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # their number would change the last bits, and cells run side by side
        try:
            corrected = self._trained(outputs, u, graph, nodes, labels) if nodes.size >= _FEWEST else outputs
        finally:
            torch.set_num_threads(threads)
        return bind(self.base, corrected, u, graph, reference)

    def _trained(self, outputs: Any, u: Any, graph: Graph, nodes: Any, labels: Any) -> Any:
        """Return the corrected probabilities of the best epoch; the model's own if none has smaller sets."""
        import torch

        rng = np.random.default_rng(self.seed)
        network = Network(self, rng, outputs, graph)
        order, count = rng.permutation(nodes.size), max(1, round(_VALIDATED * nodes.size))
        training, validation = np.sort(order[count:]), np.sort(order[:count])
        held = nodes[validation], labels[validation], u[nodes[validation]]
        truth, half = torch.from_numpy(labels.astype(np.int64)), training.size // 2
        before, best, best_epoch, kept = self._size(outputs, *held), math.inf, 0, network.weights()
        adam = torch.optim.Adam(network.layers.parameters(), lr=self.rate, weight_decay=_WEIGHT_DECAY)
        for epoch in range(1, self.epochs + 1):
            shuffled = torch.from_numpy(rng.permutation(training))
            adam.zero_grad()
            loss(network.logits()[nodes], truth, shuffled[:half], shuffled[half:], self).backward()
            adam.step()
            if epoch % _LOOK and epoch != self.epochs:
                continue
            size = self._size(network.probabilities(), *held)
            if size < best:
                best, best_epoch, kept = size, epoch, network.weights()
            if epoch - best_epoch >= self.patience:
                break
        network.layers.load_state_dict(kept)
        return network.probabilities().astype(outputs.dtype, copy=False) if best < before else outputs

    def _size(self, probabilities: Any, nodes: Any, labels: Any, u: Any) -> float:
        """Return the mean size of the sets of nodes at the threshold of their own labels, which judges an epoch."""
        scores = self.base.matrix(probabilities[nodes], u)
        at_truth = scores[np.arange(labels.size), labels]
        place = min(math.ceil((1.0 - self.alpha) * (labels.size + 1) * (1.0 - ROUNDING)), labels.size) - 1
        return float((scores <= np.partition(at_truth, place)[place]).sum(axis=1).mean())


class Network:
    """Two graph convolutions on the probabilities of all nodes; the first sees Â P, which never changes."""

    def __init__(self, score: CFGNN, rng: np.random.Generator, outputs: Any, graph: Graph) -> None:
        import torch
        from torch_geometric.nn import GCNConv

        p, classes = outputs.astype(np.float64), outputs.shape[1]
        normalised = normalised_adjacency(graph)
        self.around = torch.from_numpy(normalised @ p)
        self.own = torch.from_numpy(np.log(np.maximum(p, _LEAST)) if score.residual else np.zeros_like(p))
        entries = normalised.tocoo()
        # Messages go from the column of an entry to its row.
        self.edges = torch.from_numpy(np.stack([entries.col, entries.row]).astype(np.int64))
        self.strengths = torch.from_numpy(entries.data)
        first = torch.nn.Linear(classes, score.hidden, dtype=torch.float64)
        second = GCNConv(score.hidden, classes, normalize=False).double()
        self.layers = torch.nn.ModuleDict({"first": first, "second": second})
        bound = math.sqrt(6.0 / (classes + score.hidden))  # as Glorot and Bengio draw them
        with torch.no_grad():
            for weight in (first.weight, second.lin.weight):
                weight.copy_(torch.from_numpy(rng.uniform(-bound, bound, size=weight.T.shape).T))
            first.bias.zero_()
            if score.residual:
                second.lin.weight.zero_()

    def logits(self) -> Any:
        """Return the logits of all nodes."""
        hidden = self.layers["first"](self.around).relu()
        return self.own + self.layers["second"](hidden, self.edges, self.strengths)

    def probabilities(self) -> Any:
        """Return P' of all nodes."""
        import torch

        with torch.no_grad():
            return torch.softmax(self.logits(), dim=1).numpy()

    def weights(self) -> dict[str, Any]:
        """Return a copy of the weights."""
        return {name: weight.clone() for name, weight in self.layers.state_dict().items()}


def normalised_adjacency(graph: Graph) -> Any:
    """Return Â = D^(−½) (A + I) D^(−½)."""
    ones = graph.to_scipy().astype(np.float64)
    scale = sp.diags_array(1.0 / np.sqrt(graph.degrees + 1.0))
    return (scale @ (ones + sp.eye_array(graph.num_nodes)) @ scale).tocsr()


def loss(logits: Any, labels: Any, calibrating: Any, tested: Any, score: CFGNN) -> Any:
    """Return the cross entropy of all, and the smooth size of sets of some with the threshold that the others give."""
    import torch

    everyone = torch.cat([calibrating, tested])
    entropy = torch.nn.functional.cross_entropy(logits[everyone], labels[everyone])
    p = torch.softmax(logits, dim=1)
    threshold = smooth_quantile(p[calibrating, labels[calibrating]], score.alpha)
    return entropy + torch.sigmoid((p[tested] - threshold) / score.temperature).sum(dim=1).mean()


def smooth_quantile(values: Any, alpha: float) -> Any:
    """Return the alpha(n + 1)-th smallest value, between two of them where that is not a whole number."""
    place = min(max(alpha * (values.numel() + 1) - 1.0, 0.0), values.numel() - 1.0)
    below = math.floor(place)
    ascending = values.sort().values
    return ascending[below].lerp(ascending[min(below + 1, values.numel() - 1)], place - below)


@METHODS.add("cf-gnn")
def corrected(*, score: Any = "aps", alpha: float = 0.1, seed: int = 0) -> Method:
    """CF-GNN: a second network, trained for small sets, corrects the probabilities. Guaranteed. Needs torch."""
    score = make_score(score)
    return Method(score if isinstance(score, CFGNN) else CFGNN(score, alpha=alpha, seed=seed), level=Exact())
