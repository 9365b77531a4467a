"""``napsets methods``: the list of methods."""

from __future__ import annotations

from napsets.cli._output import Output, table

EXAMPLES = [
    "napsets methods",
    "napsets methods --json",
]


def methods(run: Output) -> None:
    """List the methods by the names that --method and --methods take, with what each is for."""
    from napsets.methods import list_methods, title

    rows = [{"name": name, "title": title(name), "description": text} for name, text in list_methods().items()]
    cells = [(row["name"], row["description"]) for row in rows]
    run.result({"methods": rows}, table("Methods", ["name", "what it is for"], cells, left=2))
