"""What comes in: labels, ids and rows of several kinds, and errors that name the table and what came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.files import Reading
from napsets.files.reading import PLAIN
from napsets.methods.method import Method

from .cases import frame

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")]

SMALL = {
    "edges": {"source": [1, 2, 3], "target": [2, 3, 4]},
    "probabilities": {"node": [1, 2, 3, 4], "a": [0.5, 0.1, 0.7, 0.2], "b": [0.5, 0.9, 0.3, 0.8]},
    "labels": {"node": [1, 2, 3], "label": ["a", "b", "b"]},
}


def predict(spark: Any, plan: str, reading: Reading = PLAIN, **changes: Any) -> list[dict[str, Any]]:
    frames = {name: frame(spark, columns) for name, columns in (SMALL | changes).items()}
    sets = ns.spark.predict_sets(spark, **frames, method="split", alpha=0.4, plan=plan, reading=reading)
    return sets.orderBy("node").toArrow().to_pylist()


#: A changed table, and the message that both plans give.
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"edges": {"source": [1], "to": [2]}},
        r"`edges` must have the columns source, target; the DataFrame lacks target",
    ),
    ({"edges": {"source": [1], "target": [9]}}, r"every id must be in `probabilities`; .*9"),
    ({"edges": {"source": ["x"], "target": ["y"]}}, r"ids must be of one kind in all|every id must be in `prob"),
    ({"edges": {"source": [1.5], "target": [2.0]}}, r"must hold ids that are integers or strings"),
    ({"labels": {"node": [1, None], "label": ["a", "b"]}}, r"`labels` must have an id in each row"),
    ({"labels": {"node": [1, 1], "label": ["a", "b"]}}, r"`labels` must have each node once"),
    (
        {"labels": {"node": [1, 2], "label": ["a", "c"]}},
        r"`labels` must be class names .'a', 'b'. or class numbers",
    ),
    (
        {"labels": {"node": [1, 2], "label": ["a", "0"]}},
        r"`labels` must be class names .'a', 'b'. or class numbers from 0 to 1, not both; .*'0'",
    ),
    ({"labels": {"node": [1], "label": [""]}}, r"`labels` must have at least one label"),
    ({"labels": {"node": [7], "label": ["a"]}}, r"every id must be in `probabilities`; .*7"),
    ({"nodes": {"node": [4, 4]}}, r"`nodes` must have each node once"),
    ({"nodes": {"node": [4, 5]}}, r"every id must be in `probabilities`; .*5"),
    (
        {"probabilities": {"node": [1, 2, 3, 4, 4], "a": [1.0] * 5, "b": [0.0] * 5}},
        r"`probabilities` must have each node",
    ),
    (
        {"probabilities": {"node": [1, 2, 3, 4], "a": [1.0] * 4, "b": [0.0] * 3 + [0.5]}},
        r"sum to 1; .*node 4\) sums to 1.5",
    ),
    ({"probabilities": {"node": [1, 2, 3, 4], "a": [1.0, 1.0, 1.0, None], "b": [0.0] * 4}}, r"must have no empty cell"),
    ({"probabilities": {"node": [1, 2, 3, 4], "a": ["x"] * 4}}, r"`probabilities` must hold numbers in its column a"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[message[:60] for _, message in WRONG])
def test_wrong_tables_are_named_with_what_came(spark: Any, plan: str, changes: dict[str, Any], message: str) -> None:
    from pyspark.errors import PySparkException

    # Rows that a task meets first stop the task; the driver raises all others when it reads them.
    with pytest.raises((ns.InvalidInputError, PySparkException), match=message):
        predict(spark, plan, **changes)


def test_labels_are_names_or_numbers_and_come_back_as_they_came(spark: Any, plan: str) -> None:
    numbered = predict(spark, plan, labels={"node": [1, 2, 3], "label": [0, 1, 1]})
    (named,) = predict(spark, plan)
    assert numbered[0] == named
    rows = {"node": [1, 2, 3, 4], "probabilities": np.array([[0.5, 0.5], [0.1, 0.9], [0.7, 0.3], [0.2, 0.8]]).tolist()}
    (listed,) = predict(spark, plan, probabilities=rows, labels={"node": [1, 2, 3], "label": [0, 1, 1]})
    assert listed["threshold"] == named["threshold"]
    assert listed["labels"] == [{"a": 0, "b": 1}[name] for name in named["labels"]]


def test_columns_are_renamed_and_logits_become_probabilities(spark: Any, plan: str) -> None:
    (plain,) = predict(spark, plan)
    rows = {"id": [1, 2, 3, 4]} | {name: np.log(SMALL["probabilities"][name]) + 2.0 for name in "ab"}
    reading = Reading(logits=True, rename={"id": "node"})
    (changed,) = predict(spark, plan, reading, probabilities=rows)
    assert changed["labels"] == plain["labels"]
    assert changed["threshold"] == pytest.approx(plain["threshold"])


def test_what_no_plan_knows_is_refused_before_any_job() -> None:
    pytest.importorskip("pyspark")
    files = {"edges": "e", "probabilities": "p", "labels": "l", "output": "o"}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"method": "knaps"}, r"`method` must be one of split, .*did you mean 'naps'"),
        ({"method": 0.5}, "`method` must be a Method, or the name of one; got float"),
        ({"method": Method("cqr")}, "`score` must be one of labels on Spark; intervals of numbers"),
        ({"alpha": 2}, "`alpha` must"),
        ({"plan": "auto"}, "`plan` must be one of graph, joins"),
        ({"method": "by-class", "plan": "joins"}, "`plan` must be 'graph' for this method: joins know split and naps"),
        ({"p_values": True, "plan": "joins"}, "`plan` must be 'graph' for p-values"),
        ({"reading": Reading(skip_unknown=True), "plan": "joins"}, "`plan` must be 'graph' for unknown nodes to skip"),
        ({"output": "sets.csv"}, "`output` must be a folder of Parquet"),
    ]
    for options, message in refused:
        with pytest.raises(ns.InvalidInputError, match=message):
            ns.spark.predict_files(**(files | options))
    with pytest.raises(ns.InvalidInputError, match="`edges` must be a Spark DataFrame; got list"):
        ns.spark.predict_sets(None, [], [], [])  # type: ignore[arg-type]


def test_unknown_nodes_can_be_skipped(spark: Any) -> None:
    edges = {"source": [1, 2, 3, 9], "target": [2, 3, 4, 1]}
    assert predict(spark, "graph", Reading(skip_unknown=True), edges=edges) == predict(spark, "graph")


def test_joins_say_what_they_cost(spark: Any) -> None:
    with pytest.warns(ns.NapsetsWarning, match="the plan joins is slow: each hop shuffles every pair"):
        predict(spark, "joins")
