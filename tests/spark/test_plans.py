"""Both plans give the sets of one machine, bit for bit."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.files import Reading
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.methods import METHODS, make_method
from napsets.methods.method import Method
from napsets.predictions import PredictionSets
from napsets.scores import prediction_type

from .cases import Case, assert_same_bits, frame, in_id_order, random_case

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")]


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    """Graphs with hubs, isolated nodes, duplicate edges and tied scores."""
    return {
        "integers": random_case(30, nodes=90, edges=110, isolated=9),
        "text": random_case(31, nodes=90, edges=110, isolated=9, ids="string", dtype=np.float32),
        "directed": random_case(32, nodes=90, edges=150, isolated=9, directed=True),
    }


def check(spark: Any, case: Case, method: Any, alpha: float, plan: str) -> Any:
    reading = Reading(directed=case.directed)
    sets = ns.spark.predict_sets(spark, **case.tables(spark), method=method, alpha=alpha, plan=plan, reading=reading)
    calibrated = case.calibrated(method)
    assert_same_bits(sets.toArrow(), case, calibrated, alpha)
    return sets.schema["alpha"].metadata, calibrated


#: Every decay, pool, level, direction and fallback, and an own decay that only a pickle of functions can carry.
JOINED = [
    ("integers", Method("aps", Everyone()), 0.2),
    ("text", Method("thr", Everyone(), Exact(), 2), 0.2),
    ("text", Method("aps", Hops(2)), 0.3),
    ("integers", Method("raps", Hops(3, "hyperbolic", alike=6.0), Nominal(), 5, False), 0.3),
    ("integers", Method("aps", Hops(1), Nominal("global")), 0.2),
    ("text", Method("aps", Hops(0, pool=4.0, alike=30.0), Exact(0.4)), 0.1),
    ("text", Method("aps", Hops(2, "geometric", 5.0, 20.0), Exact(), 3), 0.25),
    ("directed", Method("aps", Hops(2, lambda k: 3.0 - k, direction="in"), Exact()), 0.3),
    ("directed", Method("saps", Hops(3, (1.0, 0.0, 0.5), direction="out")), 0.4),
    ("directed", Method("aps", Hops(2, "uniform", 10.0, direction="both")), 0.2),
]


#: Without the addresses of functions, which differ between processes.
NAMES = [re.sub(r" at 0x\w+", "", f"{name} {method.localiser} {method.level}") for name, method, _ in JOINED]

#: All methods of sets, except the one that needs the lengths of edges.
OF_SETS = [
    name for name in METHODS if prediction_type(make_method(name).score) is PredictionSets and name != "naps-lengths"
]


@pytest.mark.parametrize(("name", "method", "alpha"), JOINED, ids=NAMES)
def test_split_and_naps_in_all_settings(
    spark: Any, cases: dict[str, Case], name: str, method: Method, alpha: float, plan: str
) -> None:
    metadata, calibrated = check(spark, cases[name], method, alpha, plan)
    assert metadata.get("level") == (calibrated.level.level(alpha) if method.level.holds_out_labels else None)
    assert np.isfinite(calibrated.predict(cases[name].nodes, alpha).thresholds).any()


@pytest.mark.parametrize("name", OF_SETS)
def test_every_method_of_the_table_works_where_workers_hold_the_graph(
    spark: Any, cases: dict[str, Case], name: str
) -> None:
    case = in_id_order(cases["integers"])
    metadata, calibrated = check(spark, case, make_method(name), 0.2, "graph")
    assert metadata.get("choice") == (None if calibrated.choice is None else str(calibrated.choice))


def test_without_nodes_all_that_have_no_label_are_predicted(spark: Any, cases: dict[str, Case], plan: str) -> None:
    case = cases["integers"]
    rest = replace(case, nodes=np.setdiff1d(np.arange(case.labels.size), case.calibration))
    tables = case.tables(spark) | {"nodes": None}
    # A row without a label does not label its node.
    more = frame(spark, {"node": rest.ids[rest.nodes[:2]], "label": ["", "-1"]})
    tables["labels"] = tables["labels"].unionByName(more)
    sets = ns.spark.predict_sets(spark, **tables, method=ns.NAPS(hops=1), alpha=0.3, plan=plan)
    assert_same_bits(sets.toArrow(), rest, case.calibrated(make_method("naps", hops=1)), 0.3)


def test_too_few_labels_for_a_level_give_full_sets_and_no_level(spark: Any, cases: dict[str, Case], plan: str) -> None:
    case = replace(cases["integers"], calibration=cases["integers"].calibration[:6], frames={})
    metadata, calibrated = check(spark, case, Method("aps", Hops(1), Exact()), 0.05, plan)
    assert metadata == {"level": None}
    assert calibrated.level.level(0.05) == math.inf


def test_evidence_teaches_and_labels_set_the_level(spark: Any, cases: dict[str, Case], plan: str) -> None:
    case, method = cases["text"], Method("aps", Hops(2, pool=3.0), Exact())
    judges, taught = case.calibration[::2], case.calibration[1::2]
    tables = case.tables(spark) | {"nodes": None}
    # A node that is in both tables sets the level; its label there counts.
    both = np.append(taught, judges[:1])
    for name, nodes in (("labels", judges), ("evidence", both)):
        tables[name] = frame(spark, {"node": case.ids[nodes], "label": [f"class-{y}" for y in case.labels[nodes]]})
    sets = ns.spark.predict_sets(spark, **tables, method=method, alpha=0.2, plan=plan)
    graph = ns.Graph.from_edge_index(case.edge_index, case.labels.size)
    calibrated = method.calibrate_rows(graph, case.probabilities, case.labels, judges, case.ids, evidence=taught)
    rest = replace(case, nodes=np.setdiff1d(np.arange(case.labels.size), case.calibration))
    assert_same_bits(sets.toArrow(), rest, calibrated, 0.2)


def test_similar_nodes_are_evidence_where_workers_hold_the_graph(spark: Any, cases: dict[str, Case]) -> None:
    case = in_id_order(cases["integers"])
    rng = np.random.default_rng(4)
    features = rng.normal(size=(case.labels.size, 3)) + case.labels[:, None]
    turn = rng.permutation(case.labels.size)
    columns = {"node": case.ids[turn]} | {f"x{i}": features[turn, i] for i in range(3)}
    tables = case.tables(spark) | {"features": frame(spark, columns).repartition(3)}
    sets = ns.spark.predict_sets(spark, **tables, method="informed", alpha=0.2)
    method = make_method("informed")
    calibrated = method.calibrate_rows(
        case.graph, case.probabilities, case.labels, case.calibration, case.ids, features=features
    )
    assert_same_bits(sets.toArrow(), case, calibrated, 0.2)
    for method, plan, message in (("naps", "graph", "compares no nodes"), ("split", "joins", "plan joins")):
        with pytest.raises(ns.InvalidInputError, match=f"`features` must be left out .*{message}"):
            ns.spark.predict_sets(spark, **tables, method=method, plan=plan)


def test_p_values_come_by_the_names_of_classes(spark: Any, cases: dict[str, Case]) -> None:
    case = cases["integers"]
    sets = ns.spark.predict_sets(spark, **case.tables(spark), method="split", alpha=0.2, p_values=True)
    rows = {row["node"]: list(row["p_values"].values()) for row in sets.toArrow().to_pylist()}
    expected = case.calibrated(make_method("split")).p_values(case.nodes)
    assert [rows[node] for node in case.ids[case.nodes].tolist()] == expected.tolist()
