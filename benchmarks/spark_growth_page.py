"""The page on how the cost of napsets.spark grows, from the rows that `spark_growth.py` measured."""

from __future__ import annotations

import os
import platform
from typing import Any

import napsets as ns


def defaults_table(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    lines = ["", "## Defaults", "", "Two hops and `pool=20`, every unlabelled node, Parquet to Parquet. Seconds on the"]
    lines += [
        "wall without the start of Spark, which is given separately; processor seconds are those of the whole process.",
        "",
    ]
    lines += [
        "| edges | nodes | run | wall s | at most s | processor s | load | exact |",
        "|--:|--:|---|--:|--:|--:|--:|---|",
    ]
    for r in sorted(rows, key=lambda r: r["edges"]):
        base = next(o for o in rows if (o["edges"], o["run"]) == (r["edges"], f"{r['run'].split(',')[0]}, one machine")
                    or o is r)  # fmt: skip
        most, exact = (f"{10 + 3 * base['seconds']:.1f}", "yes" if r["exact"] else "NO") if "exact" in r else ("", "")
        lines += [
            f"| {r['edges']:,} | {r['targets']:,} | {r['run']} | {r['seconds']:.1f} | {most} | {r['cpu']:.1f} "
            f"| {r['load']:.0f} | {exact} |"
        ]
    return lines


def graph_table(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    lines = ["", "## The graph on every worker", ""]
    lines += ["`napsets predict`, files to files, for every unlabelled node at two hops, for this many at more: on one"]
    lines += [
        "machine (both cores), and on Spark with its start. `local[1]`: Spark's processes, all of them, are tied to"
    ]
    lines += ["one core. Load: how many processes, others among them, wanted a core when the run began. Memory: the"]
    lines += ["largest of Spark's Python workers, its own and with what it maps.", ""]
    lines += [
        "| edges | hops | nodes | run | wall s | × one machine | processor s | × | load | own MB | with maps MB "
        "| exact |"
    ]
    lines += ["|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|---|"]
    for r in sorted(rows, key=lambda r: (r["edges"], r["hops"], r["engine"])):
        base = next((o for o in rows if (o["edges"], o["hops"], o["engine"]) == (r["edges"], r["hops"], "local")), r)
        cells = (
            ("", "", "")
            if r["engine"] == "local"
            else (f"{r['own'] / 1e6:.0f}", f"{r['rss'] / 1e6:.0f}", "yes" if r["exact"] else "NO")
        )
        name = "one machine" if r["engine"] == "local" else f"`{r['engine']}`"
        lines += [
            f"| {r['edges']:,} | {r['hops']} | {r['targets']:,} | {name} | {r['seconds']:.1f} "
            f"| {r['seconds'] / base['seconds']:.1f} | {r['cpu']:.1f} | {r['cpu'] / base['cpu']:.1f} | {r['load']:.0f} "
            f"| {' | '.join(cells)} |"
        ]
    return lines


def render(rows: list[dict[str, Any]], about: str) -> str:
    """Return the page; `about` says what was measured."""
    graph_rows, default_rows = ([r for r in rows if r["phase"] == phase] for phase in ("graph", "defaults"))
    rows = [r for r in rows if r["phase"] not in ("graph", "defaults")]
    prepare = [row for row in rows if row["phase"] == "prepare"]
    walks = [row for row in rows if row["phase"] != "prepare"]
    lines = ["# Cost growth of napsets.spark", "", about, ""]
    lines += [f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, `local[2]`, driver 3 GiB; "]
    lines += [f"Python {platform.python_version()}, napsets {ns.__version__}.", "", "## Making the adjacency", ""]
    lines += ["| edges | stored | E[d] | E[d²] | largest d | wall s | task s | shuffled MB | bytes per stored edge |"]
    lines += ["|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {r['edges']:,} | {r['stored']:,} | {r['d']:.1f} | {r['d2']:.0f} | {r['largest']:.0f} | {r['seconds']:.1f} "
        f"| {r['task_seconds']:.1f} | {r['shuffle'] / 1e6:.1f} | {r['shuffle'] / r['stored']:.0f} |"
        for r in prepare
    ]
    lines += [f"\n{note}" for note in dict.fromkeys(row["note"] for row in prepare if "note" in row)]
    lines += ["", "## Walking, and choosing thresholds", ""]
    lines += ["Followed: edges within reach of the walks, counted; predicted: the same by the moments of the degrees"]
    lines += ["alone. Pairs: those of them that are made, since the last hop goes to calibration nodes only. Where the"]
    lines += ["adjacency is too large to broadcast it is shuffled once, for any number of targets; at many edges and"]
    lines += ["few targets that is most of what is shuffled. One machine: `NAPS.predict` on the same two cores.", ""]
    lines += [
        "| edges | hops | targets | followed | predicted | ratio | pairs | wall s | task s | shuffled MB | exact "
        "| one machine s |"
    ]
    lines += ["|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {r['edges']:,} | {r['phase'][0]} | {r['targets']:,} | {r['followed']:,.0f} | {r['predicted']:,.0f} "
        f"| {r['predicted'] / r['followed']:.2f} | {r['pairs']:,.0f} | {r['seconds']:.1f} | {r['task_seconds']:.1f} "
        f"| {r['shuffle'] / 1e6:.1f} | {'yes' if r['exact'] else 'NO'} | {r['one_machine']:.2f} |"
        for r in walks
    ]
    lines += graph_table(graph_rows) + defaults_table(default_rows)
    return "\n".join(line.rstrip() for line in lines) + "\n"
