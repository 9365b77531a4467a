"""The command on Spark: what options mean on one machine they mean there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from napsets.files import read_sets
from oracles import same_bits
from worlds import make_world

pytest.importorskip("typer")
pytestmark = pytest.mark.spark


def call(*arguments: object) -> Any:
    from typer.testing import CliRunner

    from napsets.cli import make_app

    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(make_app(), [str(a) for a in arguments])


def test_spark_follows_edges_and_takes_levels_and_groups_as_one_machine(spark, tmp_path):
    world = make_world(tmp_path / "world")
    options = ["--method", "naps", "--directed", "--direction", "in", "--level", "exact", "--by", "degree", "-a", 0.2]
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    for target, more in ((here, []), (there, ["--engine", "spark"])):
        done = call("predict", *world.files, *options, "-o", target, *more, "--json")
        assert done.exit_code == 0, done.output
    one, other = read_sets(here), read_sets(there)
    order = np.argsort(other.sets.nodes)[np.argsort(np.argsort(one.sets.nodes))]
    assert same_bits(one.sets.thresholds, other.sets.thresholds[order])
    assert {key: other.metadata[key] for key in ("direction", "level", "by")} == {
        "direction": "in", "level": "exact", "by": "degree",
    }  # fmt: skip
    node = world.ids[world.rest[3]]
    told = json.loads(call("inspect", *world.files, "--node", node, "--like", there, "--json").stdout)
    assert float(told["threshold"]) == one.sets.thresholds[3]
