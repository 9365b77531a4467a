"""Batches, checkpoints, hubs in parts, and caps."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Exact
from napsets.localisers.neighbourhoods import hop_weights
from napsets.quantile import hop_quantile

from .cases import Case, assert_same_bits, random_case

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning")]

#: `place_of` of each id of the case below.
PLACES: dict[int, float] = {}


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(10, nodes=90, edges=140)


def job_of(case: Case, spark: Any, hops: int) -> Any:
    from napsets.spark.join_tasks import SparkSettings
    from napsets.spark.joins import JoinsJob
    from napsets.spark.tables import as_tables

    tables = as_tables(**case.tables(spark))
    chosen = SparkSettings(hop_weights("uniform", hops), ns.APS(), 0.2, 0, True, tables.class_names)
    return JoinsJob(tables, chosen, case.directed, None)


def distances(graph: ns.Graph) -> np.ndarray:
    from scipy.sparse.csgraph import shortest_path

    return shortest_path(graph.to_scipy(), unweighted=True)


def test_progress_is_a_line_where_it_is_true(spark: Any, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    how: dict[str, Any] = {"alpha": 0.2, "plan": "graph-on-every-worker"}
    ns.spark.predict_sets(spark, **case.tables(spark), **how, progress=False)
    assert "100 %" not in capsys.readouterr().err
    ns.spark.predict_sets(spark, **case.tables(spark), **how, progress=True)
    assert "(100 %)" in capsys.readouterr().err
    with pytest.raises(ns.InvalidInputError, match="`progress` must be True, False or a function"):
        ns.spark.predict_sets(spark, **case.tables(spark), **how, progress="yes")


class LostError(Exception):
    """What a driver that dies raises here."""


def lose_the_driver(done: int, total: int) -> None:
    if done == 2:
        raise LostError


def written_at(folder: Path) -> dict[str, int]:
    """When each finished table, and each file of numbers, was written."""
    tables = {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("*/*/_SUCCESS")}
    return tables | {path.stem: path.stat().st_mtime_ns for path in folder.glob("*/*.json")}


def test_batches_are_written_one_by_one_and_after_a_lost_driver_nothing_is_written_twice(
    spark: Any, case: Case, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []

    def run(progress: Any) -> Any:
        # Rows in another order, as files are read: they are the same table.
        first = progress is lose_the_driver
        tables = {name: table.orderBy(table.columns[0], ascending=first) for name, table in frames.items()}
        return ns.spark.predict_sets(
            spark, **tables, alpha=0.2, checkpoint_dir=str(tmp_path), batch_size=25, progress=progress, plan="joins"
        )

    frames = case.tables(spark)
    with pytest.raises(LostError):
        run(lose_the_driver)
    before = written_at(tmp_path)
    assert {"scores", "through", "last", "batches", "batch-00000", "batch-00001"} <= set(before)
    (folder,) = tmp_path.iterdir()
    (folder / "batch-00001" / "_SUCCESS").unlink()  # as if it had been lost while this one was written
    sets = run(lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    after = written_at(tmp_path)
    assert set(after) - set(before) == {"batch-00002"}
    assert {name for name in before if after[name] != before[name]} == {"batch-00001"}
    assert_same_bits(sets, case, case.expected(2, "uniform", 0.2, 0))


@dataclass(frozen=True)
class Mine(ns.THR):
    """A score of somebody else's making."""


def test_what_was_written_serves_no_other_rows_and_no_other_settings(spark: Any, case: Case) -> None:
    from napsets.spark.plans import contents_of

    frames = case.tables(spark)
    contents = contents_of(frames)
    fewer = contents_of({"edges": frames["edges"].limit(100), "labels": frames["labels"].limit(20)})
    jobs = {hops: job_of(case, spark, hops) for hops in (1, 2)}

    def name(tables: Any = None, hops: int = 2, settings: Any = None, **changed: Any) -> str:
        job = replace(jobs[hops], settings=replace(jobs[hops].settings, **settings or {}), **changed)
        return str(job.fingerprint(contents | (tables or {}), None))

    names = [
        name(),
        name(hops=1),
        name(cap=7),
        name(directed=True),
        name(settings={"alpha": 0.3}),
        name(settings={"seed": 1}),
        name(settings={"pool": 1.0}),
        name(settings={"alike": 1.0}),
        name(settings={"everyone": True}),
        name(settings={"level": Exact()}),
        name(settings={"level": Exact(0.4)}),
        name(settings={"score": ns.THR()}),
        name(settings={"score": ns.RAPS(penalty=0.1)}),
        name(settings={"score": Mine()}),
        name(settings={"score": Mine()}),
        name(tables={"edges": fewer["edges"]}),
        name(tables={"labels": fewer["labels"]}),
        name(tables={"nodes": None}),
    ]
    assert len(set(names)) == len(names)
    assert name() == names[0]


def test_without_a_size_the_batch_comes_from_the_cost_of_a_sample(
    spark: Any, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from napsets.spark import joins

    degrees, hop = case.graph.degrees, distances(case.graph)
    share = degrees[case.calibration].sum() / degrees.sum()  # of the last hop's edges, those to calibration nodes
    pairs = np.array([degrees[node] + share * degrees[hop[node] == 1].sum() for node in case.nodes])
    cost = pairs.mean() + 2 * pairs.std() / np.sqrt(pairs.size)
    monkeypatch.setattr(joins, "PAIRS_PER_TASK", 100)
    expected = joins.batch_count(pairs.size, cost, case.graph.num_edges, 2)

    def stop(done: int, total: int) -> None:
        raise LostError(total)

    with pytest.raises(LostError) as stopped:  # after the first: how many there are is known
        ns.spark.predict_sets(spark, **case.tables(spark), checkpoint_dir=str(tmp_path), progress=stop, plan="joins")
    assert expected > 1
    assert stopped.value.args == (expected,)


def test_a_batch_makes_at_least_as_many_pairs_as_edges_are_stored() -> None:
    pytest.importorskip("pyspark")
    from napsets.spark.joins import PAIRS_PER_TASK, batch_count

    assert batch_count(10**6, 1000.0, 10, 100) == -(-(10**9) // (100 * PAIRS_PER_TASK))
    assert batch_count(10**6, 1000.0, 10**9, 100) == 1
    assert batch_count(0, 0.0, 0, 100) == 1


def test_hubs_are_split_into_parts_of_bounded_work_and_nothing_changes(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as sf

    from napsets.spark import walk

    case = random_case(11, hubs=3)
    monkeypatch.setattr(walk, "_SMALLEST_PART", 4)
    monkeypatch.setattr(walk, "PAIRS_PER_PART", 100)
    job = job_of(case, spark, 2)
    walker = job.walker()
    parts = walker.adjacency.through.select("node", "part", sf.size("entries").alias("size")).toArrow().to_pydict()
    degree = dict(zip(case.ids.tolist(), case.graph.degrees.tolist(), strict=True))
    largest = max(degree.values())
    hub = [size for node, size in zip(parts["node"], parts["size"], strict=True) if degree[node] == largest]
    assert len(hub) > 5
    assert sum(hub) % largest == 0
    assert max(hub) * largest < largest**2 / 3
    assert all(
        size == degree[node] for node, size in zip(parts["node"], parts["size"], strict=True) if degree[node] <= 10
    )
    assert_same_bits(job.sets(job.thresholds(walker, job.tables.nodes)), case, case.expected(2, "uniform", 0.2, 0))


def test_a_cap_cuts_whole_walks_at_a_share_that_ignores_labels_and_is_reported(
    spark: Any, case: Case, tmp_path: Path
) -> None:
    cap = 20
    with pytest.warns(ns.NapsetsWarning, match=f"`max_neighbourhood` = {cap} has cut the neighbourhoods of"):
        table = ns.spark.predict_sets(
            spark, **case.tables(spark), alpha=0.4, max_neighbourhood=cap, checkpoint_dir=str(tmp_path), batch_size=100
        )
    rows = {row["node"]: row for row in table.toArrow().to_pylist()}
    expected = [capped_walk(spark, case, node, cap) for node in case.nodes.tolist()]
    assert {None, 1, 2} == {capped_at for *_, capped_at in expected}
    for node, (scores, hop, capped_at) in zip(case.ids[case.nodes].tolist(), expected, strict=True):
        assert rows[node]["capped_at"] == capped_at
        assert rows[node]["support"] == scores.size
        assert rows[node]["threshold"] == hop_quantile(scores, hop, np.ones(2), 0.4)


def capped_walk(spark: Any, case: Case, node: int, cap: int) -> tuple[np.ndarray, np.ndarray, int | None]:
    """Scores and hops that a capped walk of two hops keeps, and where it was cut: the slow way."""
    degrees, place = case.graph.degrees, places(spark, case)
    from_here = distances(case.graph)[node]
    y, u = case.labels, ns.node_uniforms(case.ids, 0)
    scores, hops = [], []
    capped_at = None
    for k in (1, 2):
        edges = degrees[from_here == k - 1].sum()
        share = min(1.0, cap / max(edges, 1))
        kept = np.intersect1d(np.flatnonzero((from_here == k) & (place < share)), case.calibration)
        scores.append(ns.APS().at(case.probabilities[kept], y[kept], u[kept]))
        hops.append(np.full(kept.size, k))
        if share < 1:
            capped_at = k
            break
    return np.concatenate(scores), np.concatenate(hops), capped_at


def places(spark: Any, case: Case) -> np.ndarray:
    if not PLACES:
        from pyspark.sql import functions as sf

        from napsets.spark.walk import place_of

        table = case.tables(spark)["probabilities"].select("node", place_of(sf.col("node")).alias("place")).toArrow()
        PLACES.update(zip(*table.to_pydict().values(), strict=True))
    return np.array([PLACES[node] for node in case.ids.tolist()])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="local-cluster mode is for Unix")
@pytest.mark.parametrize("plan", ["joins", "graph-on-every-worker"])
def test_an_executor_lost_on_the_way_costs_time_and_nothing_else(tmp_path: Path, plan: str) -> None:
    from .conftest import need_spark
    from .lost_executor import run_and_lose_one

    need_spark()
    case = random_case(12, nodes=150, edges=300)
    table, lost_after, batches = run_and_lose_one(case, tmp_path, plan)
    assert 0 < lost_after < batches
    assert_same_bits(table, case, case.expected(2, "hyperbolic", 0.2, 9))
