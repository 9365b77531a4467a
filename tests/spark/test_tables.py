"""What is wrong with a table is said before anything runs, where its schema tells."""

from __future__ import annotations

from typing import Any

import pytest

import napsets as ns
from napsets.methods.method import Method

pytestmark = pytest.mark.spark

GOOD = {
    "edges": "source long, target long",
    "probabilities": "node long, a double, b double",
    "labels": "node long, label string",
    "nodes": "node long",
}


def predict(spark: Any, settings: dict[str, Any] | None = None, **schemas: str) -> Any:
    frames = {name: spark.createDataFrame([], schema) for name, schema in (GOOD | schemas).items()}
    return ns.spark.predict_sets(spark, **frames, **(settings or {}))


@pytest.mark.parametrize(
    ("schemas", "message"),
    [
        ({"edges": "source long, to long"}, "`edges` must have the columns source, target; target is missing among"),
        ({"labels": "node long"}, "`labels` must have the columns node, label; label is missing"),
        ({"probabilities": "a double"}, "`probabilities` must have the column node; node is missing among a"),
        ({"probabilities": "node long"}, "`probabilities` must have one column per class besides node"),
        ({"probabilities": "node long, a string"}, "`probabilities` must have a column of numbers .* a is string"),
        ({"probabilities": "node long, probabilities string"}, "must have a list of numbers .* got string"),
        ({"labels": "node long, label date"}, "`labels` must have class names or indices .* got date"),
        ({"nodes": "node double"}, "`nodes.node` must hold integers or strings; got double"),
        ({"edges": "source string, target string"}, "must have ids of one type; edges.source is string"),
    ],
)
def test_wrong_columns_and_types_are_named(spark: Any, schemas: dict[str, str], message: str) -> None:
    with pytest.raises(ns.InvalidInputError, match=message):
        predict(spark, **schemas)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1.5}, "`alpha` must lie strictly between 0 and 1; got 1.5"),
        ({"hops": -1}, "`hops` must be at least 0; got -1"),
        ({"decay": "linear"}, "`decay` must be one of uniform, hyperbolic, geometric"),
        ({"seed": 0.5}, "`seed` must be an integer; got 0.5"),
        ({"score": "apss"}, "`score` must be one of aps, .*did you mean 'aps'"),
        ({"score": object()}, "`score` must be one of .* or have the methods matrix and at; got"),
        ({"pool": -1}, "`pool` must be"),
        ({"alike": float("nan")}, "`alike` must be"),
        ({"exact": "yes"}, "`exact` must be"),
        (
            {"score": ns.Diffused(), "plan": "joins"},
            "`plan` must be auto or graph-on-every-worker; the method looks at",
        ),
        ({"by": "class", "plan": "joins"}, "`plan` must be auto or graph-on-every-worker; the method looks at"),
        ({"by": "klass"}, "`by` must be one of class, clusters, group, degree, community"),
        ({"by": "class", "method": Method()}, "`by` must be left out where `method` is a Method"),
        ({"plan": "graph"}, "`plan` must be one of auto, graph-on-every-worker, joins"),
        ({"method": "naps", "exact": True}, "`exact` must be left out where a `method` is given"),
        ({"max_neighbourhood": 0}, "`max_neighbourhood` must be at least 1; got 0"),
        ({"batch_size": 10}, "`batch_size` must come with `checkpoint_dir`"),
        ({"class_names": ["a"]}, "`class_names` must have one name per class, 2; got 1"),
    ],
)
def test_wrong_settings_are_named(spark: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ns.InvalidInputError, match=message):
        predict(spark, settings)


def test_what_is_no_dataframe_is_refused(spark: Any) -> None:
    with pytest.raises(ns.InvalidInputError, match="`edges` must be a Spark DataFrame; got list"):
        ns.spark.predict_sets(spark, [(0, 1)], None, None)


def test_without_any_label_there_is_nothing_to_calibrate_on(spark: Any, tmp_path: Any) -> None:
    with pytest.raises(ns.InvalidInputError, match="`labels` must hold at least one known label; it holds none"):
        predict(spark, {"checkpoint_dir": str(tmp_path), "plan": "joins"})
    with pytest.raises(ns.InvalidInputError, match="`probabilities` must have at least one row; it has none"):
        predict(spark, {"checkpoint_dir": str(tmp_path)})


def test_a_missing_id_stops_the_job_with_the_name_of_the_column(spark: Any) -> None:
    from napsets.spark.session import plain_errors

    frames = {name: spark.createDataFrame([], schema) for name, schema in GOOD.items()}
    frames["nodes"] = spark.createDataFrame([(None,)], "node long")
    sets = ns.spark.predict_sets(spark, **frames, hops=0, plan="joins")
    with (
        pytest.raises(ns.InvalidInputError, match=r"^`nodes` must have an id in every row; the column node"),
        plain_errors(),
    ):
        sets.toArrow()


def test_adaptive_execution_is_missed_where_it_is_off(spark: Any) -> None:
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"  # for all tests
    with pytest.warns(ns.NapsetsWarning, match=r"spark\.sql\.adaptive\.enabled is off"):
        predict(spark, {"plan": "joins"})
