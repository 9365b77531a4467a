"""Calibrated methods as files: the inputs of the calibration and the method, as NumPy arrays and JSON, no pickle.

Whatever follows from the inputs is computed again by `read_saved`, which calibrates as `calibrate` does. A method that
was chosen is kept with the record of its choice, and not chosen again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from napsets.checks.arguments import AnyArray, check_index
from napsets.checks.values import Values, check_count, check_flag
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.archives import is_nested_beyond, read_archive, write_archive
from napsets.graph import Graph
from napsets.groups import ByGroup
from napsets.localisers import Hops, PathLengths, Weights
from napsets.localisers.hops import hop_weights
from napsets.localisers.path_lengths import LENGTH_DECAYS
from napsets.methods.calibrated import Calibrated
from napsets.methods.choice import Choice
from napsets.methods.data import CalibrationData
from napsets.methods.method import Method
from napsets.scores import prediction_type
from napsets.scores.base import uses_features
from napsets.scores.informed import evidence_of

FORMAT = "napsets-calibrated"
#: How deep a header may be nested: some thirty scores one in another.
_DEEPEST = 64

Arrays = Mapping[str, AnyArray]


def save(calibrated: Calibrated, path: str | os.PathLike[str], *, integer_labels: bool = False) -> None:
    """Write a calibrated method to one file, whole or not at all.

    Parameters
    ----------
    calibrated : Calibrated
        The method with its calibration.
    path : str or path
        Where to write it.
    integer_labels : bool
        Whether labels were integers in the file that they came from, as they then are in files of predictions.
    """
    scored, data = calibrated.scored, calibrated.scored.data
    if scored.learned_before:
        raise InvalidInputError(
            "`calibrated` must not belong to a living graph, whose score was learned from earlier labels; save the "
            "graph itself: live.save(folder)"
        )
    method = _without_functions(calibrated.method)
    header = {
        "format": FORMAT,
        "method": method.describe(),  # which rejects what no file can hold
        "directed": None if data.graph is None else data.graph.directed,
        "class_names": None if data.class_names is None else list(data.class_names),
        "named": data.named,
        "evidence": scored.evidence,
        "trained": data.trained,
        "choice": None if calibrated.choice is None else calibrated.choice.describe(),
        "integer_labels": integer_labels,
    }
    _check_depth(header)
    write_archive(path, header, {**_inputs(calibrated), **_settings(method)})


def read_saved(path: str | os.PathLike[str]) -> tuple[Calibrated, bool]:
    """Read a calibrated method, and whether its labels were integers; anything else is a `FileFormatError`."""
    with read_archive(path) as (header, arrays):
        _check_depth(header)
        if header["format"] != FORMAT:
            raise FileFormatError(f"`path` must be a {FORMAT} file; {os.fspath(path)} says it is {header['format']!r}")
        method = Method.from_description(
            header["method"], groups=arrays.get("groups"), weights=Weights.matrix_of(arrays)
        )
        calibrated = method.calibrate_data(_read_data(method, header, arrays))
        return replace(calibrated, choice=_choice(header, calibrated)), check_flag(
            "integer_labels", header["integer_labels"]
        )


def load(path: str | os.PathLike[str]) -> Calibrated:
    """Read a calibrated method that `Calibrated.save` wrote.

    The file holds the inputs and the method, which is calibrated again: with the same results to the last bit on the
    same machine.

    Parameters
    ----------
    path : str or path
        The file.
    """
    return read_saved(path)[0]


# -- the inputs --------------------------------------------------------------------------------------------------------


def _inputs(calibrated: Calibrated) -> dict[str, AnyArray]:
    """Return the arrays that a calibration starts from; of the truth, that of the labelled nodes alone."""
    scored, data, graph = calibrated.scored, calibrated.scored.data, calibrated.graph
    arrays = {
        "outputs": data.outputs,
        "reference": scored.reference.nodes,
        "reference_truth": scored.labels,
        "held_out": scored.level_nodes,
        "held_out_truth": scored.level_labels,
    }
    if graph is not None:
        arrays |= {"indptr": graph.indptr, "indices": graph.indices}
        if graph.lengths is not None:
            arrays["lengths"] = graph.lengths
    arrays |= _features_arrays(data.features)
    if data.named or data.ids.dtype.kind not in "iu" or not np.array_equal(data.ids, np.arange(data.ids.size)):
        arrays["ids"] = data.ids if data.ids.dtype.kind in "iu" else data.ids.astype(str)
        if data.ids.dtype.kind == "O":
            arrays["ids_are_text"] = np.array([isinstance(name, str) for name in data.ids])
    return arrays


def _read_data(method: Method, header: Values, arrays: Arrays) -> CalibrationData:
    """Return the inputs of a calibration, checked as `calibrate` checks them."""
    prediction = prediction_type(method.score)
    outputs = prediction.check_outputs(arrays["outputs"])
    size = outputs.shape[0]
    graph = None
    if header["directed"] is not None:
        directed = check_flag("directed", header["directed"])
        graph = Graph(arrays["indptr"], arrays["indices"], directed=directed, lengths=arrays.get("lengths"))
        if graph.num_nodes != size:
            raise InvalidInputError(
                f"`{prediction.outputs_name}` must have one row per node, {graph.num_nodes}; got {size}"
            )
    truth = np.full(size, prediction.unknown, dtype=np.float64 if prediction.truth_name == "targets" else np.int64)
    parts = []
    for name in ("reference", "held_out"):
        nodes, labels = check_index(name, arrays[name], size, unique=True), arrays[f"{name}_truth"]
        if labels.shape != nodes.shape or labels.dtype.kind not in ("iu" if truth.dtype.kind == "i" else "f"):
            raise InvalidInputError(
                f"`{name}_truth` must have one entry per node of `{name}`, {nodes.size}; got {labels.dtype} of shape "
                f"{labels.shape}"
            )
        truth[nodes] = labels
        parts.append(np.sort(nodes))
    reference, held_out = parts
    both = np.intersect1d(reference, held_out)
    if both.size:
        raise InvalidInputError(f"`held_out` must hold no node of `reference`; node {both[0]} is in both")
    if bool(held_out.size) != method.level.holds_out_labels:
        wanted = "at least one node" if method.level.holds_out_labels else "no node"
        raise InvalidInputError(f"`held_out` must hold {wanted} at the level {method.level!r}; got {held_out.size}")
    evidence = check_flag("evidence", header["evidence"])
    calibration = held_out if evidence else np.union1d(reference, held_out)
    data = CalibrationData.check(
        graph, outputs, truth, calibration, evidence=reference if evidence else None, ids=_read_ids(arrays, size),
        class_names=header["class_names"], score=method.score,
        features=_read_features(arrays) if uses_features(method.score) else None,
    )  # fmt: skip
    split = None if evidence or not held_out.size else (reference, held_out)
    trained = check_count("trained", header["trained"], maximum=calibration.size)
    return replace(data, split=split, named=check_flag("named", header["named"]), trained=trained)


def _read_ids(arrays: Arrays, size: int) -> AnyArray | None:
    ids = arrays.get("ids")
    if ids is None:
        return None
    if ids.shape != (size,) or ids.dtype.kind not in "Uiu":
        raise InvalidInputError(f"`ids` must have one name per node, {size}; got {ids.dtype} of shape {ids.shape}")
    if "ids_are_text" not in arrays:
        return ids
    is_text = arrays["ids_are_text"]
    if is_text.shape != ids.shape or is_text.dtype != np.bool_ or ids.dtype.kind != "U":
        raise InvalidInputError(f"`ids_are_text` must have one flag per node, {size}; got shape {is_text.shape}")
    pairs = zip(ids.tolist(), is_text.tolist(), strict=True)
    return np.array([name if text else int(name) for name, text in pairs], dtype=object)


# -- the method --------------------------------------------------------------------------------------------------------


def _without_functions(method: Method) -> Method:
    """Return the method with a decay that is a function of hops written out; other functions are rejected."""
    localiser: Any = method.localiser
    if isinstance(localiser, PathLengths) and callable(localiser.decay):
        raise InvalidInputError(
            f"`decay` must be one of {', '.join(LENGTH_DECAYS)} to be saved; a function of distances cannot be written"
        )
    if isinstance(localiser, Hops) and callable(localiser.decay):
        return replace(method, localiser=replace(localiser, decay=hop_weights(localiser.decay, localiser.hops)))
    return method


def _settings(method: Method) -> dict[str, AnyArray]:
    """Return the settings of a method that are arrays."""
    arrays: dict[str, AnyArray] = {}
    if isinstance(method.groups, ByGroup):
        arrays["groups"] = method.groups.groups
    if isinstance(method.localiser, Weights):
        arrays |= method.localiser.arrays()
    return arrays


def _features_arrays(values: Any) -> dict[str, AnyArray]:
    """Return the arrays of dense or sparse features."""
    if values is None or isinstance(values, np.ndarray):
        return {} if values is None else {"features": values}
    parts = {f"features_{part}": getattr(values, part) for part in ("data", "indices", "indptr")}
    return parts | {"features_shape": np.array(values.shape)}


def _read_features(arrays: Arrays) -> Any:
    """Return the features of a file; None where it has none."""
    if "features_shape" not in arrays:
        return arrays.get("features")
    import scipy.sparse

    parts = (arrays["features_data"], arrays["features_indices"], arrays["features_indptr"])
    values = scipy.sparse.csr_array(parts, shape=tuple(arrays["features_shape"].tolist()))
    values.check_format(full_check=True)
    return values


def _choice(header: Values, calibrated: Calibrated) -> Choice | None:
    """Return the record of the choice, if the method was chosen."""
    description = header["choice"]
    if description is None:
        return None
    informed = evidence_of(calibrated.score)
    exponents = None if informed is None else informed.exponents
    try:
        return Choice.from_description(description, calibrated.method, exponents)
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"`choice` must be what napsets writes; {error}") from error


def _check_depth(header: object) -> None:
    """Reject a header that is nested deeper than scores ever are: it would exhaust the stack, now or later."""
    if is_nested_beyond(header, _DEEPEST):
        raise InvalidInputError(
            f"`score` must be nested less deep to be in a file; the header has over {_DEEPEST} layers"
        )
