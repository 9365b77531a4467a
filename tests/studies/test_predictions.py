"""Trained predictions: nothing is trained twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napsets.studies import CoverageCell
from napsets.studies.laboratory import PredictionCache
from napsets.studies.protocols import load_dataset

from .conftest import guess

pytestmark = pytest.mark.gnn


CELL = CoverageCell("small", "graphsage-max", 0, "strict", "NAPS", 2, preset="paper")


@pytest.fixture
def trainings(monkeypatch):
    """The trainings that were run, each replaced by a guess."""
    import napsets.gnn

    done = []

    def fit(data, model, preset, seed):
        done.append((model, preset, seed))
        return replace(CELL, model=model, preset=preset, seed=seed)

    monkeypatch.setattr(napsets.gnn, "fit", fit)
    monkeypatch.setattr(napsets.gnn, "predict", lambda trained, data, inference: guess(trained, data))
    return done


def test_a_model_is_trained_once_and_read_from_its_file_after_that(small, tmp_path, trainings):
    data = load_dataset("small", 0)
    first = PredictionCache(tmp_path)(CELL, data)
    again = PredictionCache(tmp_path)(replace(CELL, method="APS", hops=0), data)
    PredictionCache(tmp_path)(replace(CELL, inference="exact"), data)
    assert trainings == [("graphsage-max", "paper", 0)]
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert again.accuracy == first.accuracy
    np.testing.assert_array_equal(again.nodes, data.test)
    assert again.settings["preset"] == "paper"
    assert again.settings["train_seconds"] >= 0


def test_another_setting_is_another_training(small, tmp_path, trainings):
    cache, data = PredictionCache(tmp_path), load_dataset("small", 0)
    for change in ({}, {"preset": "released-code"}, {"seed": 1}, {"model": "shadow-gcn"}):
        cache(replace(CELL, **change), data)
    assert len(trainings) == 4
    assert len(list(tmp_path.glob("*.parquet"))) == 2 * 4  # both inferences
