"""The contenders of the speed benchmark compute the same thing, and its summaries say what was measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks.speed import contenders, processes, render
from benchmarks.speed.floor import compile_floor, settle, traverse
from benchmarks.speed.render import write_results
from pyarrow import parquet

from napsets.datasets.synthetic import dcsbm_graph
from napsets.graph import Graph


@pytest.fixture(scope="module")
def setting():
    graph, _ = dcsbm_graph(300, 8, 4, seed=3)
    nodes = np.random.default_rng(1).choice(300, 90, replace=False)
    return graph, np.random.default_rng(0).random(300), nodes


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_sparse_products_give_the_thresholds_of_napsets_to_the_bit(setting, hops):
    graph, scores, nodes = setting
    weights = contenders.decay_weights(hops)
    expected, reached = contenders.by_napsets(graph, scores, nodes, weights, 0.1)
    thresholds, also_reached = contenders.by_sparse_products(graph, scores, nodes, weights, 0.1)
    assert also_reached == reached
    np.testing.assert_array_equal(thresholds, expected)
    assert np.isinf(expected).any() or hops > 1
    assert np.isfinite(expected).any()


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_root_finding_gives_the_thresholds_of_napsets_up_to_its_tolerance(setting, hops):
    graph, scores, nodes = setting
    weights = contenders.decay_weights(hops)
    alpha = 0.0973  # no neighbourhood reaches 1−α of its mass exactly: there a root finder may stop anywhere
    expected, reached = contenders.by_napsets(graph, scores, nodes, weights, alpha)
    thresholds, also_reached = contenders.by_networkx(contenders.to_networkx(graph), scores, nodes, weights, alpha)
    assert also_reached == reached
    np.testing.assert_allclose(thresholds, expected, rtol=0, atol=1e-9)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the floor is compiled with gcc")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_floor_reaches_the_pairs_that_napsets_counts(setting, tmp_path, threads):
    graph, scores, nodes = setting
    _, reached = contenders.by_napsets(graph, scores, nodes, contenders.decay_weights(3), 0.1)
    assert traverse(compile_floor(tmp_path), graph, nodes, 3, threads) == reached


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the floor is compiled with gcc")
@pytest.mark.parametrize("threads", [1, 2])
def test_bare_shortest_paths_reach_the_pairs_that_napsets_weighs(setting, tmp_path, threads):
    plain, scores, nodes = setting
    source = np.repeat(np.arange(plain.num_nodes), plain.degrees)
    lengths = np.random.default_rng(2).exponential(size=plain.num_edges) + 0.01
    graph = Graph.from_edge_index([source, plain.indices], plain.num_nodes, lengths=lengths)
    _, reached = contenders.by_path_lengths(graph, scores, nodes, 0.7, 0.1)
    assert settle(compile_floor(tmp_path, "dijkstra"), graph, nodes, 0.7, threads) == reached > 0


def test_the_committed_figures_can_be_rendered(tmp_path):
    figures = json.loads((Path(render.__file__).parents[1] / "results" / "speed.json").read_text())
    assert "README's ten lines" in write_results(figures, tmp_path)


def test_the_files_with_either_kind_of_ids_give_the_same_sets_up_to_their_uniform_numbers(tmp_path):
    processes.write_files({"nodes": 300, "edges": 900}, tmp_path)
    supports = []
    for kind in ("integer", "string"):
        timing = processes.predict_files({"ids": kind}, tmp_path)
        assert timing["cpu_seconds"] > 0
        supports.append(parquet.read_table(tmp_path / f"{kind}-sets.parquet").column("support").to_pylist())
    assert supports[0] == supports[1]
