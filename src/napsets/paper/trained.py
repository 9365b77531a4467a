"""Trained models' predictions, kept in files so that no training runs twice."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from napsets.paper.cells import RESULTS_VERSION, digest
from napsets.paper.setups import Setup

if TYPE_CHECKING:
    from napsets.datasets import NodeDataset
    from napsets.predictions import NodePredictions

__all__ = ["TrainedPredictions"]


class TrainedPredictions:
    """Gives a model's predictions on a dataset's test nodes: from a file, or by training it.

    Parameters
    ----------
    folder : path
        Where the files live, named by what they hold and a hash of the settings.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, setup: Setup, model: str, preset: str, seed: int) -> Path:
        """Return the file of one training."""
        settings = {"loader": setup.loader, "options": dict(setup.options), "version": RESULTS_VERSION}
        mark = digest({**settings, "model": model, "preset": preset, "seed": seed})[:8]
        return self.folder / f"{setup.name}_{model}_{preset}_{seed}_{mark}.parquet"

    def __call__(self, setup: Setup, data: NodeDataset, model: str, preset: str, seed: int) -> NodePredictions:
        """Return the predictions, training only where there is no file yet."""
        from napsets.predictions import NodePredictions

        path = self.path(setup, model, preset, seed)
        if path.exists():
            return NodePredictions.load(path)
        from napsets.gnn import train

        start = time.perf_counter()
        trained = train(data, model, preset, seed, progress=False)
        about = {**trained.settings, "preset": preset, "train_seconds": round(time.perf_counter() - start, 2)}
        kept = replace(trained.take(data.test), settings=about)
        kept.save(path)
        return kept
