"""Pools, those alike, exact levels and the methods of the table: Spark gives what one machine gives, bit for bit."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.methods.method import Method
from napsets.methods.table import make_method

from .cases import Case, assert_same_bits, random_case
from .lost_executor import Rows
from .test_batches import LostError, lose_the_driver, written_at
from .test_files import write

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning")]


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(30, nodes=90, edges=110, isolated=9)


def one_machine(case: Case, method: Any, alpha: float) -> ns.PredictionSets:
    calibrated = method.calibrate_rows(case.graph, case.probabilities, case.labels, case.calibration, case.ids)
    return calibrated.predict(case.nodes, alpha)


def in_parts(case: Case, spark: Any, parts: int = 3) -> dict[str, Any]:
    """The tables in several partitions."""
    return {name: table.repartition(parts) for name, table in case.tables(spark).items()}


@pytest.mark.parametrize(
    ("alpha", "settings"),
    [
        (0.2, {"hops": 1, "pool": 10.0}),
        (0.3, {"decay": "hyperbolic", "alike": 6.0, "score": "thr", "allow_empty": False}),
        (0.1, {"hops": 0, "pool": 4.0, "alike": 30.0}),
    ],
)
def test_pools_and_those_alike(spark: Any, case: Case, plan: Any, alpha: float, settings: dict[str, Any]) -> None:
    table = ns.spark.predict_sets(spark, **in_parts(case, spark), alpha=alpha, seed=7, plan=plan, **settings)
    expected = case.expected(settings.get("hops", 2), settings.get("decay", "uniform"), alpha, 7, **without(settings))
    assert np.isfinite(expected.thresholds).any()
    assert_same_bits(table, case, expected)


def without(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in ("hops", "decay")}


@pytest.mark.parametrize(
    ("ids", "settings"),
    [
        ("integer", {"hops": 1, "score": ns.THR()}),
        ("string", {"hops": 2, "decay": "geometric", "pool": 5.0, "alike": 20.0}),
    ],
)
def test_an_exact_level_and_what_is_told_of_it(spark: Any, plan: Any, ids: str, settings: dict[str, Any]) -> None:
    case = random_case(31, nodes=90, edges=110, isolated=9, ids=ids)
    how = {"alpha": 0.25, "seed": 3, "exact": True, "plan": plan}
    table = ns.spark.predict_sets(spark, **in_parts(case, spark), **how, **settings)
    decay = settings.get("decay", "uniform")
    expected = case.expected(settings["hops"], decay, 0.25, 3, exact=True, **without(settings))
    assert table.schema["alpha"].metadata == {"level": expected.level}
    assert_same_bits(table, case, expected)


def test_too_few_labels_for_a_level_give_full_sets_and_no_level(spark: Any, case: Case, plan: Any) -> None:
    few = replace(case, calibration=case.calibration[:6], frames={})
    table = ns.spark.predict_sets(spark, **few.tables(spark), hops=1, alpha=0.05, exact=True, plan=plan)
    expected = few.expected(1, "uniform", 0.05, 0, exact=True)
    assert expected.level == math.inf
    assert table.schema["alpha"].metadata == {"level": None}
    assert_same_bits(table, few, expected)


def test_one_label_is_too_few_to_keep_any_apart(spark: Any, case: Case, plan: Any) -> None:
    one = replace(case, calibration=case.calibration[:1], frames={})
    with pytest.raises(ns.InvalidInputError, match=r"`labels` must hold at least two known labels .* it holds 1"):
        ns.spark.predict_sets(spark, **one.tables(spark), exact=True, plan=plan)
    none = {**one.tables(spark), "labels": one.tables(spark)["labels"].limit(0)}
    with pytest.raises(ns.InvalidInputError, match="`labels` must hold at least one known label"):
        ns.spark.predict_sets(spark, **none, pool=1.0, plan=plan)


def test_after_a_lost_driver_an_exact_level_is_not_made_again(spark: Any, case: Case, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    apart = case.calibration.size - Exact().reference_size(case.calibration.size)
    level, batches = -(-apart // 24), -(-case.nodes.size // 24)
    assert level == 2  # so that the driver is lost when all are ranked, and the level is not known yet

    def run(progress: Any) -> Any:
        return ns.spark.predict_sets(
            spark,
            **case.tables(spark),
            hops=1,
            pool=3.0,
            exact=True,
            alpha=0.2,
            checkpoint_dir=str(tmp_path),
            batch_size=24,
            progress=progress,
            plan="joins",
        )

    with pytest.raises(LostError):
        run(lose_the_driver)
    before = written_at(tmp_path)
    assert {"split", "scores", "level-batches", "batches", "level-00000", "level-00001"} <= set(before)
    sets = run(lambda done, total: seen.append((done, total)))
    after = written_at(tmp_path)
    assert all(after[name] == at for name, at in before.items())
    assert set(after) - set(before) == {"rank", *(f"batch-{i:05d}" for i in range(batches))}
    assert seen == [(i + 1, level + batches) for i in range(level + batches)]
    assert_same_bits(sets, case, case.expected(1, "uniform", 0.2, 0, pool=3.0, exact=True))
    seen.clear()
    run(lambda done, total: seen.append((done, total)))
    assert written_at(tmp_path) == after
    assert seen == [(level + i + 1, level + batches) for i in range(batches)]  # the level is there


def test_a_cap_cuts_neighbours_and_not_the_pool(spark: Any, case: Case) -> None:
    table = ns.spark.predict_sets(spark, **case.tables(spark), alpha=0.2, pool=5.0, max_neighbourhood=20)
    rows = table.toArrow().to_pylist()
    assert {row["capped_at"] for row in rows} == {None, 1, 2}
    expected = case.expected(2, "uniform", 0.2, 0, pool=5.0)
    assert sorted(row["support"] for row in rows) == sorted(expected.support.tolist())
    whole = {row["node"]: row["threshold"] for row in rows if row["capped_at"] is None}
    one = dict(zip(case.ids[case.nodes].tolist(), expected.thresholds.tolist(), strict=True))
    assert whole == {node: one[node] for node in whole}


# -- by name, from files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["naps-exact", *(pytest.param(n, marks=pytest.mark.slow) for n in ("split", "naps-h"))]
)
def test_methods_of_the_table_from_files(spark: Any, case: Case, tmp_path: Path, name: str) -> None:
    import pyarrow.parquet as pq

    from napsets.files import read_sets

    paths = write(case, tmp_path / "in", ".parquet")
    output = tmp_path / "sets.parquet"
    how = {"hops": 1, "alpha": 0.3, "seed": 5, "score": "raps", "plan": "joins", "batch_size": 1000}
    ns.spark.predict_files(**paths, output=str(output), method=name, **how)
    expected = one_machine(case, make_method(name, hops=1, seed=5, score="raps"), 0.3)
    assert_same_bits(Rows(pq.read_table(output)), case, expected)
    about = json.loads((output / "_napsets.json").read_text())
    assert about["method"] == name
    assert about["score"] == "raps"
    assert about.get("exact_level") == expected.level
    assert about.get("decay") == {"naps-h": "hyperbolic", "naps-exact": "uniform"}.get(name)
    assert about.get("pool") == {"naps-h": 0.0, "naps-exact": 10.0}.get(name)
    assert read_sets(output).metadata["alpha"] == 0.3


@pytest.mark.parametrize(
    "method", [Method(ns.THR(), Everyone(), Exact(0.5)), Method(ns.APS(), Hops(1), Nominal("global"))], ids=str
)
def test_any_method_that_is_everyone_or_hops(spark: Any, case: Case, method: Method) -> None:
    from napsets.spark.predict import Options, predict

    result = predict(spark, case.tables(spark), method, Options(alpha=0.2))
    expected = one_machine(case, method, 0.2)
    assert result.level == expected.level
    assert_same_bits(result.sets, case, expected)


def test_one_threshold_for_all_unlabelled_nodes_needs_no_join_of_theirs(spark: Any, case: Case) -> None:
    from napsets.spark.predict import Options, predict

    rest = replace(case, nodes=np.setdiff1d(np.arange(case.labels.size), case.calibration), frames={})
    inputs = {**case.tables(spark), "nodes": None}
    sets = predict(spark, inputs, make_method("split"), Options(alpha=0.2)).sets
    assert_same_bits(sets, rest, one_machine(rest, make_method("split"), 0.2))


def test_other_methods_are_refused_before_spark_is_asked() -> None:
    with pytest.raises(ns.InvalidInputError, match=r"`method` must be one of split, .*did you mean 'naps'"):
        ns.spark.predict_files(edges="e", probabilities="p", labels="l", output="o", method="knaps")
    with pytest.raises(ns.InvalidInputError, match="`method` must be a Method, or the name of one; got float"):
        ns.spark.predict_files(edges="e", probabilities="p", labels="l", output="o", method=0.5)  # type: ignore[arg-type]


def test_a_method_says_at_which_level() -> None:
    with pytest.raises(ns.InvalidInputError, match="`exact` must be left out where a `method` is given"):
        ns.spark.predict_files(edges="e", probabilities="p", labels="l", output="o", method="naps", exact=True)


def test_joins_know_no_groups_and_spark_knows_no_intervals() -> None:
    pytest.importorskip("pyspark")
    from napsets.spark.plans import check_method, joins_know

    assert joins_know(make_method("naps-exact"))
    assert not joins_know(make_method("by-class"))
    with pytest.raises(ns.InvalidInputError, match="`score` must be one of labels on Spark; intervals of numbers"):
        check_method(Method("cqr"))
