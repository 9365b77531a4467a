"""100,000 random small graphs: full conformal prediction to the bit, against every bag counted from scratch.

For each node and each candidate label there is a bag. All bags of a graph are counted at once, with dense matrices and
by the definitions alone: which labels a node has around it, and which are passed on to it. Only what a node's own row
gives, its score, is the library's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Full, rank_place
from napsets.localisers import Everyone
from napsets.methods import Method
from napsets.methods.data import CalibrationData
from napsets.scores import APS, THR, ByLabel, Informed, Labelled, Sharpened
from napsets.scores.evidence import label_shares, label_weights, normalised
from napsets.scores.exponents import Exponents, Learned, alike_table
from napsets.scores.informed import evidence_of

#: Graphs of one test; ten of them make 100,000.
CASES = 10_000
BASES = [APS(), THR(), Sharpened(APS(), 2.0), Sharpened(THR(), 1.6), APS(randomized=False)]
UNIT = 2.0**-30


def random_case(rng):
    """Return the adjacency of a small graph, the data, a calibrated method and its judges: all of them, or a group."""
    nodes, classes = int(rng.integers(4, 10)), int(rng.integers(2, 4))
    directed = bool(rng.random() < 0.4)
    adjacency = rng.random((nodes, nodes)) < rng.choice([0.15, 0.35, 0.6])
    np.fill_diagonal(adjacency, False)
    adjacency = adjacency if directed else adjacency | adjacency.T
    graph = ns.Graph.from_edge_index(np.stack(np.nonzero(adjacency)), num_nodes=nodes, directed=directed)
    p = np.full((nodes, classes), 1 / classes) if rng.random() < 0.2 else rng.dirichlet(np.full(classes, 0.7), nodes)
    p = p.astype(np.float32) if rng.random() < 0.3 else p
    labels = rng.integers(classes, size=nodes)
    score = Informed(BASES[int(rng.integers(len(BASES)))], int(rng.integers(0, 3)), bool(rng.random() < 0.3))
    order = rng.permutation(nodes)
    reference = np.sort(order[: rng.integers(1, nodes // 2)])
    bag = np.sort(order[reference.size : reference.size + rng.integers(2, nodes - reference.size + 1)])
    known = Labelled(reference, labels[reference])
    # Exponents that would be fitted to larger graphs, and some below 0 and above 1.
    names = ["near", "far"][: score.hops] + ["wide"] * score.wide
    named = {name: float(rng.choice([0.4, 0.8, 1.0, 1.7, -0.5])) for name in names}
    exponents = Exponents(model=0.7, around=0.2, alike=0.1, **({"near": 0.0, "far": 0.0, "wide": 0.0} | named))
    learned = Learned(exponents, label_shares(p, known.labels), alike_table(p, known))
    score = ByLabel(score, 0.5) if rng.random() < 0.3 else score
    data = CalibrationData.check(graph, p, labels, np.append(reference, bag), score=score)
    method = Method(score, Everyone(), Full(), int(rng.integers(1000)))
    scored = data.scored_in_parts(score, method.seed, reference, bag, level=method.level, learned=learned)
    judges = np.arange(bag.size)
    if rng.random() < 0.3:  # those of a class, or of another group
        judges = judges[labels[bag] == labels[bag[0]]] if rng.random() < 0.5 else judges[::2]
    return adjacency.astype(float), data, method.on(scored), judges


def scores_in_all_bags(adjacency, data, calibrated, judges, crowd):
    """Return the scores of the judges in the bag of each node and candidate, shape (nodes, labels, judges)."""
    scored, informed = calibrated.scored, evidence_of(calibrated.score)
    reference, bag, labels = scored.reference.nodes, scored.level_nodes, data.truth
    nodes, classes = data.outputs.shape
    taught, speaks = np.zeros((nodes, classes)), np.zeros((nodes, classes, nodes, classes))
    taught[reference, labels[reference]] = 1.0
    speaks[:, :, bag, labels[bag]] = 1.0
    for v in set(range(nodes)) - set(reference.tolist()):  # the candidate stands in for what v says
        speaks[v, :, v] = np.eye(classes)
    parts = np.floor(1.0 / (UNIT * np.maximum(adjacency.sum(axis=1), 1.0))) * UNIT
    quiet = np.where((adjacency @ taught).sum(axis=1) > crowd, 0.0, parts)
    near = adjacency @ taught + adjacency @ speaks
    # Over each neighbour comes what it passes on of the labels around it, without the node's own.
    far = adjacency @ (parts[:, None] * (adjacency @ taught)) + adjacency @ (quiet[:, None] * (adjacency @ speaks))
    far -= np.diag(adjacency @ (quiet[:, None] * adjacency))[:, None] * speaks
    members = bag[judges]
    near, far = (counts[:, :, members].reshape(-1, classes) for counts in (near, far))
    repeated = np.tile(np.arange(members.size), nodes * classes)
    weights = label_weights(informed.learned, informed.required_bag.fixed[judges][repeated], near, far)
    probabilities = normalised(weights).astype(data.outputs.dtype)
    own = labels[members][repeated]
    scores = informed.inner.at_rows(probabilities, own, scored.u[members][repeated])
    return calibrated.score.ranked(own, scores).reshape(nodes, classes, members.size)


def check_case(rng, patch):
    """Compare thresholds and counts of all nodes and candidates of one graph; return how many thresholds are finite."""
    crowd = int(rng.choice([1, 2, 64]))
    patch.setattr("napsets.scores.evidence.CROWD", crowd)
    patch.setattr("napsets.methods.moves._WINDOW", int(rng.integers(3)))
    adjacency, data, calibrated, judges = random_case(rng)
    bags = scores_in_all_bags(adjacency, data, calibrated, judges, crowd)
    full = replace(calibrated, judges=judges).full
    nodes, labels = np.arange(bags.shape[0]), np.arange(bags.shape[1])
    alpha, members = float(rng.choice([0.15, 0.3, 0.5, 0.7])), calibrated.scored.level_nodes[judges]
    scores = calibrated.score.matrix(nodes)
    thresholds = np.full(bags.shape[:2], np.inf)
    above, equal = np.empty(bags.shape[:2]), np.empty(bags.shape[:2])
    for v in nodes:
        others = bags[v][:, members != v]
        needed = rank_place(others.shape[1], alpha)
        if needed <= others.shape[1]:
            thresholds[v] = np.sort(others, axis=1)[:, needed - 1]
        above[v], equal[v] = ((others > scores[v, :, None]).sum(axis=1), (others == scores[v, :, None]).sum(axis=1))
    assert np.array_equal(full.thresholds(nodes, [alpha], None, 1, None)[1][0], thresholds)
    counted = full.compared(nodes, scores, labels)
    assert np.array_equal(counted[0], above)
    assert np.array_equal(counted[1], equal)
    return int(np.isfinite(thresholds).sum())


def check_cases(seeds, *, numpy_too):
    """Check one graph for each seed: with the kernel, and now and then with NumPy."""
    finite = 0
    with pytest.MonkeyPatch.context() as patch:
        for seed in seeds:
            patch.setattr("napsets.methods.full._KERNELS.pay", lambda work, pays=seed % numpy_too > 0: pays)
            try:
                finite += check_case(np.random.default_rng(seed), patch)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}") from error
    return finite


def test_thresholds_and_counts_are_those_of_all_bags():
    assert check_cases(range(200), numpy_too=2) > 1500


def test_a_label_whose_weight_falls_as_it_is_heard_moves_judges_too():
    assert check_cases([60_014], numpy_too=10) > 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_no_bit_differs_from_all_bags_on_100_000_graphs(part):
    assert check_cases(range(CASES * part, CASES * (part + 1)), numpy_too=10) > CASES
