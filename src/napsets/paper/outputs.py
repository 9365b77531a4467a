"""From rows to what people look at: the tables and figures of each target, and the files they become."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from napsets.checks.names import choose
from napsets.files.places import replacing
from napsets.paper.cells import Row
from napsets.paper.claims import block_paragraph, claims_table, paragraph
from napsets.paper.figures import ablation_figure, block_figure, save_figure
from napsets.paper.grids import TARGETS, Scope
from napsets.paper.store import RowStore
from napsets.paper.table import FORMATS, Table
from napsets.paper.tables import ablation, accuracy, metric, sbm_points, sbm_summary, table1

__all__ = ["figures_of", "sentences_of", "tables_of", "write_figures", "write_tables"]


def coverage_rows(store: RowStore, scope: Scope) -> list[Row]:
    """Return the rows of Tables 2 and 3 and of the ablation that were measured in the way of a scope."""
    return [row for row in store.rows("coverage") if scope.holds(row)]


def block_rows(store: RowStore, scope: Scope) -> list[Row]:
    """Return the rows of the block-model study that belong to a scope."""
    wanted = {"draws": scope.blocks.draws, "alpha": scope.alpha}
    return [row for row in store.rows("sbm") if all(row[name] == value for name, value in wanted.items())]


def tables_of(target: str, store: RowStore, scope: Scope) -> list[Table]:
    """Return the tables of a target."""
    rows, blocks = coverage_rows(store, scope), block_rows(store, scope)
    made = {
        "table1": lambda: [table1(store.rows("datasets"))],
        "table2": lambda: [
            accuracy(rows, scope),
            *(metric(rows, scope, name) for name in ("coverage", "mean_size", "size_given_coverage")),
        ],
        "table3": lambda: [
            *(metric(rows, scope, name) for name in ("sscv", "pccv")),
            claims_table(rows, scope),
        ],
        "ablation": lambda: [ablation(rows, scope)],
        "sbm": lambda: [sbm_summary(blocks), sbm_points(blocks)],
    }
    return [table for name in _parts(target) for table in made[name]()]


def sentences_of(target: str, store: RowStore, scope: Scope) -> list[str]:
    """Return what the numbers of a target say, in words made from them."""
    made = {
        "table3": lambda: paragraph(coverage_rows(store, scope), scope),
        "sbm": lambda: block_paragraph(block_rows(store, scope)),
    }
    made["table2"] = made["table3"]
    return list(dict.fromkeys(text for name in _parts(target) if name in made and (text := made[name]())))


def figures_of(target: str, store: RowStore, scope: Scope) -> dict[str, Any]:
    """Return the figures of a target by name."""
    figures: dict[str, Any] = {}
    if "ablation" in _parts(target):
        rows = [row for row in coverage_rows(store, scope) if row["dataset"] in scope.ablation_datasets]
        for protocol in scope.protocols:
            if any((row["model"], row["protocol"]) == (scope.ablation_model, protocol) for row in rows):
                figures[f"ablation-{protocol}"] = ablation_figure(rows, scope, protocol)
    if "sbm" in _parts(target):
        rows = block_rows(store, scope)
        for tv in sorted({row["tv"] for row in rows}):
            figures[f"sbm-tv-{tv:g}"] = block_figure(rows, tv)
    return figures


def write_tables(made: Iterable[Table], folder: str | os.PathLike[str], formats: Iterable[str]) -> list[Path]:
    """Write each table in each of the formats; return the files."""
    files = []
    for name in formats:
        suffix = choose("format", name, FORMATS)
        for table in made:
            target = Path(folder) / f"{table.name}{suffix}"
            with replacing(target) as draft:
                draft.write_text(getattr(table, name)(), encoding="utf-8")
            files.append(target)
    return files


def write_figures(figures: dict[str, Any], folder: str | os.PathLike[str]) -> list[Path]:
    """Write each figure as SVG and PNG; return the files."""
    return [file for name, chart in figures.items() for file in save_figure(chart, folder, name)]


def _parts(target: str) -> list[str]:
    choose("target", target, dict.fromkeys(TARGETS))
    return [name for name in TARGETS if name != "all"] if target == "all" else [target]
