"""Calibrated methods as files: NumPy arrays and a JSON header in one archive, no pickle."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray, check_flag, check_index, check_scores
from napsets.checks.names import choose
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.archive import read_archive, write_archive
from napsets.graph import Graph
from napsets.levels import LEVELS
from napsets.localisers import LOCALISERS, Reference
from napsets.methods.given import Scored
from napsets.methods.method import Calibrated, Method
from napsets.scores import BOUND, SCORES, BoundScore

__all__ = ["load", "save"]

#: The classes that a file can be loaded as.
KINDS = ("NAPS", "SplitConformal", "Auto", "Method")

FORMAT, FIRST_FORMAT = "napsets-predictor-2", "napsets-predictor-1"
#: Rows whose scores are computed again at a time.
_CHECKED_ROWS = 1 << 16


def save(calibrated: Calibrated, path: str | os.PathLike[str], *, kind: str = "Method") -> None:
    """Write a calibrated method to one file; `kind` is the class that `load` is to be asked for."""
    method, scored, graph = calibrated.method, calibrated.scored, calibrated.graph
    localiser: Any = method.localiser
    if callable(getattr(localiser, "decay", None)) and graph is not None:
        # A function cannot be written; the weights it gives at the hops that the graph has say the same.
        weights = calibrated.local.weighting(np.arange(graph.num_nodes)).hops.tolist()  # type: ignore[attr-defined]
        localiser = replace(localiser, hops=len(weights), decay=weights)
    bound, arrays = scored.bound.parts()  # type: ignore[attr-defined]
    arrays |= {"u": scored.u, "calibration": scored.reference.nodes, "scores": scored.reference.scores}
    if calibrated.is_exact:
        level: Any = calibrated.level
        arrays |= {"apart": scored.apart, "apart_scores": scored.apart_scores}
        arrays |= {"level_shares": level.shares, "level_scores": level.scores}
    if graph is not None:
        arrays |= {"indptr": graph.indptr, "indices": graph.indices}
    header = {
        "format": FORMAT,
        "kind": kind,
        "score": SCORES.describe("score", method.score),
        "localiser": LOCALISERS.describe("localiser", localiser),
        "level": LEVELS.describe("level", method.level),
        "bound": bound,
        "settings": {"seed": method.seed, "allow_empty": method.allow_empty},
        "directed": None if graph is None else graph.directed,
    }
    write_archive(path, header, arrays)


def load(path: str | os.PathLike[str]) -> tuple[str, Calibrated]:
    """Read what `save` wrote, and the name of the class; anything else is a `FileFormatError`."""
    with read_archive(path) as (header, arrays):
        if header["format"] == FIRST_FORMAT:
            header = _of_first_edition(header)
        if header["format"] != FORMAT:
            raise FileFormatError(f"`path` must be a {FORMAT} file; {os.fspath(path)} says it is {header['format']!r}")
        return choose("kind", header["kind"], {name: name for name in KINDS}), _restore(header, arrays)


def _of_first_edition(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a file of the first edition as we would write it."""
    settings, score = header["settings"], header["score"]
    names = {kind.__name__: name for name, kind in SCORES.items()}
    kind = choose("kind", header["kind"], {"NAPS": "hops", "SplitConformal": "everyone"})
    near = {"hops": settings["hops"], "decay": settings["decay"]} if kind == "hops" else {}
    fallback = {"fallback": settings["fallback"]} if kind == "hops" else {}
    scored = {"name": choose("score", score["name"], names), "settings": score["settings"]}
    return {
        "format": FORMAT,
        "kind": header["kind"],
        "score": scored,
        "localiser": {"name": kind, "settings": near},
        "level": {"name": "nominal", "settings": fallback},
        "bound": {"name": "rows", "score": scored},
        "settings": {"seed": settings["seed"], "allow_empty": settings["allow_empty"]},
        "directed": not check_flag("undirected", settings["undirected"]) if kind == "hops" else None,
    }


def _restore(header: dict[str, Any], arrays: dict[str, Any]) -> Calibrated:
    """Put a calibrated method together, checking its parts as `calibrate` would."""
    settings = header["settings"]
    method = Method(
        SCORES.rebuild("score", header["score"]),
        LOCALISERS.rebuild("localiser", header["localiser"]),
        LEVELS.rebuild("level", header["level"]),
        settings["seed"],
        settings["allow_empty"],
    )
    bound = choose("bound", header["bound"]["name"], BOUND).from_parts(header["bound"], arrays)
    size = bound.probabilities.shape[0]
    graph = None
    if header["directed"] is not None:
        directed = check_flag("directed", header["directed"])
        graph = Graph(arrays["indptr"], arrays["indices"], directed=directed)
        if graph.num_nodes != size:
            raise InvalidInputError(f"`probabilities` must have one row a node, {graph.num_nodes}; got {size}")
    nodes = check_index("calibration", arrays["calibration"], size, unique=True)
    scores = check_scores("scores", arrays["scores"], size=nodes.size)
    exact = method.level.keeps_apart
    apart = check_index("apart", arrays["apart"], size, unique=True) if exact else np.empty(0, dtype=np.int64)
    apart_scores = check_scores("apart_scores", arrays["apart_scores"], size=apart.size) if exact else np.empty(0)
    for part, its in ((nodes, scores), (apart, apart_scores)):
        _check_own(method.score, bound, part, its)
    reference = Reference(nodes, scores, size, graph, bound.probabilities)
    scored = Scored(
        method.score, method.seed, check_scores("u", arrays["u"], size=size), bound, reference, apart, apart_scores
    )
    shares, ranked = (
        (check_scores(name, arrays[name], size=apart.size) for name in ("level_shares", "level_scores"))
        if exact
        else (np.empty(0), np.empty(0))
    )
    return Calibrated(method, scored, method.localiser.fit(reference), method.level.fit(reference, shares, ranked))


def _check_own(score: Any, bound: BoundScore, nodes: IntArray, scores: FloatArray) -> None:
    """Refuse scores that no label of their node has: they belong to another score, or to other probabilities."""
    for start in range(0, nodes.size, _CHECKED_ROWS):
        part, given = nodes[start : start + _CHECKED_ROWS], scores[start : start + _CHECKED_ROWS]
        strange = ~np.isclose(bound.matrix(part), given[:, None], rtol=0, atol=1e-9).any(axis=1)
        if strange.any():
            at = int(strange.argmax())
            raise InvalidInputError(
                f"`scores` must be those that {type(score).__name__} gives the calibration nodes; node "
                f"{part[at]} has {given[at]:g}, which none of its labels has"
            )
