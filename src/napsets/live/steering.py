"""A level that follows drift: adaptive conformal inference.

The sets of a steered stream are made at a level α_t that moves. When a label arrives, its p-value p says at which
levels its set would have missed it: at all α ≥ p. Then (Gibbs and Candès, 2021)

    α_{t+1} = α_t + γ·(α − 1{p ≤ α_s})

with α_s the level that this set was made with: after a miss the next sets are larger, after a cover a little smaller.
At α_t ≤ 0 sets are full, at α_t ≥ 1 they are empty. Whatever the world does, the share of misses among n labels differs
from α by at most (1 + γ(d + 1))/(γn) if at most d labels come between a set and its own: the average is right in the
long run. Nothing is promised for a single set, for a group of nodes, or within the delay. This is "aci", the default.

DtACI (Gibbs and Candès, 2024) runs eight such experts with rates γ from .001 to .128 and takes their mean level,
weighed by the pinball loss of their levels over about the last hundred labels. It reacts faster. Each expert would have
the right share of misses, but the mean of them, which is used, need not: an adversary can make it miss more than twice
as often, and p-values that stay near 0 make all its sets full. So "dtaci" promises nothing.

Late labels make a fast level oscillate: it moves on while the answers to its last moves are still under way. So no
rate is larger than 1/(2·delay), where the delay is measured in labels, from the stream itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, as_array, check_integers
from napsets.checks.values import check_alpha, check_number, plain, shown
from napsets.errors import InvalidInputError
from napsets.live.alarms import check_unit
from napsets.live.monitoring import Window

#: The rates of DtACI's experts.
RATES = tuple(0.001 * 2.0**k for k in range(8))
#: Labels over which DtACI compares its experts, and over which the delay is measured.
WINDOW = 100
#: A rate is at most this over the delay. Where coverage falls as fast as the level rises, rate × delay beyond π/2 makes
#: the level swing ever wider.
_DAMPING = 0.5


class Mark(NamedTuple):
    """The levels at which a set was made, kept until its label comes."""

    level: float  #: The level of the set.
    experts: tuple[float, ...]  #: The level of each expert.
    number: int  #: How many sets were made before.


class SteeringParts(TypedDict):
    """A `Steering` as plain JSON."""

    level: float
    delay: float
    experts: Sequence[float]
    weights: Sequence[float]
    counts: list[int]
    delays: list[float]


@dataclass(frozen=True)
class Steered:
    """A level that follows drift.

    Parameters
    ----------
    kind : {"aci", "dtaci"}
        One rate, with which the long-run average of coverage is right for any sequence; or the mean of eight experts
        with different rates, which follows drift faster, and for which no theorem holds.
    rate : float, optional
        The rate of "aci", .01 by default: larger rates follow faster, and swing more.

    Examples
    --------
    >>> Steered(rate=0.1).levels([0.5, 0.02, 0.5], alpha=0.1).round(2)
    array([0.1 , 0.11, 0.02])
    """

    kind: Literal["aci", "dtaci"] = "aci"
    rate: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in ("aci", "dtaci"):
            raise InvalidInputError(f"`kind` must be 'aci' or 'dtaci'; got {shown(self.kind)}")
        if self.rate is None:
            return
        if self.kind == "dtaci":
            raise InvalidInputError(f"`rate` must be None for 'dtaci', which has several; got {shown(self.rate)}")
        if not check_number("rate", self.rate, largest=1.0) > 0.0:
            raise InvalidInputError(f"`rate` must be above 0; got {shown(self.rate)}")
        object.__setattr__(self, "rate", plain(self.rate))

    @property
    def rates(self) -> tuple[float, ...]:
        """The rate of each expert."""
        return RATES if self.kind == "dtaci" else (0.01 if self.rate is None else self.rate,)

    def start(self, alpha: float) -> Steering:
        """Return the state before the first set, whose level is alpha."""
        return Steering(self.rates, check_alpha(alpha))

    def levels(self, p_values: ArrayLike, alpha: float = 0.1, delay: ArrayLike = 0) -> FloatArray:
        """Return the level at which each set of a stream is made.

        Parameters
        ----------
        p_values : array of numbers in [0, 1]
            The p-value of each set's true label: the set misses it at levels of p or above.
        alpha : float
            The share of misses to steer for.
        delay : int, or array of integers
            How many more sets are made before the label of a set comes; 0 means that it comes before the next.
        """
        stream = check_unit("p_values", p_values)
        steering, levels = self.start(alpha), np.empty(stream.size)
        marks: list[Mark] = []
        arrivals = _arrivals(delay, stream.size)
        for t in range(stream.size):
            marks.append(steering.mark())
            levels[t] = marks[t].level
            for s in arrivals[t]:
                steering.update(float(stream[s]), marks[s])
        return levels


def _arrivals(delay: ArrayLike, size: int) -> list[list[int]]:
    """Return, for each set, the sets whose labels come after it is made."""
    delays = check_integers("delay", np.atleast_1d(as_array("delay", delay)))
    if delays.size not in (1, size):
        raise InvalidInputError(f"`delay` must be one number, or one per set, {size}; got {delays.size}")
    delays = np.broadcast_to(delays, (size,))
    if (delays < 0).any():
        raise InvalidInputError(f"`delay` must not be negative; got {int(delays.min())}")
    arrivals: list[list[int]] = [[] for _ in range(size)]
    for s, late in enumerate(delays.tolist()):
        if s + late < size:
            arrivals[s + late].append(s)
    return arrivals


class Steering:
    """The state of a steered level, one label at a time: a fold of marks and p-values.

    Attributes
    ----------
    level : float
        The level of the next set; at 0 or below sets are full, at 1 or above empty.
    delay : float
        Mean number of labels that came between a set and its own, over the last labels.
    """

    def __init__(self, rates: Sequence[float], alpha: float) -> None:
        self.level, self.delay = alpha, 0.0
        self._alpha, self._rates = alpha, tuple(rates)
        self._experts, self._weights = (alpha,) * len(rates), (1.0 / len(rates),) * len(rates)
        self._sets = self._labels = self._judged = 0
        self._delays = Window(WINDOW)
        # As if p-values were uniform: ∫ loss² dp = (α²(1−α)³ + (1−α)²α³)/3.
        square = (alpha**2 * (1.0 - alpha) ** 3 + (1.0 - alpha) ** 2 * alpha**3) / 3.0
        self._speed = math.sqrt((math.log(2 * len(rates) * WINDOW) + 1.0) / (WINDOW * square))

    def parts(self) -> SteeringParts:
        """Return the state as plain JSON, for `from_parts`."""
        return {
            "level": self.level, "delay": self.delay, "experts": self._experts, "weights": self._weights,
            "counts": [self._sets, self._labels, self._judged], "delays": list(self._delays.values),
        }  # fmt: skip

    @classmethod
    def from_parts(cls, rates: Sequence[float], alpha: float, parts: SteeringParts) -> Steering:
        """Restore a state from what `parts` returned."""
        steering = cls(rates, alpha)
        steering.level, steering.delay = parts["level"], parts["delay"]
        steering._experts, steering._weights = tuple(parts["experts"]), tuple(parts["weights"])
        steering._sets, steering._labels, steering._judged = parts["counts"]
        steering._delays.values.extend(parts["delays"])
        return steering

    def mark(self) -> Mark:
        """Count a set that is made now, and return its levels."""
        self._sets += 1
        return Mark(self.level, self._experts, self._sets - 1)

    def update(self, p_value: float, mark: Mark) -> None:
        """Take the label of a set: its p-value, and the mark of the set."""
        self._measure(mark)
        most = _DAMPING / self.delay if self.delay > 0.0 else math.inf
        losses = [_pinball(p_value - level, self._alpha) for level in mark.experts]
        self._experts = tuple(
            expert + min(rate, most) * (self._alpha - (p_value <= level > 0.0))
            for expert, rate, level in zip(self._experts, self._rates, mark.experts, strict=True)
        )
        if len(self._rates) > 1:
            self._weigh(losses)
        self.level = math.fsum(weight * expert for weight, expert in zip(self._weights, self._experts, strict=True))

    def _measure(self, mark: Mark) -> None:
        """Measure the delay in sets, times the share of them that get labels: the first labels show it already."""
        self._labels, self._judged = self._labels + 1, max(self._judged, mark.number + 1)
        share = min(1.0, self._labels / self._judged)
        self.delay = self._delays.step((self._sets - mark.number - 1) * share)

    def _weigh(self, losses: list[float]) -> None:
        """Weigh the experts by their losses, and spread a small share of the weight evenly."""
        least, even = min(losses), 1.0 / (2 * WINDOW)
        weights = [
            weight * math.exp(-self._speed * (loss - least)) for weight, loss in zip(self._weights, losses, strict=True)
        ]
        total = math.fsum(weights)
        self._weights = tuple((1.0 - even) * weight / total + even / len(weights) for weight in weights)


def _pinball(difference: float, alpha: float) -> float:
    return alpha * difference - min(0.0, difference)
