"""Features of nodes in a living graph: who may have them, and that similar nodes count as they do for a batch."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import napsets as ns
from napsets.live.state import in_reference
from napsets.methods.data import CalibrationData

NODES, LABELS = 200, 150
RNG = np.random.default_rng(5)
GROUP = RNG.integers(0, 3, NODES)
P = 0.7 * RNG.dirichlet(np.ones(3), NODES) + 0.3 / 3
X = (np.eye(3)[GROUP] + 0.3 * RNG.normal(size=(NODES, 3))).astype(np.float32)
ENDS = RNG.integers(0, NODES, (2, 400))


def started(method="informed", features=X):
    live = ns.Live(method, alpha=0.2)
    live.add_nodes(np.arange(NODES), P, features)
    live.add_edges(*ENDS)
    live.add_labels(np.arange(LABELS), GROUP[:LABELS])
    live.refit()
    return live


def batch(live, gone=()):
    """The sets of a batch calibration with the reference and the held-out labels of a living graph."""
    made, numbers = live._fold.calibration.map, np.arange(LABELS)
    reference, known = in_reference(0, numbers, 0.5), np.setdiff1d(numbers, gone)
    data = CalibrationData.check(ns.Graph.from_edge_index(ENDS, NODES), P, GROUP, known, features=X)
    parts = [known[reference[known]], known[~reference[known]]]
    learned = replace(made.learned, walked=live._fold.calibration._around.walked(np.arange(NODES), made.learned))
    return made.method.on(data.scored_in_parts(made.method.score, 0, *parts, learned=learned)).predict(alpha=0.2)


@pytest.mark.parametrize("searched", [20_000, 40])
def test_similar_nodes_count_as_for_a_batch_also_once_labels_are_removed(searched, monkeypatch):
    for module in ("napsets.features", "napsets.live.surroundings"):
        monkeypatch.setattr(f"{module}.MOST_SEARCHED", searched)  # with 40, another node is searched for a removed one
    live = started()
    assert np.array_equal(live.predict().member, batch(live).member)
    gone = np.arange(0, LABELS, 5)
    live.remove_labels(gone)
    sets = live.predict(np.arange(LABELS, NODES))
    expected = batch(live, gone)[-(NODES - LABELS) :]
    assert np.array_equal(sets.member, expected.member)
    assert np.array_equal(sets.thresholds, expected.thresholds)


@pytest.mark.parametrize("method", ["informed", "auto"])
def test_features_that_tell_the_classes_make_sets_smaller(method):
    with_features, without = (started(method, features).predict().sizes.mean() for features in (X, None))
    assert with_features < 0.8 * without


def test_features_and_what_was_learned_from_them_survive_a_restart(tmp_path):
    live = started()
    live.add_nodes(["new"], [[0.2, 0.3, 0.5]], [[0.0, 0.0, 1.0]])
    live.save(tmp_path / "kept")
    live.save(tmp_path / "replayed")
    (tmp_path / "replayed" / "snapshot.npz").unlink()
    for folder in ("kept", "replayed"):
        with ns.Live.open(tmp_path / folder) as again:
            assert again._state.features.shape[1] == 3
            assert np.array_equal(again.predict().member, live.predict().member)


@pytest.mark.filterwarnings("ignore:.*not symmetric")
def test_the_features_of_a_pytorch_geometric_graph_are_taken_by_default():
    data = SimpleNamespace(edge_index=ENDS, num_nodes=NODES, x=X, y=np.where(np.arange(NODES) < LABELS, GROUP, -1))
    assert ns.Live.start(data, P, method="informed")._state.features.shape[1] == 3
    assert ns.Live.start(data, P, method="naps")._state.features is None


def test_features_that_cannot_be_compared_are_refused_and_nothing_changes():
    row, node = [[0.2, 0.3, 0.5]], ["new"]
    live, plain = started(), started(features=None)
    empty = ns.Live("informed")
    for graph, features, message in [
        (live, None, "must be given for every node"),
        (live, [[1.0, 2.0]], "must have 3 columns"),
        (live, [[1.0, 2.0, np.nan]], "the row of node new has a NaN"),
        (live, [[1.0, 2.0, 3.0]] * 2, "one row per node, 1; got 2"),
        (plain, [[1.0, 2.0, 3.0]], "the nodes that came first have none"),
        (ns.Live("naps"), [[1.0]], "this method does not compare nodes"),
        (empty, csr_array(X[:1]), "must be a dense table"),
        (empty, np.empty((1, 0)), "must have at least one column"),
    ]:
        before = graph.status()
        with pytest.raises(ns.InvalidInputError, match=f"`features` .*{message}"):
            graph.add_nodes(node, row, features)
        assert graph.status() == before


def test_to_remove_many_labels_is_one_search_for_the_nodes_that_are_similar_to_theirs():
    """One search takes as long as one label; before, each label of a batch had its own."""
    nodes, labels = 60_000, 6_000
    rng = np.random.default_rng(3)
    live = ns.Live("informed")
    live.add_nodes(np.arange(nodes), rng.dirichlet(np.ones(3), nodes), rng.normal(size=(nodes, 4)))
    live.add_labels(np.arange(labels), rng.integers(0, 3, labels))
    live.predict(np.arange(labels, labels + 1000))
    seconds = []
    for batch in ([labels - 1], [labels - 2], np.arange(labels - 10)):
        start = time.process_time()
        live.remove_labels(batch)
        seconds.append(time.process_time() - start)
    assert seconds[2] < 500 * min(seconds[:2])
    assert live.status()["labels"] == 8
