"""The page of the documentation about the reproduction, made from rows and from nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from napsets.files.places import replacing
from napsets.paper.cells import MODELS, Row
from napsets.paper.claims import block_paragraph, claims_table, paragraph
from napsets.paper.figures import save_figure
from napsets.paper.grids import Scope
from napsets.paper.outputs import block_rows, coverage_rows, figures_of, tables_of
from napsets.paper.setups import SETUPS
from napsets.paper.store import RowStore
from napsets.paper.tables import accuracy

__all__ = ["COMMAND", "page_text", "write_page"]

#: What makes the committed rows, tables, figures and page.
COMMAND = "napsets reproduce all --output results --page docs/reproduction.md"

_PROTOCOLS = """\
Two protocols stand beside the printed numbers.

- `strict`, the default: the labels of the evaluation nodes of a repetition calibrate nothing, in no method.
  Calibration uses all other test nodes; quantiles are exact; where a neighbourhood's mass falls short the set holds
  every label. PCCV calibrates on one half of the eligible nodes, tests on the other, and looks at neighbourhoods of
  30 nodes or more.
- `as-published`: what the paper's released code did. NAPS thresholds come once from the labels of all other test
  nodes, so that evaluation nodes calibrate one another, while APS calibrates outside the evaluation nodes. APS uses
  an interpolated quantile; where mass falls short, the uncalibrated 1 − alpha serves; the geometric weights are
  2^−(k−1) on Amazon and Flickr; PCCV looks at the largest 5, 10 or 20 neighbourhoods (Amazon, Flickr, Reddit2). That
  code also redrew the calibration nodes' uniform numbers for every threshold; here a node has one in both protocols.

In both, a node is eligible (N^cal) if enough other test nodes lie within two hops of it in the test subgraph,
counted once among all test nodes before any draw. No label enters, so this leaks none. u, the draws and the
splits are the same for all methods and protocols of a seed, so that differences are paired.
"""


_INFERENCES = """\
Sampled inference draws a node's neighbours as in training, as the released code did; exact inference counts every
neighbour. The same trained models serve both.
"""


def write_page(path: str | os.PathLike[str], store: RowStore, scope: Scope) -> Path:
    """Write the page, and its figures into ``figures`` beside it.

    Parameters
    ----------
    path : path
        The Markdown file.
    store, scope
        Which rows to take.
    """
    target = Path(path)
    for name, chart in figures_of("all", store, scope).items():
        save_figure(chart, target.parent / "figures", name, [".svg"])
    with replacing(target) as draft:
        draft.write_text(page_text(store, scope), encoding="utf-8")
    return target


def page_text(store: RowStore, scope: Scope) -> str:
    """Return the page in Markdown."""
    rows, blocks = coverage_rows(store, scope), block_rows(store, scope)
    figures = figures_of("all", store, scope)
    tables = {name: tables_of(name, store, scope) for name in ("table1", "table2", "table3", "ablation", "sbm")}
    metrics = [table for table in tables["table3"] if table.name != "claims"]
    parts = [
        "# The paper, reproduced",
        "<!-- Made from the rows in results/; to change it, run the command below. -->",
        "Every number on this page is made from rows of results by\n\n"
        f"```\n{COMMAND}\n```\n\nwhich runs only what is not there yet.",
        _settings(rows, scope),
        "## What holds",
        paragraph(rows, scope),
        claims_table(rows, scope).markdown(),
        *_other_inferences(store, scope),
        "## Protocols",
        _PROTOCOLS,
        "## Table 1",
        *(table.markdown() for table in tables["table1"]),
        "## Table 2",
        *(table.markdown() for table in tables["table2"]),
        "## Table 3",
        *(table.markdown() for table in metrics),
        "## Ablation",
        *(table.markdown() for table in tables["ablation"]),
        *_pictures(figures, "ablation"),
        "## Block model",
        block_paragraph(blocks),
        *(table.markdown() for table in tables["sbm"] if table.name == "sbm-summary"),
        *_pictures(figures, "sbm"),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _other_inferences(store: RowStore, scope: Scope) -> list[str]:
    """Say what holds with the inferences that the tables do not show."""
    parts = []
    for inference in scope.inferences[1:]:
        other = replace(scope, inferences=(inference,))
        rows = coverage_rows(store, other)
        if rows:
            parts += [f"### With {inference} inference", _INFERENCES, paragraph(rows, other)]
            parts += [accuracy(rows, other).markdown(), claims_table(rows, other).markdown()]
    return parts


def _settings(rows: list[Row], scope: Scope) -> str:
    """Say what was run, and how long it took when it was measured."""
    if not rows:
        return ""
    seeds = sorted({row["seed"] for row in rows})
    lines = [
        f"Training preset `{scope.preset}`, {scope.inferences[0]} inference, seeds {', '.join(map(str, seeds))}; "
        f"alpha {scope.alpha:g}, {scope.repetitions} repetitions of {scope.evaluated:,} evaluation nodes."
    ]
    for dataset in scope.datasets:
        ours = [row for row in rows if row["dataset"] == dataset and row["hops"] in (0, scope.hops)]
        if ours:
            trained = {(row["model"], row["seed"]): row["train_seconds"] for row in ours}
            times = ", ".join(
                f"{MODELS[model]} {fmean(seconds):.0f} s"
                for model in scope.models
                if (seconds := [s for (m, _), s in trained.items() if m == model and s is not None])
            )
            conformal = sum(row["seconds"] for row in ours) / len({row["seed"] for row in ours})
            lines.append(
                f"{SETUPS[dataset].title}: training took {times} a seed; the conformal part of Tables 2 and 3, "
                f"both protocols and all models, {conformal:.1f} s a seed."
            )
    return " ".join(lines)


def _pictures(figures: dict[str, object], prefix: str) -> list[str]:
    return [f"![{name}](figures/{name}.svg)" for name in figures if name.startswith(prefix)]
