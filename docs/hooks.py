"""Parts of the documentation that are generated during the build: command reference, method pages, benchmarks."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any

from method_pages import filled, method_table

from napsets.cli import make_app

#: Marks the place of the command reference in a page.
MARK = "<!-- commands -->"
#: Marks the place of the benchmark results in a page.
MEASURED = "<!-- measurements -->"
#: Marks the place of the table of methods in a page.
METHODS = "<!-- methods -->"
#: The panel of the options that all commands share, which are listed once.
COMMON = "Common options"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page by what they stand for (mkdocs calls this for each page)."""
    for mark, make in ((MARK, command_reference), (MEASURED, measurements), (METHODS, method_table)):
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return filled(markdown)


def measurements() -> str:
    """Return the benchmark results, one section per file."""
    paths = sorted((Path(__file__).parents[1] / "benchmarks" / "results").glob("*.md"))
    # Headings move down two levels: the page has its own title, and a section for them.
    texts = [re.sub(r"^#", "###", path.read_text(encoding="utf-8"), flags=re.M) for path in paths]
    return "\n\n".join(texts) or "Not measured in this version."


def command_reference() -> str:
    """Return the reference in Markdown, one section per command, in the order of the help."""
    import typer.main

    group: Any = typer.main.get_command(make_app())
    common = {_row(option): None for command in group.commands.values() for option in _panels(command).get(COMMON, [])}
    sections = [_section(name, command) for name, command in group.commands.items()]
    return "\n\n".join([*sections, f"## {COMMON}", _table(list(common))])


def _section(name: str, command: Any) -> str:
    parts = [f"## napsets {name}", _escaped(command.help or "")]
    examples = _examples(command.epilog or "")
    if examples:
        parts.append("```text\n" + "\n".join(examples) + "\n```")
    panels = _panels(command)
    common = panels.pop(COMMON, [])
    parts += [_table([_row(parameter) for parameter in parameters]) for parameters in panels.values()]
    if common:
        parts.append(f"Also the [common options](#{COMMON.lower().replace(' ', '-')}).")
    return "\n\n".join(parts)


def _panels(command: Any) -> dict[str, list[Any]]:
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        if parameter.name not in ("help", "help_all"):
            panels.setdefault(_panel(parameter), []).append(parameter)
    return panels


def _table(rows: list[str]) -> str:
    return "\n".join(["| option | meaning | default |", "|---|---|---|", *rows])


def _examples(epilog: str) -> list[str]:
    lines = [line.strip().replace("\\[", "[") for line in epilog.splitlines()]
    return [line for line in lines if line.startswith("napsets ")]


def _panel(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def _row(parameter: Any) -> str:
    names = [parameter.name.upper()] if parameter.param_type_name == "argument" else parameter.opts
    flags = ", ".join(f"`{name}`" for name in names)
    if parameter.secondary_opts:
        flags += " / " + ", ".join(f"`{name}`" for name in parameter.secondary_opts)
    words = ", ".join(f"`{choice}`" for choice in _choices(parameter))
    meaning = _escaped(parameter.help or "") + (f" One of {words}." if words else "")
    return f"| {flags} | {meaning} | {_default(parameter)} |"


def _choices(parameter: Any) -> list[str]:
    """Return the values that an option accepts, from its enumeration or, with an older Typer, from its choices."""
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(choice.value) for choice in annotation]
    return [
        str(getattr(choice, "value", choice)) for choice in getattr(getattr(parameter, "type", None), "choices", ())
    ]


def _default(parameter: Any) -> str:
    if parameter.required:
        return "*required*"
    value = getattr(parameter.default, "value", parameter.default)
    if parameter.secondary_opts:
        return f"`{(parameter.opts if value else parameter.secondary_opts)[0]}`"
    return "" if value is None or value is False or value == () or callable(value) else f"`{value}`"


def _escaped(text: str) -> str:
    """Return a help text as Markdown: bars would end a table cell, and option names become code."""
    text = text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    return re.sub(r"(?<![\w`])(--[a-z][a-z-]*)", r"`\1`", text)
