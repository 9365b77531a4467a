"""Graph neural networks, trained inductively, on PyTorch Geometric's layers (the extra ``gnn``).

`train` goes from a dataset to `napsets.NodePredictions` in one call; `fit` and `predict` are its two halves.
`predict_sets` is for those who already have a model.
"""

from __future__ import annotations

from napsets.errors import MissingDependencyError

try:
    import torch  # noqa: F401
    import torch_geometric  # noqa: F401
except ImportError as _error:
    raise MissingDependencyError(_error.name or "torch", "gnn") from _error

from napsets.gnn.bridge import predict_sets, probabilities_of
from napsets.gnn.models import MODELS, PRESETS, TrainingSettings, build_model, settings_for
from napsets.gnn.training import NodeQuantiles, TrainedModel, fit, predict, train

Settings = TrainingSettings  #: its earlier name

__all__ = [
    "MODELS",
    "PRESETS",
    "NodeQuantiles",
    "Settings",
    "TrainedModel",
    "TrainingSettings",
    "build_model",
    "fit",
    "predict",
    "predict_sets",
    "probabilities_of",
    "settings_for",
    "train",
]
