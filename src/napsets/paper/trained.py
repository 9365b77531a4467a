"""Trained models' predictions, kept in files so that no training runs twice."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from napsets.datasets import NodeDataset
from napsets.files.predictions import NodePredictions
from napsets.paper.cells import INFERENCES, RESULTS_VERSION, CoverageCell, digest
from napsets.paper.setups import loading

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

    def path(self, cell: CoverageCell) -> Path:
        """Return the file of the predictions that a cell is about."""
        settings = {**loading(cell.dataset), "version": RESULTS_VERSION}
        names = (cell.dataset, cell.model, cell.preset, cell.inference, str(cell.seed))
        return self.folder / f"{'_'.join(names)}_{digest({**settings, 'names': names})[:8]}.parquet"

    def __call__(self, cell: CoverageCell, data: NodeDataset) -> NodePredictions:
        """Return the predictions, training only where there is no file yet; one training serves both inferences."""
        path = self.path(cell)
        if not path.exists():
            self._train(cell, data)
        return NodePredictions.load(path)

    def _train(self, cell: CoverageCell, data: NodeDataset) -> None:
        from napsets.gnn import fit, predict

        start = time.perf_counter()
        trained = fit(data, cell.model, cell.preset, cell.seed)
        fitted = time.perf_counter() - start
        for inference in INFERENCES:
            start = time.perf_counter()
            predicted = predict(trained, data, inference=inference)
            assert isinstance(predicted, NodePredictions)
            seconds = round(fitted + time.perf_counter() - start, 2)
            about = {**predicted.settings, "preset": cell.preset, "train_seconds": seconds}
            replace(predicted.take(data.test), settings=about).save(self.path(replace(cell, inference=inference)))
