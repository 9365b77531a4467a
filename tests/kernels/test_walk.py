"""Balls and label shares, against NetworkX."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

import napsets as ns
from napsets.advice.theory import _labels_and_shares
from napsets.kernels.walk import cut_balls


@pytest.fixture
def pair():
    theirs = nx.gnm_random_graph(200, 260, seed=1)
    return theirs, ns.Graph.from_networkx(theirs)


@pytest.mark.parametrize("radius", [0, 1, 2, 50])
def test_each_ball_is_the_ego_graph_of_its_root_in_what_is_left(pair, radius):
    theirs, ours = pair
    nodes = np.random.default_rng(0).permutation(200)[:150]
    alive = np.zeros(200, bool)
    alive[nodes] = True
    members = np.empty(150, np.int64)
    offsets = cut_balls(ours.indptr, ours.indices, nodes, radius, alive, members)
    left = set(nodes.tolist())
    for start, stop in pairwise(offsets.tolist()):
        root = next(v for v in nodes.tolist() if v in left)
        assert members[start] == root
        ball = set(nx.ego_graph(theirs.subgraph(left), root, radius).nodes)
        assert set(members[start:stop].tolist()) == ball
        left -= ball
    assert not left
    assert not alive.any()


def test_label_shares_ignore_unknown_labels(pair):
    theirs, ours = pair
    labels = np.random.default_rng(1).integers(-1, 3, 200)
    _, shares = _labels_and_shares(ours, labels)
    for v in theirs:
        known = [labels[w] for w in theirs[v] if labels[w] >= 0]
        expected = np.mean([y == labels[v] for y in known]) if known and labels[v] >= 0 else 0.0
        assert shares[v] == expected
