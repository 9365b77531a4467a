"""``napsets methods``, ``datasets`` and ``errors``: lists of what has a name, and the guide that comes with napsets."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Annotated, NamedTuple

import typer

from napsets.checks.values import choose
from napsets.cli._output import Output, table, wrong_use

EXAMPLES = [
    "napsets methods",
    "napsets methods --json",
    "napsets datasets",
    "napsets datasets --json",
    "napsets errors",
    "napsets errors alpha",
]


def methods(run: Output) -> None:
    """List the methods by the names that --method and --methods take, with what each is for."""
    from napsets.methods import methods as listed
    from napsets.methods import title

    rows = [{"name": name, "title": title(name), "description": text} for name, text in listed().items()]
    cells = [(row["name"], row["description"]) for row in rows]
    run.result({"methods": rows}, table("Methods", ["name", "what it is for"], cells, left=2))


def datasets(run: Output) -> None:
    """List the datasets that `napsets.datasets.load` knows by name."""
    from napsets.datasets.registry import DATASETS

    rows = [
        {"name": name, "source": entry.source, "summary": entry.summary, "options": list(entry.options)}
        for name, entry in DATASETS.items()
    ]
    cells = [(row["name"], row["source"], row["summary"]) for row in rows]
    run.result({"datasets": rows}, table("Datasets", ["name", "source", "what it is"], cells, left=3))


_HEADING = re.compile(r"^## (?P<title>.+?) \{ #(?P<name>[a-z-]+) \}$", re.M)
#: What a terminal does without: where links lead, stars for quotes, and blocks of code.
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_MARKED = re.compile(r"(?<![\w*])\*([^*\n]+(?:\n[^*\n]+)*)\*(?![\w*])")
#: Ends of lines within a paragraph: the terminal has a width of its own.
_LINES = re.compile(r"(?<!\n)\n(?![\n|-])")
_BLOCK = re.compile(r"\n*^```.*?^```$", re.M | re.S)


class Topic(NamedTuple):
    """A section of the guide."""

    title: str
    text: str


def guide() -> dict[str, Topic]:
    """Return the sections of the guide by name, in its order."""
    text = files("napsets.cli").joinpath("errors.md").read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {
        heading["name"]: Topic(heading["title"], text[heading.end() : end].strip())
        for heading, end in zip(headings, ends, strict=True)
    }


def errors(
    run: Output,
    topic: Annotated[str | None, typer.Argument(help="What it is about; without it, a list.")] = None,
) -> None:
    """Explain errors and warnings: what causes them, and what to do about each, by topic."""
    topics = guide()
    if topic is None:
        cells = [(name, section.title) for name, section in topics.items()]
        shown = table("Errors and warnings: napsets errors TOPIC", ["topic", "what happened"], cells, left=2)
        run.result({"topics": {name: section.title for name, section in topics.items()}}, shown)
        return
    with wrong_use("TOPIC"):
        section = choose("topic", topic, topics)
    plain = _LINES.sub(" ", _MARKED.sub(r"“\1”", _LINK.sub(r"\1", _BLOCK.sub("", section.text))))
    run.result({"topic": topic, "title": section.title, "text": plain}, f"{section.title}\n\n{plain}")
