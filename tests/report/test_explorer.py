"""What the explorer shows of a node is what an inspection says of it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.report import ReportData, page_data
from napsets.report.explorer import EXPLORED_NODES, NODES_PER_REASON


def numbers(texts: list[str]) -> list[float]:
    return [float(text.replace("−", "-").replace("∞", "inf").strip("×% ")) for text in texts]


@pytest.fixture(scope="module")
def informed(world) -> ReportData:
    """A page with methods of evidence, whose nodes and classes have names."""
    compared = compare(**(world | {"methods": ["split", "informed", "naps", "auto"]}), alphas=CURVE_ALPHAS)
    return page_data(compared, class_names=list("abcde"))


@pytest.fixture(params=["sets", "intervals", "informed"])
def page(request: pytest.FixtureRequest) -> ReportData:
    name = request.param if request.param == "informed" else f"{request.param}_data"
    made: ReportData = request.getfixturevalue(name)
    return made


def test_nodes_are_judged_ones_each_with_a_reason(page: ReportData) -> None:
    explorer, comparison = page.explorer, page.comparison
    assert np.isin(explorer.nodes, comparison.nodes).all()
    assert (np.diff(explorer.nodes) > 0).all()
    assert 20 <= explorer.nodes.size <= EXPLORED_NODES
    assert explorer.reason.any(axis=1).all()
    rows = [int(np.flatnonzero(comparison.nodes == node)[0]) for node in explorer.nodes]
    focus, covered = comparison.results[page.shown.place], page.shown.covered()
    truth = {
        1: covered[page.shown.place] & ~covered[0],
        2: covered[0] & ~covered[page.shown.place],
        3: np.isinf(focus.prediction.thresholds),
        4: focus.sizes == 0,
    }
    for r, mark in truth.items():
        assert mark[rows][explorer.reason[:, r]].all()
        assert explorer.reason[:, r].sum() == min(mark.sum(), explorer.reason[:, r].sum(), NODES_PER_REASON)
    assert 0 <= explorer.start < explorer.nodes.size
    assert explorer.counted == [(r, explorer.reasons[r], n) for r, n in enumerate(explorer.reason.sum(axis=0)) if n]


def test_every_node_and_method_shows_what_an_inspection_says(page: ReportData) -> None:
    explorer, comparison = page.explorer, page.comparison
    for i in range(0, explorer.nodes.size, 12):
        node = int(explorer.nodes[i])
        truth = comparison.truth[node]
        for result, shown in zip(comparison, explorer.shown[i], strict=True):
            seen = inspect_node(result.calibrated, position=node)
            facts = dict(shown["facts"])
            assert numbers([facts["threshold τ"]])[0] == pytest.approx(seen.threshold, abs=1e-4)
            assert shown["support"] == seen.support == numbers([facts["support"].replace(",", "")])[0]
            assert shown["reason"] == seen.reason()
            assert shown["threshold"] == (seen.threshold if math.isfinite(seen.threshold) else None)
            row = int(np.flatnonzero(comparison.nodes == node)[0])
            assert shown["covers"] == bool(result.prediction.contains_own(comparison.truth[comparison.nodes])[row])
            assert sum(bar["count"] for bar in shown["bars"]) == seen.neighbours.size
            assert sum(bar["mass"] for bar in shown["bars"]) == pytest.approx(seen.neighbour_weights.sum(), abs=1e-3)
            if comparison.prediction is ns.PredictionSets:
                names = page.parts.class_names
                assert sorted(shown["outcome"]) == sorted(names[y] for y in np.flatnonzero(seen.member))
                assert shown["true"] == names[truth]
                assert shown["marks"] == [
                    [name, score, bool(inside)]
                    for name, score, inside in zip(names, seen.scores.tolist(), seen.member.tolist(), strict=True)
                ]
            elif math.isfinite(seen.threshold):
                ends = numbers(shown["outcome"][0].split(" to "))
                assert ends == pytest.approx([seen.lower, seen.upper], rel=1e-4)
            titles = [table[0] for table in shown["tables"]]
            assert any(title.startswith("Evidence") for title in titles) == (seen.evidence is not None)
            assert ("Neighbourhood by hop" in titles) == bool(seen.hops)


def test_factors_on_the_page_multiply_to_what_they_explain(informed: ReportData) -> None:
    checked = 0
    for of_node in informed.explorer.shown[::5]:
        for shown in of_node:
            for title, head, rows, *_ in shown["tables"]:
                if title.startswith("Evidence"):
                    first, *kinds, last = (np.array(numbers(row[2:])) for row in rows)
                    np.testing.assert_allclose(first * np.prod(kinds, axis=0), last, rtol=0.03, atol=0.15)
                    assert head[:2] == ["kind", "counted"]
                    assert {"corrections of the model learned from labels", "labels of neighbours"} <= {
                        r[0] for r in rows
                    }
                    checked += 1
    assert checked > 10


def test_the_truth_of_others_is_shown_only_where_it_calibrates(informed: ReportData) -> None:
    """Truth that judges is shown of the node itself, and of nobody else."""
    comparison, labels = informed.comparison, 0
    calibrates = {str(node) for node in comparison.data.calibration.tolist()}
    for of_node in informed.explorer.shown:
        for shown in of_node:
            for title, _, rows, *_ in shown["tables"]:
                if title.startswith("Labelled neighbours"):
                    assert {row[0] for row in rows} <= calibrates
                    assert all(row[1] == informed.parts.class_names[comparison.truth[int(row[0])]] for row in rows)
                    labels += len(rows)
    assert labels > 20


def test_many_classes_and_methods_leave_room_for_fewer_nodes_and_shorter_tables() -> None:
    rng = np.random.default_rng(0)
    n, classes = 600, 30
    y = np.arange(n) % classes
    p = rng.dirichlet(np.ones(classes), n) + 0.5 * np.eye(classes)[y]
    graph = ns.Graph.from_edge_index(rng.integers(n, size=(2, 3000)), num_nodes=n)
    compared = compare(
        graph, p / p.sum(axis=1, keepdims=True), y, np.arange(300), np.arange(300, n), methods=["split", "naps"],
        alphas=CURVE_ALPHAS,
    )  # fmt: skip
    data = page_data(compared)
    for of_node in data.explorer.shown[:10]:
        for shown in of_node:
            assert len(shown["outcome"]) <= 25
            _, _, rows, _, note = next(table for table in shown["tables"] if table[0].startswith("A label is in"))
            assert len(rows) in (12, 13)
            assert shown["true"] in {row[0] for row in rows}
            assert re.fullmatch(r"1[23] of 30 are shown\.", note)


def test_a_users_words_stand_in_what_is_explained_and_names_of_classes_stay(world) -> None:
    compared = compare(**(world | {"methods": ["split", "informed"]}), alphas=CURVE_ALPHAS)
    page = page_data(compared, class_names=["node", "class", "c", "d", "e"], words="shop, branch of trade")
    of_node = page.explorer.shown[page.explorer.start][page.shown.place]
    kinds = [row[0] for title, _, rows, *_ in of_node["tables"] if title.startswith("Evidence") for row in rows]
    assert "labels of shops with the same predicted branch of trade" in kinds
    labels = next(rows for _, head, rows, *_ in of_node["tables"] if head[0] == "label")
    assert {"node", "class"} <= {row[0] for row in labels}
    assert page.specs["funnel"]["layer"][0]["encoding"]["x"]["title"] == "Shops in the neighbourhood"
