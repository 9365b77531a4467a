"""Calibrated methods as files: NumPy arrays and a JSON header in one archive, no pickle."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from napsets.checks.arguments import (
    FloatArray,
    IntArray,
    as_column,
    check_flag,
    check_index,
    check_integers,
    check_labels,
    check_names,
    check_scores,
    shown,
)
from napsets.checks.names import choose
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.archive import read_archive, write_archive
from napsets.graph import Graph
from napsets.groups import GROUPS, ByGroup, Grouping
from napsets.levels import LEVELS
from napsets.localisers import LOCALISERS, PathLengths, Reference
from napsets.localisers.path_lengths import LENGTH_DECAYS
from napsets.methods.auto import Choosing
from napsets.methods.given import Scored
from napsets.methods.method import Calibrated, Method, num_labels, num_rows
from napsets.scores import BOUND, SCORES, BoundIntervals, BoundScore, InformedIntervals, RowScore

__all__ = ["load", "load_asked", "save"]

#: The classes that a file can be loaded as.
KINDS = ("NAPS", "SplitConformal", "Auto", "RandomisedNAPS", "Method")

FORMAT, FIRST_FORMAT = "napsets-predictor-2", "napsets-predictor-1"
#: Which localiser a class that knows only one has.
_LOCALISER_OF = {"NAPS": "hops", "SplitConformal": "everyone", "RandomisedNAPS": "balls"}
#: How deep a header may be nested: some thirty scores one in another.
_DEEPEST = 64
#: How far numbers computed again may be from those in a file: sums in another order differ in the last digits.
_ROUNDING = 1e-9
#: Rows whose scores are computed again at a time.
_CHECKED_ROWS = 1 << 16


def save(
    calibrated: Calibrated,
    path: str | os.PathLike[str],
    *,
    kind: str = "Method",
    asked: Mapping[str, Any] | None = None,
) -> None:
    """Write a calibrated method to one file.

    Parameters
    ----------
    calibrated : Calibrated
        What to write.
    path : str or path
        Where to.
    kind : str
        The class that `load` is to be asked for.
    asked : mapping, optional
        The settings of whoever chose the method, to be read with `load_asked`.
    """
    method, scored, graph = calibrated.method, calibrated.scored, calibrated.graph
    localiser: Any = method.localiser
    if isinstance(localiser, PathLengths) and callable(localiser.decay):
        raise InvalidInputError(
            f"`decay` must be one of {', '.join(LENGTH_DECAYS)} to be saved; a function of distances cannot be written"
        )
    if callable(getattr(localiser, "decay", None)) and graph is not None:
        # A function cannot be written; the weights it gives at the hops that the graph has say the same.
        weights = calibrated.local.weighting(np.arange(graph.num_nodes)).hops.tolist()  # type: ignore[attr-defined]
        localiser = replace(localiser, hops=len(weights), decay=weights)
    if not callable(getattr(scored.bound, "parts", None)):
        raise InvalidInputError(
            f"`score` must be bound to something with the method parts to be saved; {type(method.score).__name__} is "
            f"bound to a {type(scored.bound).__name__}, which has none"
        )
    bound, arrays = scored.bound.parts()  # type: ignore[attr-defined]
    arrays |= {"u": scored.u, "calibration": scored.reference.nodes, "scores": scored.reference.scores}
    if calibrated.is_exact:
        level: Any = calibrated.level
        arrays |= {"apart": scored.apart, "apart_scores": scored.apart_scores}
        arrays |= {"level_shares": level.shares, "level_scores": level.scores}
    if scored.ids is not None:
        arrays["ids"] = scored.ids.astype(str)
    if calibrated.grouped is not None:
        arrays |= {"labels": scored.labels, "apart_labels": scored.apart_labels}
        arrays |= {"grouping": calibrated.grouped.grouping.groups}
    if graph is not None:
        arrays |= {"indptr": graph.indptr, "indices": graph.indices}
        if graph.lengths is not None:
            arrays |= {"lengths": graph.lengths}
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
    if scored.class_names is not None:
        header["class_names"] = list(scored.class_names)
    if calibrated.grouped is not None:
        header["groups"] = _describe_groups(method.groups, arrays)
        header["grouped"] = calibrated.grouped.grouping.of
    if asked is not None:
        header["asked"] = dict(asked)
    _check_depth(header)
    write_archive(path, header, arrays)


def _describe_groups(groups: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return what the header says of groups; those that are an array are among the arrays."""
    if isinstance(groups, ByGroup):
        arrays["groups"] = groups.groups
        return {"name": GROUPS.name_of(ByGroup), "settings": {}}
    return GROUPS.describe("by", groups)


def load(path: str | os.PathLike[str]) -> tuple[str, Calibrated]:
    """Read what `save` wrote, and the name of the class; anything else is a `FileFormatError`."""
    kind, calibrated, _ = load_asked(path)
    return kind, calibrated


def load_asked(path: str | os.PathLike[str]) -> tuple[str, Calibrated, Choosing | None]:
    """Do what `load` does, and return the settings of whoever chose the method too, where the file has them."""
    with read_archive(path) as (header, arrays):
        _check_depth(header)
        if header["format"] == FIRST_FORMAT:
            header = _of_first_edition(header)
        if header["format"] != FORMAT:
            raise FileFormatError(f"`path` must be a {FORMAT} file; {os.fspath(path)} says it is {header['format']!r}")
        kind = choose("kind", header["kind"], {name: name for name in KINDS})
        only = _LOCALISER_OF.get(kind, header["localiser"]["name"])
        if header["localiser"]["name"] != only:
            raise InvalidInputError(
                f"`localiser` must be {only} in a file of a {kind}; got {shown(header['localiser']['name'])}"
            )
        calibrated = _restore(header, arrays)
        return kind, calibrated, _asked(header, calibrated.method)


def _asked(header: dict[str, Any], method: Method) -> Choosing | None:
    """Return the settings of whoever chose; older files have none."""
    if header.get("asked") is None:
        return None
    told = dict(header["asked"])
    by = told.pop("by", None)
    asked = Choosing(**told, by=method.groups if by is None else GROUPS.rebuild("by", by))
    for name in ("seed", "allow_empty"):
        if getattr(asked, name) != getattr(method, name):
            raise InvalidInputError(
                f"`{name}` must be that of the method chosen, {getattr(method, name)}; got {getattr(asked, name)}"
            )
    return asked


def _check_depth(header: Any) -> None:
    """Refuse a header that is nested deeper than scores ever are: it would exhaust the stack, now or later."""
    layer = [header]
    for _ in range(_DEEPEST):
        layer = [
            inner
            for part in layer
            if isinstance(part, dict | list | tuple)
            for inner in (part.values() if isinstance(part, dict) else part)
        ]
        if not layer:
            return
    raise InvalidInputError(f"`score` must be nested less deep to be in a file; the header has over {_DEEPEST} layers")


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
        _rebuild_groups(header.get("groups"), arrays),
    )
    _check_bound(method.score, header["bound"])
    bound = choose("bound", header["bound"]["name"], BOUND).from_parts(header["bound"], arrays)
    size = num_rows(bound)
    graph = None
    if header["directed"] is not None:
        directed = check_flag("directed", header["directed"])
        lengths = arrays.get("lengths")
        graph = Graph(arrays["indptr"], arrays["indices"], directed=directed, lengths=lengths)
        if graph.num_nodes != size:
            raise InvalidInputError(f"`probabilities` must have one row a node, {graph.num_nodes}; got {size}")
    u = check_scores("u", arrays["u"], size=size)
    if u.size and not (u.min() >= 0 and u.max() <= 1):
        raise InvalidInputError(f"`u` must lie in [0, 1]; got values from {u.min():g} to {u.max():g}")
    nodes, scores = _part("calibration", "scores", arrays, method.score, bound)
    apart, apart_scores = np.empty(0, dtype=np.int64), np.empty(0)
    if method.level.keeps_apart:
        apart, apart_scores = _part("apart", "apart_scores", arrays, method.score, bound)
        both = np.intersect1d(nodes, apart)
        if both.size:
            raise InvalidInputError(f"`apart` must hold no node of `calibration`; node {both[0]} is in both")
    wanted = method.level.reference_size(nodes.size + apart.size)
    if nodes.size != wanted:
        raise InvalidInputError(
            f"`calibration` must hold {wanted} of {nodes.size + apart.size} labelled nodes at the level of the file; "
            f"it holds {nodes.size}"
        )
    reference = Reference(nodes, scores, size, graph, bound.probabilities, u)
    local = method.localiser.fit(reference)
    scored = Scored(
        method.score, method.seed, u, bound, reference, apart, apart_scores, **_names(header, arrays, bound)
    )
    if method.groups is not None:
        scored = _with_labels(scored, arrays)
        ranks = local.ranks(apart, apart_scores) if apart.size else np.empty(0)
        return method.with_ranks(scored, local, ranks, _grouping(header, arrays, size, num_labels(bound)))
    shares, ranked = np.empty(0), np.empty(0)
    if apart.size:
        shares, ranked = (
            check_scores(name, arrays[name], size=apart.size) for name in ("level_shares", "level_scores")
        )
        _check_ranks(local.ranks(apart, apart_scores), apart_scores, shares, ranked)
    return Calibrated(method, scored, local, method.level.fit(reference, shares, ranked))


def _names(header: dict[str, Any], arrays: dict[str, Any], bound: BoundScore) -> dict[str, Any]:
    """Return what nodes and classes are called, where the file says it."""
    nodes, classes = num_rows(bound), num_labels(bound)
    found: dict[str, Any] = {}
    if "ids" in arrays:
        found["ids"] = as_column("ids", arrays["ids"])
        if found["ids"].shape != (nodes,) or found["ids"].dtype.kind != "U":
            raise InvalidInputError(f"`ids` must have one name a node, {nodes}; got shape {found['ids'].shape}")
    if header.get("class_names") is not None:
        names = check_names("class_names", header["class_names"]) or ()
        if len(names) != classes:
            raise InvalidInputError(f"`class_names` must have one name a class, {classes}; got {len(names)}")
        found["class_names"] = names
    return found


def _rebuild_groups(described: Any, arrays: dict[str, Any]) -> Any:
    if described is None:
        return None
    if described["name"] == GROUPS.name_of(ByGroup):
        return ByGroup(arrays["groups"])
    return GROUPS.rebuild("by", described)


def _with_labels(scored: Scored, arrays: dict[str, Any]) -> Scored:
    """Add the labels of the labelled nodes, which must be those that have the scores of the file."""
    found: dict[str, Any] = {}
    for name, nodes, scores in (
        ("labels", scored.reference.nodes, scored.reference.scores),
        ("apart_labels", scored.apart, scored.apart_scores),
    ):
        labels: Any = arrays[name]
        if isinstance(scored.bound, BoundIntervals):
            labels = check_scores(name, labels, size=nodes.size)
        else:
            labels = check_labels(labels, size=nodes.size, num_classes=num_labels(scored.bound))
            if (labels < 0).any():
                raise InvalidInputError(f"`{name}` must be known; entry {int((labels < 0).argmax())} is −1")
        if nodes.size and not np.allclose(scored.bound.at(nodes, labels), scores, rtol=0, atol=_ROUNDING):
            raise InvalidInputError(f"`{name}` must be those that the nodes were scored at")
        found[name] = labels
    return replace(scored, **found)


def _grouping(header: dict[str, Any], arrays: dict[str, Any], num_nodes: int, num_classes: int) -> Grouping:
    """Return the groups that were found when the file was written."""
    of = choose("grouped", header["grouped"], {"label": "label", "node": "node"})
    groups = check_integers("grouping", arrays["grouping"]).astype(np.int64)
    size = num_classes if of == "label" else num_nodes
    if groups.shape != (size,) or groups.min(initial=0) < -1 or groups.max(initial=-1) >= size:
        raise InvalidInputError(f"`grouping` must have a group for each {of}, {size}, from −1 to {size - 1}")
    return Grouping(of, groups)  # type: ignore[arg-type]


def _check_bound(score: Any, described: dict[str, Any]) -> None:
    """Refuse a bound score that is not one of the score that was asked for, all the way down."""
    while True:
        name = SCORES.name_of(type(score))
        plain = isinstance(score, RowScore) and type(score).bind is RowScore.bind
        form = name if name in BOUND else "rows" if plain else described["name"]
        if described["name"] != form:
            raise InvalidInputError(f"`bound` must be that of {name}; got {shown(described['name'])}")
        if "inner" not in described:
            break
        described, score = described["inner"], getattr(score, "base", None)
    if isinstance(score, InformedIntervals):  # it changes outputs, and is bound to the score of what they became
        score = score.base
    if "score" in described and SCORES.rebuild("score", described["score"]) != score:
        raise InvalidInputError(f"`bound` must be of the score {shown(score)}; got {shown(described['score'])}")


def _part(
    name: str, named_scores: str, arrays: dict[str, Any], score: Any, bound: BoundScore
) -> tuple[IntArray, FloatArray]:
    """Return some labelled nodes and their scores, checked."""
    nodes = check_index(name, arrays[name], num_rows(bound), unique=True)
    if nodes.size == 0:
        raise InvalidInputError(f"`{name}` must hold at least one node; it is empty")
    scores = check_scores(named_scores, arrays[named_scores], size=nodes.size)
    if not isinstance(bound, BoundIntervals):  # a number may have any score
        _check_own(named_scores, score, bound, nodes, scores)
    return nodes, scores


def _check_ranks(expected: FloatArray, scores: FloatArray, shares: FloatArray, ranked: FloatArray) -> None:
    """Refuse ranks that are not those of the nodes kept apart; they may stand in any order."""
    ours, theirs = np.lexsort((expected, scores)), np.lexsort((shares, ranked))
    for name, right, given in (("scores", scores[ours], ranked[theirs]), ("shares", expected[ours], shares[theirs])):
        # Two infinite scores are equal, though nothing is between them.
        strange = ~((right == given) | np.isclose(right, given, rtol=0, atol=_ROUNDING))
        if strange.any():
            at = int(strange.argmax())
            raise InvalidInputError(
                f"`level_{name}` must be those of the nodes kept apart; got {given[at]:g} where {right[at]:g} is right"
            )


def _check_own(name: str, score: Any, bound: BoundScore, nodes: IntArray, scores: FloatArray) -> None:
    """Refuse scores that no label of their node has: they belong to another score, or to other probabilities."""
    for start in range(0, nodes.size, _CHECKED_ROWS):
        part, given = nodes[start : start + _CHECKED_ROWS], scores[start : start + _CHECKED_ROWS]
        strange = ~np.isclose(bound.matrix(part), given[:, None], rtol=0, atol=_ROUNDING).any(axis=1)
        if strange.any():
            at = int(strange.argmax())
            raise InvalidInputError(
                f"`{name}` must be those that {type(score).__name__} gives the labelled nodes; node "
                f"{part[at]} has {given[at]:g}, which none of its labels has"
            )
