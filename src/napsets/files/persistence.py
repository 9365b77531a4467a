"""Calibrated predictors as files: NumPy arrays and a JSON header in one archive, no pickle."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import check_flag, check_index, check_probabilities, check_scores, check_seed
from napsets.checks.frozen import sealed
from napsets.checks.names import choose
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.places import reading, replacing
from napsets.graph import Graph
from napsets.localisers.neighbourhoods import CalibrationIndex
from napsets.methods import NAPS, CalibrationData, SplitConformal, hop_weights_of
from napsets.scores import SCORES, make_score

__all__ = ["load", "save"]

FORMAT = "napsets-predictor-1"
#: Files call a score by its class.
CLASSES: dict[str, type] = {score.__name__: score for score in SCORES.values()}
KINDS: dict[str, type] = {kind.__name__: kind for kind in (NAPS, SplitConformal)}
#: Rows whose scores are computed again at a time.
_CHUNK_ROWS = 1 << 16


def save(predictor: Any, path: str | os.PathLike[str]) -> None:
    """Write a calibrated `NAPS` or `SplitConformal`."""
    data: CalibrationData = predictor._calibrated("save")
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
        hops, decay = predictor.hops, predictor.decay
        if not isinstance(decay, str):
            # A function cannot be written; the weights it gives at the hops that the graph has say the same.
            decay = hop_weights_of(predictor, graph, np.arange(graph.num_nodes)).tolist()
            hops = len(decay)
        settings |= {
            "hops": hops,
            "decay": decay,
            "fallback": predictor.fallback,
            "directed": graph.directed,
        }
    header = {
        "format": FORMAT,
        "kind": type(predictor).__name__,
        "score": _describe(make_score(predictor.score)),
        "settings": settings,
    }
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, header=np.array(json.dumps(header, default=_plain)), **arrays)


def load(path: str | os.PathLike[str]) -> NAPS | SplitConformal:
    """Read what `save` wrote; anything else, or a damaged file, is a `FileFormatError`."""
    with reading(path) as source:
        with np.load(source, allow_pickle=False) as archive:
            arrays = {name: sealed(archive[name]) for name in archive.files}
        header = json.loads(str(arrays["header"]))
        if header["format"] != FORMAT:
            raise FileFormatError(f"`path` must be a {FORMAT} file; {source} says it is {header['format']!r}")
        return _build(header, arrays)


def _build(header: dict[str, Any], arrays: dict[str, Any]) -> NAPS | SplitConformal:
    """Put a predictor together, checking its parts as `calibrate` would."""
    settings, score = header["settings"], header["score"]
    made: dict[str, Any] = {
        "seed": settings["seed"],
        "allow_empty": settings["allow_empty"],
        "score": choose("score", score["name"], CLASSES)(**score["settings"]),
    }
    p = check_probabilities(arrays["probabilities"])
    calibration = check_index("calibration", arrays["calibration"], p.shape[0], unique=True)
    scores = check_scores("scores", arrays["scores"], size=calibration.size)
    u = check_scores("u", arrays["u"])
    if u.size != p.shape[0]:
        raise InvalidInputError(f"`u` must have one entry a node, {p.shape[0]}; got {u.size}")
    if u.size and not (u.min() >= 0 and u.max() <= 1):
        raise InvalidInputError(f"`u` must lie in [0, 1]; got values from {u.min():g} to {u.max():g}")
    data = CalibrationData(p, calibration, scores, u, made["score"], check_seed(made["seed"]))
    if choose("kind", header["kind"], KINDS) is SplitConformal:
        split = SplitConformal(**made)
        _check_scores(data)
        split.data_ = data
        return split
    naps = NAPS(hops=settings["hops"], decay=settings["decay"], fallback=settings["fallback"], **made)
    graph = Graph(arrays["indptr"], arrays["indices"], directed=_directed(settings))
    if graph.num_nodes != p.shape[0]:
        raise InvalidInputError(f"`probabilities` must have one row a node, {graph.num_nodes}; got {p.shape[0]}")
    _check_scores(data)
    naps.data_, naps.index_ = data, CalibrationIndex(graph, scores, calibration)
    return naps


def _directed(settings: dict[str, Any]) -> Any:
    """Return whether edges go one way; files of the first edition say whether they go both ways."""
    return settings["directed"] if "directed" in settings else not check_flag("undirected", settings["undirected"])


def _check_scores(data: CalibrationData) -> None:
    """Refuse scores that no label of their node has: they belong to another score, or to other probabilities."""
    for start in range(0, data.calibration.size, _CHUNK_ROWS):
        nodes = data.calibration[start : start + _CHUNK_ROWS]
        scores = data.scores[start : start + _CHUNK_ROWS]
        matrix = data.score.matrix(data.probabilities[nodes], data.u[nodes])
        strange = ~np.isclose(matrix, scores[:, None], rtol=0, atol=1e-9).any(axis=1)
        if strange.any():
            at = int(strange.argmax())
            raise InvalidInputError(
                f"`scores` must be those that {type(data.score).__name__} gives the calibration nodes; node "
                f"{nodes[at]} has {scores[at]:g}, which none of its labels has"
            )


def _describe(score: Any) -> dict[str, Any]:
    name = type(score).__name__
    if CLASSES.get(name) is not type(score) or not is_dataclass(score):
        raise InvalidInputError(f"`score` must be one of {', '.join(CLASSES)} to be saved; got {name}")
    return {"name": name, "settings": asdict(score)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers, which JSON does not know, into Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written")
