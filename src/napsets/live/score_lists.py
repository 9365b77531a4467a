"""The scores of labelled nodes in order: ranks by label, counts, and the scores around a place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels import ranked
from napsets.kernels.layout import read_only
from napsets.kernels.ordered import OrderedPairs
from napsets.scores.by_label import SHRINK, SLOPE

#: How many scores on either side of a place are looked up at the least.
_LEAST_REACH = 16


class ScoreLists:
    """The scores of the reference and of the labels held out, each at its own label.

    `mix` is the weight of ranks among the scores of the same label, as in `ByLabel`; below 0, scores are not ranked.
    """

    def __init__(self, classes: int, mix: float) -> None:
        self.mix = mix
        self.everyone, self.own, self.held_out = OrderedPairs(), OrderedPairs(), OrderedPairs()
        self.sizes, self.before, self.held_out_sizes = (np.zeros(classes, dtype=np.int64) for _ in range(3))
        self._guess, self._guesses = 0.5, np.zeros((2, classes), dtype=np.int64)
        self.forget()

    def forget(self) -> None:
        """Forget the scores around places: they may be others now."""
        self._windows: dict[int, tuple[int, FloatArray, int]] = {}
        self._sorted: FloatArray | None = None
        self._shares: dict[int, float] = {}

    def replace(self, codes: npt.NDArray[Any], old: FloatArray, new: FloatArray) -> None:
        """Put scores in place of others; NaN stands for one that is in no list, and codes are those of `SlotLabels`."""
        self.forget()
        done = 0
        if self.everyone.size + self.held_out.size == 0:
            self._fill(codes, new)
            return
        while True:
            lists = ranked.Lists(
                self.everyone.blocks, self.own.blocks, self.held_out.blocks, self.sizes, self.before,
                self.held_out_sizes,
            )  # fmt: skip
            done = ranked.replace_scores(done, codes, old, new, self.mix >= 0.0, lists)
            if done == codes.size:
                break
            for pairs in (self.everyone, self.own, self.held_out):
                pairs.grow()

    def _fill(self, codes: npt.NDArray[Any], scores: FloatArray) -> None:
        listed = ~np.isnan(scores)
        codes, scores = codes[listed].astype(np.int64), scores[listed]
        known, labels = codes > 0, np.abs(codes) - 1
        groups = labels.astype(np.float64) if self.mix >= 0.0 else np.zeros(labels.size)
        self.everyone.fill(np.zeros(int(known.sum())), scores[known])
        self.held_out.fill(groups[~known], scores[~known])
        self.held_out_sizes[:] = np.bincount(labels[~known], minlength=self.sizes.size)
        if self.mix >= 0.0:
            self.own.fill(groups[known], scores[known])
            self.sizes[:] = np.bincount(labels[known], minlength=self.sizes.size)
            self.before[:] = np.cumsum(self.sizes) - self.sizes

    def _ranking(self) -> Any:
        size = self.everyone.size
        return ranked.Ranking(
            self.everyone.blocks, self.own.blocks, self.sizes, self.before, size, self.mix, SHRINK, SLOPE
        )  # fmt: skip

    def ranked(self, labels: IntArray, scores: FloatArray) -> FloatArray:
        """Return the ranks of scores at these labels, one label per score in their order."""
        if self.mix < 0.0:
            return scores
        values = np.empty(scores.size)
        ranked.rank_scores(read_only(labels), scores.reshape(-1), self._ranking(), values)
        return values.reshape(scores.shape)

    def unranked(self, values: FloatArray) -> FloatArray:
        """Return between which scores one of each label is ranked at each value, shape (labels, 2, values).

        Where scores are not ranked, these values themselves, for all labels together.
        """
        if self.mix < 0.0:
            return np.stack([values, values])[None]
        bounds = np.empty((self.sizes.size, 2, values.size))
        ranked.unrank(values, self._ranking(), bounds)
        return bounds

    @property
    def sorted_held_out(self) -> FloatArray:
        """All ranked scores held out, ascending."""
        if self._sorted is None:
            labels, scores = self.held_out.pairs
            self._sorted = np.sort(self.ranked(labels.astype(np.int64), scores))
        return self._sorted

    def around(self, place: int, reach: int) -> tuple[FloatArray, int]:
        """Return the ranked scores held out around a place, from 0, and how many are below them."""
        window = self._windows.get(place)
        if window is None or window[0] < reach:
            reach = max(reach if window is None else 2 * reach, _LEAST_REACH)
            values, below = ranked.scores_between(
                place - reach, place + reach, self.held_out.blocks, self._groups(), self._ranking(), self._guess,
                self._guesses,
            )  # fmt: skip
            self._guess = float(values[min(max(place - below, 0), values.size - 1)])
            window = self._windows[place] = (reach, values, below)
        return window[1], window[2]

    def _groups(self) -> IntArray:
        return self.held_out_sizes if self.mix >= 0.0 else np.array([self.held_out.size])

    def compared(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Return how many ranked scores held out are below each value, and how many are at most the value."""
        below, up_to = np.empty((2, values.size), dtype=np.int64)
        ranked.count_ranked(values, self.held_out.blocks, self._groups(), self._ranking(), below, up_to)
        return below, up_to

    def share_below(self, place: int) -> float:
        """Return the share of the reference below the score held out at a place, from 0."""
        if place not in self._shares:
            values, below = self.around(place, 0)
            threshold, size = values[[place - below]], self.everyone.size
            counts = np.empty((2, 1), dtype=np.int64)
            if self.mix < 0.0:
                counts[0] = self.everyone.count(0.0, float(threshold[0]))
            else:
                ranked.count_ranked(threshold, self.own.blocks, self.sizes, self._ranking(), *counts)
            self._shares[place] = float(counts[0, 0]) / (1.0 + size)
        return self._shares[place]
