"""``napsets update``: enter new nodes, edges and labels from files in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from napsets.cli._options import ReadingOptions
from napsets.cli._output import Output, number, table
from napsets.cli._store import READ, StorePath, read_changes

EXAMPLES = [
    "napsets update store --labels new.csv",
    "napsets update store --nodes p.parquet --edges edges.parquet --labels y.parquet --key 2026-11-17",
]


def update(
    run: Output,
    store: StorePath,
    labels: Annotated[
        Path | None, typer.Option("--labels", "-l", help="New labels: columns node, label, in the order of arrival.")
    ] = None,
    edges: Annotated[Path | None, typer.Option("--edges", "-e", help="New edges: columns source, target.")] = None,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", "-n", help="New nodes: column node, then one column of probabilities per class."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="A name for this batch. A batch that is sent again under the same name is ignored."),
    ] = None,
    read: Annotated[ReadingOptions, READ] = ReadingOptions(),
) -> None:
    """Enter what is new in a store, all of it or nothing.

    Nodes come first, then edges, then labels in the order of their file. Each label evaluates the set that its node had
    before; `napsets status` says how the sets have done.
    """
    from napsets.live.live import Live

    if labels is None and edges is None and nodes is None:
        raise typer.BadParameter("there is nothing to add; pass --labels, --edges or --nodes", param_hint="--labels")
    notes: list[str] = []
    with run.steps() as steps:
        steps.stage(f"opening {store}")
        with Live.open(store) as live:
            steps.stage("reading files")
            changes = read_changes(live, nodes, edges, labels, read.reading, notes)
            run.notes(notes)
            steps.stage("entering")
            done = live.update(changes, key=key)
            status = live.status()
    counts = {name.removeprefix("add_"): len(columns[0]) if done else 0 for name, *columns in changes}
    if not done:
        run.note(f"a batch with the key {key} is already in the store: nothing was added")
    rows = [(f"{name} entered", number(count)) for name, count in counts.items()]
    rows += [(f"{name} in all", number(status[name])) for name in ("nodes", "edges", "labels", "events")]
    run.result({"entered": counts, "repeated": not done, **status}, table(str(store), ["", ""], rows))
