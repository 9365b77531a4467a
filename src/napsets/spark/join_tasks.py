"""What runs on Arrow batches inside the tasks of joins: scores, thresholds and sets, bit for bit as on one machine.

Functions take an iterator of record batches and yield record batches; none knows of Spark.

Mass is counted on plain arrays. A reference node is known here by its score alone. Scores are replaced by their places
among the distinct ones, so that "how many up to this score" is a search among integers; counts are then weighted in the
order hops, pool, alike.

For an exact level labelled nodes are split by the rule of `napsets.randomness.split_order`: a sum over all labelled
ids, which has no order, and the seed give another seed; the ids in the order of the uniform numbers that it draws are a
random order, and the first n of them are the reference part. Only the sum, a count and the last id of that part
come to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from napsets.checks.arguments import BoolArray, FloatArray, IntArray, check_scores
from napsets.levels import FittedExact, FittedLevel, Level, Nominal, Rank
from napsets.localisers import Everyone, Reference
from napsets.localisers.base import Cut, LocalThresholds
from napsets.localisers.hops import Counts, Sizes, Weighting
from napsets.predictions import PredictionSets, members
from napsets.randomness import node_uniforms, split_hashes
from napsets.scores import RowScore
from napsets.spark.tables import checked_probabilities, label_indices, sets_table

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Split:
    """How the labelled nodes are split."""

    seed: int  # what the order is drawn with
    key: float  # the number of the last node of the reference part
    node: Any  # that node, should another have the same number
    apart: int  # how many nodes are held out

    def keeps_apart(self, ids: npt.NDArray[Any]) -> BoolArray:
        """Return which of these labelled nodes are held out."""
        keys = node_uniforms(ids, self.seed)
        after: BoolArray = (keys > self.key) | ((keys == self.key) & (ids > self.node).astype(bool))
        return after


@dataclass(frozen=True, eq=False)
class SparkSettings:
    """What the tasks need to know of a method and of labels; plain values, small enough to send along with each."""

    weights: FloatArray  # by hop
    score: RowScore
    alpha: float
    seed: int
    allow_empty: bool
    class_names: tuple[str, ...]
    labels_are: str = "auto"
    integer_labels: bool = False
    pool: float = 0.0
    alike: float = 0.0
    everyone: bool = False  # whether there is one threshold for all nodes, without neighbourhoods
    level: Level = field(default_factory=Nominal)
    #: The labelled nodes that are held out for an exact level, once known.
    split: Split | None = None
    #: T̂, which their ranks gave, once it is known; None too where they are too few for any.
    rank: Rank | None = None

    @property
    def weighting(self) -> Weighting:
        """How much each node weighs."""
        return Weighting(self.weights, self.pool, self.alike)

    @property
    def far(self) -> bool:
        """Whether reference nodes count that are not near."""
        return bool(self.everyone or self.pool or self.alike or getattr(self.level, "fallback", "") == "global")


def calibration_scores(batches: Batches, settings: SparkSettings) -> Batches:
    """Turn (node, label, names, others, strange, probabilities) into (node, score at the label, predicted, apart)."""
    for batch in batches:
        if batch.num_rows:
            ids = _ids(batch.column("node"))
            p = checked_probabilities(batch, ids, len(settings.class_names), "labels")
            y = label_indices(batch, ids, settings.class_names, settings.labels_are)
            scores = check_scores("scores", settings.score.at(p, y, node_uniforms(ids, settings.seed)))
            held_out = np.zeros(ids.size, dtype=bool) if settings.split is None else settings.split.keeps_apart(ids)
            columns = [pa.array(scores), pa.array(p.argmax(axis=1), pa.int32()), pa.array(held_out)]
            yield pa.RecordBatch.from_arrays([batch.column("node"), *columns], ["node", "score", "predicted", "apart"])


def words(batches: Batches) -> Batches:
    """Turn (node) into (what it adds to the sum that decides on the reference part)."""
    for batch in batches:
        if batch.num_rows:
            hashes = split_hashes(_ids(batch.column("node"))).view(np.int64)  # signed, as tables have integers
            yield pa.RecordBatch.from_arrays([pa.array(hashes)], ["word"])


def keys(batches: Batches, seed: int) -> Batches:
    """Turn (node) into (node, its uniform number): the order of the labelled nodes."""
    for batch in batches:
        if batch.num_rows:
            column = batch.column("node")
            drawn = pa.array(node_uniforms(_ids(column), seed))
            yield pa.RecordBatch.from_arrays([column, drawn], ["node", "key"])


def thresholds(batches: Batches, settings: SparkSettings, everyone: Any = None) -> Batches:
    """Turn (target, hop, score [, predicted]), where a target's rows stand together, into one row per target.

    A target's rows may run over any number of batches; they are held until the next target begins. One of them may
    be about the target itself, at hop 0: its own score if it is a reference node, and what is predicted for it.
    `everyone` is a broadcast of `AllScores`, where those count that are not near.
    """
    known = AllScores(np.empty(0)) if everyone is None else everyone.value
    level = _fitted(settings, known)
    cuts = level.cuts([settings.alpha])
    for table in _whole_targets(batches):
        targets, near = _near_scores(table)
        nodes = known.nodes_of(near.own)
        if settings.everyone:
            local = Everyone().fit(known.reference).thresholds(nodes, cuts)
        else:
            local = WeightedScores(near, settings.weighting, known).thresholds(cuts)
        chosen = level.thresholds(local, nodes, [settings.alpha])
        columns = [targets, *map(pa.array, (chosen.values[0], chosen.support, chosen.effective_size))]
        yield pa.RecordBatch.from_arrays(columns, ["node", "threshold", "support", "effective_size"])


def ranks(batches: Batches, settings: SparkSettings, everyone: Any = None) -> Batches:
    """Turn the same rows of held-out nodes, with their scores at their labels at hop 0, into (share, score)."""
    known = AllScores(np.empty(0)) if everyone is None else everyone.value
    for table in _whole_targets(batches):
        _, near = _near_scores(table)
        if settings.everyone:
            unlabelled = known.nodes_of(np.full(near.own.size, np.nan))
            shares = Everyone().fit(known.reference).ranks(unlabelled, near.own)
        else:
            shares = WeightedScores(near, settings.weighting, known, labelled=False).ranks()
        yield pa.RecordBatch.from_arrays([pa.array(shares), pa.array(near.own)], ["share", "score"])


class KnownRank(FittedExact):
    """An exact level of which nothing is known but T̂: one rank, or none where there were too few labels for it."""

    def quantile(self, alpha: float) -> Rank | None:
        """Return T̂."""
        return Rank(float(self.shares[0]), float(self.scores[0])) if self.shares.size else None


def _fitted(settings: SparkSettings, everyone: AllScores) -> FittedLevel:
    if not settings.level.keeps_apart:
        return settings.level.fit(everyone.reference, np.empty(0), np.empty(0))
    ranks = [] if settings.rank is None else [settings.rank]
    return KnownRank(np.array([rank.share for rank in ranks]), np.array([rank.score for rank in ranks]))


def _whole_targets(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Put batches together and apart so that each has all rows of its targets."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        ends = pc.run_end_encode(batch.column("target")).run_ends.to_numpy()
        start = int(ends[-2]) if ends.size > 1 else 0
        if start == 0 and held and held[-1].column("target")[-1] == batch.column("target")[0]:
            held.append(batch)
            continue
        if held or start:
            yield _joined([*held, batch.slice(0, start)])
        held = [batch.slice(start)]
    if held:
        yield _joined(held)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    (whole,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return whole


def _near_scores(batch: pa.RecordBatch) -> tuple[pa.Array, NearScores]:
    """Return the targets of a batch, each once, and the contents of their rows."""
    ends = pc.run_end_encode(batch.column("target")).run_ends.to_numpy().astype(np.int64)
    starts = np.append(0, ends[:-1])
    of = np.repeat(np.arange(ends.size), ends - starts)
    hop = batch.column("hop").to_numpy()
    score = batch.column("score").to_numpy(zero_copy_only=False)  # null is NaN
    own, predicted = np.full(ends.size, np.nan), np.full(ends.size, -1)
    others, itself = hop > 0, hop == 0
    own[of[itself]] = score[itself]
    if "predicted" in batch.schema.names:
        predicted[of[itself]] = batch.column("predicted").fill_null(-1).to_numpy()[itself]
    near = NearScores(of[others], hop[others], score[others], own, predicted)
    return batch.column("target").take(pa.array(starts)), near


def prediction_sets(batches: Batches, settings: SparkSettings) -> Batches:
    """Turn (node, probabilities, threshold, support, effective_size) into rows of the sets table.

    A node without a threshold has no calibration node in reach: its threshold is +∞ and its set is full.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        ids = _ids(batch.column("node"))
        p = checked_probabilities(batch, ids, len(settings.class_names), "nodes")
        tau = batch.column("threshold").fill_null(np.inf).to_numpy()
        top = None if settings.allow_empty else p.argmax(axis=1)
        sets = PredictionSets(
            ids,
            members(settings.score.matrix(p, node_uniforms(ids, settings.seed)), tau, top_labels=top),
            tau,
            batch.column("support").fill_null(0).to_numpy(),
            batch.column("effective_size").fill_null(0.0).to_numpy(),
            settings.alpha,
            class_names=settings.class_names,
        )
        table = sets_table(sets, p, np.arange(ids.size), batch.column("node"), integer_labels=settings.integer_labels)
        for extra in batch.schema.names:
            if extra not in (*table.column_names, "probabilities"):
                table = table.append_column(extra, batch.column(extra))
        yield from table.combine_chunks().to_batches()


def _ids(column: pa.Array) -> npt.NDArray[Any]:
    values = column.to_numpy(zero_copy_only=False)
    # An array of str is what both the stable hash and Arrow read; NumPy's own text would drop trailing zeros.
    return values.astype(object) if pa.types.is_string(column.type) else values


# -- mass ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NearScores:
    """The scores of the reference nodes near some targets, which walks from them have met."""

    #: One entry for each reference node near a target: which target, how far, and its score.
    of: IntArray
    hop: IntArray
    score: FloatArray
    #: A score of each target: that at its label, NaN where it is not known.
    own: FloatArray
    #: The model's first choice for each target, −1 where it is not known.
    predicted: IntArray


class _Ladders:
    """Places in groups, to count those of a group up to a place."""

    def __init__(self, groups: IntArray, places: IntArray, width: int) -> None:
        self.width = width
        self.keys = np.sort(groups.astype(np.int64) * width + places)

    def up_to(self, groups: IntArray, places: IntArray) -> IntArray:
        """Count, for each entry, those of its group up to its place; none up to −1."""
        first = groups.astype(np.int64) * self.width
        counts: IntArray = np.searchsorted(self.keys, first + places, "right") - np.searchsorted(self.keys, first)
        return counts


class AllScores:
    """The scores of all reference nodes in ascending order, and if those alike count, what is predicted for each.

    Each task gets them once; none where only those near count.
    """

    def __init__(self, scores: FloatArray, predicted: IntArray | None = None) -> None:
        order = np.argsort(scores, kind="stable")
        self.scores, self.predicted = scores[order], None if predicted is None else predicted[order]

    @cached_property
    def distinct(self) -> FloatArray:
        """Each score once."""
        return np.unique(self.scores)

    @cached_property
    def before(self) -> IntArray:
        """How many scores stand before each distinct one, and how many there are."""
        return np.append(0, np.searchsorted(self.scores, self.distinct, "right"))

    @cached_property
    def alike(self) -> _Ladders | None:
        """Places of the scores by what is predicted."""
        if self.predicted is None:
            return None
        return _Ladders(self.predicted, np.searchsorted(self.distinct, self.scores), self.distinct.size)

    @cached_property
    def reference(self) -> Reference:
        """The same as localisers know it: node i has the i-th score, and one node more has none."""
        return Reference(np.arange(self.scores.size), self.scores, self.scores.size + 1)

    def nodes_of(self, own: FloatArray) -> IntArray:
        """Return which node of `reference` has each of these scores; the last where there is none, which is NaN."""
        nodes: IntArray = np.searchsorted(self.scores, own)
        return nodes


class WeightedScores:
    """Reference nodes around some targets, weighted: what `HopsLocal` is on one machine.

    All reference nodes count where they weigh anything; a target's own score among them, if it is `labelled`, does not.
    """

    def __init__(self, near: NearScores, weighting: Weighting, everyone: AllScores, *, labelled: bool = True) -> None:
        self.near, self.weighting, self.labelled = near, weighting, labelled
        self.everyone = everyone if weighting.pool or weighting.alike else None
        self.distinct = np.unique(near.score) if self.everyone is None else self.everyone.distinct
        self.own = np.searchsorted(self.distinct, near.own)  # after all of them where a target has none
        self.last = np.full(near.own.size, self.distinct.size - 1)
        #: One group for each target and hop.
        self.groups = np.arange(near.own.size * weighting.hops.size).reshape(near.own.size, weighting.hops.size)
        places = np.searchsorted(self.distinct, near.score)
        self.ladders = _Ladders(self.groups[near.of, near.hop - 1], places, self.distinct.size)

    def thresholds(self, cuts: Sequence[Cut]) -> LocalThresholds:
        """Return the thresholds of the targets at each cut."""
        values = np.stack([self._smallest(cut) for cut in cuts])
        return LocalThresholds(values, self._all.support(self.weighting), self._all.effective_size(self.weighting))

    def ranks(self) -> FloatArray:
        """Return the share of mass strictly below each target's own score."""
        return self._counts(self.own - 1).rank(self.weighting)

    def _up_to(self, places: IntArray) -> Sizes:
        """Count the reference nodes up to a place of each target, without its own score."""
        near = self.ladders.up_to(self.groups, places[:, None])
        others, same = np.zeros(places.size, dtype=np.int64), None
        if self.everyone is not None:
            itself = (self.own <= places) & self.labelled
            others = self.everyone.before[places + 1] - itself
            if self.everyone.alike is not None and self.weighting.alike:
                predicted = self.near.predicted
                same = self.everyone.alike.up_to(predicted, places) - (itself & (predicted >= 0))
        return Sizes(near, others, same)

    @cached_property
    def _all(self) -> Sizes:
        return self._up_to(self.last)

    def _counts(self, places: IntArray) -> Counts:
        below, total = self._up_to(places), self._all
        return Counts(below.near, total.near, below.others, total.others, below.same, total.same)

    def _smallest(self, cut: Cut) -> FloatArray:
        """Return the smallest score whose mass the cut accepts: halving for all targets at once."""
        total, _ = self._counts(self.last).masses(self.weighting)
        nothing = cut.accepts(np.zeros(total.size), 1.0 + total)
        enough = cut.accepts(total, 1.0 + total) & ~nothing
        low, high = np.zeros(total.size, dtype=np.int64), np.where(enough, self.last, 0)
        while (low < high).any():
            middle = (low + high) >> 1
            mass, _ = self._counts(middle).masses(self.weighting)
            reached = cut.accepts(mass, 1.0 + total)
            high = np.where(reached & (low < high), middle, high)
            low = np.where(reached | (low >= high), low, middle + 1)
        values = np.where(nothing, -np.inf, np.inf)
        values[enough] = self.distinct[low[enough]]
        return values
