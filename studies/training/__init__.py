"""The recipes that train graph neural networks inductively: the paper's four models and two more, with two presets.

Training sees the subgraph of the training nodes only, validation that of training and validation nodes. Test nodes,
their features, labels and edges enter when the trained model predicts.
"""

from __future__ import annotations

from studies.training.models import MODELS, PRESETS, TrainingSettings, settings_for
from studies.training.recipes import Goal, TrainedModel, fit, outputs_of, predict, train

__all__ = [
    "MODELS",
    "PRESETS",
    "Goal",
    "TrainedModel",
    "TrainingSettings",
    "fit",
    "outputs_of",
    "predict",
    "settings_for",
    "train",
]
