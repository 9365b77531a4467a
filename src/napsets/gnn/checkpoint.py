"""Checkpoints: all that a run needs to go on after it was stopped, written whole after every epoch."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.places import reading, replacing

__all__ = ["fingerprint", "load_checkpoint", "save_checkpoint"]


def fingerprint(about: Mapping[str, Any], *arrays: Any) -> str:
    """Return a short hash of what must be the same for a run to be continued: settings, weights and data."""
    digest = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for array in arrays:
        parts = [array] if isinstance(array, np.ndarray) else [array.indptr, array.indices, array.data]
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def save_checkpoint(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state of tensors, numbers, strings, lists and dictionaries."""
    # Through a stream: given a path, PyTorch writes the name of the draft into the file.
    with replacing(path) as draft, open(draft, "wb") as stream:
        torch.save(dict(state), stream)


def load_checkpoint(path: str | os.PathLike[str], expected: str) -> dict[str, Any] | None:
    """Read a state if there is one; refuse that of another run."""
    if not Path(path).exists():
        return None
    with reading(path) as source:
        state = torch.load(source, weights_only=True)
        found = state["fingerprint"]
    if not isinstance(found, str):
        raise FileFormatError(f"{path} is not a checkpoint")
    if found != expected:
        raise InvalidInputError(
            f"`checkpoint` must be of the same data, model, settings and seed; {path} is of another run: "
            "name another file, or remove it"
        )
    return dict(state)
