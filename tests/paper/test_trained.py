"""Trained predictions: nothing is trained twice."""

from __future__ import annotations

import numpy as np
import pytest

from napsets.paper.setups import load_dataset
from napsets.paper.trained import TrainedPredictions

from .conftest import guess

pytestmark = pytest.mark.gnn


@pytest.fixture
def trainings(monkeypatch):
    """The trainings that were run, each replaced by a guess."""
    import napsets.gnn

    done = []

    def train(data, model, preset, seed, progress):
        done.append((model, preset, seed))
        return guess(None, data, model, preset, seed)

    monkeypatch.setattr(napsets.gnn, "train", train)
    return done


def test_a_model_is_trained_once_and_read_from_its_file_after_that(small, tmp_path, trainings):
    data = load_dataset("small", 0)
    first = TrainedPredictions(tmp_path)(small, data, "graphsage-max", "paper", 0)
    again = TrainedPredictions(tmp_path)(small, data, "graphsage-max", "paper", 0)
    assert trainings == [("graphsage-max", "paper", 0)]
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert again.accuracy == first.accuracy
    np.testing.assert_array_equal(again.nodes, data.test)
    assert again.settings["preset"] == "paper"
    assert again.settings["train_seconds"] >= 0


def test_another_setting_is_another_training(small, tmp_path, trainings):
    cache, data = TrainedPredictions(tmp_path), load_dataset("small", 0)
    for model, preset, seed in (
        ("shadow-gcn", "paper", 0),
        ("shadow-gcn", "released-code", 0),
        ("shadow-gcn", "paper", 1),
    ):
        cache(small, data, model, preset, seed)
    assert len(trainings) == len(list(tmp_path.glob("*.parquet"))) == 3
