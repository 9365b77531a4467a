"""Sets from what was calibrated before: a store, or a saved method; no file is calibrated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.cli._output import Output
from napsets.cli._places import wrong_use
from napsets.cli._store import one_kind
from napsets.errors import InvalidInputError
from napsets.files import check_writable, describe_settings, write_prediction
from napsets.files.inputs import Inputs
from napsets.files.labels import read_nodes
from napsets.files.reading import Reading

__all__ = ["predict_saved"]


class _Store:
    """A living graph as something that predicts nodes by their place among its ids."""

    def __init__(self, path: Path) -> None:
        from napsets.live.live import Live

        with Live.open(path, read_only=True) as live:  # the state stays, without the log
            self.live, self.method, self.class_names = live, live.method, live.class_names
            self.alpha = live.status()["alpha"]
        self.ids, free = live.ids(), set(live.ids(unlabelled=True))
        self.unlabelled = np.array([place for place, name in enumerate(self.ids) if name in free], dtype=np.int64)
        self.labels = len(self.ids) - len(free)

    def predict(self, nodes: IntArray, alpha: float, progress: Any = None, p_values: Any = False) -> Any:
        ids = [self.ids[node] for node in nodes.tolist()]
        sets = self.live.predict(ids, alpha)
        return replace(sets, p_values=self.live.p_values(ids)) if p_values else sets


class _SavedMethod:
    """A calibrated method from a file, likewise."""

    def __init__(self, path: Path) -> None:
        from napsets.methods import Calibrated, load

        loaded = load(path)
        calibrated = loaded if isinstance(loaded, Calibrated) else loaded.calibrated()
        scored = calibrated.scored
        self.calibrated, self.class_names, self.method = calibrated, scored.class_names, calibrated.method
        self.score = calibrated.score
        names = np.arange(calibrated.num_nodes) if scored.ids is None else scored.ids
        self.ids: Sequence[Any] = names.tolist()
        self.unlabelled = np.setdiff1d(np.arange(calibrated.num_nodes), scored.calibration)
        self.labels = int(scored.calibration.size)

    def predict(self, nodes: IntArray, alpha: float, progress: Any = None, p_values: Any = False) -> Any:
        return self.calibrated.predict(positions=nodes, alpha=alpha, progress=progress, p_values=p_values)


def predict_saved(
    run: Output,
    source_files: tuple[Path | None, Path | None],
    nodes: Path | None,
    target: Path,
    alpha: float | None,
    reading: Reading,
    p_values: Any = False,
) -> dict[str, Any]:
    """Predict from a store or else a saved method, and return what is said of it.

    Without a file of nodes, all are predicted that have no label; without an alpha, a store has its own. `p_values` is
    what `predict` is told.
    """
    store, method_file = source_files
    with wrong_use("--output"):
        check_writable(target, reading=reading)
    with run.steps() as steps:
        steps.stage(f"opening {store or method_file}")
        source: Any = _Store(store) if store is not None else _SavedMethod(method_file)  # type: ignore[arg-type]
        ids = one_kind(source.ids, None)
        chosen = source.unlabelled if nodes is None else read_nodes(nodes, ids, reading)
        if not chosen.size:
            raise InvalidInputError("there is no node to predict: every node has a label. Pass --nodes.")
        classes = None if source.class_names is None else list(source.class_names)
        inputs = Inputs(ids, None, None, np.full(len(ids), -1), chosen, classes)  # type: ignore[arg-type]
        alpha = source.alpha if alpha is None else alpha
        settings = {"alpha": alpha, "store": None if store is None else str(store)}
        metadata = describe_settings(
            {key: value for key, value in settings.items() if value is not None},
            classes, nodes=len(ids), calibration=source.labels, method=source.method,
        )  # fmt: skip
        steps.stage("making sets")
        summary = write_prediction(
            inputs, target, source,
            alpha=alpha, metadata=metadata, reading=reading, p_values=p_values, progress=steps.advance,
        )  # fmt: skip
    return summary.row() | {"calibration": source.labels, "settings": settings}
