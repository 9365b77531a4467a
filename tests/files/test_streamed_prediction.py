"""Sets from files are those of the library, however they are cut up, in memory that a formula bounds."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.files import read_inputs, read_sets, write_prediction, writers
from worlds import make_world


def predict(world, path, *, nodes=None, **settings):
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file, nodes)
    return write_prediction(
        inputs, path, inputs.calibrate(ns.NAPS(**settings)), alpha=0.2, metadata={"class_names": inputs.class_names}
    )


def test_the_order_of_rows_in_the_files_changes_nothing(tmp_path):
    world = make_world(tmp_path)
    predict(world, tmp_path / "a.parquet")
    for path in (world.edges, world.probabilities_file, world.labels_file):
        table = pq.read_table(path)
        pq.write_table(table.take(np.random.default_rng(1).permutation(table.num_rows)), path)
    predict(world, tmp_path / "b.parquet")
    a, b = (pq.read_table(tmp_path / f"{name}.parquet").sort_by("node") for name in "ab")
    assert a.equals(b)


def test_the_pieces_in_which_it_is_made_change_nothing(tmp_path, monkeypatch):
    world = make_world(tmp_path)
    whole = predict(world, tmp_path / "a.parquet")
    monkeypatch.setattr(writers, "CHUNK", 7)
    pieces = predict(world, tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))
    np.testing.assert_array_equal(whole.size_counts, pieces.size_counts)
    assert (whole.infinite, whole.unreached) == (pieces.infinite, pieces.unreached)


def test_the_nodes_asked_for_are_predicted_in_their_order(tmp_path):
    world = make_world(tmp_path)
    nodes = world.ids[np.array([11, 3, 77])]
    pq.write_table(pa.table({"node": nodes}), tmp_path / "n.parquet")
    predict(world, tmp_path / "sets.parquet", nodes=tmp_path / "n.parquet")
    assert pq.read_table(tmp_path / "sets.parquet")["node"].to_pylist() == nodes.tolist()


def test_the_summary_counts_what_was_written(tmp_path):
    world = make_world(tmp_path, degree=2)
    summary = predict(world, tmp_path / "sets.parquet", hops=1)
    sets = read_sets(tmp_path / "sets.parquet").sets
    np.testing.assert_array_equal(summary.size_counts, np.bincount(sets.sizes, minlength=4))
    assert summary.nodes == len(sets)
    assert summary.mean_size == pytest.approx(sets.sizes.mean())
    assert summary.unreached == (sets.support == 0).sum() > 0
    assert summary.infinite == np.isinf(sets.thresholds).sum() == sets.infinite > summary.unreached


#: Run in a process of its own, whose peak is then its own: VmHWM starts again with the program.
_CHILD = """
import sys
from napsets.cli import main
folder = sys.argv.pop(1)
sys.argv[1:] = ["predict", "--edges", folder + "/edges.parquet", "--probabilities", folder + "/p.parquet",
                "--labels", folder + "/labels.parquet", "--nodes", folder + "/nodes.parquet",
                "--output", folder + "/sets.parquet", "--quiet", "--method", sys.argv.pop(1)]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
with open("/proc/self/status") as status:
    peak = next(line for line in status if line.startswith("VmHWM"))
print(int(peak.split()[1]) * 1024)
"""


def memory_bound(nodes, classes, edges, *, evidence):
    """The formula in the help of `napsets predict`, for float32; evidence is what `auto` weighs."""
    return 500_000_000 + nodes * (2 * 4 * classes + 150 + 64 * classes * evidence) + edges * 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
@pytest.mark.parametrize("method", ["naps", "auto"])
def test_memory_stays_within_the_bound_that_is_stated(tmp_path, method):
    nodes, edges, classes = 1_500_000, 3_000_000, 5
    rng = np.random.default_rng(0)
    columns = {f"c{y}": np.full(nodes, 1 / classes, dtype=np.float32) for y in range(classes)}
    # One row group a file: reading must not hold all of it decoded.
    group = {"row_group_size": nodes}
    pq.write_table(pa.table({"node": np.arange(nodes) + 10} | columns), tmp_path / "p.parquet", **group)
    source = rng.integers(0, nodes, edges)
    target = (source + rng.integers(1, 500, edges)) % nodes
    pq.write_table(pa.table({"source": source + 10, "target": target + 10}), tmp_path / "edges.parquet", **group)
    labelled = np.arange(0, nodes, 3)
    table = {"node": labelled + 10, "label": labelled % classes}
    pq.write_table(pa.table(table), tmp_path / "labels.parquet", **group)
    pq.write_table(pa.table({"node": np.arange(nodes) + 10}), tmp_path / "nodes.parquet", **group)
    run = subprocess.run(
        [sys.executable, "-c", _CHILD, str(tmp_path), method], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert pq.read_metadata(tmp_path / "sets.parquet").num_rows == nodes
    peak, bound = int(run.stdout.split()[-1]), memory_bound(nodes, classes, edges, evidence=method == "auto")
    print(f"peak {peak:,} of {bound:,} bytes")
    assert peak <= bound


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_what_was_read_is_kept_and_not_copied(tmp_path, suffix):
    world = make_world(tmp_path, suffix=suffix)
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    naps = ns.NAPS().calibrate(inputs.graph, inputs.outputs, inputs.truth, inputs.calibration)
    assert naps.score.probabilities is inputs.outputs
    assert naps.graph is inputs.graph
