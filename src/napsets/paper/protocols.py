"""Who calibrates whom: the two protocols, `strict` and `as-published`.

`strict` is what conformal prediction promises: the label of an evaluation node calibrates nothing, in no method.
`as-published` does what the paper's released code did, to compare with the printed tables: NAPS thresholds come
once from the labels of *all* other test nodes, evaluation nodes among them. It also takes over how that code treats
quantiles (an interpolated one for APS; the uncalibrated 1 − α where a neighbourhood's mass falls short), its
geometric weights, and its choice of neighbourhoods for PCCV. One thing it does not: that code redrew the
calibration nodes' u for every threshold; here a node has one u.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.checks.names import choose
from napsets.localisers.decay import hop_weights
from napsets.localisers.neighbourhoods import HopThresholds, neighbourhood_thresholds, split_thresholds
from napsets.paper.bench import Bench
from napsets.paper.cells import BASELINE, METHODS
from napsets.paper.setups import Setup
from napsets.quantile import weighted_quantile

__all__ = ["AsPublished", "Found", "Protocol", "Strict", "protocol_of"]

#: PCCV looks at neighbourhoods of at least so many nodes, says the paper's Section 7.
MIN_BALL = 30


@dataclass(frozen=True, eq=False)
class Found:
    """Thresholds of shape (methods, alphas, nodes) and what they rest on, of shape (methods, nodes)."""

    values: FloatArray
    support: IntArray
    effective_size: FloatArray


class Protocol(ABC):
    """How thresholds come about in a repetition of the experiment."""

    name: str

    def weights(self, setup: Setup, method: str, hops: int) -> FloatArray:
        """Return w(1), …, w(hops) of a NAPS method, as the paper's text has them."""
        decay = METHODS[method]
        assert decay is not None
        return hop_weights(decay, hops)

    @abstractmethod
    def neighbourhood(
        self, bench: Bench, nodes: list[IntArray], calibration: BoolArray, weights: FloatArray, alphas: list[float]
    ) -> list[Found]:
        """Return the NAPS thresholds of each repetition's nodes; `weights` has a row a method."""

    @abstractmethod
    def quantile(self, scores: FloatArray, alpha: float) -> float:
        """Return the APS threshold from the calibration nodes' scores."""

    @abstractmethod
    def parts(self, bench: Bench, half: IntArray, repetition: int) -> list[IntArray]:
        """Return the neighbourhoods that PCCV looks at."""

    def thresholds(
        self,
        bench: Bench,
        nodes: list[IntArray],
        calibration: BoolArray,
        methods: list[str],
        hops: int,
        alphas: list[float],
    ) -> list[Found]:
        """Return the thresholds of several methods in each repetition.

        Parameters
        ----------
        bench : Bench
            The model under test.
        nodes : list of arrays
            The nodes to evaluate in each repetition.
        calibration : boolean array of shape (repetitions, test nodes)
            Whose labels the repetition may use.
        methods : list of str
            APS alone (with ``hops=0``), or methods that use the graph.
        """
        if methods == [BASELINE]:
            return self._without_graph(bench, nodes, calibration, alphas)
        weights = np.stack([self.weights(bench.setup, method, hops) for method in methods])
        return self.neighbourhood(bench, nodes, calibration, weights, alphas)

    def _without_graph(
        self, bench: Bench, nodes: list[IntArray], calibration: BoolArray, alphas: list[float]
    ) -> list[Found]:
        found = []
        for part, used in zip(nodes, calibration, strict=True):
            taus = np.array([self.quantile(bench.scores[used], alpha) for alpha in alphas])
            values = np.broadcast_to(taus[None, :, None], (1, len(alphas), part.size))
            support = np.full((1, part.size), int(used.sum()))
            found.append(Found(values, support, support.astype(np.float64)))
        return found


class Strict(Protocol):
    """No evaluation label calibrates anything; exact quantiles; the paper's text where it and its code differ."""

    name = "strict"

    def neighbourhood(  # noqa: D102
        self, bench: Bench, nodes: list[IntArray], calibration: BoolArray, weights: FloatArray, alphas: list[float]
    ) -> list[Found]:
        found = split_thresholds(bench.index, calibration, nodes, weights, alphas)
        return [Found(part.values, part.support, part.effective_size) for part in found]

    def quantile(self, scores: FloatArray, alpha: float) -> float:  # noqa: D102
        return weighted_quantile(scores, np.ones(scores.size), alpha)

    def parts(self, bench: Bench, half: IntArray, repetition: int) -> list[IntArray]:  # noqa: D102
        return [ball for ball in bench.balls(half, repetition) if ball.size >= MIN_BALL]


class AsPublished(Protocol):
    """What the released code did (see the module's text)."""

    name = "as-published"

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], HopThresholds] = {}

    def weights(self, setup: Setup, method: str, hops: int) -> FloatArray:  # noqa: D102
        weights = super().weights(setup, method, hops)
        return weights * 2.0**setup.geometric_offset if method == "NAPS-G" else weights

    def neighbourhood(  # noqa: D102
        self, bench: Bench, nodes: list[IntArray], calibration: BoolArray, weights: FloatArray, alphas: list[float]
    ) -> list[Found]:
        found = self._of_everyone(bench, weights, alphas)
        levels = 1.0 - np.array(alphas)[None, :, None]
        values = np.where(np.isinf(found.values), levels, found.values)
        support, size = found.support, found.effective_size
        return [Found(values[:, :, part], support[:, part], size[:, part]) for part in nodes]

    def quantile(self, scores: FloatArray, alpha: float) -> float:  # noqa: D102
        return float(np.quantile(scores, min(1.0, (1.0 - alpha) * (1.0 + 1.0 / scores.size))))

    def parts(self, bench: Bench, half: IntArray, repetition: int) -> list[IntArray]:  # noqa: D102
        return bench.balls(half, repetition)[: bench.setup.largest_balls]

    def _of_everyone(self, bench: Bench, weights: FloatArray, alphas: list[float]) -> HopThresholds:
        """Return every test node's threshold from all others: the same for the draws and for the halves."""
        asked = (bench, weights.tobytes(), *alphas)
        if asked not in self._known:
            everyone = np.arange(bench.graph.num_nodes)
            self._known = {asked: neighbourhood_thresholds(bench.index, everyone, weights, alphas)}
        return self._known[asked]


def protocol_of(name: str) -> Protocol:
    """Return a new protocol by its name; what it remembers goes with it."""
    return choose("protocol", name, {kind.name: kind for kind in (Strict, AsPublished)})()
