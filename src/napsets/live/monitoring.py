"""Whether a stream of predictions still keeps its promise: two alarms, an interval, windows, delays.

A label that arrives judges the set that its node had before. These functions look at the stream of such judgements,
in the order in which the labels came. The alarms and the interval are valid at all times together: one may look after
every label. The two alarms (see `napsets.live.alarms`) answer two questions: exchangeability may be lost while coverage
is kept, and then nothing promises that it stays so.

Every function has a form that takes one label at a time, in constant time and memory, with identical results:
`Jumper`, `MissAlarm`, `Window`, and all of them together in `Monitor`.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray
from napsets.checks.values import check_alpha, check_count, check_share, shown
from napsets.errors import InvalidInputError
from napsets.live.alarms import (
    ALARM,
    Jumper,
    MissAlarm,
    check_flags,
    first_alarm,
    jumper,
    miss_alarm,
    smoothed_p_value,
    smoothed_p_values,
)

__all__ = [
    "ALARM",
    "Jumper",
    "MissAlarm",
    "Monitor",
    "Window",
    "WorstWindow",
    "coverage_interval",
    "first_alarm",
    "interval_from_counts",
    "jumper",
    "miss_alarm",
    "smoothed_p_value",
    "smoothed_p_values",
    "worst_window",
]

#: The names of the alarms.
ALARMS = ("exchangeability", "coverage")
#: Labels in a window.
WIDTH = 200
#: Experts of the coverage interval: changes of the log odds of a miss, in both directions.
_ODDS = np.array([sign * 2.0**k for k in range(2, -10, -1) for sign in (1.0, -1.0)])[:, None, None]
#: What an expert's factor gains if a sure miss is bet against.
_GAINS = np.array([math.expm1(odds) for odds in _ODDS.ravel()])[:, None, None]
#: Intervals that are searched for at once: each takes 24 experts.
_AT_ONCE = 1 << 14
#: Halvings of the search for an end of the interval; the end lies outside by at most 2⁻⁴⁰.
_HALVINGS = 40
_LOG10 = math.log(10.0)
#: Points of a history, at most.
_MOST_POINTS = 400


def coverage_interval(missed: ArrayLike, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return an interval for the mean coverage up to each label; all of them hold together with this confidence.

    The mean is that of the probabilities, given all that came before, with which each set so far covers. They may
    change over time in any way. This is a betting confidence sequence (Waudby-Smith and Ramdas, 2024): against a mean m
    of the miss probabilities, the expert λ has the capital e^{λk}/(1 − m + m·e^λ)ᵗ after k misses in t labels. Since
    log(1 − m + m·e^λ) is concave in m, the true mean leaves the expert at most the capital of bets against each single
    probability, which is a martingale. The interval holds every m against which the experts have less than
    1/(1 − confidence) on average.

    Parameters
    ----------
    missed : array of booleans
        Whether each set missed its label, in the order of the labels.
    confidence : float
        The probability that all intervals hold.

    Returns
    -------
    lower, upper : arrays of numbers
        One of each after each label.

    Examples
    --------
    >>> lower, upper = coverage_interval([False] * 900 + [True] * 100)
    >>> f"{lower[-1]:.3f} to {upper[-1]:.3f}"
    '0.864 to 0.930'
    """
    flags = check_flags("missed", missed)
    return interval_from_counts(np.cumsum(flags), np.arange(1, flags.size + 1), confidence)


def interval_from_counts(misses: IntArray, labels: IntArray, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the interval of `coverage_interval` for arrays of numbers of misses and of labels."""
    if not 0.0 < check_share("confidence", confidence) < 1.0:
        raise InvalidInputError(f"`confidence` must lie strictly between 0 and 1; got {shown(confidence)}")
    level = -math.log1p(-confidence)
    parts = [slice(i, i + _AT_ONCE) for i in range(0, max(misses.size, 1), _AT_ONCE)]
    ends = [_ends(misses[part].astype(np.float64), labels[part].astype(np.float64), level) for part in parts]
    lower, upper = np.concatenate(ends, axis=1)
    return lower, upper


def _ends(misses: FloatArray, labels: FloatArray, level: float) -> FloatArray:
    """Return the lower ends and the upper ends, in two rows, where the experts' mean capital reaches e^level."""
    share = misses / np.maximum(labels, 1.0)  # which no expert gains against, so it lies inside
    outside = np.repeat([[1.0], [0.0]], share.size, axis=1)
    inside = np.where(_log_mean_capital(outside, misses, labels) < level, outside, share)  # then nothing is outside
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        excluded = _log_mean_capital(middle, misses, labels) >= level
        outside, inside = np.where(excluded, middle, outside), np.where(excluded, inside, middle)
    return 1.0 - outside


def _log_mean_capital(mean: FloatArray, misses: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the logarithm of the experts' mean capital against a mean of the miss probabilities."""
    experts = _ODDS * misses - labels * np.log1p(mean * _GAINS)
    top = experts.max(axis=0)
    total = np.exp(experts - top).cumsum(axis=0)[-1]  # one by one: NumPy's own sums depend on the shape
    return np.asarray(top + np.log(total / len(_ODDS)))


class Window:
    """The mean of the last `width` numbers, of fewer at the start, one number at a time."""

    def __init__(self, width: int = WIDTH) -> None:
        self.values: deque[float] = deque(maxlen=check_count("width", width, minimum=1))

    def step(self, value: float) -> float:
        """Take one number, and return the mean."""
        self.values.append(value)
        return math.fsum(self.values) / len(self.values)


class WorstWindow(NamedTuple):
    """The window of successive labels with the lowest coverage.

    Attributes
    ----------
    coverage : float
        Its coverage; NaN where there are no labels.
    end : int
        After how many labels it ends.
    """

    coverage: float
    end: int


def worst_window(missed: ArrayLike, width: int = WIDTH) -> WorstWindow:
    """Return the first of the windows with the lowest coverage; of fewer labels than `width`, all of them.

    Examples
    --------
    >>> worst_window([False, True, True, False, False], width=2)
    WorstWindow(coverage=0.0, end=3)
    """
    monitor = _Worst(width)
    for flag in check_flags("missed", missed).tolist():
        monitor.step(flag)
    return monitor.worst


class _Worst:
    """The worst window so far, one label at a time."""

    def __init__(self, width: int) -> None:
        self._window, self._width, self._labels = Window(width), width, 0
        self.worst = WorstWindow(math.nan, 0)

    def step(self, missed: bool) -> float:
        """Take one label, and return the coverage of the window that ends with it."""
        self._labels += 1
        coverage = self._window.step(float(not missed))
        if self._labels <= self._width or coverage < self.worst.coverage:
            self.worst = WorstWindow(coverage, self._labels)
        return coverage


class Monitor:
    """Everything above about one stream, one label at a time: what `Live.status` and ``evaluate --in-order`` show.

    Parameters
    ----------
    alpha : float
        The probability of a miss that the sets promise.
    width : int
        Labels in a window.
    """

    def __init__(self, alpha: float, width: int = WIDTH) -> None:
        self.alpha, self.width = check_alpha(alpha), width
        self.labels = self.misses = 0
        self.recent_coverage = self.recent_size = self.sizes = 0.0
        self._worst, self._size, self._delays = _Worst(width), Window(width), deque[float](maxlen=width)
        #: After how many labels, and when, each alarm was raised.
        self._rang: dict[str, tuple[int, str | float | None]] = {}
        self.reset(*ALARMS)

    def step(
        self,
        missed: bool,
        size: float,
        p_value: float | None = None,
        delay: float | None = None,
        *,
        labels: int | None = None,
        tested: bool = True,
        time: str | float | None = None,
    ) -> None:
        """Take one label.

        Parameters
        ----------
        missed : bool
            Whether the set missed it.
        size : float
            The size of the set, or the width of the interval.
        p_value : float, optional
            Its smoothed p-value, for the exchangeability alarm.
        delay : float, optional
            How many labels came between the set and its label.
        labels : int, optional
            How many labels the set was calibrated on, if several judged sets were calibrated on the same ones
            (see `miss_alarm`).
        tested : bool
            Whether the alarms count the label. They must not count labels that judge sets and then join the reference,
            because sets that are judged between two held-out labels share the luck of the same held-out labels.
        time : str or float, optional
            When it arrived, to date the alarms.
        """
        self.labels, self.misses = self.labels + 1, self.misses + bool(missed)
        self.recent_coverage = self._worst.step(bool(missed))
        self.sizes += size
        self.recent_size = self._size.step(size)
        if tested:
            self.coverage.step(missed, labels)
            if p_value is not None:
                self.exchangeability.step(p_value)
            for name, alarm in self._alarms():
                if alarm.alarm is not None:
                    self._rang.setdefault(name, (self.labels, time))
        if delay is not None:
            self._delays.append(delay)

    def reset(self, *names: str) -> None:
        """Start alarms again, as if no label had come."""
        if "exchangeability" in names:
            self.exchangeability = Jumper()
        if "coverage" in names:
            self.coverage = MissAlarm(self.alpha)
        for name in names:
            self._rang.pop(name, None)

    def _alarms(self) -> tuple[tuple[str, Jumper | MissAlarm], ...]:
        return ("exchangeability", self.exchangeability), ("coverage", self.coverage)

    @property
    def delay(self) -> float | None:
        """The median delay of the labels in the last window, or None where none is known."""
        return float(median(self._delays)) if self._delays else None

    def status(self) -> dict[str, Any]:
        """Return the figures as plain values; those that need labels are None as long as there are none."""
        lower, upper = interval_from_counts(np.array([self.misses]), np.array([self.labels]))
        judged = self.labels > 0
        return {
            "labels": self.labels,
            "coverage": 1.0 - self.misses / self.labels if judged else None,
            "coverage_interval": [float(lower[0]), float(upper[0])],
            "recent_coverage": self.recent_coverage if judged else None,
            "worst_window": self._worst.worst._asdict() if judged else None,
            "mean_size": self.sizes / self.labels if judged else None,
            "recent_size": self.recent_size if judged else None,
            "label_delay": self.delay,
            "window": self.width,
            "alarms": {
                name: dict(zip(("rang", "time"), self._rang.get(name, (None, None)), strict=True))
                | {"log10_capital": alarm.log_capital / _LOG10, "tests": alarm.steps}
                for name, alarm in self._alarms()
            },
        }


class History:
    """A `Monitor` and points of it over time: evenly spread, and half of them dropped whenever there are too many."""

    def __init__(self, alpha: float) -> None:
        self.monitor, self._stride = Monitor(alpha), 1
        self.resets = 0  #: How many times alarms were started again.
        self._points: list[tuple[float, ...]] = []

    def step(
        self,
        missed: bool,
        size: float,
        p_value: float | None,
        delay: float | None,
        *,
        labels: int | None,
        tested: bool,
        time: str,
    ) -> None:
        """Take one label, as `Monitor.step`."""
        self.monitor.step(missed, size, p_value, delay, labels=labels, tested=tested, time=time)
        if self.monitor.labels % self._stride == 0:
            self._points.append(self._point())
            if len(self._points) > _MOST_POINTS:
                self._points, self._stride = self._points[1::2], 2 * self._stride

    def columns(self) -> dict[str, list[float | None]]:
        """Return the points as columns, up to the last label.

        They are how many labels had come (``judged``), the coverage until then with its interval (``coverage``,
        ``lower``, ``upper``), the average set size since the point before (``size``), the median label delay
        (``delay``), and the logarithms to base 10 of the two alarms' capitals (``exchangeability``, ``misses``).
        """
        points = list(self._points)
        if self.monitor.labels and (not points or points[-1][0] < self.monitor.labels):
            points.append(self._point())
        table = np.array(points, dtype=np.float64).reshape(-1, 6)
        judged, misses, sizes, delays, exchangeability, coverage = table.T
        lower, upper = interval_from_counts(misses.astype(np.int64), judged.astype(np.int64))
        columns: dict[str, npt.NDArray[np.number]] = {
            "judged": judged.astype(np.int64),
            "coverage": 1.0 - misses / np.maximum(judged, 1.0),
            "lower": lower,
            "upper": upper,
            "size": np.diff(sizes, prepend=0.0) / np.maximum(np.diff(judged, prepend=0.0), 1.0),
            "delay": delays,
            "exchangeability": exchangeability,
            "misses": coverage,
        }
        return {
            name: [None if math.isnan(value) else value for value in column.tolist()]
            for name, column in columns.items()
        }

    def _point(self) -> tuple[float, ...]:
        monitor = self.monitor
        delay = math.nan if monitor.delay is None else monitor.delay
        capitals = (monitor.exchangeability.log_capital / _LOG10, monitor.coverage.log_capital / _LOG10)
        return (monitor.labels, monitor.misses, monitor.sizes, delay, *capitals)
