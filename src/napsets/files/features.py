"""Reading features of nodes: a table with a column a feature, or a sparse matrix as SciPy writes it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from napsets.errors import FileFormatError
from napsets.files.formats import open_table
from napsets.files.ids import IdKind, NodeIds, UnknownIds, known_places
from napsets.files.labels import refuse_repeated
from napsets.files.numbers import check_width, number_rows
from napsets.files.places import reading

__all__ = ["read_features"]

LIST_COLUMN = "features"
#: What `scipy.sparse.save_npz` calls the parts of compressed sparse rows.
_SPARSE = {"indptr", "indices", "data", "shape", "format"}


def read_features(
    path: str | os.PathLike[str], nodes: NodeIds, *, ids: IdKind = "auto", skip_unknown: bool = False
) -> Any:
    """Read features into one row for each of `nodes`.

    Parameters
    ----------
    path : path
        Parquet, CSV (plain or gzip) or npz with the column ``node`` and either one column a feature or one list column
        ``features``; or what ``scipy.sparse.save_npz`` wrote, a row a node in the order of the probabilities.
    nodes : NodeIds
        The nodes; each must have a row.
    ids, skip_unknown
        As in `read_edges`.

    Returns
    -------
    numpy.ndarray or scipy.sparse.csr_array
        A row a node.
    """
    sparse = _read_sparse(path, len(nodes)) if os.fspath(path).endswith(".npz") else None
    if sparse is not None:
        return sparse
    table = open_table("features", path)
    table.require("node")
    columns = [column for column in table.columns if column != "node"]
    if LIST_COLUMN in columns:
        columns = [LIST_COLUMN]
    if not columns:
        raise FileFormatError(f"`features` must have a column a feature beside node; {table.path} has none")
    strangers = UnknownIds(table, nodes.name)
    places, blocks, filled = [], [], 0
    for batch in table.batches(["node", *columns]):
        places.append(known_places(table, batch, "node", nodes, ids, strangers))
        blocks.append(number_rows(table, batch, columns, filled, list_column=LIST_COLUMN, booleans=True))
        check_width(table, blocks[-1], blocks[0].shape[1])
        filled += batch.num_rows
    strangers.settle(skip=skip_unknown, notes=None)
    place = np.concatenate([np.empty(0, dtype=np.int64), *places])
    refuse_repeated(table, nodes, place[place >= 0])
    missing = len(nodes) - int((place >= 0).sum())
    if missing:
        raise FileFormatError(
            f"`features` must have a row for each of the {len(nodes):,} nodes of `{nodes.name}`; {table.path} lacks "
            f"{missing:,}"
        )
    rows = np.concatenate(blocks)
    found = np.empty((len(nodes), rows.shape[1]), dtype=rows.dtype)
    found[place[place >= 0]] = rows[place >= 0]
    return found


def _read_sparse(path: str | os.PathLike[str], size: int) -> Any:
    """Return the rows of a file that SciPy wrote, or None where it is another one."""
    with reading(path, "features") as source, np.load(source, allow_pickle=False) as archive:
        if not set(archive.files) >= _SPARSE:
            return None
        parts = {name: archive[name] for name in _SPARSE}
    if parts["format"].item() not in (b"csr", "csr"):
        raise FileFormatError(
            f"`features` must be compressed sparse rows (csr); {os.fspath(path)} holds {parts['format'].item()!r}"
        )
    from scipy.sparse import csr_array

    try:
        height, width = (int(n) for n in parts["shape"])
        rows = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(height, width))
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise FileFormatError(
            f"`features` must be compressed sparse rows; {os.fspath(path)} is not: {error}"
        ) from error
    if rows.shape[0] != size:
        raise FileFormatError(
            f"`features` must have a row for each of the {size:,} nodes of `probabilities`, in their order; "
            f"{os.fspath(path)} has {rows.shape[0]:,}"
        )
    return rows
