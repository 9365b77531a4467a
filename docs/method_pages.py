"""Parts of a method's page that come from the code and from the leaderboard, filled in during the build."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from napsets.checks.text import percent
from napsets.evaluation.comparison import interval_methods
from napsets.methods import ALIASES, METHODS, list_methods, make_method, title

ROOT = Path(__file__).parents[1]
#: Marks the place of a method's header, or of its measured results, in a page.
MARK = re.compile(r"<!-- (method|measured) ([a-z-]+) -->")


def filled(markdown: str) -> str:
    """Replace the marks of a page by what they stand for."""
    return MARK.sub(lambda mark: {"method": header, "measured": measured}[mark[1]](mark[2]), markdown)


def method_table() -> str:
    """Return the table of methods: name, title, parts and purpose."""
    rows = [
        f"| {_linked(name)} | {_escaped(title(name))} | {_parts_of(name)} | {_escaped(text)} |"
        for name, text in list_methods().items()
        if not METHODS[name].__module__.startswith("studies")  # which register those that they compare with
    ]
    return "\n".join(["| name | in tables | score × localiser × level | what it is for |", "|---|---|---|---|", *rows])


def _task(name: str) -> str:
    """Say whether a method is for classification only."""
    too = name in interval_methods()
    return "It also gives [intervals](../intervals.md) for regression." if too else "It is for classification only."


def _linked(name: str) -> str:
    """Return a method's name, as a link to its section, or to that of the method that it is an alias of."""
    wanted = ALIASES.get(name, name)
    for page in sorted((Path(__file__).parent / "methods").glob("*.md")):
        if f"<!-- method {wanted} -->" in page.read_text(encoding="utf-8"):
            return f"[`{name}`](methods/{page.name}#{wanted})"
    return f"`{name}`"


def header(name: str) -> str:
    """Return the purpose of a method, its parts, and the lines that use it."""
    return "\n\n".join(
        [
            f"**{_escaped(list_methods()[name])}**",
            f"Name in the table of [methods](../methods.md): `{name}`. Score × localiser × level: {_parts_of(name)}. "
            f"{_task(name)}",
            f"```python\n{python_line(name)}\n```",
            f"```bash\n{command_line(name)}\n```",
        ]
    )


def python_line(name: str) -> str:
    """Return the line of Python that predicts sets with a method."""
    return f'sets = ns.make_method("{name}").calibrate(graph, probabilities, labels, known).predict(new, alpha=0.1)'


def command_line(name: str) -> str:
    """Return the command that predicts sets with a method."""
    files = "--edges edges.parquet --probabilities p.parquet --labels y.parquet"
    return f"napsets predict --method {name} {files} \\\n    --alpha 0.1 -o sets.parquet"


def measured(name: str) -> str:
    """Return the rows of the leaderboard for a method."""
    rows = [row for share in _standings() for row in _measured_rows(name, share)]
    if not rows:
        return "Not on the [leaderboard](../leaderboard.md) yet."
    columns = [
        "labelled", "size relative to `split` (95 %)", "worst graph", "excess gap (95 %)", "coverage", "full sets",
        "on the Pareto front of", "seconds",
    ]  # fmt: skip
    lines = [columns, ["---"] * len(columns), *rows]
    note = "Alpha 0.1. The rows come from the [leaderboard](../leaderboard.md), which explains the columns."
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{note}"


def _measured_rows(name: str, share: float) -> list[list[str]]:
    return [
        [
            percent(share, 0),
            row["ratio"].text(2),
            f"{row['worst']:.2f} ({row['worst_on']})",
            row["gap"].text(),
            f"{row['coverage']:.3f}",
            percent(row["full_rate"], 0),
            f"{row['on_front']} of {row['graphs']}",
            f"{row['seconds']:.2g}",
        ]
        for row in _standings()[share]
        if row["method"] == name
    ]


@cache
def _standings() -> dict[float, list[dict[str, Any]]]:
    """Return the standings of the methods over all graphs, for each share of labels."""
    from studies.leaderboard import KIND
    from studies.standings import make_standings, overall
    from studies.tables import grouped

    by_share = grouped(make_standings(KIND.read(ROOT / "results")), "share")
    return {share: overall(rows) for share, rows in sorted(by_share.items())}


def _parts_of(name: str) -> str:
    method = make_method(name)
    parts = [getattr(method, part, None) for part in ("score", "localiser", "level", "groups")]
    return " × ".join(f"`{_short(part)}`" for part in parts if part is not None) or "chosen by evidence"


def _short(part: Any) -> str:
    """Return a part with those of its settings that differ from the default."""
    try:
        usual = type(part)()
    except TypeError:  # it needs settings
        return type(part).__name__
    changed = [
        f"{field.name}={getattr(part, field.name)!r}"
        for field in fields(part)
        if getattr(part, field.name) != getattr(usual, field.name)
    ]
    return f"{type(part).__name__}({', '.join(changed)})" if changed else type(part).__name__


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
