"""The samplers against plain Python."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from napsets.datasets import dcsbm_graph
from napsets.graph import Graph

pytest.importorskip("torch_geometric")
import torch

from studies.training.models import GCN, SageMean, TrainingSettings
from studies.training.samplers import (
    draw_neighbours,
    neighbour_batch,
    shadow_batch,
    whole_batch,
    with_self_loops,
)

pytestmark = pytest.mark.gnn

GRAPH, _ = dcsbm_graph(300, 8, 3, seed=4)


def model(kind=SageMean, layers=2):
    return kind(4, 3, TrainingSettings(layers=layers, hidden=4, fanouts=(1,) * layers))


def ball(graph, root, depth):
    reached = {root}
    for _ in range(depth):
        reached |= {int(u) for v in reached for u in graph.neighbours(v)}
    return reached


def draw(seeds, fanouts, key=1, kind=SageMean):
    return neighbour_batch(GRAPH, model(kind, len(fanouts)), np.array(seeds), fanouts, np.random.default_rng(key))


def test_sampled_rows_are_neighbours_each_once_and_as_many_as_asked_for():
    batch = draw([5, 17, 42], [4, 2])
    assert batch.seeds.tolist() == [5, 17, 42]
    assert np.unique(batch.nodes).size == batch.nodes.size == batch.sizes[-1]
    for i in range(batch.offsets.size - 1):
        row = batch.nodes[batch.columns[batch.offsets[i] : batch.offsets[i + 1]]]
        true = GRAPH.neighbours(int(batch.nodes[i]))
        assert set(row) <= set(true)
        assert row.size == np.unique(row).size == min(4 if i < 3 else 2, true.size)


def test_every_pair_of_neighbours_is_drawn_equally_often():
    star = Graph.from_edge_index([[0] * 6, [1, 2, 3, 4, 5, 6]], num_nodes=7)
    pairs = dict.fromkeys(combinations(range(1, 7), 2), 0)
    rounds = 6000
    rows, drawn = draw_neighbours(star, np.zeros(rounds, dtype=np.int64), 2, np.random.default_rng(0))
    assert np.array_equal(rows, np.repeat(np.arange(rounds), 2))
    for pair in drawn.reshape(rounds, 2).tolist():
        pairs[tuple(sorted(pair))] += 1
    expected = rounds / len(pairs)
    statistic = sum((count - expected) ** 2 / expected for count in pairs.values())
    assert statistic < chi2.ppf(1 - 1e-6, len(pairs) - 1)


def ego(roots, depth, fanout, layers, kind=SageMean, key=1):
    rng = np.random.default_rng(key)
    return shadow_batch(GRAPH, model(kind, layers), np.array(roots), depth, fanout, rng)


def split_egos(batch, num_roots):
    """Follow edges from each root: the local ids of each ego-net."""
    egos = []
    for root in range(num_roots):
        seen, queue = {root}, [root]
        while queue:
            i = queue.pop()
            if i < batch.offsets.size - 1:
                for j in batch.columns[batch.offsets[i] : batch.offsets[i + 1]].tolist():
                    if j not in seen:
                        seen.add(j)
                        queue.append(j)
        egos.append(sorted(seen))
    return egos


@pytest.mark.parametrize("fanout", [-1, 3])
def test_whole_ego_nets_are_disjoint_induced_subgraphs_around_their_roots(fanout):
    roots = [3, 77, 3]
    batch = ego(roots, 2, fanout, 3)
    egos = split_egos(batch, len(roots))
    assert sorted(i for members in egos for i in members) == list(range(batch.nodes.size))
    assert batch.seeds.tolist() == roots
    for root, members in zip(roots, egos, strict=True):
        ids = {int(batch.nodes[i]) for i in members}
        assert len(ids) == len(members)
        assert ids == ball(GRAPH, root, 2) if fanout < 0 else ids <= ball(GRAPH, root, 2)
        for i in members:
            row = {int(batch.nodes[j]) for j in batch.columns[batch.offsets[i] : batch.offsets[i + 1]]}
            assert row == ids & {int(u) for u in GRAPH.neighbours(int(batch.nodes[i]))}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_convolutions_on_ego_nets_are_weighted_by_the_degrees_in_them(layers):
    batch = ego([3], 2, 3, layers, GCN)
    whole = ego([3], 2, 3, 3)  # the same draw, as far as any layer can see
    members = np.unique(whole.nodes)
    inside = GRAPH.subgraph(members)
    offsets, columns, weights = with_self_loops(inside.indptr, inside.indices, inside.degrees)
    dense = np.zeros((members.size, members.size))
    dense[np.repeat(np.arange(members.size), np.diff(offsets)), columns] = weights
    at = np.searchsorted(members, batch.nodes)
    for i in range(batch.offsets.size - 1):
        part = slice(batch.offsets[i], batch.offsets[i + 1])
        assert np.allclose(batch.values[part], dense[at[i], at[batch.columns[part]]])
        assert part.stop - part.start == (dense[at[i]] > 0).sum()


def test_weights_of_a_sampled_row_are_right_on_average():
    node = int(GRAPH.degrees.argmax())
    whole = whole_batch(GRAPH, model(GCN, 1))
    target = whole.values[whole.offsets[node] : whole.offsets[node + 1]].sum(dtype=float)
    sums = [draw([node], [3], key, GCN).values.sum(dtype=float) for key in range(3000)]
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - target) < 5 * error


def test_a_batch_gives_the_outputs_of_the_graph_where_all_neighbours_are_drawn():
    features = torch.randn(300, 4, generator=torch.Generator().manual_seed(0))
    network = model().eval()
    with torch.no_grad():
        everyone = whole_batch(GRAPH, network).outputs(network, features)
        some = draw([9, 3], [-1, -1]).outputs(network, features)
    assert torch.allclose(some, everyone[[9, 3]], atol=1e-5)
