"""Running studies: their table and cells, and what is kept in files (rows of results, predictions of models).

The rows of a study are a folder of Parquet files, appended to by many and damaged by none. A finished piece of work
becomes a new file, written under another name and renamed, so that a kill leaves either all of its rows or none.
Reading takes the union of the files, each key once. Compaction writes the union to a new file named by its content,
then removes what it had read: no file is ever changed, so no lock is needed, and two runs at once can at worst do the
same work twice.

With several jobs, processes take the cells of a trained model each. They share nothing but the folder of results,
which many may append to.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from napsets.checks.values import check_count
from napsets.datasets import NodeDataset
from napsets.errors import FileFormatError, InvalidInputError, NapsetsError, arrow
from napsets.files.formats import open_table
from napsets.files.paths import note_written, replacing
from napsets.files.predictions import NodePredictions
from napsets.studies import study as versions
from napsets.studies.drift_study import DriftStudy
from napsets.studies.leaderboard import LeaderboardStudy
from napsets.studies.paper import TARGETS, PaperStudy
from napsets.studies.sets import SetsStudy
from napsets.studies.study import Cell, ModelCell, Row, Study, digest

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress


class RowStore:
    """The rows of all studies, in one folder per study, made when the first row comes."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._seen: dict[Path, list[Row]] = {}  # no file changes, so none is read twice

    def append(self, study: str, rows: Sequence[Row]) -> None:
        """Add rows, all or none; each must have a ``key``."""
        if rows:
            _write(self.folder / study / f"part-{uuid4().hex[:12]}.parquet", rows)

    def rows(self, study: str) -> list[Row]:
        """Return all rows of a study in the order of their keys, each key once."""
        by_key = {row["key"]: row for _, part in self._read(study) for row in part}
        return [by_key[key] for key in sorted(by_key)]

    def keys(self, study: str) -> set[str]:
        """Return the keys of the rows that are there."""
        return {row["key"] for _, part in self._read(study) for row in part}

    def compact(self, study: str) -> None:
        """Put a study's rows into one file."""
        parts = self._read(study)
        if len(parts) < 2:
            return
        rows = self.rows(study)
        name = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:12]
        target = self.folder / study / f"rows-{name}.parquet"
        _write(target, rows)
        for path, _ in parts:
            if path != target:
                path.unlink(missing_ok=True)

    def _read(self, study: str) -> list[tuple[Path, list[Row]]]:
        """Read every file; start again where another run's compaction took one away in between."""
        for _ in range(100):
            paths = sorted((self.folder / study).glob("[!.]*.parquet"))
            parts = []
            for path in paths:
                try:
                    if path not in self._seen:
                        self._seen[path] = _checked(study, path)
                except NapsetsError:
                    if path.exists():
                        raise
                    break
                parts.append((path, self._seen[path]))
            else:
                return parts
        raise NapsetsError(f"{self.folder / study} keeps changing while it is read")


class PredictionCache:
    """Gives a model's predictions on a dataset's test nodes: from a file named by what it holds, or by training it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, cell: ModelCell) -> Path:
        """Return the file of the predictions that a cell is about."""
        names = cell.model_names
        mark = digest({**cell.training(), "names": names, "version": versions.RESULTS_VERSION})
        return self.folder / f"{'_'.join(names)}_{mark[:8]}{cell.suffix}"

    def __call__(self, cell: ModelCell, data: NodeDataset) -> NodePredictions:
        """Return the predictions, training only where they neither come with the package nor have a file yet."""
        shipped = cell.shipped_predictions()
        if shipped is not None:
            return shipped
        path = self.path(cell)
        if not path.exists():
            for trained, predictions in cell.train(data):
                predictions.save(self.path(trained))
        return NodePredictions.load(path)


def _checked(study: str, path: Path) -> list[Row]:
    """Read a file; refuse rows that no run can have written. Rows of unknown studies must only have a key."""
    table = open_table("results", path)
    rows: list[Row] = [row for batch in table.batches(table.columns) for row in batch.to_pylist()]
    kind = cell_kinds().get(study)
    for row in rows:
        key = row.get("key")
        if not isinstance(key, str) or not key:
            raise FileFormatError(f"{path} must have a key in each row; one has {key!r}")
        if kind is not None:
            kind.check_row(row, f"the row {key!r} of {path}")
    return rows


def _write(path: Path, rows: Sequence[Row]) -> None:
    pa = arrow()
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    with replacing(path) as draft:
        pa.parquet.write_table(pa.table(columns), draft)


#: Studies by the name that `napsets reproduce` knows them by.
STUDIES: dict[str, Study] = {
    **{target: PaperStudy(target) for target in TARGETS},
    "leaderboard": LeaderboardStudy(),
    "sets": SetsStudy(),
    "drift": DriftStudy(),
}

#: Gives the predictions of a cell's model on its dataset.
Predictor = Callable[[Any, NodeDataset], NodePredictions]
Stage = Callable[[str], None]
#: Cells that are computed together, because one search of the graph serves them all.
Task = Sequence[Cell]


@cache
def cell_kinds() -> dict[str, type[Cell]]:
    """Return the kinds of cells by the name of the folder of their rows."""
    return {kind.study: kind for study in STUDIES.values() for kind in study.kinds}


class Laboratory:
    """Turns cells into rows.

    Parameters
    ----------
    results : path
        Folder of the rows, and of the trained models' predictions (in ``predictions``).
    root : path
        Folder of the datasets that are read from files: with a subfolder for each of the paper's, and with the npz
        files of the graphs that methods are compared on.
    predictor : callable, optional
        Gives the predictions of a cell's model: ``predictor(cell, dataset)``. By default models are trained, once.

    Attributes
    ----------
    skipped : dict
        Methods that could not run, and why.
    """

    def __init__(
        self,
        results: str | os.PathLike[str] = "results",
        root: str | os.PathLike[str] = "data",
        predictor: Predictor | None = None,
    ) -> None:
        self.store = RowStore(results)
        self.root = root
        self.predictor: Predictor = predictor or PredictionCache(Path(results) / "predictions")
        self.skipped: dict[str, str] = {}
        self._test_graph: tuple[tuple[object, ...], Any] | None = None

    def run(
        self, cells: Sequence[Cell], *, progress: Progress | None = None, stage: Stage | None = None, jobs: int = 1
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
        for cell in cells:
            if not isinstance(cell, cell_kinds().get(getattr(cell, "study", ""), ())):
                raise InvalidInputError(f"`cells` must be cells of a study; got {type(cell).__name__}")
        finished = {study: self.store.keys(study) for study in {cell.study for cell in cells}}
        missing = [cell for cell in cells if cell.key not in finished[cell.study]]
        bundles = _bundles([cell for cell in missing if cell.can_run(self.root)])
        tasks = [task for bundle in bundles for task in bundle]
        tell, begin = progress or _ignore, stage or _ignore
        ran = self._work(tasks, tell, begin) if count == 1 else self._share(bundles, tell, begin, count)
        self._test_graph = None
        for study in sorted({task[0].study for task in tasks}):
            self.store.compact(study)
        return ran

    def compute(self, cells: Sequence[Cell]) -> list[Row]:
        """Return the rows of cells of one task."""
        return type(cells[0]).compute(cells, self)

    def test_graph(self, cell: ModelCell) -> Any:
        """Return what the cells of a trained model are measured on; the last one is kept, as its cells come together.

        It is a `ScoredGraph` for the paper's tables, and a `PredictedGraph` where methods are compared.
        """
        if self._test_graph is None or self._test_graph[0] != cell.neighbours:
            self._test_graph = None  # free the old one before the new one is made
            data = cell.load(self.root)
            self._test_graph = (cell.neighbours, cell.prepare(data, self.predictor(cell, data)))
        return self._test_graph[1]

    def _work(self, tasks: Sequence[Task], progress: Progress, stage: Stage) -> int:
        """Run tasks one after the other."""
        total, done, ran = _size(tasks), 0, 0
        for task in tasks:
            stage(task[0].title)
            progress(done, total)
            by_now = self.store.keys(task[0].study)
            missing = [cell for cell in task if cell.key not in by_now]
            if missing:
                self.store.append(task[0].study, self.compute(missing))
            done, ran = done + len(task), ran + len(missing)
        progress(done, total)
        return ran

    def _share(self, bundles: Sequence[Sequence[Task]], progress: Progress, stage: Stage, jobs: int) -> int:
        """Share tasks among processes, those of one trained model to one of them."""
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from multiprocessing import get_context

        total, done, ran = sum(map(_size, bundles)), 0, 0
        progress(done, total)
        predictor = None if isinstance(self.predictor, PredictionCache) else self.predictor
        there = self._files()
        try:
            # Processes start again, because threads and compiled code do not survive a fork.
            with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_obey) as pool, _ending(pool):
                waiting = {
                    pool.submit(_run_bundle, self.store.folder, self.root, predictor, bundle): bundle
                    for bundle in bundles
                }
                for finished in as_completed(waiting):
                    count, skipped = finished.result()
                    self.skipped |= skipped
                    bundle = waiting[finished]
                    ran, done = ran + count, done + _size(bundle)
                    stage(bundle[0][0].title)
                    progress(done, total)
        finally:
            for path in sorted(self._files() - there):
                note_written(path)
        return ran

    def _files(self) -> set[Path]:
        """Return what is in the folder of results, drafts not counted."""
        return {path for path in self.store.folder.rglob("[!.]*") if path.is_file()}


@contextmanager
def _ending(pool: Any) -> Iterator[None]:
    """End the processes of a pool, and not only what waits for them, if something goes wrong here."""
    from multiprocessing import active_children

    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            process.terminate()
        raise


def _obey() -> None:
    """Let the process that shares out the work decide when this one ends, and remove drafts then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a terminal sends to both
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _run_bundle(
    results: Path, root: str | os.PathLike[str], predictor: Predictor | None, tasks: Sequence[Task]
) -> tuple[int, dict[str, str]]:
    """Run the tasks of one trained model in a process of their own."""
    laboratory = Laboratory(results, root, predictor)
    return laboratory._work(tasks, _ignore, _ignore), laboratory.skipped


def _ignore(*news: object) -> None:
    """Take no notice of how far a run is."""


def _size(tasks: Sequence[Task]) -> int:
    return sum(len(task) for task in tasks)


def _bundles(cells: Sequence[Cell]) -> list[list[Task]]:
    """Group cells into tasks, and the tasks of one trained model into bundles."""
    tasks: dict[tuple[object, ...], dict[tuple[object, ...], list[Cell]]] = {}
    for cell in cells:
        tasks.setdefault(cell.neighbours, {}).setdefault(cell.task, []).append(cell)
    return [list(of_model.values()) for of_model in tasks.values()]
