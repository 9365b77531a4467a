"""Running cells: those that are finished are skipped, each piece of work is written when it is done.

With several jobs, processes take the cells of a trained model each. They share nothing but the folder of results,
which many may append to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napsets.checks.arguments import check_count
from napsets.datasets.graphsaint import RAW_FILES
from napsets.errors import InvalidInputError
from napsets.paper.bench import Bench, Predictor
from napsets.paper.blockmodel import BlockCell, simulate
from napsets.paper.cells import Cell, CoverageCell, DatasetCell, Row
from napsets.paper.leaderboard.cells import LeaderboardCell
from napsets.paper.leaderboard.ground import Ground, KeptPredictions, is_there, load_graph
from napsets.paper.leaderboard.measure import measure_draw
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
        Folder with a subfolder for each dataset that is read from files, by default ``data``; of the comparison's
        graphs themselves, by default ``benchmarks/data``.
    predictor : callable, optional
        Gives the predictions of a cell's model: ``predictor(cell, dataset)``. By default models are trained, once.

    Attributes
    ----------
    skipped : dict
        Methods of the comparison that could not run, and why.
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
        self.skipped: dict[str, str] = {}
        self._given = predictor
        self._kept: Callable[..., Any] = predictor or KeptPredictions(Path(results) / "predictions")
        self._bench: tuple[tuple[object, ...], Any] | None = None

    def run(
        self,
        cells: Sequence[Cell],
        *,
        progress: Progress | None = None,
        stage: Callable[[str], None] | None = None,
        jobs: int = 1,
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
            Called as ``stage(title)`` before each task; with several jobs, before the first of a trained model.
        jobs : int
            Processes that work at the same time.
        """
        count = check_count("jobs", jobs, minimum=1)
        finished = {study: self.store.keys(study) for study in {cell.study for cell in cells}}
        tasks = _tasks([cell for cell in cells if cell.key not in finished[cell.study] and self._can_run(cell)])
        ran = self._work(tasks, progress, stage) if count == 1 else self._share(tasks, progress, stage, count)
        self._bench = None
        for study in sorted({task.cells[0].study for task in tasks}):
            self.store.compact(study)
        return ran

    def _work(self, tasks: Sequence[Task], progress: Progress | None, stage: Callable[[str], None] | None) -> int:
        """Run tasks one after the other."""
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
        return ran

    def _share(
        self, tasks: Sequence[Task], progress: Progress | None, stage: Callable[[str], None] | None, jobs: int
    ) -> int:
        """Share tasks among processes, those of one trained model to one of them."""
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from multiprocessing import get_context

        bundles: dict[tuple[object, ...], list[Task]] = {}
        for task in tasks:
            bundles.setdefault(task.shares, []).append(task)
        total, done, ran = sum(len(task.cells) for task in tasks), 0, 0
        if progress:
            progress(done, total)
        # Processes start anew, because threads and compiled code do not survive a fork.
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            waiting = {
                pool.submit(_bundle, str(self.store.folder), self.root, self._given, bundle): bundle
                for bundle in bundles.values()
            }
            try:
                for finished in as_completed(waiting):
                    count, skipped = finished.result()
                    self.skipped |= skipped
                    bundle = waiting[finished]
                    ran, done = ran + count, done + sum(len(task.cells) for task in bundle)
                    if stage:
                        stage(bundle[0].title)
                    if progress:
                        progress(done, total)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return ran

    def compute(self, cells: Sequence[Any]) -> list[Row]:
        """Return the rows of cells of one task."""
        first = cells[0]
        if isinstance(first, BlockCell):
            return simulate(cells)
        if isinstance(first, DatasetCell):
            return [dataset_row(cell, load_dataset(cell.dataset, cell.seed, self.root)) for cell in cells]
        if isinstance(first, LeaderboardCell):
            return measure_draw(cells, self.ground(first), self.skipped)
        return measure(cells, self.bench(first))

    def bench(self, cell: CoverageCell) -> Bench:
        """Return the trained model that a cell is about; the last one is kept, as its cells come together."""
        name = _model(cell)
        if self._bench is None or self._bench[0] != name:
            self._bench = None  # free the old one before the new one is made
            setup, data = setup_of(cell.dataset), load_dataset(cell.dataset, cell.seed, self.root)
            self._bench = (name, Bench.build(setup, data, self.predictor(cell, data), cell.seed))
        bench: Bench = self._bench[1]
        return bench

    def ground(self, cell: LeaderboardCell) -> Ground:
        """Return what the methods of a cell's model compete on; the last one is kept, as its cells come together."""
        name = _model(cell)
        if self._bench is None or self._bench[0] != name:
            self._bench = None
            data = load_graph(cell.dataset, cell.seed, self.root)
            self._bench = (name, Ground.build(data, self._kept(cell, data)))
        ground: Ground = self._bench[1]
        return ground

    def _can_run(self, cell: Cell) -> bool:
        if isinstance(cell, LeaderboardCell):
            return is_there(cell.dataset, self.root)
        return not isinstance(cell, (DatasetCell, CoverageCell)) or is_available(cell.dataset, self.root)


def is_available(dataset: str, root: str | os.PathLike[str] | None = None) -> bool:
    """Say whether a dataset can be had here: embedded, drawn from a seed, or its files are in ``root/dataset``."""
    folder = Path(root or "data") / dataset
    places = (folder, folder / "raw")
    return not setup_of(dataset).from_files or any(all((at / name).exists() for name in RAW_FILES) for at in places)


def _bundle(
    results: str, root: str | os.PathLike[str] | None, predictor: Predictor | None, tasks: Sequence[Task]
) -> tuple[int, dict[str, str]]:
    """Run the tasks of one trained model in a process of their own."""
    laboratory = Laboratory(results, root, predictor)
    return laboratory._work(tasks, None, None), laboratory.skipped


def _model(cell: CoverageCell | LeaderboardCell) -> tuple[object, ...]:
    if isinstance(cell, LeaderboardCell):
        return (cell.study, cell.dataset, cell.model, cell.seed)
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
        elif isinstance(cell, LeaderboardCell):
            shares = _model(cell)
            part = (cell.share, cell.repetition, cell.alpha)
            title = f"{cell.dataset} {cell.model} seed {cell.seed}: {cell.share:.0%} labelled, draw {cell.repetition}"
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
