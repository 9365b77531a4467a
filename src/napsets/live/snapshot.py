"""Snapshots of the state: they make a start fast, may be deleted at any time, and never count against the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.files.places import replacing
from napsets.live.events import pack, unpack
from napsets.live.fold import Fold
from napsets.live.nodes import Column

Array = npt.NDArray[Any]

#: The version of the contents; a snapshot of another version is replaced from the log.
_VERSION = 2
_NAME = "snapshot.npz"
_COLUMNS = ("labels", "numbers", "is_reference", "arrivals", "u")


class Snapshot(NamedTuple):
    """The state after some event, and the checksum that the log has there."""

    events: int
    checksum: bytes
    arrays: dict[str, Array]

    def restore(self, fold: Fold) -> None:
        """Restore a new fold to this state."""
        state, arrays = fold.state, self.arrays
        labels = arrays["labels"]
        state.names.restore(unpack(arrays["ids"].tobytes())["ids"], np.flatnonzero(labels > -2), labels.size)
        if arrays["outputs"].size:
            state.outputs = Column(arrays["outputs"])
        for name in _COLUMNS:
            setattr(state, name, Column(arrays[name]))
        state.adjacency.take(arrays["offsets"], arrays["columns"])
        state.arrived_labels, state.events = int(arrays["arrived_labels"]), self.events
        state.present = int((labels > -2).sum())
        reference = state.is_reference.values[labels >= 0]
        state.sizes = [int(reference.sum()), int((~reference).sum())]
        fold.restore(arrays)


def write_snapshot(folder: Path, checksum: bytes, fold: Fold) -> None:
    """Write the state that a log leads to into the folder of the log."""
    state = fold.state
    offsets, columns = state.adjacency.packed()
    head = json.dumps({"version": _VERSION, "events": state.events, "checksum": checksum.hex()})
    ids = pack({"ids": state.names.of(np.flatnonzero(state.labels.values > -2))})
    outputs = np.empty((0, 0)) if state.outputs is None else state.outputs.values
    arrays = {name: getattr(state, name).values for name in _COLUMNS} | fold.arrays()
    arrays |= {"outputs": outputs, "offsets": offsets, "columns": columns}
    arrays |= {name: np.frombuffer(text, dtype=np.uint8) for name, text in (("head", head.encode()), ("ids", ids))}
    arrays["arrived_labels"] = np.array(state.arrived_labels)
    with replacing(folder / _NAME) as path, path.open("wb") as file:
        np.savez(file, **arrays)


def read_snapshot(folder: Path | None) -> Snapshot | None:
    """Return the snapshot of a folder; None where there is none that can be read."""
    if folder is None or not (folder / _NAME).exists():
        return None
    try:
        with np.load(folder / _NAME, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = json.loads(arrays.pop("head").tobytes())
        if head["version"] != _VERSION:
            return None
        return Snapshot(int(head["events"]), bytes.fromhex(head["checksum"]), arrays)
    except Exception:  # zip files fail in many ways, and the log has all of it
        return None
