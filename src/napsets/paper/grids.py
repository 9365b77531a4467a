"""Which cells make up each table and figure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

from napsets.paper.blockmodel import BlockCell
from napsets.paper.cells import INFERENCES, METHODS, MODELS, PROTOCOLS, Cell, CoverageCell, DatasetCell, Row
from napsets.paper.setups import PAPER_DATASETS

__all__ = ["FULL", "QUICK", "TARGETS", "BlockGrid", "Scope", "cells_of"]

TARGETS = ("table1", "table2", "table3", "ablation", "sbm", "all")


@dataclass(frozen=True)
class BlockGrid:
    """The block-model study's grid: every combination is a cell."""

    n: tuple[int, ...] = (250, 1000)
    p_in: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
    p_out: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
    tv: tuple[float, ...] = (0.1, 0.2, 0.4)
    draws: int = 100


@dataclass(frozen=True)
class Scope:
    """How much of the paper to run.

    Attributes
    ----------
    datasets, models, seeds, protocols
        What Tables 1, 2 and 3 go over.
    preset : str
        Training settings; the default is the one whose accuracies are nearer to the printed ones.
    inferences : tuple of str
        The first is what tables show and the ablation uses; the others are compared with it.
    alpha, repetitions, evaluated
        As in `CoverageCell`.
    hops : int
        The depth of Tables 2 and 3.
    ablation_datasets, ablation_model, ablation_hops
        What the ablation goes over.
    large_seeds : tuple of int
        Training seeds on the ablation's datasets that the tables do not go over: trainings there take minutes.
    blocks : BlockGrid
        What the block-model study goes over.
    """

    datasets: tuple[str, ...] = PAPER_DATASETS
    models: tuple[str, ...] = tuple(MODELS)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    protocols: tuple[str, ...] = PROTOCOLS
    preset: str = "released-code"
    inferences: tuple[str, ...] = INFERENCES
    alpha: float = 0.1
    repetitions: int = 100
    evaluated: int = 1000
    hops: int = 2
    ablation_datasets: tuple[str, ...] = ("reddit2", "amazon-computers", "reddit2-like")
    ablation_model: str = "graphsage-mean"
    ablation_hops: tuple[int, ...] = (1, 2, 3, 4)
    large_seeds: tuple[int, ...] = (0,)
    blocks: BlockGrid = field(default_factory=BlockGrid)

    def holds(self, row: Row) -> bool:
        """Say whether a row of the coverage study was measured in the way of this scope, whatever its seed."""
        wanted = {name: getattr(self, name) for name in ("preset", "alpha", "repetitions", "evaluated")}
        wanted["inference"] = self.inferences[0]
        return all(row[name] == value for name, value in wanted.items()) and row["protocol"] in self.protocols


FULL = Scope()
#: A minute's version: one model, one seed, a tenth of the repetitions, four corners of the block model.
QUICK = Scope(
    models=("graphsage-mean",),
    seeds=(0,),
    repetitions=10,
    inferences=("sampled",),
    ablation_datasets=("amazon-computers",),
    blocks=BlockGrid(n=(250,), p_in=(0.1, 0.4), p_out=(0.1, 0.4), tv=(0.2,), draws=20),
)


def cells_of(target: str, scope: Scope) -> list[Cell]:
    """Return the cells that a target needs, those of the same model next to each other."""
    parts = {
        "table1": _dataset_cells,
        "table2": _table_cells,
        "table3": _table_cells,
        "ablation": _ablation_cells,
        "sbm": _block_cells,
    }
    wanted = parts if target == "all" else [target]
    cells = dict.fromkeys(cell for name in wanted for cell in parts[name](scope))
    return list(cells)


def _dataset_cells(scope: Scope) -> list[Cell]:
    return [DatasetCell(dataset, seed) for dataset, seed in product(scope.datasets, scope.seeds)]


def _table_cells(scope: Scope) -> list[Cell]:
    return [
        replace(_cell(scope, dataset, model, seed, protocol, method, scope.hops), inference=inference)
        for dataset, seed, model, inference, protocol, method in product(
            scope.datasets, scope.seeds, scope.models, scope.inferences, scope.protocols, METHODS
        )
    ]


def _ablation_cells(scope: Scope) -> list[Cell]:
    return [
        _cell(scope, dataset, scope.ablation_model, seed, protocol, method, hops)
        for dataset in scope.ablation_datasets
        for seed in (scope.seeds if dataset in scope.datasets else scope.large_seeds)
        for protocol, hops, method in product(scope.protocols, scope.ablation_hops, METHODS)
    ]


def _cell(scope: Scope, dataset: str, model: str, seed: int, protocol: str, method: str, hops: int) -> CoverageCell:
    depth = 0 if METHODS[method] is None else hops
    return CoverageCell(
        dataset,
        model,
        seed,
        protocol,
        method,
        depth,
        alpha=scope.alpha,
        repetitions=scope.repetitions,
        evaluated=scope.evaluated,
        preset=scope.preset,
        inference=scope.inferences[0],
    )


def _block_cells(scope: Scope) -> list[Cell]:
    grid = scope.blocks
    return [
        BlockCell(n, p_in, p_out, tv, alpha=scope.alpha, draws=grid.draws)
        for n, p_in, p_out, tv in product(grid.n, grid.p_in, grid.p_out, grid.tv)
    ]
