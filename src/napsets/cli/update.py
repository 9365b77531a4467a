"""``napsets update``: what is new enters a store, from files; corrections, alarms and steering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from napsets.cli._options import Only, ReadingOptions
from napsets.cli._output import Output, number, table
from napsets.cli.stores import StorePath, one_kind
from napsets.errors import FileFormatError
from napsets.files import NodeOutputs, read_edges, read_probabilities
from napsets.files.labels import class_indices, read_label_rows
from napsets.files.reading import Reading

if TYPE_CHECKING:
    from napsets.live.live import Live

EXAMPLES = [
    "napsets update store --labels new.csv",
    "napsets update store --nodes p.parquet --edges edges.parquet --labels y.parquet --key 2026-11-17",
    "napsets update store --correct wrong-labels.csv",
    "napsets update store --probabilities retrained.parquet --reset-alarm all",
    "napsets update store --steer aci",
]

#: The options on reading files that have a meaning for an update: the direction of edges is that of the store.
READ_NEW = Only("skip_unknown", "logits")


@dataclass(frozen=True)
class NewFiles:
    """Files with what is new."""

    labels: Annotated[
        Path | None, typer.Option("--labels", "-l", help="New labels: columns node, label, in the order of arrival.")
    ] = None
    edges: Annotated[Path | None, typer.Option("--edges", "-e", help="New edges: columns source, target.")] = None
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", "-n", help="New nodes: column node, then one column of probabilities per class."),
    ] = None
    probabilities: Annotated[
        Path | None,
        typer.Option("--probabilities", "-p", help="New probabilities of nodes that exist, as after a new training."),
    ] = None
    correct: Annotated[
        Path | None,
        typer.Option("--correct", help="Labels that replace wrong ones: columns node, label; an empty label removes."),
    ] = None


def update(
    run: Output,
    store: StorePath,
    new: NewFiles = NewFiles(),
    reset_alarm: Annotated[
        Literal["exchangeability", "coverage", "all"] | None,
        typer.Option(help="Start an alarm again, so that only labels from now on count for it."),
    ] = None,
    steer: Annotated[
        Literal["aci", "dtaci", "off"] | None,
        typer.Option(help="Let the level follow drift from now on, or stay at alpha (off)."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="A name for this batch. A batch that is sent again under the same name is ignored."),
    ] = None,
    read: Annotated[ReadingOptions, READ_NEW] = ReadingOptions(),
) -> None:
    """Enter what is new in a store, all of it or nothing.

    Nodes come first, then edges, probabilities, corrections, and labels in the order of their file. Each label
    evaluates the set that its node had before; `napsets status` says how the sets have done.
    """
    from napsets.live.live import Live

    if new == NewFiles() and reset_alarm is None and steer is None:
        raise typer.BadParameter("there is nothing to enter; pass --labels, --edges or --nodes", param_hint="--labels")
    notes: list[str] = []
    with run.steps() as steps:
        steps.stage(f"opening {store}")
        with Live.open(store) as live:
            steps.stage("reading files")
            changes = read_changes(live, new, read.reading, notes)
            changes += (
                [] if reset_alarm is None else [("reset_alarms", *([] if reset_alarm == "all" else [reset_alarm]))]
            )
            changes += [] if steer is None else [("steer", None if steer == "off" else steer)]
            run.notes(notes)
            steps.stage("entering")
            done = live.update(changes, key=key)
            status = live.status()
    counts: dict[str, int] = {}
    for name, *columns in changes:
        if name in _ENTERED:
            counts[_ENTERED[name]] = len(columns[0]) if done else 0
    if not done:
        run.note(f"a batch with the key {key} is already in the store: nothing was added")
    rows = [(f"{name} entered", number(count)) for name, count in counts.items()]
    rows += [(f"{name} in all", number(status[name])) for name in ("nodes", "edges", "labels", "events")]
    run.result({"entered": counts, "repeated": not done, **status}, table(str(store), ["", ""], rows))


#: What the entries of a change are called where they are counted.
_ENTERED = {
    "add_nodes": "nodes", "add_edges": "edges", "set_probabilities": "probabilities", "remove_labels": "corrections",
    "add_labels": "labels",
}  # fmt: skip


def read_changes(live: Live, new: NewFiles, reading: Reading, notes: list[str]) -> list[tuple[Any, ...]]:
    """Return the changes in files as `Live.update` takes them, in the order that `update` states.

    The direction of edges and the kind of ids are those of the store.
    """
    from napsets.live.events import as_ids

    changes: list[tuple[Any, ...]] = []
    known, ids = live.ids(), one_kind(live.ids())
    reading = replace(reading, directed=live.directed)
    outputs_of = (("add_nodes", "nodes", new.nodes), ("set_probabilities", "probabilities", new.probabilities))
    for name, argument, path in outputs_of:
        if path is None:
            continue
        outputs = read_probabilities(path, reading)
        if known and outputs.ids.is_string and not ids.is_string:
            raise FileFormatError(
                f"`{argument}` must have ids of the kind of the store, integers such as {known[0]!r}; those of {path} "
                f"are text such as {outputs.ids.values[0].as_py()!r}. Write them the same way."
            )
        names = as_ids(argument, outputs.ids.values.to_pylist()).tolist()
        named = list(map(str, names)) if known and ids.is_string else names
        changes.append((name, named, _in_order(outputs, live.class_names, path)))
        ids = one_kind(list(dict.fromkeys([*known, *changes[0][1]]))) if name == "add_nodes" else ids
    if new.edges is not None:
        graph = read_edges(new.edges, ids, reading, notes=notes)
        source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
        once = source < graph.indices if not graph.directed else slice(None)
        ends = (ids.take(end[once]).to_pylist() for end in (source, graph.indices))
        changes.append(("add_edges", *ends))
    for name, path in (("correct", new.correct), ("add", new.labels)):
        if path is None:
            continue
        rows = read_label_rows(path, ids, reading, notes=notes)
        codes, _ = class_indices(rows, live.class_names, notes)
        there = rows.places >= 0
        if name == "correct":
            changes.append(("remove_labels", ids.take(rows.places[there]).to_pylist()))
        there &= codes >= 0
        changes.append(("add_labels", ids.take(rows.places[there]).to_pylist(), codes[there]))
    return changes


def _in_order(table: NodeOutputs, class_names: Sequence[str] | None, path: Path) -> Any:
    """Return probabilities with their columns in the order of the classes of the store."""
    names = table.class_names or []
    if class_names is None or list(class_names) == names:
        return table.values
    if sorted(class_names) != sorted(names):
        raise FileFormatError(
            f"`nodes` must have the classes of the store, {', '.join(class_names)}; {path} has {', '.join(names)}"
        )
    return table.values[:, [names.index(name) for name in class_names]]
