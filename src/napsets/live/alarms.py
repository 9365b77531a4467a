"""Alarms over a stream of labels, valid at all times together: one may look after every label, and stop or go on.

*Exchangeability.* If labelled nodes are exchangeable, smoothed conformal p-values are independent and uniform, and no
bet against them gains. The simple jumper (Vovk et al., 2021) divides a capital of 1 between three experts
ε ∈ {−1, 0, 1}; at each step a share J of all capital is redistributed, and then C_ε ← C_ε·(1 + ε(p − ½)).

*Coverage.* Against "a set misses with probability at most α", experts with stakes 2⁻¹, …, 2⁻⁸ bet
C_j ← C_j·(1 + stake_j·(miss/p − 1)), where p is the probability of a miss given all labels before. If each label joins
the calibration after it has judged its set, p = α. Sets that are all calibrated on the same n labels share the luck of
these labels: their miss rate is itself random, with the law Beta(n+1−k, k) for k = ⌈(n+1)(1−α)⌉, and after m misses
in t labels the next set misses with probability (n+1−k+m)/(n+1+t). Then p is the larger of this and α, so that sets
which miss more rarely than α never raise the alarm.

Under its hypothesis each capital is a non-negative (super)martingale that starts at 1, so the probability that it ever
reaches c is at most 1/c (Ville). An alarm rings at 100: a false one has at most 1 % chance, over all time.

*Restarts.* A capital that was lost over a long good time is slow to see a change. So the capital is divided between
starting times s = 1, 2, …, with weights 1/(s(s+1)): it is at least half of what it would be with one start. All bets
are linear in the capital, so the capitals of all starting times are carried as their sum.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

import numpy as np

from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, check_numbers, check_scores
from napsets.checks.values import check_alpha, check_count, shown
from napsets.errors import InvalidInputError
from napsets.levels import rank_place
from napsets.randomness import node_uniforms

#: The capital at which an alarm rings: a false alarm has at most 1 % chance.
ALARM = 100.0
#: Share of the jumper's capital that is redistributed at each step.
_JUMP = 0.01
#: Stakes of the coverage alarm's experts. The best one for a miss probability q is (q − p)/(1 − p).
_STAKES = tuple(2.0**-k for k in range(1, 9))
#: Calibration sizes whose judged sets are counted at a time; the oldest counts are dropped.
_SIZES = 1024


class _Capital:
    """A capital divided between experts and starting times, kept in logarithms.

    Attributes
    ----------
    steps : int
        Outcomes so far.
    log_capital : float
        The natural logarithm of the capital.
    alarm : int or None
        After how many outcomes the capital first reached `ALARM`.
    """

    def __init__(self, experts: int, jump: float = 0.0) -> None:
        self.steps = 0
        self.log_capital = 0.0
        self.alarm: int | None = None
        self._share = math.log(1.0 / experts)
        self._experts = [-math.inf] * experts
        self._stay, self._spread = (math.log(1.0 - jump), math.log(jump) + self._share) if jump else (0.0, -math.inf)

    def _bet(self, factors: Sequence[float]) -> float:
        """Multiply each expert's capital by its factor, given less 1, and return the logarithm of the total."""
        self.steps += 1
        invested = self._share - math.log(self.steps) - math.log(self.steps + 1)
        experts = [_log_add(expert, invested) for expert in self._experts]
        if self._spread > -math.inf:
            spread = _log_sum(experts) + self._spread
            experts = [_log_add(expert + self._stay, spread) for expert in experts]
        self._experts = [expert + math.log1p(factor) for expert, factor in zip(experts, factors, strict=True)]
        # With the part that later starting times have not invested yet.
        self.log_capital = _log_add(_log_sum(self._experts), -math.log(self.steps + 1))
        if self.alarm is None and self.log_capital >= math.log(ALARM):
            self.alarm = self.steps
        return self.log_capital


class Jumper(_Capital):
    """The simple jumper, one p-value at a time; see `jumper`.

    Examples
    --------
    >>> alarm = Jumper()
    >>> _ = [alarm.step(0.01) for _ in range(20)]
    >>> alarm.alarm
    16
    """

    def __init__(self) -> None:
        super().__init__(3, _JUMP)

    def step(self, p_value: float) -> float:
        """Take one p-value, and return the logarithm of the capital."""
        return self._bet((0.5 - p_value, 0.0, p_value - 0.5))


class MissAlarm(_Capital):
    """The coverage alarm, one set at a time; see `miss_alarm`."""

    def __init__(self, alpha: float) -> None:
        super().__init__(len(_STAKES))
        self._alpha = check_alpha(alpha)
        self._judged: dict[int, tuple[int, int]] = {}  # misses and labels, by the size of the calibration

    def step(self, missed: bool, labels: int | None = None) -> float:
        """Take one judged set, and return the logarithm of the capital.

        Parameters
        ----------
        missed : bool
            Whether the set missed its label.
        labels : int, optional
            How many labels the set was calibrated on, if other sets are judged that were calibrated on the same ones;
            by default none is, because its own label joins the calibration.
        """
        miss, rate = float(missed), self._alpha
        if labels is not None:
            misses, judged = self._judged.pop(labels, (0, 0))
            rate = max(rate, (labels + 1 - rank_place(labels, rate) + misses) / (labels + 1 + judged))
            self._judged[labels] = misses + bool(missed), judged + 1
            if len(self._judged) > _SIZES:
                del self._judged[next(iter(self._judged))]
        return self._bet([stake / rate * (miss - rate) for stake in _STAKES])


def jumper(p_values: ArrayLike, *, log: bool = False) -> FloatArray:
    """Return the capital of the simple jumper after each p-value: evidence against exchangeability.

    Parameters
    ----------
    p_values : array of numbers in [0, 1]
        Smoothed conformal p-values in the order of their labels (see `smoothed_p_values`).
    log : bool
        Return natural logarithms; capitals beyond 10³⁰⁸ are infinite otherwise.

    Examples
    --------
    >>> jumper([0.5, 0.5, 0.5])
    array([1., 1., 1.])
    >>> first_alarm(jumper([0.01] * 20))
    16
    """
    alarm = Jumper()
    return _capitals([alarm.step(p_value) for p_value in check_unit("p_values", p_values).tolist()], log)


def miss_alarm(missed: ArrayLike, alpha: float, labels: int | None = None, *, log: bool = False) -> FloatArray:
    """Return the capital against "a set misses with probability at most alpha" after each label.

    Parameters
    ----------
    missed : array of booleans
        Whether each set missed its label, in the order of the labels.
    alpha : float
        The probability of a miss that the sets promise.
    labels : int, optional
        How many labels set the level of the sets, if all sets were made from the same labels. Such sets share the luck
        of these labels, and without their number the alarm would be false too often. By default each label joins the
        calibration after it has judged its set.
    log : bool
        As for `jumper`.

    Examples
    --------
    >>> missed = [True, True, False, True, True, True]
    >>> first_alarm(miss_alarm(missed, alpha=0.1)), first_alarm(miss_alarm(missed, alpha=0.1, labels=1000))
    (6, 6)
    >>> first_alarm(miss_alarm(missed, alpha=0.1, labels=20)) is None  # bad luck explains it
    True
    """
    size = None if labels is None else check_count("labels", labels, minimum=1)
    alarm = MissAlarm(alpha)
    return _capitals([alarm.step(miss, size) for miss in check_flags("missed", missed).tolist()], log)


def _capitals(logs: list[float], log: bool) -> FloatArray:
    array = np.array(logs, dtype=np.float64)
    with np.errstate(over="ignore"):  # beyond 10³⁰⁸ a capital is infinite
        return array if log else np.exp(array)


def first_alarm(capital: ArrayLike, level: float = ALARM) -> int | None:
    """Return after how many steps a capital first reached the level, or None."""
    reached = check_scores("capital", capital) >= level
    return int(reached.argmax()) + 1 if reached.any() else None


def smoothed_p_value(greater: int, equal: int, total: int, u: float) -> float:
    """Return (#{T_i > T_v} + u·(1 + #{T_i = T_v}))/(n + 1), which is uniform if the T are exchangeable.

    Parameters
    ----------
    greater, equal : int
        How many calibration scores are greater than that of the new node, and how many equal it.
    total : int
        How many calibration scores there are.
    u : float
        A uniform number that nothing else depends on.

    Examples
    --------
    >>> smoothed_p_value(greater=3, equal=1, total=9, u=0.5)
    0.4
    """
    return (greater + u * (1 + equal)) / (total + 1)


def smoothed_p_values(scores: ArrayLike, calibration: ArrayLike = (), seed: int = 0) -> FloatArray:
    """Return the p-value of each score among those before it: independent and uniform if all are exchangeable.

    Parameters
    ----------
    scores : array of numbers
        Scores at the true labels, in the order of the labels.
    calibration : array of numbers
        Scores that were there before the first.
    seed : int
        Of the uniform numbers that break ties.
    """
    stream = check_scores("scores", scores)
    before = np.sort(check_scores("calibration", calibration)).tolist()
    p_values = np.empty(stream.size)
    for t, (score, u) in enumerate(zip(stream.tolist(), node_uniforms(np.arange(stream.size), seed), strict=True)):
        low, high = bisect_left(before, score), bisect_right(before, score)
        p_values[t] = smoothed_p_value(len(before) - high, high - low, len(before), float(u))
        insort(before, score)
    return p_values


def check_unit(name: str, value: ArrayLike) -> FloatArray:
    """Return a vector of numbers from 0 to 1."""
    return check_scores(name, check_numbers(name, value, largest=1.0))


def check_flags(name: str, value: ArrayLike) -> BoolArray:
    """Return a vector of truth values, from booleans or from 0 and 1."""
    numbers = check_scores(name, value)
    flags = numbers.astype(np.bool_)
    if not np.array_equal(flags, numbers):
        raise InvalidInputError(f"`{name}` must hold True and False, or 1 and 0; got {shown(numbers.tolist())}")
    return flags


def _log_add(first: float, second: float) -> float:
    """Return log(e^first + e^second)."""
    low, high = (first, second) if first < second else (second, first)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _log_sum(values: list[float]) -> float:
    top = max(values)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(value - top) for value in values))
