"""Nothing that the first edition answered has changed: thresholds and sets to the bit, saved predictors still load."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import napsets as ns

sys.path.insert(0, str(Path(__file__).parent))
from golden import cases

#: Answers that are means of floats, which another BLAS may add up in another order.
WRITTEN_OUT = ("comparison", "advice")


@pytest.fixture(scope="module")
def committed():
    with np.load(cases.FOLDER / "answers.npz", allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
@pytest.mark.parametrize("part", [cases.of_sets, cases.of_thresholds, cases.of_metrics], ids=lambda part: part.__name__)
def test_every_answer_of_the_first_edition_stands(part, committed):
    found = part(cases.World())
    for name, value in found.items():
        if name in WRITTEN_OUT:
            assert_close(json.loads(str(value)), json.loads(str(committed[name])))
        else:
            np.testing.assert_array_equal(np.asarray(value), committed[name], err_msg=name)


def test_no_committed_answer_is_left_uncompared(committed):
    world = cases.World()
    with pytest.warns(ns.NapsetsWarning):
        assert set(committed) == {*cases.of_sets(world), *cases.of_thresholds(world), *cases.of_metrics(world)}


def test_a_naps_predictor_saved_by_the_first_edition_predicts_the_same():
    world = cases.World()
    loaded = ns.NAPS.load(cases.FOLDER / "naps.npz")
    fresh = ns.NAPS(hops=3, decay=[1.0, 1.0 / 2, 1.0 / 3], score=ns.RAPS(), fallback="global")
    fresh.calibrate(world.graph, world.probabilities, world.known, world.calibration)
    for name, value in cases.kept(loaded.predict(world.nodes, 0.1)).items():
        np.testing.assert_array_equal(value, cases.kept(fresh.predict(world.nodes, 0.1))[name])


def test_a_split_predictor_saved_by_the_first_edition_predicts_the_same():
    world = cases.World()
    loaded = ns.SplitConformal.load(cases.FOLDER / "split.npz")
    fresh = ns.SplitConformal(score=ns.SAPS(), allow_empty=False)
    fresh.calibrate(world.probabilities, world.known, world.calibration)
    for name, value in cases.kept(loaded.predict(world.nodes, 0.1)).items():
        np.testing.assert_array_equal(value, cases.kept(fresh.predict(world.nodes, 0.1))[name])


def assert_close(value, expected):
    """Compare nested lists and dictionaries leaf by leaf, floats up to the last digits; new names may have come."""
    if isinstance(expected, dict):
        assert value.keys() >= expected.keys()
        for name in expected:
            assert_close(value[name], expected[name])
    elif isinstance(expected, list):
        assert len(value) == len(expected)
        for mine, theirs in zip(value, expected, strict=True):
            assert_close(mine, theirs)
    else:
        assert value == (pytest.approx(expected, rel=1e-12, nan_ok=True) if isinstance(expected, float) else expected)
