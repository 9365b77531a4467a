"""What runs on Arrow batches inside the tasks: scores, thresholds and sets, by the same functions as on one machine.

Each function here takes an iterator of record batches and yields record batches; none knows of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from napsets.checks.arguments import FloatArray, check_probabilities, check_scores
from napsets.errors import InvalidInputError
from napsets.files.prediction_columns import SETS, with_first_choices
from napsets.levels import FittedExact, FittedLevel, Level, Nominal, Rank
from napsets.localisers import Everyone, Reference
from napsets.localisers.hops import Weighting
from napsets.predictions import PredictionSets, members
from napsets.randomness import node_uniforms
from napsets.scores import RowScore
from napsets.spark.masses import AllScores, NearScores, Split, WeightedScores, signed_words

Batches = Iterator[pa.RecordBatch]


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
            yield pa.RecordBatch.from_arrays([pa.array(signed_words(_ids(batch.column("node"))))], ["word"])


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
    known = None if everyone is None else everyone.value
    level = _fitted(settings, known)
    cuts = level.cuts([settings.alpha])
    for table in _whole_targets(batches):
        targets, near = _near_scores(table)
        nodes = np.zeros(len(targets), dtype=np.int64) if known is None else known.nodes_of(near.own)
        if settings.everyone and known is not None:
            local = Everyone().fit(known.reference).thresholds(nodes, cuts)
        else:
            local = WeightedScores(near, settings.weighting, known).thresholds(cuts)
        chosen = level.thresholds(local, nodes, [settings.alpha])
        columns = [
            targets,
            pa.array(chosen.values[0]),
            pa.array(chosen.support, pa.int64()),
            pa.array(chosen.effective_size),
        ]
        yield pa.RecordBatch.from_arrays(columns, ["node", "threshold", "support", "effective_size"])


def ranks(batches: Batches, settings: SparkSettings, everyone: Any = None) -> Batches:
    """Turn the same rows of held-out nodes, with their scores at their labels at hop 0, into (share, score)."""
    known = None if everyone is None else everyone.value
    for table in _whole_targets(batches):
        _, near = _near_scores(table)
        if settings.everyone and known is not None:
            unlabelled = known.nodes_of(np.full(near.own.size, np.nan))
            shares = Everyone().fit(known.reference).ranks(unlabelled, near.own)
        else:
            shares = WeightedScores(near, settings.weighting, known).ranks()
        yield pa.RecordBatch.from_arrays([pa.array(shares), pa.array(near.own)], ["share", "score"])


class KnownRank(FittedExact):
    """An exact level of which nothing is known but T̂: one rank, or none where there were too few labels for it."""

    def quantile(self, alpha: float) -> Rank | None:
        """Return T̂."""
        return Rank(float(self.shares[0]), float(self.scores[0])) if self.shares.size else None


def _fitted(settings: SparkSettings, everyone: AllScores | None) -> FittedLevel:
    if not settings.level.keeps_apart:
        empty = Reference(np.empty(0, dtype=np.int64), np.empty(0), 0)
        return settings.level.fit(empty if everyone is None else everyone.reference, np.empty(0), np.empty(0))
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
        table = with_first_choices(sets.to_arrow(), p, np.arange(ids.size), settings.class_names)
        if settings.integer_labels:
            kind = table.schema.field("node").type
            table = table.cast(SETS.schema(kind, {}, integer_labels=True).remove_metadata())
        for extra in batch.schema.names:
            if extra not in (*table.column_names, "probabilities"):
                table = table.append_column(extra, batch.column(extra))
        yield from table.combine_chunks().to_batches()


def _ids(column: pa.Array) -> npt.NDArray[Any]:
    values = column.to_numpy(zero_copy_only=False)
    # An array of str is what both the stable hash and Arrow read; NumPy's own text would drop trailing zeros.
    return values.astype(object) if pa.types.is_string(column.type) else values


def checked_probabilities(batch: pa.RecordBatch, ids: Any, classes: int, asker: str) -> npt.NDArray[Any]:
    """Return the probabilities of a batch as a checked matrix; errors name the node."""
    column = batch.column("probabilities")
    if column.null_count:
        node = ids[int(column.is_null().to_numpy(zero_copy_only=False).argmax())]
        raise InvalidInputError(f"`probabilities` must have a row for each node of `{asker}`; node {node!s} has none")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != classes).any():
        i = int((lengths != classes).argmax())
        raise InvalidInputError(
            f"`probabilities` must have {classes} entries in every row; node {ids[i]!s} has {lengths[i]}"
        )
    matrix = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, classes)
    try:
        return check_probabilities(matrix)
    except InvalidInputError as error:
        # A row's number within a batch means nothing to users, so the message names its node.
        message = re.sub(r"\brow (\d+)", lambda row: f"node {ids[int(row[1])]!s}", str(error))
        raise InvalidInputError(message) from None


def with_kinds(labels: pa.Table, class_names: tuple[str, ...]) -> pa.Table:
    """Add to each label what is known of all, as `napsets.spark.tables.with_kinds` does in a plan."""
    column = labels.column("label")
    name, number = (
        pc.is_in(column, value_set=pa.array(known, pa.string()))
        for known in (class_names, [str(y) for y in range(len(class_names))])
    )
    other = pc.invert(name)
    kinds = {"names": name, "others": other, "strange": pc.and_(other, pc.invert(number))}
    for kind, those in kinds.items():
        some = pa.scalar(bool(pc.any(those, min_count=0).as_py()))
        labels = labels.append_column(kind, pa.repeat(some, labels.num_rows))
    return labels


def label_indices(batch: pa.RecordBatch, ids: Any, names: tuple[str, ...], labels_are: str) -> npt.NDArray[Any]:
    """Return class indices: by name where every label of the table is one, by number where none is."""
    column = batch.column("label")
    some_names, others, strange = (bool(batch.column(name)[0].as_py()) for name in ("names", "others", "strange"))
    by_number = labels_are == "indices" or (labels_are == "auto" and others and not some_names)
    known = [str(y) for y in range(len(names))] if by_number else names
    index = pc.index_in(column, value_set=pa.array(known, pa.string()))
    if index.null_count:
        i = int(index.is_null().to_numpy(zero_copy_only=False).argmax())
        stray = f"node {ids[i]!s} has {column[i].as_py()!r}"
        if labels_are == "auto" and some_names and not strange:
            raise InvalidInputError(
                f"`labels` must be class names or class numbers, not both; some are names of classes, but {stray}, "
                f"which can only be a number. Say which with --labels-are names or --labels-are indices (in Python: "
                f"labels_are=…), or write them the same way."
            )
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        kinds = {"names": f"class names ({shown})", "indices": f"class numbers from 0 to {len(names) - 1}"}
        wanted = kinds.get(labels_are, " or ".join(kinds.values()))
        raise InvalidInputError(f"`labels` must be {wanted}; {stray}")
    return index.to_numpy().astype(np.int64)
