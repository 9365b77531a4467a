"""``napsets datasets``: the datasets that have a name."""

from __future__ import annotations

from napsets.cli._output import Output, table

EXAMPLES = ["napsets datasets", "napsets datasets --json"]


def datasets(run: Output) -> None:
    """List the datasets that `napsets.datasets.load` knows by name."""
    from napsets.datasets.registry import DATASETS

    rows = [
        {"name": name, "source": entry.source, "summary": entry.summary, "options": list(entry.options)}
        for name, entry in DATASETS.items()
    ]
    cells = [(row["name"], row["source"], row["summary"]) for row in rows]
    run.result({"datasets": rows}, table("Datasets", ["name", "source", "what it is"], cells, left=3))
