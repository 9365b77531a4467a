"""The compiled samplers against plain Python."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from napsets.datasets import dcsbm_graph
from napsets.graph import Graph
from napsets.kernels.sampling import dense_rows, neighbours, shadow, with_self_loops

GRAPH, _ = dcsbm_graph(300, 8, 3, seed=4)


def scratch(graph=GRAPH):
    return np.full(graph.num_nodes, -1, dtype=np.int64)


def ball(graph, root, depth):
    reached = {root}
    for _ in range(depth):
        reached |= {int(u) for v in reached for u in graph.neighbours(v)}
    return reached


def draw(seeds, fanouts, key=1, graph=GRAPH):
    position = scratch(graph)
    result = neighbours(graph.indptr, graph.indices, np.array(seeds), np.array(fanouts), np.uint64(key), position)
    assert (position == -1).all()
    return result


def test_sampled_rows_are_neighbours_each_once_and_as_many_as_asked_for():
    nodes, offsets, columns, sizes = draw([5, 17, 42], [4, 2])
    assert nodes[:3].tolist() == [5, 17, 42]
    assert np.unique(nodes).size == nodes.size == sizes[-1]
    for i in range(offsets.size - 1):
        row = nodes[columns[offsets[i] : offsets[i + 1]]]
        true = GRAPH.neighbours(int(nodes[i]))
        assert set(row) <= set(true)
        assert row.size == np.unique(row).size == min(4 if i < 3 else 2, true.size)


def test_rows_reach_only_nodes_that_the_next_layer_has():
    _, offsets, columns, sizes = draw([5, 17, 42], [4, 3, 2])
    for h in range(3):
        assert columns[: offsets[sizes[h]]].max() < sizes[h + 1]


def test_all_neighbours_give_the_whole_ball():
    nodes, _, _, sizes = draw([9], [-1, -1, -1])
    for h, size in enumerate(sizes):
        assert set(nodes[:size].tolist()) == ball(GRAPH, 9, h)


def test_every_pair_of_neighbours_is_drawn_equally_often():
    star = Graph.from_edge_index([[0] * 6, [1, 2, 3, 4, 5, 6]], num_nodes=7)
    pairs = dict.fromkeys(combinations(range(1, 7), 2), 0)
    rounds = 6000
    for key in range(rounds):
        nodes, _, columns, _ = draw([0], [2], key, star)
        pairs[tuple(sorted(nodes[columns].tolist()))] += 1
    expected = rounds / len(pairs)
    statistic = sum((count - expected) ** 2 / expected for count in pairs.values())
    assert statistic < chi2.ppf(1 - 1e-6, len(pairs) - 1)


def test_what_a_node_draws_depends_on_the_key_and_itself_only():
    hub = int(GRAPH.degrees.argmax())
    alone, _, columns, _ = draw([hub], [3])
    nodes, offsets, together, _ = draw([7, hub], [3])
    assert set(alone[columns]) == set(nodes[together[offsets[1] : offsets[2]]])
    different = {frozenset(draw([hub], [3], key)[0].tolist()) for key in range(20)}
    assert len(different) > 1


def ego(roots, depth, fanout, layers, key=1):
    slot = scratch()
    result = shadow(GRAPH.indptr, GRAPH.indices, np.array(roots), depth, fanout, np.uint64(key), layers, slot)
    assert (slot == -1).all()
    return result


def split_egos(nodes, offsets, columns, num_roots):
    """Follow edges from each root: the local ids of each ego-net."""
    egos = []
    for root in range(num_roots):
        seen, queue = {root}, [root]
        while queue:
            i = queue.pop()
            if i < offsets.size - 1:
                for j in columns[offsets[i] : offsets[i + 1]].tolist():
                    if j not in seen:
                        seen.add(j)
                        queue.append(j)
        egos.append(sorted(seen))
    return egos


@pytest.mark.parametrize("fanout", [-1, 3])
def test_whole_ego_nets_are_disjoint_induced_subgraphs_around_their_roots(fanout):
    roots = [3, 77, 3]
    nodes, offsets, columns, sizes, degrees = ego(roots, 2, fanout, 3)
    egos = split_egos(nodes, offsets, columns, len(roots))
    assert sorted(i for members in egos for i in members) == list(range(nodes.size))
    assert nodes[: sizes[0]].tolist() == roots
    for root, members in zip(roots, egos, strict=True):
        ids = {int(nodes[i]) for i in members}
        assert len(ids) == len(members)
        assert ids == ball(GRAPH, root, 2) if fanout < 0 else ids <= ball(GRAPH, root, 2)
        for i in members:
            row = {int(nodes[j]) for j in columns[offsets[i] : offsets[i + 1]]}
            assert row == ids & {int(u) for u in GRAPH.neighbours(int(nodes[i]))}
            assert degrees[i] == len(row)


def test_an_ego_net_cut_to_two_layers_keeps_what_two_layers_see():
    whole = ego([3, 77], 2, 3, 3)
    cut = ego([3, 77], 2, 3, 2)
    assert cut[3].tolist() == whole[3][:3].tolist()
    assert np.array_equal(cut[0], whole[0][: cut[0].size])
    assert np.array_equal(cut[1], whole[1][: cut[1].size])
    assert np.array_equal(cut[2], whole[2][: cut[2].size])
    assert np.array_equal(cut[4], whole[4][: cut[4].size])


def test_the_convolutions_weights_are_the_symmetric_normalisation():
    offsets, columns, weights = with_self_loops(GRAPH.indptr, GRAPH.indices, GRAPH.degrees)
    dense = np.zeros((300, 300))
    dense[np.repeat(np.arange(300), np.diff(offsets)), columns] = weights
    looped = GRAPH.to_scipy().toarray() + np.eye(300)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    assert np.allclose(dense, scale[:, None] * looped * scale, atol=1e-6)
    for i in range(300):
        assert (np.diff(columns[offsets[i] : offsets[i + 1]]) > 0).all()


def test_weights_of_a_sampled_row_are_right_on_average():
    whole = with_self_loops(GRAPH.indptr, GRAPH.indices, GRAPH.degrees)
    node = int(GRAPH.degrees.argmax())
    target = whole[2][whole[0][node] : whole[0][node + 1]].sum(dtype=float)
    sums = []
    for key in range(3000):
        nodes, offsets, columns, _ = draw([node], [3], key)
        _, _, weights = with_self_loops(offsets, columns, GRAPH.degrees[nodes])
        sums.append(weights.sum(dtype=float))
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - target) < 5 * error


def test_sparse_rows_become_dense():
    adjacency = GRAPH.to_scipy().astype(np.float32)
    nodes = np.array([7, 0, 7])
    out = np.zeros((3, 300), dtype=np.float32)
    dense_rows(adjacency.indptr, adjacency.indices, adjacency.data, nodes, out)
    assert np.array_equal(out, adjacency.toarray()[nodes])
