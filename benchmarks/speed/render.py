"""Tables in Markdown from the rows that were measured, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed import plots
from benchmarks.speed.summary import Group, Spread, grouped, per_round, quotient
from napsets.files.paths import replacing

_PACE = ["bare traversal", "napsets", "ns per touched edge", "ratio", "CPU ratio"]
_INTRODUCTION = """# Speed

Written by `python -m benchmarks.speed` from `speed.json`, as are the plots next to it. Every figure is the median over
rounds (smallest to largest in brackets); each run is a process of its own, warmed up before the clock starts, and the
contenders take turns. *Ratio* is the time divided by that of the bare traversal in the same round, with as many threads
(a contender that ran once is compared with the median of the other). *CPU ratio* is the same for the processor time of
all threads, which other work on the machine disturbs less. napsets computes thresholds for three decays in one pass,
and its time includes sorting the scores and renumbering the graph; the bare traversal computes nothing.
"""


def write_results(figures: dict[str, Any], folder: Path) -> str:
    """Write ``speed.md`` and the plots; return the text."""
    sections = figures.get("sections", {})
    graphs = figures.get("graphs", {})
    parts = [_INTRODUCTION, _machine(sections)]
    for name, table in _TABLES.items():
        if name in sections:
            parts.append(table(sections[name]["rows"], graphs))
    text = "\n".join(parts)
    with replacing(folder / "speed.md") as draft:
        draft.write_text(text)
    plots.write_plots(sections, graphs, folder)
    return text


def _machine(sections: dict[str, Any]) -> str:
    described = {
        f"{m['processor']}, {m['cores']} cores, {m['memory_gib']} GiB, Python {m['python']}"
        for m in (section["machine"] for section in sections.values())
    }
    loads = ", ".join(f"{name} {section['machine']['load']}" for name, section in sections.items())
    quick = [name for name, section in sections.items() if section["quick"]]
    note = f" Measured with `--quick`: {', '.join(quick)}." if quick else ""
    return f"Machine: {'; '.join(sorted(described))}. Load average at the end of each section: {loads}.{note}\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(['---'] * len(head))}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _seconds(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f} s"


def _ratio(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:,.{digits}f}"


def _graph(about: dict[str, Any]) -> str:
    return (
        f"{about['title']}: {about['nodes']:,} nodes, {about['edges']:,} directed edges, "
        f"largest degree {about['largest_degree']:,}"
    )


def _full_time(group: Group, graphs: dict[str, Any]) -> Spread:
    """Return the time for all nodes: as measured, or scaled up from the sample."""
    nodes = graphs[group.key["graph"]]["nodes"]
    return Spread([row["seconds"] * nodes / row["sources"] for row in group.rows])


def _depth(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    groups = grouped(rows, "graph", "hops", "task", "threads", "sources")
    about = graphs[rows[0]["graph"]]
    head = ["hops", "contender", "threads", "nodes timed", "time for all nodes", "ratio", "CPU ratio", "over napsets"]
    lines = []
    for group in groups:
        hops, task, threads = group.key["hops"], group.key["task"], group.key["threads"]
        timed = group.rows[0]["sources"]
        alike = [g for g in groups if (g.key["hops"], g.key["threads"]) == (hops, threads)]
        floor = next((g for g in alike if g.key["task"] == "floor"), group)
        own = next((g for g in alike if g.key["task"] == "napsets"), group)
        whole = timed == about["nodes"]
        lines.append(
            [
                str(hops),
                plots.NAMES[task],
                "torch's own" if task == "torchcp" else str(threads),
                f"{timed:,}" if not whole else "all",
                _full_time(group, graphs).text(_seconds) + ("" if whole else ", extrapolated"),
                "1" if group is floor else quotient(group, floor, "seconds").text(_ratio),
                "1" if group is floor else quotient(group, floor, "cpu_seconds").text(_ratio),
                "1" if group is own else quotient(group, own, "seconds").text(_ratio),
            ]
        )
    first = [row["first_seconds"] for row in rows if row["task"] == "napsets"]
    note = (
        f"First call of napsets in a process: {_seconds(max(first))} when every kernel is compiled, "
        f"{Spread(first).text(_seconds)} over all processes (kernels come from the cache on disk).\n\n"
        "The NetworkX and SciPy implementations use one thread and share one search among three decays; computing the "
        "scores is not included. TorchCP's predictor computes one decay per pass and computes the scores again for "
        "each node; torch chooses its number of threads. All three are compared with the bare traversal and with "
        "napsets on one thread.\n"
    )
    return f"## Time against depth\n\n{_graph(about)}. Every node calibrates.\n\n{_table(head, lines)}\n{note}"


def _nodes(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    head = ["nodes", "directed edges", "edges touched", *_PACE]
    lines = []
    for group, floor in _pairs(rows):
        about = graphs[group.key["graph"]]
        lines.append(
            [
                f"{about['nodes']:,}",
                f"{about['edges']:,}",
                f"{group.rows[0]['touched']:,}",
                *_pace(group, floor),
            ]
        )
    threads = rows[0]["threads"]
    return (
        f"## Time against nodes\n\nAll nodes, 2 hops, {threads} threads; degrees have the same distribution.\n\n"
        f"{_table(head, lines)}"
    )


def _growth(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    head = ["graph", "hops", "nodes predicted", *_PACE, "peak memory"]
    lines = []
    for group, floor in _pairs(rows):
        peak = Spread([row["peak_bytes"] / 2**30 for row in group.rows])
        lines.append(
            [
                _graph(graphs[group.key["graph"]]),
                str(group.key["hops"]),
                f"{group.rows[0]['sources']:,}",
                *_pace(group, floor),
                f"{peak.high:.2f} GiB",
            ]
        )
    return (
        f"## Large graphs\n\n{rows[0]['threads']} threads. Memory is the peak of the whole process, the graph and the "
        f"interpreter included.\n\n{_table(head, lines)}"
    )


def _pace(group: Group, floor: Group) -> list[str]:
    """Return the cells under `_PACE`."""
    touched = group.rows[0]["touched"]
    return [
        per_round(floor, "seconds").text(_seconds),
        per_round(group, "seconds").text(_seconds),
        Spread([row["seconds"] / touched * 1e9 for row in group.rows]).text(_ratio),
        quotient(group, floor, "seconds").text(_ratio),
        quotient(group, floor, "cpu_seconds").text(_ratio),
    ]


def _pairs(rows: list[dict[str, Any]]) -> list[tuple[Group, Group]]:
    """Pair napsets with the floor on the same graph at the same depth."""
    groups = {tuple(g.key.values()): g for g in grouped(rows, "graph", "hops", "task")}
    return [(g, groups[graph, hops, "floor"]) for (graph, hops, task), g in groups.items() if task == "napsets"]


def _choice(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    strategies = ("dense", "deep")
    head = ["graph", "hops", "nodes", *strategies, "chosen", "over the best"]
    lines = []
    cases = grouped(rows, "graph", "hops", "sources")
    for case in cases:
        by = {g.key["strategy"]: per_round(g, "cpu_seconds") for g in grouped(case.rows, "strategy")}
        best = min(by[s].middle for s in strategies if s in by)
        lines.append(
            [
                case.key["graph"],
                str(case.key["hops"]),
                f"{case.key['sources']:,}",
                *(_seconds(by[s].middle) if s in by else "" for s in strategies),
                _seconds(by[None].middle),
                f"{100 * (by[None].middle / best - 1):+.0f} %",
            ]
        )
    return (
        "## The choice of strategy\n\nProcessor time of one thread with each strategy forced and with the one that "
        f"is chosen by the numbers of nodes, hops and edges.\n\n{_table(head, lines)}"
    )


def _interrupt(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    spread = Spread([row["seconds"] for row in rows])
    about = graphs[rows[0]["graph"]]
    return (
        f"## Ctrl-C\n\n{_graph(about)}, {rows[0]['hops']} hops, all nodes, interrupted after "
        f"{', '.join(str(row['wait']) for row in rows)} s: the process ended within {spread.text(_seconds)}.\n"
    )


def _first(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    head = ["work", "time", "processor time", "of which compiling"]
    lines = []
    for group in grouped(rows, "work"):
        share = Spread([100 * row["compile_seconds"] / row["cpu_seconds"] for row in group.rows])
        lines.append(
            [
                group.key["work"],
                per_round(group, "seconds").text(_seconds),
                per_round(group, "cpu_seconds").text(_seconds),
                share.text(lambda value: f"{value:.0f} %"),
            ]
        )
    return (
        "## First use\n\nA fresh process with an empty cache of kernels, from the start of Python to its end: imports, "
        f"a graph, `calibrate` and `predict` of half of its nodes.\n\n{_table(head, lines)}"
    )


def _ids(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    head = ["ids", "time", "processor time", "CPU ratio"]
    groups = {group.key["ids"]: group for group in grouped(rows, "ids")}
    base = {row["round"]: row["cpu_seconds"] for row in groups["integer"].rows}
    lines = []
    for kind, group in groups.items():
        ratio = Spread([row["cpu_seconds"] / base[row["round"]] for row in group.rows])
        lines.append(
            [
                kind,
                per_round(group, "seconds").text(_seconds),
                per_round(group, "cpu_seconds").text(_seconds),
                "1" if kind == "integer" else ratio.text(_ratio),
            ]
        )
    return (
        f"## Kinds of ids\n\n`napsets predict` on Parquet files, {rows[0]['nodes']:,} nodes and {rows[0]['edges']:,} "
        f"edges, with the ids 17 and `user-17`; kernels come from the cache.\n\n{_table(head, lines)}"
    )


#: What each piece of work is compared with, and what it may cost at the most.
_BESIDE = {
    "pooled, 2 hops": ("NAPS, 2 hops", 1.25),
    "pooled and alike, 2 hops": ("NAPS, 2 hops", None),
    "exact, 2 hops": ("NAPS, 2 hops", 2.2),
    "informed: evidence and fit": ("NAPS, 2 hops", 2.0),
    "auto, up to 3 hops": ("NAPS, 3 hops", 4.0),
    "diffusion, one step": ("SciPy's product", 2.0),
}


def _methods(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    rows = [{**row, "sources": 1} for row in rows]
    here = {group.key["work"]: group for group in grouped([r for r in rows if r["graph"] == "reddit2-test"], "work")}
    head = ["work", "time", "processor time", "beside", "ratio", "CPU ratio", "goal"]
    lines = []
    for work, group in here.items():
        base, goal = _BESIDE.get(work, (None, None))
        times = [per_round(group, column).text(_seconds) for column in ("seconds", "cpu_seconds")]
        ratios = ["–", "–"]
        if base is not None:
            ratios = [quotient(group, here[base], column).text(_ratio) for column in ("seconds", "cpu_seconds")]
        lines.append([work, *times, base or "–", *ratios, "–" if goal is None else f"{goal:g}"])
    far = [per_round(group, "seconds").text(_seconds) for group in grouped(
        [row for row in rows if row["graph"] == "million"], "work"
    )]  # fmt: skip
    evidence = f"\nEvidence and fit for a million nodes from 100,000 labels: {far[0]}.\n" if far else ""
    return (
        f"## Other methods\n\n{_graph(graphs['reddit2-test'])}; half of its nodes labelled, all of them "
        f"predicted, ten classes, all cores.\n\n{_table(head, lines)}{evidence}"
    )


def _roads(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    hops = [row for row in rows if row["task"] in ("floor", "napsets")]
    by = {tuple(g.key.values()): g for g in grouped(hops, "direction", "task")}
    ways = dict.fromkeys(row["direction"] for row in hops)
    lines = [[way, *_beside(by[way, "napsets"], by[way, "floor"])] for way in ways]
    paths = [row for row in rows if row["task"] in ("dijkstra", "path lengths")]
    groups = {tuple(g.key.values()): g for g in grouped(paths, "graph", "radius", "threads", "task")}
    more = []
    for (name, radius, threads, task), group in groups.items():
        if task == "path lengths":
            floor = groups[name, radius, threads, "dijkstra"]
            pairs = floor.rows[0]["reached"] / floor.rows[0]["sources"]
            start = [graphs[name]["title"], f"{radius:g}", f"{pairs:,.0f}", str(threads)]
            more.append([*start, *_beside(group, floor)])
    shared = ["napsets", "ratio", "CPU ratio", "goal"]
    one = _table(["direction", "bare traversal", *shared], [[*line, "0.8"] for line in lines])
    other = _table(
        ["graph", "radius", "nodes in a ball", "threads", "bare Dijkstra", *shared], [[*line, "3"] for line in more]
    )
    return (
        f"## Directed and weighted graphs\n\n{_graph(graphs['reddit2-test-directed'])}; two hops around every node, "
        f"{hops[0]['threads']} threads, all nodes calibrate. Rows along another direction are included in the time.\n\n"
        f"{one}\nPath lengths: gaussian weights of all nodes within a radius, compared with `dijkstra.c`, which finds "
        f"the same balls and does nothing else.\n\n{other}"
    )


def _beside(group: Group, floor: Group) -> list[str]:
    """Return the times of a floor and of what is measured beside it, and their ratios."""
    times = [per_round(one, "seconds").text(_seconds) for one in (floor, group)]
    return [*times, *(quotient(group, floor, column).text(_ratio) for column in ("seconds", "cpu_seconds"))]


def _published(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    rows = [{**row, "sources": 1} for row in rows]
    amazon = grouped(rows, "method")
    head = ["method", "time", "processor time"]
    lines = [
        [f"`{group.key['method']}`", *(per_round(group, c).text(_seconds) for c in ("seconds", "cpu_seconds"))]
        for group in amazon
    ]
    return (
        f"## Every method of the table\n\n{_graph(graphs['amazon-test'])}; three tenths of its nodes labelled, all of "
        f"them predicted. Calibration and sets, all cores; computing the scores is not included.\n\n"
        f"{_table(head, lines)}"
    )


def _learned(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> str:
    lines = []
    for graph in grouped([{**row, "sources": 1} for row in rows], "graph"):
        for group in grouped(graph.rows, "method"):
            times = [per_round(group, column).text(_seconds) for column in ("seconds", "cpu_seconds")]
            title = graphs[graph.key["graph"]]["title"]
            lines.append([title, f"{group.rows[0]['edges']:,}", f"`{group.key['method']}`", *times])
    head = ["graph", "stored edges", "method", "time", "processor time"]
    return (
        "## Methods that learn from labels\n\nCalibration and sets of all nodes, scores included; half of the nodes of "
        f"Amazon Computers are labelled, a tenth of those of block models.\n\n{_table(head, lines)}"
    )


_TABLES: dict[str, Callable[[list[dict[str, Any]], dict[str, Any]], str]] = {
    "depth": _depth,
    "nodes": _nodes,
    "growth": _growth,
    "choice": _choice,
    "interrupt": _interrupt,
    "first": _first,
    "ids": _ids,
    "methods": _methods,
    "roads": _roads,
    "published": _published,
    "learned": _learned,
}
