"""The map: edges between balls are counted right, and the layout is repeatable and stays in its frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.report import neighbourhoods
from napsets.report.neighbourhoods import ball_of_nodes, force_layout, quotient


@pytest.fixture
def balls(world: dict[str, Any]) -> list[Any]:
    found = ns.neighbourhood_partition(world["graph"], world["nodes"], min_size=10)
    assert len(found) > 2
    return found


def test_each_node_knows_its_ball(world: dict[str, Any], balls: list[Any]) -> None:
    ball = ball_of_nodes(balls, world["graph"].num_nodes)
    for b, members in enumerate(balls):
        assert np.array_equal(np.flatnonzero(ball == b), members)
    assert (ball[world["calibration"]] == -1).all()


@pytest.mark.parametrize("chunk", [1, 100, 1 << 24])
def test_links_count_the_edges_between_two_balls(world, balls, monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(neighbourhoods, "_CHUNK_EDGES", chunk)
    adjacency = world["graph"].to_scipy().toarray()
    found = quotient(world["graph"], balls)
    assert found.edges.size
    for a, b, edges in zip(found.source, found.target, found.edges, strict=True):
        assert edges == adjacency[np.ix_(balls[a], balls[b])].sum()


def test_directed_edges_count_once_whichever_way_they_go() -> None:
    graph = ns.Graph.from_edge_index([[0, 2, 3], [2, 1, 0]], num_nodes=4, directed=True)
    found = quotient(graph, [np.array([0, 1]), np.array([2, 3])])
    assert found.edges.tolist() == [3]


def test_every_linked_ball_keeps_a_link(world: dict[str, Any], balls: list[Any]) -> None:
    found = quotient(world["graph"], balls)
    assert set(found.source) | set(found.target) == set(range(len(balls)))


def test_the_layout_repeats_with_its_seed_and_changes_with_it(world: dict[str, Any], balls: list[Any]) -> None:
    first, again = (quotient(world["graph"], balls, seed=1).position for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, quotient(world["graph"], balls, seed=2).position)


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_the_layout_stays_in_the_unit_square(count: int) -> None:
    links = np.arange(max(0, count - 1))
    position = force_layout(count, links, links + 1, np.ones(links.size), radius=np.ones(count))
    assert position.shape == (count, 2)
    assert ((position >= 0) & (position <= 1)).all()


def test_linked_nodes_stand_nearer_than_others() -> None:
    groups = np.repeat([0, 1], 6)
    source, target = np.nonzero(np.triu(groups[:, None] == groups[None, :], 1))
    position = force_layout(12, source, target, np.ones(source.size), radius=np.full(12, 0.1))
    distance = np.sqrt(((position[:, None] - position[None]) ** 2).sum(axis=2))
    linked = groups[:, None] == groups[None, :]
    assert distance[linked].mean() < 0.6 * distance[~linked].mean()
