"""Calibrated methods as files: NumPy arrays and a JSON header in one archive, no pickle."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray, as_column, check_index, check_integers, check_scores
from napsets.checks.frames import check_class_names
from napsets.checks.values import check_flag, choose, shown
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.npz_format import is_nested_beyond, read_archive, write_archive
from napsets.graph import Graph
from napsets.groups import ByGroup, Grouping
from napsets.levels import Full
from napsets.localisers import PathLengths, Reference, Weights
from napsets.localisers.path_lengths import LENGTH_DECAYS
from napsets.methods.auto import AutoMethod
from napsets.methods.calibrated import Calibrated
from napsets.methods.choice import Choice
from napsets.methods.data import Scored
from napsets.methods.method import Method
from napsets.scores import BOUND, SCORES, BoundScore, InformedIntervals, RowScore, prediction_type
from napsets.scores.base import can_use_held_out
from napsets.scores.informed import Bag, evidence_of
from napsets.scores.informed_intervals import BoundInformedIntervals, ResidualBag

#: What a file can be loaded as, a predictor or a calibrated method, and which localiser it has if it knows only one.
KINDS = {"NAPS": "hops", "SplitConformal": "everyone", "Auto": None, "RandomisedNAPS": "balls", "Method": None}

FORMAT, SECOND_FORMAT, FIRST_FORMAT = "napsets-predictor-3", "napsets-predictor-2", "napsets-predictor-1"
#: How deep a header may be nested: some thirty scores one in another.
_DEEPEST = 64
#: How far numbers computed again may be from those in a file: sums in another order differ in the last digits.
_ROUNDING = 1e-9
#: Rows whose scores are computed again at a time.
_CHECKED_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds."""

    kind: str  #: the class that wrote it
    calibrated: Calibrated  #: the calibrated method
    auto: AutoMethod | None = None  #: the settings that chose the method, where one was chosen
    integer_labels: bool = False  #: whether labels were integers in the file that they came from


def save(
    calibrated: Calibrated,
    path: str | os.PathLike[str],
    *,
    kind: str = "Method",
    auto: AutoMethod | None = None,
    integer_labels: bool = False,
) -> None:
    """Write a calibrated method to one file.

    Parameters
    ----------
    calibrated : Calibrated
        What to write.
    path : str or path
        Where to.
    kind : str
        The class that `napsets.load` is to return.
    auto : AutoMethod, optional
        The settings that chose the method.
    integer_labels : bool
        Whether labels were integers in the file that they came from, as they then are in files of predictions.
    """
    method, scored, graph = _writable(calibrated), calibrated.scored, calibrated.graph
    description = method.describe()  # which refuses what no file can hold
    if not callable(getattr(scored.bound, "parts", None)):
        raise InvalidInputError(
            f"`score` must be bound to something with the method parts to be saved; {type(method.score).__name__} is "
            f"bound to a {type(scored.bound).__name__}, which has none"
        )
    bound, arrays = scored.bound.parts()
    arrays |= {"u": scored.u, "calibration": scored.reference.nodes, "scores": scored.reference.scores}
    if calibrated.is_exact:
        level: Any = calibrated.level
        arrays |= {"apart": scored.level_nodes, "apart_scores": scored.level_scores}
        arrays |= {"level_shares": level.shares, "level_scores": level.scores}
    if scored.ids is not None:
        arrays["ids"] = scored.ids if scored.ids.dtype.kind in "iu" else scored.ids.astype(str)
    grouped = calibrated.grouped
    by_label = getattr(method.localiser, "by_label", False)
    if grouped is not None or by_label:
        arrays |= {"labels": scored.labels, "apart_labels": scored.level_labels}
    if grouped is not None:
        arrays |= {"grouping": grouped.grouping.groups, "ranks": grouped.ranks}
        if isinstance(method.groups, ByGroup):
            arrays["groups"] = method.groups.groups
    arrays |= method.localiser.arrays() if isinstance(method.localiser, Weights) else {}
    if graph is not None:
        arrays |= {"indptr": graph.indptr, "indices": graph.indices}
        if graph.lengths is not None:
            arrays |= {"lengths": graph.lengths}
    header = {
        "format": FORMAT,
        "kind": kind,
        "method": description,
        "bound": bound,
        "directed": None if graph is None else graph.directed,
        "class_names": None if scored.class_names is None else list(scored.class_names),
        "grouped": None if grouped is None else grouped.grouping.of,
        "auto": None if auto is None else auto.describe(),
        "choice": None if calibrated.choice is None else calibrated.choice.describe(),
    }
    if integer_labels:
        header["integer_labels"] = True
    _check_depth(header)
    write_archive(path, header, arrays)


def _writable(calibrated: Calibrated) -> Method:
    """Return the method without functions, which cannot be written."""
    method: Method = calibrated.method
    localiser: Any = method.localiser
    if isinstance(localiser, PathLengths) and callable(localiser.decay):
        raise InvalidInputError(
            f"`decay` must be one of {', '.join(LENGTH_DECAYS)} to be saved; a function of distances cannot be written"
        )
    if callable(getattr(localiser, "decay", None)) and calibrated.graph is not None:
        # The weights that it gives at the hops that the graph has say the same.
        nodes = np.arange(calibrated.graph.num_nodes)
        weights = calibrated.local.weighting(nodes).hops.tolist()  # type: ignore[attr-defined]
        return replace(method, localiser=replace(localiser, hops=len(weights), decay=weights))
    return method


def read_saved(path: str | os.PathLike[str]) -> Saved:
    """Read what `save` wrote; anything else is a `FileFormatError`."""
    with read_archive(path) as (header, arrays):
        _check_depth(header)
        if header["format"] == FIRST_FORMAT:
            header = _from_first_format(header)
        if header["format"] == SECOND_FORMAT:
            header = _from_second_format(header)
        if header["format"] != FORMAT:
            raise FileFormatError(f"`path` must be a {FORMAT} file; {os.fspath(path)} says it is {header['format']!r}")
        kind, name = header["kind"], header["method"]["localiser"]["name"]
        only = choose("kind", kind, KINDS) or name
        if name != only:
            raise InvalidInputError(f"`localiser` must be {only} in a file of a {kind}; got {shown(name)}")
        calibrated = _restore(header, arrays)
        integers = check_flag("integer_labels", header.get("integer_labels", False))
        return Saved(kind, calibrated, _auto(header, calibrated.method), integers)


def _auto(header: dict[str, Any], method: Method) -> AutoMethod | None:
    """Return the settings that chose the method; older files have none."""
    description = header.get("auto")
    if description is None:
        return None
    auto = AutoMethod.from_description(description, groups=getattr(method.groups, "groups", None))
    for name in ("seed", "allow_empty"):
        if getattr(auto, name) != getattr(method, name):
            raise InvalidInputError(
                f"`{name}` must be that of the method chosen, {getattr(method, name)}; got {getattr(auto, name)}"
            )
    return auto


def _check_depth(header: Any) -> None:
    """Refuse a header that is nested deeper than scores ever are: it would exhaust the stack, now or later."""
    if is_nested_beyond(header, _DEEPEST):
        raise InvalidInputError(
            f"`score` must be nested less deep to be in a file; the header has over {_DEEPEST} layers"
        )


def _from_first_format(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a file of the first format in the second."""
    settings, score = header["settings"], header["score"]
    names = {kind.__name__: name for name, kind in SCORES.items()}
    kind = choose("kind", header["kind"], {"NAPS": "hops", "SplitConformal": "everyone"})
    near = {"hops": settings["hops"], "decay": settings["decay"]} if kind == "hops" else {}
    fallback = {"fallback": settings["fallback"]} if kind == "hops" else {}
    scored = {"name": choose("score", score["name"], names), "settings": score["settings"]}
    return {
        "format": SECOND_FORMAT,
        "kind": header["kind"],
        "score": scored,
        "localiser": {"name": kind, "settings": near},
        "level": {"name": "nominal", "settings": fallback},
        "bound": {"name": "rows", "score": scored},
        "settings": {"seed": settings["seed"], "allow_empty": settings["allow_empty"]},
        "directed": not check_flag("undirected", settings["undirected"]) if kind == "hops" else None,
    }


def _from_second_format(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a file of the second format in the present one: one description of the method."""
    parts = {name: header[name] for name in ("score", "localiser", "level")}
    chosen_by = header.get("asked")
    if chosen_by is not None and "by" not in chosen_by:  # they were those of the method
        chosen_by = {**chosen_by, "by": header.get("groups")}
    return {
        **{name: header.get(name) for name in ("kind", "bound", "directed", "class_names", "grouped")},
        "format": FORMAT,
        "method": {**parts, **header["settings"], "groups": header.get("groups")},
        "auto": chosen_by,
        "choice": None,
    }


def _restore(header: dict[str, Any], arrays: dict[str, Any]) -> Calibrated:
    """Put a calibrated method together, checking its parts as `calibrate` would."""
    weights = Weights.matrix_of(arrays)
    method = Method.from_description(header["method"], groups=arrays.get("groups"), weights=weights)
    _check_bound(method.score, header["bound"])
    bound = choose("bound", header["bound"]["name"], BOUND).from_parts(header["bound"], arrays)
    size = bound.num_nodes
    graph = None
    if header["directed"] is not None:
        directed = check_flag("directed", header["directed"])
        lengths = arrays.get("lengths")
        graph = Graph(arrays["indptr"], arrays["indices"], directed=directed, lengths=lengths)
        if graph.num_nodes != size:
            raise InvalidInputError(f"`probabilities` must have one row per node, {graph.num_nodes}; got {size}")
    u = check_scores("u", arrays["u"], size=size)
    if u.size and not (u.min() >= 0 and u.max() <= 1):
        raise InvalidInputError(f"`u` must lie in [0, 1]; got values from {u.min():g} to {u.max():g}")
    bag = _bag(method, bound)
    if bag is not None and graph is None:
        raise InvalidInputError("`directed` must be True or False where held-out labels are evidence; got None")
    nodes, scores = _labelled_part("calibration", "scores", arrays, method.score, bound, own=bag is None)
    held_out, held_out_scores = np.empty(0, dtype=np.int64), np.empty(0)
    if method.level.keeps_apart:
        held_out, held_out_scores = _labelled_part("apart", "apart_scores", arrays, method.score, bound)
        if bag is not None and not np.array_equal(bag.labelled.nodes, held_out):
            raise InvalidInputError("`bag_nodes` must be the level nodes, `apart`")
        both = np.intersect1d(nodes, held_out)
        if both.size:
            raise InvalidInputError(f"`apart` must hold no node of `calibration`; node {both[0]} is in both")
    wanted = method.level.reference_size(nodes.size + held_out.size)
    if nodes.size != wanted:
        raise InvalidInputError(
            f"`calibration` must hold {wanted} of {nodes.size + held_out.size} labelled nodes at the level of the "
            f"file; it holds {nodes.size}"
        )
    names: dict[str, Any] = {"class_names": check_class_names(header.get("class_names"), bound.num_labels)}
    if "ids" in arrays:
        names["ids"] = as_column("ids", arrays["ids"])
        if names["ids"].shape != (size,) or names["ids"].dtype.kind not in "Uiu":
            raise InvalidInputError(f"`ids` must have one name per node, {size}; got shape {names['ids'].shape}")
    by_label = getattr(method.localiser, "by_label", False)
    if method.groups is not None or by_label:
        taught = isinstance(method.level, Full)  # by scores that use no held-out labels
        names["labels"] = _labels("labels", arrays, method.score, bound, nodes, None if taught else scores)
        names["level_labels"] = _labels("apart_labels", arrays, method.score, bound, held_out, held_out_scores)
    labels = names["labels"] if by_label else None
    reference = Reference(nodes, scores, size, graph, bound.probabilities, u, labels)
    local = method.localiser.fit(reference)
    scored = Scored(method.score, method.seed, u, bound, reference, held_out, held_out_scores, **names)
    if method.groups is not None:
        if "ranks" in arrays or not held_out.size:
            ranks = check_scores("ranks", arrays.get("ranks", np.empty(0)), size=held_out.size)
        else:  # a file of the second format
            ranks = local.ranks(held_out, held_out_scores)
        calibrated = method.with_ranks(scored, local, ranks, _grouping(header, arrays, size, bound.num_labels))
    else:
        shares, ranked = np.empty(0), np.empty(0)
        if held_out.size:
            shares, ranked = (
                check_scores(name, arrays[name], size=held_out.size) for name in ("level_shares", "level_scores")
            )
            if not np.allclose(np.sort(ranked), np.sort(held_out_scores), rtol=0, atol=_ROUNDING):
                raise InvalidInputError("`level_scores` must be those of the level nodes, `apart_scores`")
            if shares.min() < 0 or shares.max() >= 1:
                raise InvalidInputError(
                    f"`level_shares` must lie in [0, 1); got values from {shares.min():g} to {shares.max():g}"
                )
        calibrated = Calibrated(method, scored, local, method.level.fit(reference, shares, ranked))
    return replace(calibrated, choice=_choice(header, calibrated))


def _choice(header: dict[str, Any], calibrated: Calibrated) -> Choice | None:
    """Return why the method was chosen, where the file says it."""
    description = header.get("choice")
    if description is None:
        return None
    informed = evidence_of(calibrated.score)
    exponents = None if informed is None else informed.exponents
    try:
        return Choice.from_description(description, calibrated.method, exponents)
    except TypeError as error:
        raise InvalidInputError(f"`choice` must be what napsets writes; {error}") from error


def _labels(
    name: str, arrays: dict[str, Any], score: Any, bound: BoundScore, nodes: IntArray, scores: FloatArray | None
) -> npt.NDArray[Any]:
    """Return the labels of labelled nodes, which must be those that have the scores of the file, if it has them."""
    prediction = prediction_type(score)
    rows: Any = bound.probabilities[nodes] if bound.num_labels else np.empty((nodes.size, 1))
    labels = prediction.check_truth(arrays[name], rows)
    unknown = ~prediction.known(labels)
    if unknown.any():
        raise InvalidInputError(f"`{name}` must be known; entry {int(unknown.argmax())} is not")
    if scores is not None and nodes.size and not np.allclose(bound.at(nodes, labels), scores, rtol=0, atol=_ROUNDING):
        raise InvalidInputError(f"`{name}` must be those that the nodes were scored at")
    return labels


def _grouping(header: dict[str, Any], arrays: dict[str, Any], num_nodes: int, num_classes: int) -> Grouping:
    """Return the groups that were found when the file was written."""
    of = choose("grouped", header["grouped"], {"label": "label", "node": "node"})
    groups = check_integers("grouping", arrays["grouping"]).astype(np.int64)
    size = num_classes if of == "label" else num_nodes
    if groups.shape != (size,) or groups.min(initial=0) < -1 or groups.max(initial=-1) >= size:
        raise InvalidInputError(f"`grouping` must have a group for each {of}, {size}, from −1 to {size - 1}")
    return Grouping(of, groups)  # type: ignore[arg-type]


def _check_bound(score: Any, described: dict[str, Any]) -> None:
    """Refuse a bound score that does not belong to the given score, including the scores inside it."""
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


def _bag(method: Method, bound: BoundScore) -> Bag | ResidualBag | None:
    """Return the labels that are evidence in addition to the reference; only a full level has them."""
    informed = bound if isinstance(bound, BoundInformedIntervals) else evidence_of(bound)
    bag = None if informed is None else informed.bag
    if (bag is not None) != (isinstance(method.level, Full) and can_use_held_out(method.score)):
        raise InvalidInputError(f"`bag_nodes` must be in a file of a full level, and in no other; got {method.level!r}")
    return bag


def _labelled_part(
    name: str, scores_name: str, arrays: dict[str, Any], score: Any, bound: Any, *, own: bool = True
) -> tuple[IntArray, FloatArray]:
    """Return some labelled nodes and their scores, checked; with `own`, that the bound score gives them."""
    nodes = check_index(name, arrays[name], bound.num_nodes, unique=True)
    if nodes.size == 0:
        raise InvalidInputError(f"`{name}` must hold at least one node; it is empty")
    scores = check_scores(scores_name, arrays[scores_name], size=nodes.size)
    # Scores that no label of their node has belong to another score, or to other probabilities; a number may have any.
    for start in range(0, nodes.size if own and bound.num_labels else 0, _CHECKED_ROWS):
        part, part_scores = nodes[start : start + _CHECKED_ROWS], scores[start : start + _CHECKED_ROWS]
        strange = ~np.isclose(bound.matrix(part), part_scores[:, None], rtol=0, atol=_ROUNDING).any(axis=1)
        if strange.any():
            at = int(strange.argmax())
            raise InvalidInputError(
                f"`{scores_name}` must be those that {type(score).__name__} gives the labelled nodes; node "
                f"{part[at]} has {part_scores[at]:g}, which none of its labels has"
            )
    return nodes, scores
