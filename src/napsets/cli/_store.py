"""What the commands on a store share: making one from files, and reading what is new in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from napsets.cli._options import Only
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.classes import class_indices
from napsets.files.edges import read_edges
from napsets.files.formats import arrow
from napsets.files.ids import NodeIds
from napsets.files.inputs import Inputs, read_inputs
from napsets.files.labels import read_label_rows
from napsets.files.outputs import NodeProbabilities, read_probabilities
from napsets.files.reading import Reading

if TYPE_CHECKING:
    from napsets.live.live import Live

__all__ = ["READ", "StorePath", "live_from_files", "one_kind", "read_changes"]

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
