"""The benefit of more labels: the size of predictions with a part of the calibration labels, measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from napsets.checks.arguments import FloatArray, frozen
from napsets.checks.values import Record, check_seed
from napsets.evaluation.metrics import mean_and_error
from napsets.evaluation.results import Comparison
from napsets.levels import coverage_band
from napsets.localisers import Everyone
from napsets.methods import Calibrated, find_thresholds, predict_in_parts

#: The parts of the calibration labels that are tried.
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
#: Fewer labels are not tried: sets are then large by chance.
_FEWEST = 50
#: Standard deviations of a 95 % interval.
_WIDE = 1.96
#: Changes of the size that are called small.
_HARDLY = 0.1


@dataclass(frozen=True)
class SizeWithLabels:
    """The average size of a method's predictions with a number of calibration labels, and a 95 % interval."""

    labels: int
    level_labels: int  #: how many of them set the level
    size: float
    low: float
    high: float


@dataclass(frozen=True)
class MoreLabels:
    """Sizes with an eighth, a quarter, a half and all of the calibration labels.

    Attributes
    ----------
    method : str
        The title of the method.
    points : list of SizeWithLabels
        The smallest number of labels first.
    change : float
        The relative change of the size over the last doubling of the labels; negative is smaller.
    low, high : float
        Its 95 % interval.
    alpha : float
        The error rate.
    coverage : (float, float) or None
        Where coverage lies in 95 of 100 draws of the labels; None for a method without a guarantee.
    """

    method: str
    points: list[SizeWithLabels]
    change: float
    low: float
    high: float
    alpha: float
    coverage: tuple[float, float] | None

    def rows(self) -> list[Record]:
        """Return one row per number of labels, for tables and charts."""
        return [{"method": self.method, **vars(point)} for point in self.points]

    def sentences(self, noun: str = "set") -> list[str]:
        """Describe the benefit of twice as many labels: smaller predictions, and a steadier coverage.

        The last doubling measures it. Gains usually become smaller with every doubling.
        """
        interval = f"95 % interval {_percent(self.low)} to {_percent(self.high)} %"
        if self.high < 0:
            size = f"would make the {noun}s about {-100 * self.change:.0f} % smaller"
        elif max(-self.low, self.high) <= _HARDLY:
            size = f"would hardly change the size of the {noun}s"
        else:
            size = f"may or may not make the {noun}s smaller; the measurement is too uncertain to tell"
        half, last = self.points[-2:]
        sentences = [
            f"Twice as many labels {size}. The last doubling, from {half.labels:,} to {last.labels:,} labels, changed "
            f"their average size by {_percent(self.change)} % ({interval})."
        ]
        if self.coverage is not None:
            now, doubled = (
                " and ".join(f"{100 * end:.1f}" for end in ends)
                for ends in (self.coverage, coverage_band(2 * last.level_labels, self.alpha))
            )
            sentences.append(
                f"Coverage depends on which nodes were labelled: {last.level_labels:,} labels set the level, so it is "
                f"between {now} % in 95 of 100 cases; with twice as many, between {doubled} %."
            )
        return sentences


def _percent(share: float) -> str:
    """Return a change in percent with its sign."""
    return f"{100 * share:+.0f}".replace("-", "−").replace("+0", "0").replace("−0", "0")


def more_labels(comparison: Comparison, method: str, *, title: str | None = None, seed: int = 0) -> MoreLabels | None:
    """Measure the size of a method's predictions with parts of the calibration labels, each part within the next.

    The method is calibrated on each part; one that was chosen automatically is not chosen again. The intervals contain
    what other evaluation nodes, and other labels that set the level, would change.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    method : str
        The name of the method in it.
    title : str, optional
        What the method is called; by default its title.
    seed : int
        Seed of the order in which labels are taken.

    Returns
    -------
    MoreLabels or None
        None if there are too few labels, or sizes are infinite.

    Examples
    --------
    >>> import napsets as ns
    >>> data = ns.datasets.dcsbm(2000, mean_degree=20, num_classes=4, num_features=8, seed=0)
    >>> p = 0.4 * np.eye(4)[data.labels] + 0.6 * np.random.default_rng(0).dirichlet(np.ones(4), 2000)
    >>> comparison = ns.compare(data.graph, p, data.labels, np.arange(800), np.arange(800, 2000), methods=["split"])
    >>> [point.labels for point in more_labels(comparison, "split").points]
    [100, 200, 400, 800]
    """
    result = comparison[method]
    data = comparison.data if result.calibrated.method.uses_evidence else comparison.data.without_evidence()
    order = np.random.default_rng(check_seed(seed)).permutation(data.calibration)
    counts = [round(share * order.size) for share in SHARES]
    sizes, points, deviations = [], [], []
    for count in counts:
        if count < max(_FEWEST, math.ceil(2 / comparison.alpha)):
            continue
        part = replace(data, calibration=frozen(np.sort(order[:count])), _scored={})
        calibrated = result.calibrated if count == order.size else result.calibrated.method.calibrate_data(part)
        level_labels = calibrated.scored.level_nodes.size if calibrated.is_exact else count
        node_sizes, below, above = _sizes(calibrated, comparison, level_labels)
        if not np.isfinite(node_sizes).all():
            continue
        mean, error = mean_and_error(node_sizes)
        low, high = mean - _WIDE * math.hypot(error, below), mean + _WIDE * math.hypot(error, above)
        points.append(SizeWithLabels(count, level_labels, mean, low, high))
        sizes.append(node_sizes)
        deviations.append((below + above) / 2.0)
    if len(points) < 2 or points[-1].labels != order.size or 2 * points[-2].labels < 0.9 * order.size:
        return None
    change, error = _change(sizes[-2], sizes[-1], deviations[-2:])
    promised = result.calibrated.is_exact or isinstance(result.calibrated.method.localiser, Everyone)
    band = coverage_band(points[-1].level_labels, comparison.alpha) if promised else None
    ends = change - _WIDE * error, change + _WIDE * error
    return MoreLabels(title or result.title, points, change, *ends, comparison.alpha, band)


def _sizes(calibrated: Calibrated, comparison: Comparison, level_labels: int) -> tuple[FloatArray, float, float]:
    """Return the sizes of the evaluated nodes, and how far other level labels would move their mean down and up.

    The coverage of an exact level with n labels varies by √(α(1 − α)/(n + 2)); the mean size varies as it does between
    the levels that far above and below.
    """
    alpha, nodes = comparison.alpha, comparison.nodes
    spread = math.sqrt(alpha * (1.0 - alpha) / (level_labels + 2))
    rates = (alpha, min(alpha + spread, 0.5 * (1.0 + alpha)), max(alpha - spread, 0.5 * alpha))
    (local,) = find_thresholds([calibrated], nodes, rates)
    thresholds = [calibrated.thresholds_at(local, row, rate) for row, rate in enumerate(rates)]
    parts: list[list[FloatArray]] = [[], [], []]
    for _, predictions in predict_in_parts([calibrated], [thresholds], nodes):
        for part, prediction in zip(parts, predictions[0], strict=True):
            part.append(np.asarray(prediction.sizes, dtype=np.float64))
    at_alpha, above, below = (np.concatenate(part) for part in parts)
    mean = float(at_alpha.mean())
    return at_alpha, max(mean - float(above.mean()), 0.0), max(float(below.mean()) - mean, 0.0)


def _change(before: FloatArray, after: FloatArray, deviations: Sequence[float]) -> tuple[float, float]:
    """Return the relative change of a mean, and its standard error, paired by node."""
    mean_before, mean_after = float(before.mean()), float(after.mean())
    change = mean_after / mean_before - 1.0
    paired = (after - before * (mean_after / mean_before)) / mean_before
    level = math.hypot(deviations[1] / mean_before, deviations[0] * mean_after / mean_before**2)
    return change, math.hypot(float(paired.std()) / math.sqrt(after.size), level)
