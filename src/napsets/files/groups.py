"""Reading groups of nodes, within which coverage is to hold."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.files.formats import arrow, open_table
from napsets.files.ids import IdKind, NodeIds, UnknownIds, known_places
from napsets.files.labels import label_texts, refuse_repeated

__all__ = ["read_groups"]


def read_groups(
    path: str | os.PathLike[str], nodes: NodeIds, *, ids: IdKind = "auto", skip_unknown: bool = False
) -> npt.NDArray[Any]:
    """Read a table with the columns ``node`` and ``group`` into the name of the group of each of `nodes`.

    Parameters
    ----------
    path : path
        Any format that `napsets` reads. A node that is not there, or whose group is an empty cell, is in none.
    nodes : NodeIds
        The nodes.
    ids, skip_unknown
        As in `read_edges`.

    Returns
    -------
    numpy.ndarray
        Text, empty where a node is in no group.
    """
    pa = arrow()
    table = open_table("groups", path)
    table.require("node", "group")
    strangers = UnknownIds(table, nodes.name)
    places, texts = [np.empty(0, dtype=np.int64)], []
    for batch in table.batches(["node", "group"]):
        places.append(known_places(table, batch, "node", nodes, ids, strangers))
        texts.append(label_texts(table, batch.column("group")))
    strangers.settle(skip=skip_unknown, notes=None)
    place = np.concatenate(places)
    refuse_repeated(table, nodes, place[place >= 0])
    column = pa.chunked_array(texts, type=pa.large_string()).combine_chunks()
    names = np.array(pa.compute.fill_null(column, "").to_pylist(), dtype=np.str_)
    found = np.zeros(len(nodes), dtype=names.dtype if names.size else "<U1")
    found[place[place >= 0]] = names[place >= 0]
    return found
