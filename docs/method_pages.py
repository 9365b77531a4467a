"""What the page of a method takes from the code and from the leaderboard, while the documentation is built."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from napsets.evaluation.interval_comparison import interval_methods
from napsets.methods import make_method, methods, title

__all__ = ["filled", "method_table"]

ROOT = Path(__file__).parents[1]
#: What a page writes where it wants what the code says of a method, and what was measured.
MARK = re.compile(r"<!-- (method|measured) ([a-z-]+) -->")


def filled(markdown: str) -> str:
    """Put what is made where a page asks for it."""
    return MARK.sub(lambda found: {"method": header, "measured": measured}[found[1]](found[2]), markdown)


def method_table() -> str:
    """Return the table of methods: what each is called, what it is made of, and what it is for."""
    rows = [
        f"| {_linked(name)} | {_escaped(title(name))} | {_made_of(name)} | {_escaped(text)} |"
        for name, text in methods().items()
    ]
    return "\n".join(["| name | in tables | score × localiser × level | what it is for |", "|---|---|---|---|", *rows])


def _makes(name: str) -> str:
    """Say whether a method is for labels alone."""
    too = name in interval_methods()
    return "It makes [intervals of numbers](../intervals.md) too." if too else "It is for labels alone."


def _linked(name: str) -> str:
    """Return a method's name as a link to its page, if it has one yet."""
    return (
        f"[`{name}`](methods/{name}.md)" if (Path(__file__).parent / "methods" / f"{name}.md").exists() else f"`{name}`"
    )


def header(name: str) -> str:
    """Return what a method is for, what it is made of, and the lines that use it."""
    return "\n\n".join(
        [
            f"**{_escaped(methods()[name])}**",
            f"In the table of [methods](../methods.md): `{name}`. Score × localiser × level: {_made_of(name)}. "
            f"{_makes(name)}",
            f"```python\n{python_line(name)}\n```",
            f"```bash\n{command_line(name)}\n```",
        ]
    )


def python_line(name: str) -> str:
    """Return the line of Python that makes sets by a method."""
    return f'sets = ns.make_method("{name}").calibrate(graph, probabilities, labels, known).predict(new, alpha=0.1)'


def command_line(name: str) -> str:
    """Return the command that makes sets by a method."""
    files = "--edges edges.parquet --probabilities p.parquet --labels y.parquet"
    return f"napsets predict --method {name} {files} \\\n    --alpha 0.1 -o sets.parquet"


def measured(name: str) -> str:
    """Return the rows of the leaderboard that are about a method."""
    rows = [row for share in _standings() for row in _measured_rows(name, share)]
    if not rows:
        return "Not on the [leaderboard](../leaderboard.md) yet."
    columns = [
        "labelled", "size against `split` (95 %)", "worst graph", "gap (95 %)", "coverage", "full sets",
        "on the front of", "seconds",
    ]  # fmt: skip
    lines = [columns, ["---"] * len(columns), *rows]
    told = "Alpha 0.1; what the columns are stands on the [leaderboard](../leaderboard.md), which these rows are from."
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{told}"


def _measured_rows(name: str, share: float) -> list[list[str]]:
    return [
        [
            f"{share:.0%}",
            one.ratio.text(2),
            f"{one.worst:.2f} ({one.worst_on})",
            one.gap.text(),
            f"{one.coverage:.3f}",
            f"{one.full_rate:.0%}",
            f"{one.on_front} of {one.graphs}",
            f"{one.seconds:.2g}",
        ]
        for one in _standings()[share]
        if one.method == name
    ]


@cache
def _standings() -> dict[float, list[Any]]:
    """Return how methods fare over all graphs, for each share of labels."""
    from napsets.paper.leaderboard.summary import overall, standings
    from napsets.paper.store import RowStore

    found = standings(RowStore(ROOT / "results").rows("leaderboard"))
    return {
        share: overall([one for one in found if one.share == share]) for share in sorted({one.share for one in found})
    }


def _made_of(name: str) -> str:
    method = make_method(name)
    parts = [getattr(method, part, None) for part in ("score", "localiser", "level", "groups")]
    return " × ".join(f"`{_short(part)}`" for part in parts if part is not None) or "chosen by evidence"


def _short(part: Any) -> str:
    """Return a part with those of its settings that are not as usual for its kind."""
    try:
        usual = type(part)()
    except TypeError:  # it is nothing without settings
        return type(part).__name__
    changed = [
        f"{field.name}={getattr(part, field.name)!r}"
        for field in fields(part)
        if getattr(part, field.name) != getattr(usual, field.name)
    ]
    return f"{type(part).__name__}({', '.join(changed)})" if changed else type(part).__name__


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
