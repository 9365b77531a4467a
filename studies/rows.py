"""Rows of results: Parquet files in one folder per kind of row, read by DuckDB; joblib computes what is missing.

A `Kind` of row has columns that are its settings; all other columns were measured. A cell is the settings of a row that
is wanted, and it is finished if there is a row with these settings. Cells of one bundle, for example those of one
trained model, are computed together, and their rows become one new file, which is there whole or not at all.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib import Parallel, delayed

from napsets.datasets import NodePredictions
from studies.tables import Row, grouped


@dataclass(frozen=True)
class Folders:
    """Where rows and predictions are kept, and where the files of datasets are."""

    results: Path
    root: Path

    def predictions(self, name: str) -> Path:
        """Return the file of a model's predictions."""
        return self.results / "predictions" / name


@dataclass(frozen=True)
class Kind:
    """A kind of row: its folder, the columns that are settings, and how rows are computed from settings."""

    folder: str
    settings: tuple[str, ...]
    bundle: tuple[str, ...]  #: the settings that cells which are computed together have in common
    compute: Callable[[list[Row], Folders], list[Row]]  #: the rows of a bundle

    def key(self, row: Row) -> tuple[object, ...]:
        """Return the settings of a row or cell."""
        return tuple(row[name] for name in self.settings)

    def read(self, results: Path) -> list[Row]:
        """Return all rows; of those with the same settings, which two runs at once may write, the last."""
        files = sorted(map(str, (results / self.folder).glob("[!.]*.parquet")))
        if not files:
            return []
        table = duckdb.read_parquet(files, union_by_name=True)
        rows = (dict(zip(table.columns, values, strict=True)) for values in table.fetchall())
        return list({self.key(row): row for row in rows}.values())

    def rows_of(self, cells: Sequence[Row], results: Path) -> list[Row]:
        """Return the rows of the cells that are finished, in the order of the cells."""
        rows = {self.key(row): row for row in self.read(results)}
        return [rows[self.key(cell)] for cell in cells if self.key(cell) in rows]

    def append(self, rows: Sequence[Row], results: Path) -> None:
        """Write rows to a new file; NaN becomes a missing value."""
        if not rows:
            return
        names = dict.fromkeys(name for row in rows for name in row)
        values = {name: [row.get(name) for row in rows] for name in names}
        table = pa.table({name: [None if v != v else v for v in column] for name, column in values.items()})
        file = results / self.folder / f"run-{time.time_ns()}-{os.getpid()}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}")
        pq.write_table(table, draft)
        draft.replace(file)

    def missing(self, cells: Sequence[Row], results: Path) -> list[Row]:
        """Return the cells without a row."""
        finished = set(map(self.key, self.read(results)))
        return [cell for cell in cells if self.key(cell) not in finished]

    def run(
        self, cells: Sequence[Row], folders: Folders, *, jobs: int = 1, note: Callable[[str], None] = lambda text: None
    ) -> int:
        """Compute the cells that are not finished, several bundles at once; return how many there were.

        Rows are written after each bundle: an interrupted run loses the bundles under way and nothing else. `note`
        receives a line about each finished bundle.
        """
        missing = self.missing(cells, folders.results)
        bundles = grouped(missing, *self.bundle).values()
        work = (delayed(_run_bundle)(self, bundle, folders) for bundle in bundles)
        done = 0
        for bundle in Parallel(n_jobs=jobs, return_as="generator_unordered")(work):
            done += len(bundle)
            title = " ".join(f"{name}={bundle[0][name]}" for name in self.bundle)
            note(f"{self.folder}: {done:,} of {len(missing):,} ({title})")
        return len(missing)


def _run_bundle(kind: Kind, cells: list[Row], folders: Folders) -> list[Row]:
    kind.append(kind.compute(cells, folders), folders.results)
    return cells


def kept_predictions(file: Path, train: Callable[[], NodePredictions]) -> NodePredictions:
    """Return the predictions in a file; where it is missing, train the model and write it."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        save_predictions(train(), file)
    return load_predictions(file)


def save_predictions(predictions: NodePredictions, file: Path) -> None:
    """Write predictions to a Parquet file, whole or not at all.

    Its columns are node, label, split and probabilities (a list per row); its metadata holds the names and settings.
    """
    columns = {"node": predictions.nodes, "label": predictions.labels, "split": predictions.split}
    table = pa.table({**columns, "probabilities": list(predictions.probabilities)})
    about = {name: getattr(predictions, name) for name in ("dataset", "model", "class_names")}
    text = json.dumps(about | {"settings": dict(predictions.settings)})
    draft = file.with_name(f".{file.name}")
    pq.write_table(table.replace_schema_metadata({b"napsets": text.encode()}), draft)
    draft.replace(file)


def load_predictions(file: str | os.PathLike[str]) -> NodePredictions:
    """Read predictions that `save_predictions` wrote."""
    table = pq.read_table(file)
    about = json.loads((table.schema.metadata or {})[b"napsets"])
    names = about.pop("class_names")
    probabilities = np.stack(table["probabilities"].to_numpy())
    nodes, labels, split = (table[name].to_numpy() for name in ("node", "label", "split"))
    return NodePredictions(
        nodes, probabilities, labels, split.astype(str), class_names=None if names is None else tuple(names), **about
    )
