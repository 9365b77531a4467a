"""The map: edges between balls are counted right, and the layout is repeatable and stays in its frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.metrics import groups_of_partition
from napsets.report import data
from napsets.report.data import force_layout, quotient


@pytest.fixture
def balls(world: dict[str, Any]) -> list[Any]:
    parts = ns.neighbourhood_partition(world["graph"], world["nodes"], min_size=10)
    assert len(parts) > 2
    return parts


def test_each_node_knows_its_ball(world: dict[str, Any], balls: list[Any]) -> None:
    ball = groups_of_partition(balls, world["graph"].num_nodes)
    for b, members in enumerate(balls):
        assert np.array_equal(np.flatnonzero(ball == b), members)
    assert (ball[world["calibration"]] == -1).all()


@pytest.mark.parametrize("chunk", [1, 100, 1 << 24])
def test_links_count_the_edges_between_two_balls(world, balls, monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(data, "_CHUNK_EDGES", chunk)
    adjacency = world["graph"].to_scipy().toarray()
    links, _ = quotient(world["graph"], balls)
    assert links
    for link in links:
        assert link["edges"] == adjacency[np.ix_(balls[link["source"]], balls[link["target"]])].sum()


def test_directed_edges_count_once_whichever_way_they_go() -> None:
    graph = ns.Graph.from_edge_index([[0, 2, 3], [2, 1, 0]], num_nodes=4, directed=True)
    links, _ = quotient(graph, [np.array([0, 1]), np.array([2, 3])])
    assert links == [{"source": 0, "target": 1, "edges": 3}]


def test_every_linked_ball_keeps_a_link(world: dict[str, Any], balls: list[Any]) -> None:
    links, _ = quotient(world["graph"], balls)
    assert {link[end] for link in links for end in ("source", "target")} == set(range(len(balls)))


def test_the_layout_repeats_with_its_seed_and_changes_with_it(world: dict[str, Any], balls: list[Any]) -> None:
    first, again, other = (quotient(world["graph"], balls, seed=seed)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


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
