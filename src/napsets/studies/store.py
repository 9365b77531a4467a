"""What is kept in files: rows of results, and the predictions of trained models.

The rows of a study are a folder of Parquet files, appended to by many and damaged by none. A finished piece of work
becomes a new file, written under another name and renamed, so that a kill leaves either all of its rows or none.
Reading takes the union of the files, each key once. Compaction writes the union to a new file named by its content,
then removes what it had read: no file is ever changed, so no lock is needed, and two runs at once can at worst do the
same work twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

from napsets.checks.optional import arrow
from napsets.datasets import NodeDataset
from napsets.errors import FileFormatError, NapsetsError
from napsets.files.formats import open_table
from napsets.files.places import replacing
from napsets.files.predictions import NodePredictions
from napsets.studies import study as versions
from napsets.studies.study import ModelCell, Row, digest


class RowStore:
    """The rows of all studies, in one folder per study.

    Parameters
    ----------
    folder : path
        Where they live; made when the first row comes.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._seen: dict[Path, list[Row]] = {}  # no file changes, so none is read twice

    def append(self, study: str, rows: Sequence[Row]) -> None:
        """Add rows, all or none; each must have a ``key``."""
        if rows:
            _write(self.folder / study / f"part-{uuid4().hex[:12]}.parquet", rows)

    def rows(self, study: str) -> list[Row]:
        """Return all rows of a study in the order of their keys, each key once."""
        return _unique(row for _, part in self._read(study) for row in part)

    def keys(self, study: str) -> set[str]:
        """Return the keys of the rows that are there."""
        return {row["key"] for _, part in self._read(study) for row in part}

    def compact(self, study: str) -> None:
        """Put a study's rows into one file."""
        parts = self._read(study)
        if len(parts) < 2:
            return
        rows = _unique(row for _, part in parts for row in part)
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
    """Gives a model's predictions on a dataset's test nodes: from a file, or by training it.

    Parameters
    ----------
    folder : path
        Where the files are, named by what they hold and a hash of the settings.
    """

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
    from napsets.studies.laboratory import cell_kinds

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


def _unique(rows: Iterable[Row]) -> list[Row]:
    by_key = {row["key"]: row for row in rows}
    return [by_key[key] for key in sorted(by_key)]
