"""The paper's study: the cells that its tables and figures need, and the page made from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from studies.block_model import BLOCKS, block_cells, block_paragraph, block_table
from studies.coverage import COVERAGE, DATASETS
from studies.paper_tables import (
    Scope,
    ablation,
    ablation_figures,
    accuracy,
    claims_table,
    metric_tables,
    table1,
)
from studies.rows import Kind
from studies.setups import METHODS, SETUPS
from studies.tables import Chart, Row, Table, distinct, fill_page, select

COMMAND = "python -m studies all --page docs/reproduction.md"
#: The targets: the paper's tables and figures, and all of them.
TARGETS = {
    "table1": "Table 1: the datasets.",
    "table2": "Table 2: coverage and size of sets.",
    "table3": "Table 3: conditional coverage, and which of the paper's claims hold.",
    "ablation": "The ablation figure: coverage and size by depth of the neighbourhood.",
    "sbm": "Lemma 1 against simulations of block models.",
    "all": "All tables and figures of the paper.",
}
FULL = Scope()
#: A version that takes a minute: one model, one seed, a tenth of the repetitions.
QUICK = Scope(
    datasets=("amazon-computers",), models=("graphsage-mean",), presets=FULL.presets[:1], seeds=(0,), repetitions=10
)


def cells_of(target: str, scope: Scope, *, quick: bool = False) -> dict[Kind, list[Row]]:
    """Return the cells that a target needs, by their kind."""
    cells: dict[Kind, list[Row]] = {}
    if target in ("table1", "all"):
        cells[DATASETS] = [{"dataset": name, "seed": seed} for name, seed in product(scope.datasets, scope.seeds)]
    coverage = []
    if target in ("table2", "table3", "all"):
        coverage += _coverage_cells(scope, scope.models, (scope.hops,))
    if target in ("ablation", "all"):
        first = replace(scope, presets=scope.presets[:1])
        coverage += _coverage_cells(first, scope.ablation_models, scope.ablation_hops)
    if coverage:
        cells[COVERAGE] = list({COVERAGE.key(cell): cell for cell in coverage}.values())
    if target in ("sbm", "all"):
        cells[BLOCKS] = block_cells(scope.alpha, quick=quick)
    return cells


def _coverage_cells(scope: Scope, models: Sequence[str], depths: Sequence[int]) -> list[Row]:
    settings = {name: getattr(scope, name) for name in ("alpha", "repetitions", "evaluated")}
    return [
        {"dataset": dataset, "model": model, "seed": seed, "preset": preset, "protocol": protocol, "method": method}
        | {"hops": 0 if METHODS[method] is None else hops}
        | settings
        for dataset, seed, model, preset in product(scope.datasets, scope.seeds, models, scope.presets)
        if model in SETUPS[dataset].models and (model != "label-counts" or preset == scope.presets[0])
        for protocol, hops, method in product(scope.protocols, depths, METHODS)
    ]


class PaperRows(NamedTuple):
    """The rows that were measured with the settings of a scope, for any seed."""

    scope: Scope
    target: str
    datasets: list[Row]
    coverage: dict[str, list[Row]]  #: by preset
    blocks: list[Row]

    @classmethod
    def read(cls, results: Path, scope: Scope, target: str = "all", *, quick: bool = False) -> PaperRows:
        """Read them from the folder of results."""
        settings = {name: getattr(scope, name) for name in ("alpha", "repetitions", "evaluated")}
        rows = [row for row in select(COVERAGE.read(results), **settings) if row["protocol"] in scope.protocols]
        draws = block_cells(scope.alpha, quick=quick)[0]["draws"]
        blocks = select(BLOCKS.read(results), draws=draws, alpha=scope.alpha)
        coverage = {preset: select(rows, preset=preset) for preset in scope.presets}
        return cls(scope, target, DATASETS.read(results), coverage, blocks)

    @property
    def shown(self) -> list[Row]:
        """Those of the preset that the tables show."""
        return self.coverage[self.scope.presets[0]]


def section(rows: PaperRows, target: str) -> list[str | Table]:
    """Return the part of the page that is about a target."""
    shown, scope = rows.shown, rows.scope
    parts: dict[str, list[str | Table]] = {
        "table1": [table1(rows.datasets)],
        "table2": [accuracy(rows.coverage, scope), *metric_tables(shown, scope, 2)],
        "table3": [*metric_tables(shown, scope, 3)],
        "ablation": [ablation(shown, scope)],
        "sbm": [block_paragraph(rows.blocks), block_table(rows.blocks)],
    }
    return parts[target]


def summary(rows: PaperRows) -> list[str | Table]:
    """Return the parts that the command prints: the sections of the target."""
    targets = [name for name in TARGETS if name != "all"] if rows.target == "all" else [rows.target]
    parts = [part for name in targets for part in section(rows, name)]
    if "table3" in targets:
        parts.append(claims_table(rows.coverage, rows.scope))
    return [part for part in parts if part and (isinstance(part, str) or part.rows)]


def figures(rows: PaperRows) -> dict[str, Chart]:
    """Return all figures of the page by name."""
    return ablation_figures(rows.shown, rows.scope)


def page(rows: PaperRows) -> str:
    """Return the page in Markdown."""
    shown, scope = rows.shown, rows.scope
    pictures = {
        "ablation": [f"![{name}](figures/{name}.svg)" for name in ablation_figures(shown, scope)],
    }
    parts = {name: [*section(rows, name), *pictures.get(name, [])] for name in TARGETS if name != "all"}
    claims = claims_table(rows.coverage, scope)
    return fill_page("reproduction", COMMAND, parts | {"settings": _settings(shown, scope), "claims": claims})


def _settings(rows: list[Row], scope: Scope) -> str:
    """Describe what was run."""
    seeds = ", ".join(map(str, distinct(rows, "seed")))
    return (
        f"Training preset `{scope.presets[0]}` unless another one is named, seeds {seeds}; alpha {scope.alpha:g}, "
        f"{scope.repetitions} repetitions of {scope.evaluated:,} evaluation nodes."
    )
