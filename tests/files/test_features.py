"""Features from files: a table in any order of its rows."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

import napsets as ns
from napsets.files import read_features, read_inputs, read_probabilities, read_sets
from worlds import make_world, write


@pytest.fixture(params=["integer", "string"])
def world(tmp_path, request):
    return make_world(tmp_path / "w", ids=request.param)


@pytest.fixture
def features(world):
    return np.random.default_rng(2).normal(size=(world.labels.size, 3))


def inputs_of(world):
    return read_inputs(world.edges, world.probabilities_file, world.labels_file)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_rows_come_in_any_order_and_stand_by_their_nodes(tmp_path, world, features, suffix):
    turn = np.random.default_rng(0).permutation(features.shape[0])
    columns = {"node": world.ids[turn]} | {f"x{i}": features[turn, i] for i in range(3)}
    path = write(tmp_path / f"features{suffix}", columns)
    np.testing.assert_allclose(read_features(path, inputs_of(world).ids), features)


def test_the_index_that_pandas_writes_is_no_column(tmp_path, world, features):
    """Of shuffled or filtered rows, `DataFrame.to_parquet` writes the index as one more column of numbers."""
    frame = pandas.DataFrame({"node": world.ids} | {f"x{i}": features[:, i] for i in range(3)})
    frame.sample(frac=1, random_state=0).to_parquet(tmp_path / "features.parquet")
    np.testing.assert_array_equal(read_features(tmp_path / "features.parquet", inputs_of(world).ids), features)
    pandas.read_parquet(world.probabilities_file).sample(frac=1, random_state=0).to_parquet(tmp_path / "p.parquet")
    one, other = (read_probabilities(path) for path in (world.probabilities_file, tmp_path / "p.parquet"))
    assert one.class_names == other.class_names


def test_an_index_in_csv_is_refused(tmp_path, world, features):
    frame, path = pandas.DataFrame({"node": world.ids, "x": features[:, 0]}), tmp_path / "features.csv"
    for _ in range(2):  # once without a name, and once as pandas calls it
        frame.to_csv(path, index="Unnamed: 0" not in frame)
        with pytest.raises(ns.FileFormatError, match=r"`features` must have a name for each column; .* Write it with"):
            read_features(path, inputs_of(world).ids)
        frame = pandas.read_csv(path)


def test_the_command_compares_nodes_by_them_and_explains_what_it_wrote(tmp_path, world, features, run):
    path = write(tmp_path / "f.parquet", {"node": world.ids} | {f"x{i}": features[:, i] for i in range(3)})
    target = tmp_path / "sets.parquet"
    done = run("predict", *world.files, "--method", "snaps", "--features", path, "-o", target, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["method"] == "snaps"
    keys = inputs_of(world).ids.keys
    expected = ns.make_method("snaps").calibrate_rows(
        world.graph, world.probabilities, world.labels, world.calibration, keys, features=features
    )
    sets = expected.predict(world.rest)
    np.testing.assert_array_equal(read_sets(target).sets.thresholds, sets.thresholds)
    seen = run(
        "inspect", *world.files, "--node", world.ids[world.rest[3]], "--method", "snaps", "--features", path, "--json"
    )
    assert seen.exit_code == 0, seen.output
    assert float(json.loads(seen.stdout)["threshold"]) == sets.thresholds[3]


def test_features_that_do_not_fit_are_refused_by_name(tmp_path, world, features):
    ids = inputs_of(world).ids
    few = write(tmp_path / "few.parquet", {"node": world.ids[:5], "x": features[:5, 0]})
    with pytest.raises(ns.FileFormatError, match="`features` must have a row for each of the 120 nodes"):
        read_features(few, ids)
    twice = write(tmp_path / "twice.parquet", {"node": np.append(world.ids, world.ids[:1]), "x": np.zeros(121)})
    with pytest.raises(ns.FileFormatError, match="`features` must have each node once"):
        read_features(twice, ids)
    bare = write(tmp_path / "bare.parquet", {"node": world.ids})
    with pytest.raises(ns.FileFormatError, match="`features` must have one column per feature in addition to node"):
        read_features(bare, ids)
    column = np.where(np.arange(120) == 7, np.nan, 0.0)
    empty = write(tmp_path / "empty.parquet", {"node": world.ids, "x": column})
    with pytest.raises(
        ns.FileFormatError, match=r"`features` must hold finite numbers; row 7 of .* \(node .*\) has nan"
    ):
        read_features(empty, ids)


def test_methods_that_compare_no_nodes_refuse_features(tmp_path, world, features, run):
    path = write(tmp_path / "f.parquet", {"node": world.ids, "x": features[:, 0]})
    done = run("predict", *world.files, "--features", path, "--method", "naps", "-o", tmp_path / "s.parquet")
    assert done.exit_code != 0
    assert "needs a method that compares nodes: auto, informed or snaps" in done.output
