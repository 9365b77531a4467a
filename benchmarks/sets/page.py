"""The page ``docs/sets.md``, made from the rows and from nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.sets.measure import GROUPS, METHODS
from benchmarks.sets.predictions import GRAPHS, MODELS
from benchmarks.sets.summary import Cell, Law, against_split, cells, goals, law_of
from napsets.files.places import replacing

__all__ = ["PAGE", "summary_text", "write_page"]

PAGE = Path(__file__).parents[2] / "docs" / "sets.md"

_INTRO = """# Sets on a dozen graphs

Which method makes the smallest sets, and whose coverage is the most even? Measured with `python -m benchmarks.sets`
on {graphs} graphs of different kinds, with {models} models a graph, at alpha = 0.1. Everything on this page is made
from the rows in `benchmarks/results/sets.parquet`.

**How.** A tenth of the nodes trains a model, another tenth chooses its weights, inductively; the graph induced on
the other nodes is the one whose neighbourhoods count. In each of {repetitions} repetitions some of these nodes, 5 %
or 30 %, are labelled at random; every method makes sets of all others and is judged on them. The methods are those
of `napsets.methods()`, as they come: `split` (APS, one threshold for all) uses all labels for its threshold, `naps`
is as printed with 2 hops, and `naps-exact`, `informed`, `auto` and `auto-small` keep a part of the labels apart for
the level. The two wiki graphs are regression data whose target was cut into five classes by its quintiles.
The few constants of `auto` (how pronounced probabilities are made, from how many labels on classes are judged by their
own kind) were chosen on these same graphs, and so were the priors and the ridge of the evidence, to a lesser degree:
the figures of `auto`, `auto-small` and `informed` are a little flattering.

**Excess gaps.** `coverage_gap` is the mean |coverage − 0.9| over groups of nodes, less what chance alone would give
with groups of these sizes. The groups are neighbourhoods (radius 2, at least 30 nodes; minesweeper has none,
citeseer-full hardly any), classes, fifths by degree, and fifths by the model's confidence; the sum of the four is
shown. Small is good, and a value a little below zero is chance.

Read sizes beside coverage: `naps` as printed covers far more than 0.9, because nodes with few labelled neighbours
get full sets.
"""


def write_page(rows: Sequence[dict[str, Any]], path: Path = PAGE) -> None:
    """Write the page."""
    table = cells(rows)
    repetitions = sorted({cell.repetitions for cell in table.values()})
    many = f"{repetitions[0]}" if len(repetitions) == 1 else f"{repetitions[0]} to {repetitions[-1]}"
    names = [graph for graph in GRAPHS if any(key[0] == graph for key in table)]
    models = [model for model in MODELS if any(key[1] == model for key in table)]
    shares = sorted({key[2] for key in table})
    parts = [_INTRO.format(graphs=len(names), models=len(models), repetitions=many)]
    parts.append("## What was to be reached\n\n" + _goals(table, models))
    parts.append("## Against split APS\n\n" + _explain_ratios() + _against(table, shares, models))
    parts.append("## Coverage against its law\n\n" + _laws(law_of(rows, "auto"), law_of(rows, "auto-small")))
    parts.append("## What was chosen\n\n" + _choices(rows, names))
    parts += [
        f"## {share:.0%} labelled, {model}\n\n" + _graphs(table, names, model, share)
        for share in shares
        for model in models
    ]
    with replacing(path) as draft:
        draft.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")


def summary_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return the comparison with split APS, for the terminal."""
    table = cells(rows)
    models = [model for model in MODELS if any(key[1] == model for key in table)]
    return _against(table, sorted({key[2] for key in table}), models)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _number(value: float, digits: int = 3) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def _scopes(models: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    both: list[tuple[str, Sequence[str]]] = [("all models", models)] if len(models) > 1 else []
    return both + [(model, [model]) for model in models]


def _goals(table: dict[Any, Cell], models: Sequence[str]) -> str:
    if {0.05, 0.3} - {key[2] for key in table}:
        return "Goals are for 5 % and 30 % labelled nodes, which were not both measured.\n"
    scopes = _scopes(models)
    found = [goals(table, some) for _, some in scopes]
    rows = [
        [
            same[0].words,
            f"{same[0].limit:.2f}",
            *(f"{one.value:.4f} {'met' if one.met else '**not met**'}" for one in same),
        ]
        for same in zip(*found, strict=True)
    ]
    reached = sum(goal.met for goal in found[0])
    head = ["goal", "at most", *(name for name, _ in scopes)]
    return (
        f"Ratios to split APS with the same labels. Over {scopes[0][0]}, {reached} of {len(found[0])} goals are met."
        "\n\n" + _table(head, rows)
    )


def _explain_ratios() -> str:
    return (
        "Ratio of mean sizes: geometric and arithmetic mean over graphs, and the worst graph; ratio of the mean sum of "
        "excess gaps; the same by kind of group; mean coverage, share of empty and of full sets.\n\n"
    )


def _against(table: dict[Any, Cell], shares: Sequence[float], models: Sequence[str]) -> str:
    head = ["method", "size, geometric", "arithmetic", "worst", "on", "gaps", *GROUPS, "coverage", "empty", "full"]
    parts = []
    for share in shares:
        for name, some in _scopes(models):
            rows = []
            for method in METHODS:
                one = against_split(table, method, share, some)
                rows.append([
                    method, _number(one.geometric), _number(one.arithmetic), _number(one.worst), one.worst_on,
                    f"**{_number(one.gaps, 2)}**", *(_number(one.gaps_by_kind[kind], 2) for kind in GROUPS),
                    _number(one.coverage), f"{one.empty:.1%}", f"{one.full:.1%}",
                ])  # fmt: skip
            parts.append(f"**{share:.0%} labelled, {name}**\n\n" + _table(head, rows))
    return "\n".join(parts)


def _laws(auto: Sequence[Law], small: Sequence[Law]) -> str:
    told = (
        "With m labels for the level and k = ⌈0.9(m+1)⌉, the number of covered nodes is beta-binomial whatever was "
        "chosen, and the repetitions are independent draws. So every mean coverage has a two-sided tail probability."
        "\n\n"
    )
    for name, laws in (("auto", auto), ("auto-small", small)):
        worst = min(laws, key=lambda law: law.p_value)
        corrected = min(1.0, worst.p_value * len(laws))
        below = sum(law.p_value < 0.05 for law in laws)
        told += (
            f"- `{name}`: the smallest of {len(laws)} p-values is {worst.p_value:.3g} ({worst.dataset}, {worst.model}, "
            f"{worst.share:.0%}: coverage {worst.coverage:.4f}, expected {worst.expected:.4f}, m = "
            f"{worst.level_labels}); times their number, {corrected:.2g}. Below 0.05 are {below} of them, where "
            f"{0.05 * len(laws):.1f} are to be expected.\n"
        )
    return told


def _choices(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    found: dict[tuple[str, float], dict[str, int]] = {}
    for row in rows:
        if row["method"] == "auto":
            counts = found.setdefault((row["dataset"], row["share"]), {})
            counts[row["choice"]] = counts.get(row["choice"], 0) + 1
    shares = sorted({share for _, share in found})
    lines = []
    for name in names:
        told = []
        for share in shares:
            often = Counter(found.get((name, share), {})).most_common(3)
            told.append("; ".join(f"{choice} ({times})" for choice, times in often))
        lines.append([name, *told])
    head = ["graph", *(f"{share:.0%} labelled" for share in shares)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])
    return f"What `auto` chose, the three most frequent choices over models and repetitions.\n\n{text}\n"


def _graphs(table: dict[Any, Cell], names: Sequence[str], model: str, share: float) -> str:
    head = ["graph", "labels", "accuracy", *METHODS]
    sizes, gaps, covered = [], [], []
    for name in names:
        some = [table[name, model, share, method] for method in METHODS if (name, model, share, method) in table]
        if len(some) < len(METHODS):
            continue
        start = [name, f"{some[0].labels:,}", f"{some[0].accuracy:.3f}"]
        sizes.append([*start, *(f"{cell.mean_size:.2f}" for cell in some)])
        gaps.append([name, *(_number(cell.total) for cell in some)])
        covered.append([name, *(f"{cell.coverage:.3f}" for cell in some)])
    return (
        f"Mean size:\n\n{_table(head, sizes)}\nSum of excess gaps:\n\n{_table(['graph', *METHODS], gaps)}\n"
        f"Coverage:\n\n{_table(['graph', *METHODS], covered)}"
    )
