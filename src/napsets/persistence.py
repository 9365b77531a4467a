"""Calibrated predictors as files: NumPy arrays and a JSON header in one archive, no pickle."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from napsets._files import reading, replacing
from napsets.decay import hop_weights
from napsets.errors import FileFormatError, InvalidInputError, NotCalibratedError
from napsets.graph import Graph
from napsets.predictors import NAPS, CalibrationData, SplitConformal
from napsets.scores import APS, RAPS, SAPS, THR
from napsets.thresholds import CalibrationIndex

__all__ = ["load", "save"]

FORMAT = "napsets-predictor-1"
SCORES: dict[str, type] = {score.__name__: score for score in (APS, RAPS, SAPS, THR)}


def save(predictor: Any, path: str | os.PathLike[str]) -> None:
    """Write a calibrated `NAPS` or `SplitConformal`."""
    data: CalibrationData | None = predictor.data_
    if data is None:
        raise NotCalibratedError(f"{type(predictor).__name__}.save() needs calibrate(...) to be called first")
    arrays: dict[str, Any] = {
        "probabilities": data.probabilities,
        "calibration": data.calibration,
        "scores": data.scores,
        "u": data.u,
    }
    settings: dict[str, Any] = {"seed": predictor.seed, "allow_empty": predictor.allow_empty}
    if isinstance(predictor, NAPS):
        assert predictor.index_ is not None
        graph = predictor.index_.graph
        arrays |= {"indptr": graph.indptr, "indices": graph.indices}
        decay = predictor.decay
        # A function cannot be written; the weights it gives at these hops say the same.
        named = decay if isinstance(decay, str) else hop_weights(decay, predictor.hops).tolist()
        settings |= {
            "hops": predictor.hops,
            "decay": named,
            "fallback": predictor.fallback,
            "undirected": graph.undirected,
        }
    header = {
        "format": FORMAT,
        "kind": type(predictor).__name__,
        "score": _describe(predictor.score),
        "settings": settings,
    }
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, header=np.array(json.dumps(header)), **arrays)


def load(path: str | os.PathLike[str]) -> NAPS | SplitConformal:
    """Read what `save` wrote."""
    header, arrays = _read(path)
    settings, score = header["settings"], header["score"]
    made: dict[str, Any] = {
        "seed": settings["seed"],
        "allow_empty": settings["allow_empty"],
        "score": SCORES[score["name"]](**score["settings"]),
    }
    data = CalibrationData(arrays["probabilities"], arrays["calibration"], arrays["scores"], arrays["u"])
    if header["kind"] == "SplitConformal":
        split = SplitConformal(**made)
        split.data_ = data
        return split
    naps = NAPS(hops=settings["hops"], decay=settings["decay"], fallback=settings["fallback"], **made)
    graph = Graph(arrays["indptr"], arrays["indices"], undirected=settings["undirected"])
    naps.data_, naps.index_ = data, CalibrationIndex(graph, data.scores, data.calibration)
    return naps


def _describe(score: Any) -> dict[str, Any]:
    name = type(score).__name__
    if SCORES.get(name) is not type(score) or not is_dataclass(score):
        raise InvalidInputError(f"`score` must be one of {', '.join(SCORES)} to be saved; got {name}")
    return {"name": name, "settings": asdict(score)}  # type: ignore[arg-type]


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    with reading(path) as source:
        with np.load(source, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT:
            raise FileFormatError(f"{source} must be a {FORMAT} file; it says it is {header['format']!r}")
    return header, arrays
