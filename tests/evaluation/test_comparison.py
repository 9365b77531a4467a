"""Comparing methods must give the very sets that the predictors give, and honest numbers about them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, Comparison, compare, size_strata
from worlds import FOUR


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    n, classes = 600, 5
    labels = rng.integers(classes, size=n)
    ends = rng.integers(n, size=(2, 12000))
    kept = (labels[ends[0]] == labels[ends[1]]) | (rng.random(12000) < 0.2)
    logits = 2.0 * (np.arange(classes) == labels[:, None]) + rng.normal(size=(n, classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    order = rng.permutation(n)
    # Node 599 gets no edge: its neighbourhood has no mass at all.
    graph = ns.Graph.from_edge_index(ends[:, kept & (ends < n - 1).all(axis=0)], num_nodes=n)
    return {
        "graph": graph,
        "probabilities": p,
        "labels": labels,
        "calibration": np.setdiff1d(order[:300], n - 1),
        "nodes": np.union1d(order[300:], n - 1),
        "methods": FOUR,
    }


@pytest.fixture(scope="module")
def comparison(world: dict[str, Any]) -> Comparison:
    return compare(**world, alpha=0.1, hops=2, seed=4, alphas=CURVE_ALPHAS)


DECAYS = {"split": None, "naps": "uniform", "naps-h": "hyperbolic", "naps-g": "geometric"}


@pytest.mark.parametrize("method", FOUR)
def test_each_method_gives_the_sets_of_its_predictor(world: dict[str, Any], comparison: Comparison, method) -> None:
    p, y, cal = world["probabilities"], world["labels"], world["calibration"]
    if DECAYS[method] is None:
        predictor = ns.SplitConformal(seed=4).calibrate(p, y, cal)
    else:
        predictor = ns.NAPS(hops=2, decay=DECAYS[method], seed=4).calibrate(world["graph"], p, y, cal)
    expected, got = predictor.predict(world["nodes"], alpha=0.1), comparison[method].sets
    for name in ("nodes", "member", "thresholds", "support", "effective_size"):
        assert np.array_equal(getattr(got, name), getattr(expected, name)), name


def test_metrics_are_those_of_the_library(world: dict[str, Any], comparison: Comparison) -> None:
    partition = ns.neighbourhood_partition(world["graph"], world["nodes"], seed=4)
    assert partition
    for result in comparison:
        y, sets = world["labels"], result.sets
        assert result.coverage == ns.coverage(sets, y)
        assert result.mean_size == ns.mean_size(sets)
        assert result.size_given_coverage == ns.size_given_coverage(sets, y)
        assert result.sscv == ns.sscv(sets, y, [(0, 1), (2, 3), (4, 5)])
        assert result.pccv == ns.pccv(sets, y, partition)
        assert result.infinite == np.isinf(sets.thresholds).sum()


def test_gaps_are_those_over_the_usual_groups_and_the_users_own(world: dict[str, Any]) -> None:
    side = np.where(np.arange(600) < 300, "east", "west")
    found = compare(**world, seed=4, groups={"side": side})
    y, nodes = world["labels"], world["nodes"]
    groups = {
        "neighbourhood": ns.groups_by_neighbourhood(world["graph"], nodes, seed=4),
        "class": y,
        "degree": ns.groups_by_degree(world["graph"], 5, nodes),
        "confidence": ns.groups_by_confidence(world["probabilities"], 5, nodes),
        "side": side,
    }
    for result, row in zip(found, found.rows(), strict=True):
        assert list(result.gaps) == list(groups)
        for kind, each in groups.items():
            gap = ns.coverage_gap(result.sets, y, each)
            assert row[f"gap_{kind}"] == gap.gap
            assert row[f"chance_{kind}"] == gap.chance
        assert result.gaps["neighbourhood"].worst == pytest.approx(result.pccv)
        assert result.gaps["neighbourhood"].worst_chance == pytest.approx(result.pccv_chance)


def test_standard_errors_follow_their_formulas(comparison: Comparison) -> None:
    for result in comparison:
        n = len(result.sets)
        assert result.coverage_se == pytest.approx(math.sqrt(result.coverage * (1 - result.coverage) / n))
        assert result.mean_size_se == pytest.approx(result.sets.sizes.std(ddof=1) / math.sqrt(n))


def test_a_node_without_neighbours_gets_the_full_set_and_is_counted(comparison: Comparison) -> None:
    assert comparison["split"].infinite == 0
    for name in ("naps", "naps-h", "naps-g"):
        sets = comparison[name].sets
        row = int(np.flatnonzero(sets.nodes == 599)[0])
        assert sets.thresholds[row] == np.inf
        assert sets.member[row].all()
        assert comparison[name].infinite >= 1


def test_the_curve_is_what_each_alpha_alone_would_give(world: dict[str, Any], comparison: Comparison) -> None:
    for a, rate in ((4, 0.1), (12, 0.5)):
        assert comparison.alphas[a] == rate
        alone = compare(**world, alpha=rate, hops=2, seed=4)
        for one, many in zip(alone, comparison, strict=True):
            assert many.curve_coverage[a] == pytest.approx(one.coverage, abs=1e-12)
            assert many.curve_size[a] == pytest.approx(one.mean_size, abs=1e-12)


def test_sets_grow_as_alpha_falls(comparison: Comparison) -> None:
    for result in comparison:
        assert (np.diff(result.curve_coverage) <= 0).all()
        assert (np.diff(result.curve_size) <= 0).all()


def test_chunks_do_not_change_a_bit(world: dict[str, Any], comparison: Comparison, monkeypatch) -> None:
    monkeypatch.setattr("napsets.sets._CHUNK_ENTRIES", 35)
    for one, other in zip(compare(**world, seed=4), comparison, strict=True):
        assert np.array_equal(one.sets.member, other.sets.member)


def test_another_score_and_string_ids_are_used(world: dict[str, Any]) -> None:
    ids = np.array([f"node-{i}" for i in range(600)])
    found = compare(**world, score=ns.RAPS(), ids=ids, seed=1)
    naps = ns.NAPS(score=ns.RAPS(), seed=1).calibrate(
        world["graph"], world["probabilities"], world["labels"], world["calibration"], ids=ids
    )
    assert np.array_equal(found["naps"].sets.member, naps.predict(world["nodes"]).member)


def test_rows_survive_json(comparison: Comparison) -> None:
    rows = json.loads(json.dumps(comparison.rows()))
    assert [row["method"] for row in rows] == ["split", "naps", "naps-h", "naps-g"]
    assert [row["title"] for row in rows] == ["APS split", "NAPS", "NAPS-H", "NAPS-G"]
    assert rows[1]["coverage"] == comparison["naps"].coverage


def test_progress_reaches_the_number_of_nodes(world: dict[str, Any]) -> None:
    calls: list[tuple[int, int]] = []
    compare(**world, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (world["nodes"].size, world["nodes"].size)


@pytest.mark.parametrize("classes", range(1, 60))
def test_strata_hold_every_size_once(classes: int) -> None:
    sizes = [size for low, high in size_strata(classes) for size in range(low, high + 1)]
    assert sizes == list(range(classes + 1))


def test_unknown_labels_among_the_nodes_are_refused(world: dict[str, Any]) -> None:
    labels = world["labels"].copy()
    labels[world["nodes"][:2]] = -1
    with pytest.raises(ns.InvalidInputError, match=rf"2 do not, node {world['nodes'][0]} first"):
        compare(**(world | {"labels": labels}))


def test_no_nodes_are_refused(world: dict[str, Any]) -> None:
    with pytest.raises(ns.InvalidInputError, match="`nodes` must hold at least one node"):
        compare(**(world | {"nodes": []}))


def test_judging_calibration_nodes_warns(world: dict[str, Any]) -> None:
    with pytest.warns(ns.NapsetsWarning, match="holds 1 calibration nodes"):
        compare(**(world | {"nodes": np.append(world["nodes"], world["calibration"][0])}))


def test_an_unknown_method_is_a_key_error(comparison: Comparison) -> None:
    with pytest.raises(KeyError, match="NAPS-X"):
        comparison["NAPS-X"]


def test_the_verdict_says_what_to_take_and_how_sure_that_is(world: dict[str, Any], comparison: Comparison) -> None:
    assert str(comparison.verdict()).startswith("Keep APS split: sets of ")
    chosen = compare(**(world | {"methods": ("split", "auto")}))
    told = chosen.verdict()
    assert told.method == "auto"
    assert told.change.value == pytest.approx(chosen["auto"].mean_size / chosen.baseline.mean_size - 1)
    assert told.choice == str(chosen["auto"].calibrated.choice)


def test_a_score_that_learns_is_refused_for_methods_that_keep_no_labels_apart(world: dict[str, Any]) -> None:
    with pytest.raises(
        ns.InvalidInputError, match="`score` must not learn from labels where 'naps' is compared"
    ) as info:
        compare(**world, score="informed")
    assert "exact=True" not in str(info.value)
    found = compare(**(world | {"methods": ["split", "naps-exact", "informed"]}), score="informed")
    assert np.array_equal(found["split"].sets.member, found["informed"].sets.member)
    with pytest.raises(ns.InvalidInputError, match="`fallback` must be"):
        compare(**world, score="informed", fallback="none")


def test_settings_and_methods_that_there_are_not_are_named(world: dict[str, Any]) -> None:
    with pytest.raises(
        ns.InvalidInputError, match=r"`settings` must be one of .*; got 'pol' \(did you mean 'pool'\?\)"
    ):
        compare(**world, pol=3.0)
    with pytest.raises(
        ns.InvalidInputError, match=r"`methods` must be a list of names of methods; got \['naps'\] in it"
    ):
        compare(**(world | {"methods": [["naps"]]}))


def test_what_was_only_tried_is_not_kept(world: dict[str, Any]) -> None:
    found = compare(**(world | {"methods": ["split", "auto"]}))
    assert not found.given._scored
