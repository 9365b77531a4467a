"""Stores and saved methods: making a store from files, reading what is new in files, predicting without calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from napsets.checks.arguments import IntArray
from napsets.cli._options import Only
from napsets.cli._output import Output, wrong_use
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files import NodeProbabilities, check_writable, describe_settings, read_probabilities, write_prediction
from napsets.files.ids import NodeIds
from napsets.files.inputs import Inputs, read_edges, read_inputs
from napsets.files.labels import class_indices, read_label_rows, read_nodes
from napsets.files.reading import Reading

if TYPE_CHECKING:
    from napsets.live.live import Live

StorePath = Annotated[Path, typer.Argument(help="The folder of a living graph.", show_default=False)]
Stage = Callable[[str], None]
#: The options on reading files that have a meaning for a store.
READ = Only("directed", "ids", "labels_are", "skip_unknown", "logits")


def live_from_files(
    edges: Path, probabilities: Path, labels: Path, reading: Reading, stage: Stage, notes: list[str], **settings: Any
) -> Live:
    """Return a living graph that starts from files; its labels count as arrived in an order drawn from the seed."""
    from napsets.live.live import Live

    inputs: Inputs = read_inputs(edges, probabilities, labels, reading=reading, predicting=False, stage=stage)
    notes += inputs.notes
    stage("starting")
    return Live.start(
        inputs.graph,
        inputs.outputs,
        inputs.truth,
        ids=inputs.ids.values.to_pylist(),
        class_names=inputs.class_names,
        **settings,
    )


def read_changes(
    live: Live, nodes: Path | None, edges: Path | None, labels: Path | None, reading: Reading, notes: list[str]
) -> list[tuple[Any, ...]]:
    """Return what files say is new, as `Live.update` takes it: nodes first, then edges, then labels in their order."""
    changes: list[tuple[Any, ...]] = []
    known = live.ids()
    if nodes is not None:
        table = read_probabilities(nodes, reading)
        changes.append(("add_nodes", table.ids.values.to_pylist(), _in_order(table, live.class_names, nodes)))
        known = list(dict.fromkeys([*known, *changes[0][1]]))
    if edges is None and labels is None:
        return changes
    ids = one_kind(known, nodes)
    if edges is not None:
        graph = read_edges(edges, ids, reading, notes=notes)
        source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
        once = source < graph.indices if not graph.directed else slice(None)
        ends = (ids.take(end[once]).to_pylist() for end in (source, graph.indices))
        changes.append(("add_edges", *ends))
    if labels is not None:
        rows = read_label_rows(labels, ids, reading, notes=notes)
        codes, _ = class_indices(rows.table, rows.texts, live.class_names, reading.labels_are, notes)
        there = (rows.places >= 0) & (codes >= 0)
        changes.append(("add_labels", ids.take(rows.places[there]).to_pylist(), codes[there]))
    return changes


def _in_order(table: NodeProbabilities, class_names: Sequence[str] | None, path: Path) -> Any:
    """Return probabilities with their columns in the order of the classes of the store."""
    if class_names is None or list(class_names) == table.class_names:
        return table.values
    if sorted(class_names) != sorted(table.class_names):
        raise FileFormatError(
            f"`nodes` must have the classes of the store, {', '.join(class_names)}; {path} has "
            f"{', '.join(table.class_names)}"
        )
    return table.values[:, [table.class_names.index(name) for name in class_names]]


def one_kind(ids: Sequence[Any], nodes: Path | None) -> NodeIds:
    """Return the ids of all nodes, which files can name only where all are integers or all are text."""
    kinds = {type(name) for name in ids}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"`nodes` must have ids of one kind, all integers or all text, to be named in files; "
            f"the store{'' if nodes is None else f' with {nodes}'} has both. Use Live in Python, or the service."
        )
    pa = arrow()
    return NodeIds(pa.array(ids, pa.large_string() if kinds == {str} else pa.int64()), "nodes")


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
    store: Path | None,
    method_file: Path | None,
    nodes: Path | None,
    target: Path,
    alpha: float | None,
    reading: Reading,
    p_values: Any = False,
) -> dict[str, Any]:
    """Predict from a store or else a saved method, and return what is said of it.

    Without a file of nodes, all are predicted that have no label; without an alpha, a store has its own. `p_values` is
    the argument of `predict`.
    """
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
        if p_values:
            settings["p_values"] = "smoothed" if p_values == "smoothed" else "plain"
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
