"""``napsets status``: how a store is, how its sets have done, and whether an alarm rings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from napsets.cli._output import Output, number, percent, table, writable_file
from napsets.cli._store import StorePath

EXAMPLES = [
    "napsets status store",
    "napsets status store --json",
    "napsets status store --fail-on alarm",
    "napsets status store --prometheus napsets.prom",
]

#: The exit code where --fail-on fires: neither that of an error (1) nor that of wrong use (2).
ALARMED = 3


def status(
    run: Output,
    store: StorePath,
    fail_on: Annotated[
        Literal["alarm"] | None, typer.Option("--fail-on", help=f"Exit with code {ALARMED} if an alarm is raised.")
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            "--prometheus", help="Also write the figures to a file (.prom) that Prometheus' node exporter reads."
        ),
    ] = None,
) -> None:
    """Say how many nodes, edges and labels a store holds, how well its sets covered, and whether an alarm is raised.

    Coverage is prequential: each label evaluates the set that its node had before the label came. Its interval holds at
    all times together. A store that a service writes to can be read meanwhile.
    """
    from napsets.files.places import replacing
    from napsets.live.live import Live
    from napsets.service.guard import prometheus_text

    if prometheus is not None:
        writable_file(prometheus, (".prom", ".txt"), flag="--prometheus")
    with run.steps() as steps:
        steps.stage(f"opening {store}")
        with Live.open(store, read_only=True) as live:
            figures = live.status()
    if prometheus is not None:
        with replacing(prometheus) as draft:
            draft.write_text(prometheus_text(figures), encoding="utf-8")
    run.result(figures, table(str(store), ["", ""], _rows(figures)))
    ringing = [name for name, alarm in figures["judged"]["alarms"].items() if alarm["rang"] is not None]
    if fail_on is not None and ringing:
        run.note(f"alarm: {', '.join(ringing)}")
        raise typer.Exit(ALARMED)


def _rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    judged = figures["judged"]
    rows = [(name, number(figures[name])) for name in ("nodes", "edges", "labels", "events")]
    low, high = judged["coverage_interval"]
    rows += [
        ("labels that evaluated a set", number(judged["labels"])),
        ("target coverage", percent(1.0 - figures["alpha"])),
        ("coverage so far", percent(judged["coverage"])),
        ("… interval that holds at all times", f"{percent(low)} to {percent(high)}"),
        (f"… of the last {judged['window']} labels", percent(judged["recent_coverage"])),
        ("average set size", number(judged["mean_size"], 2)),
        ("median label delay, in labels", number(judged["label_delay"], 0)),
    ]
    for name, alarm in judged["alarms"].items():
        rows.append((f"alarm: {name}", "no" if alarm["rang"] is None else f"raised after {alarm['rang']:,} labels"))
    return rows
