"""Running cells: those that are finished are skipped, each piece of work is written when it is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napsets.datasets.graphsaint import RAW_FILES
from napsets.errors import InvalidInputError
from napsets.paper.bench import Bench, Predictor
from napsets.paper.blockmodel import BlockCell, simulate
from napsets.paper.cells import Cell, CoverageCell, DatasetCell, Row
from napsets.paper.measure import dataset_row, measure
from napsets.paper.setups import load_dataset, setup_of
from napsets.paper.store import RowStore
from napsets.paper.trained import TrainedPredictions

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

__all__ = ["Laboratory", "is_available"]


@dataclass(frozen=True)
class Task:
    """Cells that are worked on together, because one search of the graph serves them all.

    Attributes
    ----------
    title : str
        For people.
    shares : tuple
        What the task shares with those that should run next to it: the trained model.
    cells : list
        The cells, of one kind.
    """

    title: str
    shares: tuple[object, ...]
    cells: list[Any]


class Laboratory:
    """Turns cells into rows.

    Parameters
    ----------
    results : path
        Folder of the rows, and of the trained models' predictions (in ``predictions``).
    root : path, optional
        Folder with a subfolder for each dataset that is read from files; by default ``data``.
    predictor : callable, optional
        Gives the predictions of a cell's model: ``predictor(cell, dataset)``. By default models are trained, once.
    """

    def __init__(
        self,
        results: str | os.PathLike[str] = "results",
        root: str | os.PathLike[str] | None = None,
        predictor: Predictor | None = None,
    ) -> None:
        self.store = RowStore(results)
        self.root = root
        self.predictor = predictor or TrainedPredictions(Path(results) / "predictions")
        self._bench: tuple[tuple[object, ...], Bench] | None = None

    def run(
        self, cells: Sequence[Cell], *, progress: Progress | None = None, stage: Callable[[str], None] | None = None
    ) -> int:
        """Run the cells that are not finished and whose dataset is there; return how many ran.

        Rows are written after each task: an interrupted run loses the task under way and nothing else. Another run
        on the same folder does no harm; what it finishes in the meantime is not run again here.

        Parameters
        ----------
        cells : sequence of Cell
            What to run.
        progress : callable, optional
            Called as ``progress(done, total)`` in cells.
        stage : callable, optional
            Called as ``stage(title)`` before each task.
        """
        finished = {study: self.store.keys(study) for study in {cell.study for cell in cells}}
        tasks = _tasks([cell for cell in cells if cell.key not in finished[cell.study] and self._can_run(cell)])
        total, done, ran = sum(len(task.cells) for task in tasks), 0, 0
        for task in tasks:
            if stage:
                stage(task.title)
            if progress:
                progress(done, total)
            study = task.cells[0].study
            by_now = self.store.keys(study)
            missing = [cell for cell in task.cells if cell.key not in by_now]
            if missing:
                self.store.append(study, self.compute(missing))
            done, ran = done + len(task.cells), ran + len(missing)
        if progress:
            progress(done, total)
        self._bench = None
        for study in sorted({task.cells[0].study for task in tasks}):
            self.store.compact(study)
        return ran

    def compute(self, cells: Sequence[Any]) -> list[Row]:
        """Return the rows of cells of one task."""
        first = cells[0]
        if isinstance(first, BlockCell):
            return simulate(cells)
        if isinstance(first, DatasetCell):
            return [dataset_row(cell, load_dataset(cell.dataset, cell.seed, self.root)) for cell in cells]
        return measure(cells, self.bench(first))

    def bench(self, cell: CoverageCell) -> Bench:
        """Return the trained model that a cell is about; the last one is kept, as its cells come together."""
        name = _model(cell)
        if self._bench is None or self._bench[0] != name:
            self._bench = None  # free the old one before the new one is made
            setup, data = setup_of(cell.dataset), load_dataset(cell.dataset, cell.seed, self.root)
            self._bench = (name, Bench.build(setup, data, self.predictor(cell, data), cell.seed))
        return self._bench[1]

    def _can_run(self, cell: Cell) -> bool:
        return not isinstance(cell, (DatasetCell, CoverageCell)) or is_available(cell.dataset, self.root)


def is_available(dataset: str, root: str | os.PathLike[str] | None = None) -> bool:
    """Say whether a dataset can be had here: embedded, drawn from a seed, or its files are in ``root/dataset``."""
    folder = Path(root or "data") / dataset
    places = (folder, folder / "raw")
    return not setup_of(dataset).from_files or any(all((at / name).exists() for name in RAW_FILES) for at in places)


def _model(cell: CoverageCell) -> tuple[object, ...]:
    return (cell.dataset, cell.seed, cell.model, cell.preset, cell.inference)


def _tasks(cells: Sequence[Cell]) -> list[Task]:
    """Group cells by what one search serves, and bring the tasks of one trained model together."""
    tasks: dict[tuple[object, ...], Task] = {}
    for cell in cells:
        shares: tuple[object, ...] = (cell.study,)
        part: tuple[object, ...] = (cell,)
        if isinstance(cell, CoverageCell):
            shares = _model(cell)
            part = (cell.protocol, cell.hops, cell.repetitions, cell.evaluated)
            title = f"{cell.dataset} {cell.model} seed {cell.seed} {cell.inference}: {cell.protocol}, hops {cell.hops}"
        elif isinstance(cell, DatasetCell):
            title = f"{cell.dataset} seed {cell.seed}"
        elif isinstance(cell, BlockCell):
            part = (replace(cell, tv=0.0),)
            title = f"block model n={cell.n} p_in={cell.p_in:g} p_out={cell.p_out:g}"
        else:
            raise InvalidInputError(f"`cells` must be cells of a study; got {type(cell).__name__}")
        tasks.setdefault(shares + part, Task(title, shares, [])).cells.append(cell)
    order = list(dict.fromkeys(task.shares for task in tasks.values()))
    return sorted(tasks.values(), key=lambda task: order.index(task.shares))
