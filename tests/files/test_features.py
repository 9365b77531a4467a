"""Features from files: as a table in any order of its rows, or as the sparse matrix that SciPy writes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from napsets.files import read_features, read_inputs, read_sets
from worlds import make_world, write


@pytest.fixture(params=["integer", "string"])
def world(tmp_path, request):
    return make_world(tmp_path / "w", ids=request.param)


@pytest.fixture
def features(world):
    return np.random.default_rng(2).normal(size=(world.labels.size, 3))


def inputs_of(world):
    return read_inputs(world.edges, world.probabilities_file, world.labels_file)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz", ".npz"])
def test_rows_come_in_any_order_and_stand_by_their_nodes(tmp_path, world, features, suffix):
    turn = np.random.default_rng(0).permutation(features.shape[0])
    if suffix == ".npz":
        columns = {"node": world.ids[turn], "features": features[turn]}
    else:
        columns = {"node": world.ids[turn]} | {f"x{i}": features[turn, i] for i in range(3)}
    path = write(tmp_path / f"features{suffix}", columns)
    np.testing.assert_allclose(read_features(path, inputs_of(world).ids), features)


def test_a_sparse_matrix_stands_in_the_order_of_the_probabilities(tmp_path, world, features):
    sparse = sp.csr_matrix(np.where(features > 0.5, features, 0.0))
    for layout in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / "f.npz", sparse.asformat(layout))
        features_read = read_features(tmp_path / "f.npz", inputs_of(world).ids)
        assert features_read.format == "csr"
        np.testing.assert_array_equal(features_read.toarray(), sparse.toarray())


def test_the_command_compares_nodes_by_them_and_explains_what_it_wrote(tmp_path, world, features, run):
    path = write(tmp_path / "f.parquet", {"node": world.ids} | {f"x{i}": features[:, i] for i in range(3)})
    target = tmp_path / "sets.parquet"
    done = run("predict", *world.files, "--features", path, "-o", target, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["method"] == "snaps"
    keys = inputs_of(world).ids.keys
    expected = ns.make_method("snaps", features=features).calibrate_rows(
        world.graph, world.probabilities, world.labels, world.calibration, keys
    )
    sets = expected.predict(world.rest)
    np.testing.assert_array_equal(read_sets(target).sets.thresholds, sets.thresholds)
    seen = run("inspect", *world.files, "--node", world.ids[world.rest[3]], "--like", target, "--json")
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
    sp.save_npz(tmp_path / "short.npz", sp.csr_matrix(features[:7]))
    with pytest.raises(ns.FileFormatError, match="`features` must have a row for each of the 120 nodes"):
        read_features(tmp_path / "short.npz", ids)
    np.savez(tmp_path / "odd.npz", format="csr", shape=(120, 3), data=[1.0], indices=[7], indptr=np.arange(121) > 0)
    with pytest.raises(ns.FileFormatError, match="`features` must be a whole file"):
        read_features(tmp_path / "odd.npz", ids)


def test_methods_that_compare_no_nodes_refuse_features(tmp_path, world, features, run):
    path = write(tmp_path / "f.parquet", {"node": world.ids, "x": features[:, 0]})
    done = run("predict", *world.files, "--features", path, "--method", "naps", "-o", tmp_path / "s.parquet")
    assert done.exit_code != 0
    assert "needs a method that compares nodes: --method snaps" in done.output
