"""Spark gives what one machine gives, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.localisers.neighbourhoods import hop_weights

from .cases import Case, assert_same_bits, random_case

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning")]

COLUMNS = ["node", "labels", "size", "threshold", "support", "effective_size", "alpha", "prediction", "probability"]
NOTHING = {"threshold": np.inf, "support": 0, "effective_size": 0.0}


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(0)


@pytest.mark.parametrize(
    ("hops", "decay", "alpha"),
    [
        pytest.param(1, "uniform", 0.5, marks=pytest.mark.slow),
        (2, "hyperbolic", 0.25),
        pytest.param(3, "geometric", 0.3, marks=pytest.mark.slow),
    ],
)
def test_the_sets_are_those_of_one_machine_bit_for_bit(
    spark: Any, case: Case, plan: Any, hops: int, decay: Any, alpha: float
) -> None:
    how = {"hops": hops, "decay": decay, "alpha": alpha, "seed": 7, "plan": plan}
    table = ns.spark.predict_sets(spark, **case.tables(spark), **how)
    assert table.columns == COLUMNS
    expected = case.expected(hops, decay, alpha, 7)
    assert np.isfinite(expected.thresholds).any()
    assert_same_bits(table, case, expected)


@pytest.mark.parametrize(
    ("hops", "directed"),
    [
        (3, False),
        (2, True),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in [(1, False), (2, False), (1, True)]),
        pytest.param(3, True, marks=pytest.mark.slow),
    ],
)
def test_one_walk_serves_every_decay_and_alpha_with_the_same_bits(spark: Any, hops: int, directed: bool) -> None:
    """What the tasks met is brought here, and handed to the function that the tasks call."""
    case = random_case(4 + hops, directed=directed, edges=150)
    decays = np.stack([hop_weights(d, hops) for d in ("uniform", "hyperbolic", "geometric", [0.3, 0.0, 2.0][:hops])])
    alphas = (0.02, 0.1, 0.3, 0.5)
    from napsets.spark.join_tasks import SparkSettings, thresholds
    from napsets.spark.joins import JoinsJob
    from napsets.spark.tables import as_tables

    tables = as_tables(**case.tables(spark))
    settings = SparkSettings(decays[0], ns.APS(), 0.1, 3, True, tables.class_names)
    met = JoinsJob(tables, settings, directed, None).walker().walk(tables.nodes).pairs.toArrow().sort_by("target")
    scores = ns.APS().at(
        case.probabilities[case.calibration],
        case.labels[case.calibration],
        ns.node_uniforms(case.ids[case.calibration], 3),
    )
    index = ns.CalibrationIndex(case.graph, scores, case.calibration)
    expected = ns.neighbourhood_thresholds(index, case.nodes, decays, alphas)
    for d, weights in enumerate(decays):
        for a, alpha in enumerate(alphas):
            batches = thresholds(iter(met.to_batches(7)), replace(settings, weights=weights, alpha=alpha))
            rows = {row["node"]: row for batch in batches for row in batch.to_pylist()}
            results = [rows.get(node, NOTHING) for node in case.ids[case.nodes].tolist()]
            assert [row["threshold"] for row in results] == expected.values[d, a].tolist()
            assert [row["support"] for row in results] == expected.support[d].tolist()
            assert [row["effective_size"] for row in results] == expected.effective_size[d].tolist()


def test_string_ids_draw_the_same_numbers_as_on_one_machine(spark: Any, plan: Any) -> None:
    case = random_case(1, ids="string")
    table = ns.spark.predict_sets(spark, **case.tables(spark), alpha=0.2, seed=5, plan=plan)
    assert_same_bits(table, case, case.expected(2, "uniform", 0.2, 5))


@pytest.mark.parametrize("score", [ns.THR(), ns.RAPS(penalty=0.1, free_ranks=1)])
def test_other_scores_in_single_precision_and_without_empty_sets(spark: Any, plan: Any, score: Any) -> None:
    case = random_case(3, dtype=np.float32)
    settings = {"score": score, "allow_empty": False}
    table = ns.spark.predict_sets(spark, **case.tables(spark), hops=1, alpha=0.5, seed=2, plan=plan, **settings)
    assert_same_bits(table, case, case.expected(1, "uniform", 0.5, 2, **settings))


def test_without_hops_every_set_is_full(spark: Any, case: Case, plan: Any) -> None:
    table = ns.spark.predict_sets(spark, **case.tables(spark), hops=0, plan=plan)
    expected = case.expected(0, "uniform", 0.1, 0)
    assert expected.member.all()
    assert_same_bits(table, case, expected)


def test_joins_run_nothing_before_the_result_is_asked_for(spark: Any, case: Case) -> None:
    tables = case.tables(spark)
    bad = tables["probabilities"].withColumn("class-0", tables["probabilities"]["class-0"] + 1)
    spark.sparkContext.setJobGroup("lazy", "making the plan")
    ns.spark.predict_sets(spark, tables["edges"], bad, tables["labels"], tables["nodes"], plan="joins")
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("lazy")) == []


def test_by_default_all_nodes_without_a_label_are_predicted(spark: Any, case: Case, plan: Any) -> None:
    tables = {name: table for name, table in case.tables(spark).items() if name != "nodes"}
    rest = np.setdiff1d(np.arange(case.labels.size), case.calibration)
    unlabelled = Case(case.edge_index, case.probabilities, case.labels, case.calibration, case.ids, rest, case.directed)
    table = ns.spark.predict_sets(spark, **tables, hops=1, alpha=0.4, plan=plan)
    assert_same_bits(table, unlabelled, unlabelled.expected(1, "uniform", 0.4, 0))


def test_list_columns_and_class_numbers_stand_for_columns_and_names(spark: Any, case: Case, plan: Any) -> None:
    from pyspark.sql import functions as sf

    tables = dict(case.tables(spark))
    names = [name for name in tables["probabilities"].columns if name != "node"]
    tables["probabilities"] = tables["probabilities"].select(
        "node", sf.array(*(sf.col(f"`{name}`") for name in names)).alias("probabilities"), sf.lit("x").alias("split")
    )
    numbers = tables["labels"].withColumn("label", sf.substring("label", 7, 1).cast("int"))
    unknown = spark.createDataFrame([(10**6, -1), (10**6 + 1, None)], "node long, label int")
    tables["labels"] = numbers.unionByName(unknown)
    table = ns.spark.predict_sets(spark, **tables, hops=1, alpha=0.4, class_names=names, plan=plan)
    assert_same_bits(table, case, case.expected(1, "uniform", 0.4, 0))


def one_two_three(spark: Any, labels: list[str], **settings: Any) -> list[float]:
    """The thresholds of four nodes in a ring whose classes are called 1, 2 and 3."""
    from napsets.spark.session import plain_errors

    edges = spark.createDataFrame([(i, (i + 1) % 4) for i in range(4)], "source long, target long")
    rows = [(i, 0.2 + i / 16, 0.3 - i / 16, 0.5) for i in range(4)]
    probabilities = spark.createDataFrame(rows, "node long, `1` double, `2` double, `3` double")
    known = spark.createDataFrame(list(enumerate(labels)), "node long, label string")
    with plain_errors():
        sets = ns.spark.predict_sets(
            spark, edges, probabilities, known, probabilities.select("node"), hops=1, alpha=0.6, **settings
        )
        return [row["threshold"] for row in sets.orderBy("node").collect()]


def one_machine(indices: list[int]) -> list[float]:
    graph = ns.Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]], 4)
    p = np.array([(0.2 + i / 16, 0.3 - i / 16, 0.5) for i in range(4)])
    labels = np.array([*indices, *[-1] * (4 - len(indices))])
    naps = ns.NAPS(hops=1).calibrate(graph, p, labels, np.arange(len(indices)))
    return naps.predict(np.arange(4), alpha=0.6).thresholds.tolist()


@pytest.mark.parametrize(
    ("labels", "labels_are", "indices"),
    [(["1", "2.0", "1"], "auto", [0, 1, 0]), (["0", "2", "1"], "indices", [0, 2, 1])],
)
def test_labels_are_names_or_numbers(
    spark: Any, plan: Any, labels: list[str], labels_are: str, indices: list[int]
) -> None:
    assert one_two_three(spark, labels, labels_are=labels_are, plan=plan) == one_machine(indices)


def test_labels_that_could_be_either_ask_to_be_told(spark: Any, plan: Any) -> None:
    message = "not both; some are names of classes, but node 2 has '0', .* --labels-are names"
    with pytest.raises(ns.InvalidInputError, match=message):
        one_two_three(spark, ["1", "2", "0"], plan=plan)
    with pytest.raises(ns.InvalidInputError, match="`labels_are` must be one of auto, names, indices"):
        one_two_three(spark, ["1"], labels_are="numbers", plan=plan)


@pytest.fixture(params=["by Spark", "here"])
def with_kinds(request: pytest.FixtureRequest, spark: Any) -> Any:
    """Labels with what is known of all of them, as tasks get them: found by Spark, or in the driver."""
    import pyarrow as pa

    from napsets.spark import tables

    def make(labels: list[str]) -> Any:
        table = pa.table({"node": range(len(labels)), "label": labels})
        if request.param == "here":
            whole = tables.with_kinds_here(table, ("1", "2", "3"))
        else:
            whole = tables.with_kinds(spark.createDataFrame(table), ("1", "2", "3")).toArrow().sort_by("node")
        (batch,) = whole.combine_chunks().to_batches()
        return batch

    return make


@pytest.mark.parametrize(
    ("labels", "labels_are", "indices"),
    [
        (["1", "2", "1"], "auto", [0, 1, 0]),
        (["1", "2", "1"], "indices", [1, 2, 1]),
        (["1", "2", "3"], "names", [0, 1, 2]),
        (["0", "0", "0"], "auto", [0, 0, 0]),
    ],
)
def test_labels_are_names_if_all_are_and_numbers_if_none_is(
    with_kinds: Any, labels: list[str], labels_are: str, indices: list[int]
) -> None:
    from napsets.spark.tables import label_indices

    batch = with_kinds(labels)
    assert label_indices(batch, batch.column("node"), ("1", "2", "3"), labels_are).tolist() == indices


@pytest.mark.parametrize(
    ("labels", "labels_are", "message"),
    [
        (["1", "2", "0"], "auto", "not both; some are names of classes, but node 2 has '0', .* --labels-are names"),
        (["1", "2", "0"], "names", r"`labels` must be class names \(1, 2, 3\); node 2 has '0'"),
        (["1", "2", "3"], "indices", "`labels` must be class numbers from 0 to 2; node 2 has '3'"),
        (["1", "0", "x"], "auto", "must be class names .* or class numbers from 0 to 2; node 1 has '0'"),
    ],
)
def test_labels_of_which_some_are_names_and_some_are_not_are_refused(
    with_kinds: Any, labels: list[str], labels_are: str, message: str
) -> None:
    from napsets.spark.tables import label_indices

    batch = with_kinds(labels)
    with pytest.raises(ns.InvalidInputError, match=message):
        label_indices(batch, batch.column("node"), ("1", "2", "3"), labels_are)
