"""The command on Spark: what options mean on one machine they mean there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from napsets.files import read_sets
from oracles import same_bits
from worlds import make_world

pytestmark = pytest.mark.spark


#: What the metadata of a file from Spark says; more may come, none of this may go.
RECORDED: dict[str, Any] = {
    "class_names": ["cat", "dog", "owl"],
    "num_nodes": 120,
    "calibration": 60,
    "method": "naps",
    "alpha": 0.2,
    "score": "aps",
    "seed": 0,
    "allow_empty": True,
    "hops": 2,
    "decay": "uniform",
    "pool": 0.0,
    "alike": 0.0,
    "direction": "in",
    "level": "exact",
    "by": "degree",
    "directed": True,
    "plan": "graph",
}


def test_spark_follows_edges_and_takes_levels_and_groups_as_one_machine(spark, tmp_path, must_run):
    world = make_world(tmp_path / "world")
    options = ["--method", "naps", "--directed", "--direction", "in", "--level", "exact", "--by", "degree", "-a", 0.2]
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    for target, more in ((here, []), (there, ["--engine", "spark"])):
        done = must_run("predict", *world.files, *options, "-o", target, *more, "--json")
    one, other = read_sets(here), read_sets(there)
    order = np.argsort(other.sets.nodes)[np.argsort(np.argsort(one.sets.nodes))]
    assert same_bits(one.sets.thresholds, other.sets.thresholds[order])
    for name in ("member", "support", "effective_size"):
        assert np.array_equal(getattr(one.sets, name), getattr(other.sets, name)[order]), name
    assert other.metadata.items() >= RECORDED.items()
    assert json.loads(done.stdout).items() >= {"engine": "spark", "nodes": 60, "classes": 3, "infinite": 19}.items()
    node = world.ids[world.rest[3]]
    answer = json.loads(must_run("inspect", *world.files, "--node", node, *options, "--json").stdout)
    assert float(answer["threshold"]) == one.sets.thresholds[3]


def test_spark_gives_the_same_sets(spark, tmp_path, must_run):
    world = make_world(tmp_path, ids="string")
    flags = ["--decay", "geometric", "--seed", 2, "--alpha", 0.2]
    here = must_run("predict", *world.files, *flags, "-o", tmp_path / "a.parquet", "--json")
    engine = ["--engine", "spark", "--master", "local[1]"]
    there = must_run("predict", *world.files, *flags, "-o", tmp_path / "b.parquet", *engine, "--json")
    a, b = (pq.read_table(tmp_path / f"{name}.parquet").sort_by("node").to_pydict() for name in "ab")
    assert a == b
    one, many = (json.loads(shown.stdout.splitlines()[-1]) for shown in (here, there))
    same = ("nodes", "mean_size", "empty_rate", "full_rate", "infinite", "unreached", "alpha", "hops", "decay")
    assert {key: many[key] for key in same} == pytest.approx({key: one[key] for key in same})
