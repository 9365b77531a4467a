"""Thresholds and ranks of many targets at once, without Spark, are those of the kernels to the bit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Exact, FittedExact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.localisers.neighbourhoods import hop_weights
from napsets.methods.calibrated import Calibrated
from napsets.methods.method import Method

from .cases import Case, random_case

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from napsets.randomness import split_seed  # noqa: E402
from napsets.spark.join_tasks import AllScores, SparkSettings, Split, ranks, thresholds, words  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning")

METHODS = [
    (Hops(2), Nominal()),
    (Hops(2, "hyperbolic", pool=7.5), Nominal()),
    (Hops(1, alike=5.0), Nominal()),
    (Hops(3, "geometric", pool=3.0, alike=11.0), Nominal()),
    (Hops(2, [0.0, 0.3], pool=0.7), Nominal()),
    (Hops(0, pool=20.0), Nominal()),
    (Hops(1), Nominal("global")),
    (Hops(2), Exact()),
    (Hops(2, "hyperbolic", pool=10.0), Exact()),
    (Hops(2, alike=6.0, pool=1.0), Exact(0.6)),
    (Hops(0, alike=6.0), Exact()),
    (Everyone(), Nominal()),
    (Everyone(), Exact()),
]


def rows_of(case: Case, nodes: np.ndarray, reference: np.ndarray, scores: np.ndarray, own: Any, hops: int) -> Any:
    """What a walk would meet, in the order of `nodes`, and what each says of itself."""
    from scipy.sparse.csgraph import shortest_path

    distance = shortest_path(case.graph.to_scipy(), unweighted=True)
    target, hop, score, predicted = [], [], [], []
    for i, node in enumerate(nodes.tolist()):
        away = distance[node][reference]
        near = np.flatnonzero((away >= 1) & (away <= hops))
        target += [i] * (near.size + 1)
        hop += [*away[near].astype(int).tolist(), 0]
        score += [*scores[near].tolist(), own[i]]
        predicted += [*[None] * near.size, int(case.probabilities[node].argmax())]
    columns = {"target": target, "hop": pa.array(hop, pa.int8()), "score": pa.array(score, pa.float64())}
    return pa.table(columns | {"predicted": pa.array(predicted, pa.int32())})


@pytest.mark.parametrize(("localiser", "level"), METHODS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_thresholds_ranks_and_sizes_are_those_of_one_machine(localiser: Any, level: Any, seed: int) -> None:
    nodes = 300 if seed == 2 else 90  # beyond 256 nodes one machine takes its compiled kernels
    case = random_case(100 + seed, nodes=nodes, edges=70 + 40 * seed)
    if seed == 3:
        case.calibration = case.calibration[:6]
    calibrated = Method(ns.THR(), localiser, level).calibrate_rows(
        case.graph, case.probabilities, case.labels, case.calibration, case.ids
    )
    for alpha in (0.05, 0.2, 0.5):
        compare(case, calibrated, alpha, rows_a_batch=(1, 7, 10**6)[seed % 3])


def compare(case: Case, calibrated: Calibrated, alpha: float, rows_a_batch: int) -> None:
    method, reference = calibrated.method, calibrated.scored.reference
    localiser: Any = method.localiser
    everyone = isinstance(localiser, Everyone)
    hops = 0 if everyone else localiser.hops
    settings = SparkSettings(
        np.empty(0) if everyone else hop_weights(localiser.decay, hops),
        method.score,
        alpha,
        0,
        True,
        ("a", "b", "c", "d"),
        pool=0.0 if everyone else localiser.pool,
        alike=0.0 if everyone else localiser.alike,
        everyone=everyone,
        level=method.level,
    )
    shared = None
    if settings.far:
        shared = SimpleNamespace(value=AllScores(reference.scores, reference.predicted[reference.nodes]))
    if isinstance(calibrated.level, FittedExact):
        apart, own = calibrated.scored.level_nodes, calibrated.scored.level_scores
        met = rows_of(case, apart, reference.nodes, reference.scores, own.tolist(), hops)
        ranked = pa.Table.from_batches(ranks(iter(met.to_batches(rows_a_batch)), settings, shared))
        assert ranked["share"].to_numpy().tobytes() == calibrated.local.ranks(apart, own).tobytes()
        assert ranked["score"].to_numpy().tobytes() == own.tobytes()
        object.__setattr__(settings, "rank", calibrated.level.quantile(alpha))
    by_node = dict(zip(reference.nodes.tolist(), reference.scores.tolist(), strict=True))
    mine = [by_node.get(node) for node in case.nodes.tolist()]
    met = rows_of(case, case.nodes, reference.nodes, reference.scores, mine, hops)
    table = pa.Table.from_batches(thresholds(iter(met.to_batches(rows_a_batch)), settings, shared))
    expected = calibrated.predict(case.nodes, alpha)
    assert table["node"].to_pylist() == list(range(case.nodes.size))
    assert table["threshold"].to_numpy().tobytes() == expected.thresholds.tobytes()
    assert table["support"].to_pylist() == expected.support.tolist()
    assert table["effective_size"].to_numpy().tobytes() == expected.effective_size.tobytes()


@pytest.mark.parametrize("ids", ["integer", "string"])
def test_the_reference_part_is_that_of_one_machine(ids: str) -> None:
    from napsets.methods import CalibrationData

    case = random_case(7, ids=ids)
    named = case.ids[case.calibration]
    data = CalibrationData.check(None, case.probabilities, case.labels, case.calibration, ids=case.ids)
    for seed in (0, 1, 2**64 - 1):
        size = Exact().reference_size(case.calibration.size)
        reference, _ = data.parts(size, seed)
        parts = (pa.record_batch({"node": pa.array(part.tolist())}) for part in np.array_split(named, 5))
        total = sum(word for batch in words(parts) for word in batch.column("word").to_pylist())
        drawn = split_seed(seed, total)
        ordered = sorted(zip(ns.node_uniforms(named, drawn).tolist(), named.tolist(), strict=True))
        split = Split(drawn, *ordered[size - 1], case.calibration.size - size)
        chosen = np.array(named.tolist(), dtype=object if ids == "string" else None)
        assert case.calibration[~split.keeps_apart(chosen)].tolist() == reference.tolist()


def test_two_nodes_with_the_same_number_are_told_apart_by_their_names() -> None:
    key = float(ns.node_uniforms([5], 3)[0])
    assert Split(3, key, 4, 1).keeps_apart(np.array([5])).tolist() == [True]
    assert Split(3, key, 5, 1).keeps_apart(np.array([5])).tolist() == [False]
