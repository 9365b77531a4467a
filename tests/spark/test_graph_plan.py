"""The graph on every worker: all methods, any ids, the bits of one machine; and what is left after a fault."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Nominal
from napsets.localisers import Hops
from napsets.methods.method import Method
from napsets.methods.table import METHODS, make_method

from .cases import Case, assert_same_bits, random_case
from .lost_executor import Rows
from .test_files import write

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning")]

PLAN = "graph-on-every-worker"


def one_machine(case: Case, method: Any, alpha: float) -> tuple[ns.PredictionSets, np.ndarray]:
    """The sets, and the probabilities that they were made of."""
    calibrated = method.calibrate_rows(case.graph, case.probabilities, case.labels, case.calibration, case.ids)
    return calibrated.predict(case.nodes, alpha), calibrated.score.probabilities[case.nodes]


def by_id(case: Case) -> Case:
    """The same with nodes numbered in the order of their ids, as tables without an order are."""
    order = np.argsort(case.ids)
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    return Case(
        number[case.edge_index],
        case.probabilities[order],
        case.labels[order],
        np.sort(number[case.calibration]),
        case.ids[order],
        np.sort(number[case.nodes]),
        case.directed,
    )


#: Similar nodes are found by features, path lengths by lengths, which Spark is not given; two methods need an extra.
GIVEN = {"snaps": False, "naps-lengths": False, "by-community": find_spec("sknetwork"), "cf-gnn": find_spec("torch")}
#: One of each kind; the others differ from these in nothing that Spark sees.
KINDS = ("split", "naps", "naps-exact", "daps", "informed", "by-class", "rlcp", "auto")
NAMES = [
    pytest.param(name, marks=() if name in KINDS else [pytest.mark.slow, *[pytest.mark.gnn] * (name == "cf-gnn")])
    for name in METHODS
    if GIVEN.get(name, True)
]


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
@pytest.mark.usefixtures("in_tasks")
@pytest.mark.parametrize("name", NAMES)
def test_every_method_of_the_table_gives_the_bits_of_one_machine(
    spark: Any, case: Case, tmp_path: Path, name: str
) -> None:
    ordered = by_id(case)
    tables = {key: table.repartition(3) for key, table in case.tables(spark).items()}
    settings = {"alpha": 0.2, "seed": 3, "hops": 2}
    sets = ns.spark.predict_sets(spark, **tables, method=name, plan=PLAN, checkpoint_dir=str(tmp_path), **settings)
    expected, outputs = one_machine(ordered, make_method(name, **settings), 0.2)
    assert np.isfinite(expected.thresholds).any()
    assert_same_bits(sets, ordered, expected, outputs)
    if expected.level is not None:
        assert sets.schema["alpha"].metadata == {"level": expected.level}


@pytest.mark.parametrize(
    ("ids", "directed", "dtype", "method"),
    [
        ("string", False, np.float32, Method(ns.RAPS(), Hops(3, "geometric", pool=4.0, alike=9.0), Nominal("global"))),
        ("integer", True, np.float64, Method(ns.THR(), Hops(2, lambda k: 1.5 / k), seed=4, allow_empty=False)),
    ],
    ids=["strings", "directed"],
)
@pytest.mark.usefixtures("in_tasks")
def test_ids_of_any_type_one_way_edges_and_any_settings(
    spark: Any, tmp_path: Path, ids: str, directed: bool, dtype: Any, method: Method
) -> None:
    case = random_case(41, nodes=90, edges=140, ids=ids, directed=directed, dtype=dtype)
    from napsets.spark.predict import Options, predict

    options = Options(0.3, directed=directed, plan=PLAN, checkpoint_dir=str(tmp_path), batch_size=17)
    result = predict(spark, case.tables(spark), method, options)
    assert (result.plan, len(result.files)) == (PLAN, -(-case.nodes.size // 17))
    assert_same_bits(result.sets, case, *one_machine(case, method, 0.3))


@pytest.mark.parametrize(("direction", "plan"), [("in", PLAN), ("both", "joins"), ("in", "joins")])
def test_hops_against_the_edges_and_both_ways(spark: Any, tmp_path: Path, direction: Any, plan: Any) -> None:
    case = random_case(45, nodes=90, edges=140, directed=True)
    how = {"alpha": 0.3, "hops": 2, "directed": True, "direction": direction, "plan": plan}
    how |= {"checkpoint_dir": str(tmp_path)} if plan == PLAN else {}
    sets = ns.spark.predict_sets(spark, **case.tables(spark), **how)
    assert_same_bits(sets, case, *one_machine(case, Method(ns.APS(), Hops(2, direction=direction)), 0.3))


def test_what_was_written_for_one_direction_is_not_taken_for_another(spark: Any) -> None:
    from napsets.spark.plans import fingerprint_of
    from napsets.spark.predict import Options, _job
    from napsets.spark.tables import as_tables

    tables = as_tables(**random_case(45, nodes=90, edges=140, directed=True).tables(spark))
    for decay in ("uniform", lambda k: 1.0 / k):
        methods = [Method(ns.APS(), Hops(2, decay, direction=direction)) for direction in ("out", "in", "both")]
        jobs = [_job(spark, tables, method, Options(0.1, directed=True)) for method in methods]
        assert len({job.fingerprint({}, None) for job in jobs}) == 3
        assert len({fingerprint_of({}, {"method": method}) for method in methods}) == 3


@pytest.mark.parametrize(
    ("suffix", "name"), [(".parquet", "auto"), pytest.param(".csv", "informed", marks=pytest.mark.slow)]
)
def test_from_files_nodes_are_numbered_as_one_machine_numbers_them(
    spark: Any, case: Case, tmp_path: Path, suffix: str, name: str
) -> None:
    """Sums over neighbours are taken in the order of rows: two parts of Parquet, or one file of CSV."""
    import pyarrow.parquet as pq

    from napsets.files import read_inputs, read_sets

    paths = write(case, tmp_path / "in", suffix)
    output = tmp_path / "out" / "sets [2].parquet"  # which is no pattern
    output.parent.mkdir()
    summary = ns.spark.predict_files(**paths, output=str(output), method=name, alpha=0.2, seed=1)
    inputs = read_inputs(*(paths[name] for name in ("edges", "probabilities", "labels", "nodes") if name in paths))
    assert inputs.ids.take(np.arange(9)).to_pylist() == case.ids[:9].tolist()
    calibrated = inputs.calibrate(make_method(name, alpha=0.2, seed=1))
    expected = calibrated.predict(case.nodes, 0.2)
    assert_same_bits(Rows(pq.read_table(output)), case, expected, calibrated.score.probabilities[case.nodes])
    about = json.loads((output / "_napsets.json").read_text())
    assert about["plan"] == PLAN
    assert about["exact_level"] == expected.level
    assert about.get("choice") == (None if calibrated.choice is None else str(calibrated.choice))
    assert summary.mean_size == pytest.approx(expected.sizes.mean())
    assert read_sets(output).class_names == [f"class-{y}" for y in range(4)]
    assert [path.name for path in output.parent.iterdir()] == ["sets [2].parquet"]


@pytest.mark.usefixtures("in_tasks")
def test_nodes_of_edges_alone_are_walked_through(spark: Any, tmp_path: Path) -> None:
    case = random_case(42, nodes=90, edges=140, ids="string")
    nodes = np.union1d(case.calibration, case.nodes)
    nodes = nodes[nodes % 5 > 0]
    few = replace(case, calibration=np.intersect1d(case.calibration, nodes), nodes=np.intersect1d(case.nodes, nodes))
    tables = dict(few.tables(spark))
    names = few.ids[nodes].tolist()
    tables["probabilities"] = tables["probabilities"].where(tables["probabilities"]["node"].isin(names))
    sets = ns.spark.predict_sets(spark, **tables, alpha=0.3, plan=PLAN, checkpoint_dir=str(tmp_path))
    assert_same_bits(sets, few, few.expected(2, "uniform", 0.3, 0))
    with pytest.raises(
        ns.InvalidInputError, match="a row for each node of `edges` for methods that look at other nodes"
    ):
        ns.spark.predict_sets(spark, **tables, method="informed", checkpoint_dir=str(tmp_path))


def test_by_default_all_nodes_without_a_label_are_predicted(spark: Any, case: Case, tmp_path: Path) -> None:
    rest = np.setdiff1d(np.arange(case.labels.size), case.calibration)
    tables = {name: table for name, table in case.tables(spark).items() if name != "nodes"}
    sets = ns.spark.predict_sets(spark, **tables, hops=1, alpha=0.4, checkpoint_dir=str(tmp_path))
    unlabelled = replace(case, nodes=rest, frames={})
    assert_same_bits(sets, unlabelled, unlabelled.expected(1, "uniform", 0.4, 0))


# -- the default ---------------------------------------------------------------------------------------------------


def jobs_of(spark: Any, group: str) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.mark.filterwarnings("error:joins are:napsets.NapsetsWarning")
@pytest.mark.parametrize("gathered", [True, False])
def test_by_default_the_graph_is_on_every_worker_and_nobody_names_a_folder(
    spark: Any, case: Case, request: pytest.FixtureRequest, gathered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    if not gathered:
        request.getfixturevalue("in_tasks")
    caplog.set_level("INFO", "napsets")
    sets = ns.spark.predict_sets(spark, **case.tables(spark), alpha=0.2, pool=20)
    assert f"plan {PLAN}" in caplog.text
    assert_same_bits(sets, case, case.expected(2, "uniform", 0.2, 0, pool=20))
    store = Path(sets.inputFiles()[0].removeprefix("file://")).parents[1]
    assert store.is_relative_to(spark.sparkContext._temp_dir)  # which goes when the session ends
    assert not list(store.glob("*.npy"))


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
@pytest.mark.parametrize("name", ["daps", "auto"])
def test_methods_that_look_at_other_nodes_need_no_folder_either(spark: Any, case: Case, name: str) -> None:
    ordered, settings = by_id(case), {"alpha": 0.2, "seed": 3}
    sets = ns.spark.predict_sets(spark, **case.tables(spark), method=name, **settings)
    assert_same_bits(sets, ordered, *one_machine(ordered, make_method(name, **settings), 0.2))


def test_a_small_job_reads_each_table_once_to_count_and_once_to_gather_and_starts_no_worker(
    spark: Any, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = case.tables(spark)
    # The two ways in which Python workers get something to do.
    monkeypatch.setattr(type(tables["edges"]), "mapInArrow", lambda *_: pytest.fail("a worker was started"))
    monkeypatch.setattr(type(spark.sparkContext), "parallelize", lambda *_: pytest.fail("a worker was started"))
    spark.sparkContext.setJobGroup("small", "a small job")
    ns.spark.predict_sets(spark, **tables, alpha=0.2, pool=20)
    # Two aggregates may be a stage or a job each; then one job for each of the four tables.
    assert jobs_of(spark, "small") <= 7
    spark.sparkContext.setJobGroup("other", "all others")


def test_joins_say_what_they_cost(spark: Any, case: Case) -> None:
    with pytest.warns(ns.NapsetsWarning, match=r"slow plan: 10⁷ edges took them \d+ s .* because they were asked for"):
        ns.spark.predict_sets(spark, **case.tables(spark), hops=0, plan="joins")
    with pytest.warns(ns.NapsetsWarning, match=r"because `max_neighbourhood` cuts joins only"):
        ns.spark.predict_sets(spark, **case.tables(spark), hops=0, max_neighbourhood=5)


def test_nodes_without_probabilities_are_walked_through_in_the_driver_too(spark: Any) -> None:
    case = random_case(42, nodes=90, edges=140, ids="string")
    nodes = np.union1d(case.calibration, case.nodes)
    nodes = nodes[nodes % 5 > 0]
    few = replace(case, calibration=np.intersect1d(case.calibration, nodes), nodes=np.intersect1d(case.nodes, nodes))
    tables = dict(few.tables(spark))
    tables["probabilities"] = tables["probabilities"].where(
        tables["probabilities"]["node"].isin(few.ids[nodes].tolist())
    )
    sets = ns.spark.predict_sets(spark, **tables, alpha=0.3)
    assert_same_bits(sets, few, few.expected(2, "uniform", 0.3, 0))


def test_tables_come_to_the_driver_in_pieces_that_spark_lets_through(spark: Any, case: Case) -> None:
    from napsets.spark.arrays import Arrays, Route
    from napsets.spark.mapped import Folder
    from napsets.spark.tables import as_tables

    tables = as_tables(**case.tables(spark))
    arrays = Arrays(spark, tables, Folder("nowhere"), Route(here=True, pieces=3), False, "auto", ordered=False)
    rows = [row for batch in arrays._gathered(tables.edges) for row in batch.to_pylist()]
    whole = tables.edges.toArrow().to_pylist()
    assert sorted(map(tuple, map(dict.values, rows))) == sorted(map(tuple, map(dict.values, whole)))


# -- the choice of a plan ------------------------------------------------------------------------------------------


def chosen(
    spark: Any, tmp_path: Path, plan: str = "auto", name: str = "naps", memory: int = 10**9, **changed: Any
) -> Any:
    from napsets.spark.plans import Size, choose_plan

    how = {"folder": str(tmp_path), "capped": False} | changed
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("napsets.spark.plans.memory_of_machine", lambda: memory)
        return choose_plan(spark, plan, make_method(name), Size(10**6, 10**7, 8, 8, directed=False), **how)


def test_the_plan_is_chosen_by_size_and_memory_and_says_why(spark: Any, tmp_path: Path) -> None:
    from napsets.spark.plans import Size, mapped_bytes

    size = Size(10**6, 10**7, 8, 8, directed=False)
    assert mapped_bytes(size) == 8 * 2 * 10**7 + 10**6 * (100 + 8 * 8)
    assert mapped_bytes(replace(size, directed=True)) == mapped_bytes(size) - 8 * 10**7
    assert str(chosen(spark, tmp_path)) == f"plan {PLAN}: 0.3 GB of arrays fit into the memory of each machine"
    small = chosen(spark, tmp_path, memory=5 * 10**8)
    assert (small.plan, small.reason[:32]) == ("joins", "0.3 GB of arrays would be more t")
    assert chosen(spark, tmp_path, capped=True).reason == "`max_neighbourhood` cuts joins only"
    assert chosen(spark, tmp_path, folder=None).plan == PLAN
    assert chosen(spark, tmp_path, "joins").plan == "joins"
    assert chosen(spark, tmp_path, PLAN, memory=10**6).plan == PLAN  # asked for


def test_what_cannot_be_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ns.InvalidInputError, match="`plan` must be auto or graph-on-every-worker; the method looks"):
        chosen(spark, tmp_path, "joins", "informed")
    with pytest.raises(ns.InvalidInputError, match=r"`plan` cannot be graph-on-every-worker: .* 60 % of the 1\.0 MB"):
        chosen(spark, tmp_path, "auto", "auto", memory=10**6)
    with pytest.raises(ns.InvalidInputError, match=r"cuts joins only\. Take joins\."):
        chosen(spark, tmp_path, PLAN, capped=True)


# -- bad tables ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_tasks")
def test_what_is_wrong_with_rows_is_told_in_plain_words(spark: Any, tmp_path: Path) -> None:
    case = random_case(43, nodes=40, edges=60, ids="string")
    tables = case.tables(spark)
    p, labels, nodes = tables["probabilities"], tables["labels"], tables["nodes"]
    first = p.limit(1).collect()[0]["node"]
    stranger = spark.createDataFrame([("nobody",)], "node string")
    bad = {
        f"`probabilities` must have one row per node; node {first} has 2 rows": {
            "probabilities": p.unionByName(p.where(p["node"] == first))
        },
        r"`labels` must have one row per node; node .* has 2 rows": {"labels": labels.unionByName(labels.limit(1))},
        r"`probabilities` must have rows that sum to 1; node": {
            "probabilities": p.withColumn("class-0", p["class-0"] + 1.0)
        },
        "`labels` must hold at least one known label": {"labels": labels.limit(0)},
        "must have a row for each node of `nodes`; node nobody has none": {"nodes": nodes.unionByName(stranger)},
    }
    for message, changed in bad.items():
        with pytest.raises(ns.InvalidInputError, match=message):
            ns.spark.predict_sets(spark, **tables | changed, plan=PLAN, checkpoint_dir=str(tmp_path))
