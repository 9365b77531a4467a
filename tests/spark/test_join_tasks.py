"""What the tasks do on Arrow batches, without Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import napsets as ns
from napsets.localisers.neighbourhoods import hop_weights
from napsets.quantile import hop_quantile

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from napsets.spark.join_tasks import SparkSettings, calibration_scores, prediction_sets, thresholds  # noqa: E402

SETTINGS = SparkSettings(hop_weights("hyperbolic", 3), ns.APS(), 0.2, 1, True, ("a", "b", "c"))


def pairs(rng: np.random.Generator, targets: list[object], largest: int) -> pa.Table:
    sizes = rng.integers(1, largest, len(targets))
    return pa.table(
        {
            "target": pa.array([t for t, size in zip(targets, sizes, strict=True) for _ in range(size)]),
            "hop": pa.array(rng.integers(1, 4, sizes.sum()), pa.int8()),
            "score": rng.integers(0, 20, sizes.sum()) / 20,
        }
    )


@pytest.mark.parametrize("rows_a_batch", [1, 2, 5, 64, 10_000])
@pytest.mark.parametrize("targets", [[3, 1, 2, 9, 4], ["x", "ÿ", "z", "", "x2"]])
def test_a_target_may_run_over_any_number_of_batches(rows_a_batch: int, targets: list[object]) -> None:
    table = pairs(np.random.default_rng(0), targets, 40)
    empty = table.slice(0, 0).to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    batches = [*empty, *table.to_batches(rows_a_batch), *empty]
    rows = [row for batch in thresholds(iter(batches), SETTINGS) for row in batch.to_pylist()]
    assert [row["node"] for row in rows] == targets
    for row in rows:
        own = table.filter(pa.compute.equal(table["target"], row["node"]))
        scores, hop = own["score"].to_numpy(), own["hop"].to_numpy()
        assert row["threshold"] == hop_quantile(scores, hop, SETTINGS.weights, 0.2)
        assert row["support"] == own.num_rows


def test_no_batches_give_no_thresholds() -> None:
    assert list(thresholds(iter([]), SETTINGS)) == []


def probabilities_batch(rows: list[list[float] | None], **columns: list[object]) -> pa.RecordBatch:
    arrays = {"node": pa.array(range(10, 10 + len(rows)), pa.int64()), "probabilities": pa.array(rows)}
    return pa.RecordBatch.from_pydict(arrays | {name: pa.array(values) for name, values in columns.items()})


def kinds(present: str, rows: int = 1) -> dict[str, list[object]]:
    """What is said of all labels of the table, in each row."""
    return {name: [name in present.split()] * rows for name in ("names", "others", "strange")}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0.5, 0.5], "`probabilities` must have rows that sum to 1; node 11 sums to 1.5"),
        ([0.5, 0.7, -0.2], "`probabilities` must not be negative; node 11, class 2 is -0.2"),
        ([0.5, None, 0.5], "`probabilities` must be finite; node 11 has"),
        ([0.5, 0.5], "`probabilities` must have 3 entries in every row; node 11 has 2"),
        (None, "`probabilities` must have a row for each node of `labels`; node 11 has none"),
    ],
)
def test_bad_probabilities_are_refused_with_the_name_of_the_node(row: list[float] | None, message: str) -> None:
    good = [0.2, 0.3, 0.5]
    batch = probabilities_batch([good, row, good], label=["a", "b", "c"], **kinds("names", 3))
    with pytest.raises(ns.InvalidInputError, match=message.replace("(", r"\(")):
        list(calibration_scores(iter([batch]), SETTINGS))


@pytest.mark.parametrize(
    ("label", "present"), [("z", "names others strange"), ("3", "others strange"), ("z", "others strange")]
)
def test_a_label_that_is_no_class_is_refused(label: str, present: str) -> None:
    batch = probabilities_batch([[0.2, 0.3, 0.5]], label=[label], **kinds(present))
    message = rf"`labels` must be class names \(a, b, c\) or class numbers from 0 to 2; node 10 has '{label}'"
    with pytest.raises(ns.InvalidInputError, match=message):
        list(calibration_scores(iter([batch]), SETTINGS))


@pytest.mark.parametrize(
    ("labels_are", "label", "message"),
    [
        ("names", "1", r"`labels` must be class names \(a, b, c\); node 10 has '1'"),
        ("indices", "a", "`labels` must be class numbers from 0 to 2; node 10 has 'a'"),
        ("auto", "1", "must be class names or class numbers, not both; .* node 10 has '1', .* --labels-are names or"),
    ],
)
def test_what_labels_are_can_be_said_and_a_mixture_asks_for_it(labels_are: str, label: str, message: str) -> None:
    batch = probabilities_batch([[0.2, 0.3, 0.5]], label=[label], **kinds("names others"))
    with pytest.raises(ns.InvalidInputError, match=message):
        list(calibration_scores(iter([batch]), replace(SETTINGS, labels_are=labels_are)))


def test_scores_are_those_of_the_core() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    y = np.arange(50) % 3
    batch = probabilities_batch(p.tolist(), label=[str(i) for i in y], **kinds("others", 50))
    (scored,) = calibration_scores(iter([batch]), SETTINGS)
    expected = ns.APS().at(p, y, ns.node_uniforms(np.arange(10, 60), 1))
    assert scored["score"].to_numpy().tobytes() == expected.tobytes()


def test_a_node_that_met_no_one_gets_the_full_set() -> None:
    nothing = {"threshold": pa.array([None], pa.float64()), "support": pa.array([None], pa.int64())}
    batch = probabilities_batch([[0.2, 0.3, 0.5]], effective_size=pa.array([None], pa.float64()), **nothing)
    (sets,) = prediction_sets(iter([batch]), SETTINGS)
    assert sets.to_pylist() == [
        {
            "node": 10,
            "labels": ["a", "b", "c"],
            "size": 3,
            "threshold": np.inf,
            "support": 0,
            "effective_size": 0.0,
            "alpha": 0.2,
            "prediction": "c",
            "probability": 0.5,
        }
    ]
