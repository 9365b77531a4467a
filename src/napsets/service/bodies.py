"""Requests and answers as plain JSON: models of bodies, their parser, sets and explanations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from napsets.checks.arguments import FloatArray
from napsets.checks.values import in_digits, shown
from napsets.errors import InvalidInputError
from napsets.live.live import Live
from napsets.predictions import PredictionSets
from napsets.service.guard import RefusedError

#: Entries of a body that are checked at a time: other threads get their turn in between.
_PIECE = 500

Id = Annotated[StrictInt | StrictStr, Field(description='An integer or a text; 1 and "1" are two nodes.')]
Label = Annotated[StrictInt | StrictStr, Field(description="A class: its name, or its number from 0.")]
Row = Annotated[list[StrictFloat], Field(description="One probability per class.", examples=[[0.7, 0.2, 0.1]])]
Alpha = Annotated[StrictFloat | None, Field(gt=0, lt=1, description="Error rate; by default that of the store.")]


def _example(**body: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [body]})


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NodeEntry(_Body):
    """A node and the model's probabilities for it."""

    node: Id
    probabilities: Row


class LabelEntry(_Body):
    """The label of a node."""

    node: Id
    label: Label


class EdgeEntry(_Body):
    """An edge between two existing nodes."""

    source: Id
    target: Id


class NodesBody(_Body):
    """New nodes."""

    nodes: list[NodeEntry]
    model_config = _example(nodes=[{"node": "ann", "probabilities": [0.7, 0.2, 0.1]}])


class ProbabilitiesBody(NodesBody):
    """New probabilities for existing nodes."""

    model_config = _example(nodes=[{"node": "ann", "probabilities": [0.1, 0.8, 0.1]}])


class LabelsBody(_Body):
    """Labels, in the order in which they came."""

    labels: list[LabelEntry]
    model_config = _example(labels=[{"node": "ann", "label": 0}])


class EdgesBody(_Body):
    """New edges."""

    edges: list[EdgeEntry]
    model_config = _example(edges=[{"source": "ann", "target": "bob"}])


class SetsBody(_Body):
    """The nodes to predict."""

    nodes: list[Id]
    alpha: Alpha = None
    model_config = _example(nodes=["ann", "bob"], alpha=0.1)


class SetRow(BaseModel):
    """The prediction set of one node."""

    node: Id
    labels: list[Label] = Field(description="The set.")
    size: int
    threshold: float | None = Field(description="The threshold of the score; null where it is infinite.")
    support: int = Field(description="How many calibration nodes the threshold is based on.")
    effective_size: float
    alpha: float


class Sets(BaseModel):
    """Prediction sets, in the order of the nodes."""

    sets: list[SetRow]


class Receipt(BaseModel):
    """The result of a batch, which is on the disk."""

    events: int = Field(description="Events in the log, this batch included.")
    repeated: bool = Field(description="Whether a batch with this Idempotency-Key was accepted before.")


class Failure(BaseModel):
    """Why a request was refused. Nothing was changed."""

    error: str


#: The answers that any request may get instead of its own.
FAILURES: dict[int | str, dict[str, Any]] = {
    code: {"model": Failure, "description": text}
    for code, text in {
        400: "The body is no JSON.",
        401: "The bearer token is missing or wrong.",
        403: "The Host header names another machine.",
        408: "The request took too long to arrive.",
        409: "The Idempotency-Key is that of another batch.",
        413: "The body or the batch is too large.",
        415: "The body is not application/json.",
        422: "A value is not what it must be.",
        503: "The service is busy, stopping, or cannot write.",
    }.items()
}


def parse_body(model: type[BaseModel], body: bytes, most: int) -> Any:
    """Return a body as its model, or refuse it in a sentence.

    The first field of the model holds the entries, at most so many. No name may occur twice in the JSON: one of the
    values would be ignored.
    """
    document = _parsed(body)
    name = next(iter(model.model_fields))
    entries = document.get(name) if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return _checked(model.model_validate, document)
    if len(entries) > most:
        raise RefusedError(413, f"`{name}` must have at most {most:,} entries; it has {len(entries):,}")
    whole = _checked(model.model_validate, document | {name: []})
    checked: list[Any] = []
    for start in range(0, len(entries), _PIECE):
        checked += _checked(_entries_of(model).validate_python, entries[start : start + _PIECE], (name, start))
    return whole.model_copy(update={name: checked})


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise RefusedError(400, f"the body must be JSON; it is not, from character {error.pos}") from error
    except UnicodeDecodeError as error:
        raise RefusedError(400, "the body must be JSON in UTF-8; it is not") from error
    except RecursionError as error:
        raise RefusedError(400, "the body must be JSON with few levels; it has too many") from error
    except ValueError as error:  # Python's own limit, against numbers that take long to read
        raise RefusedError(400, "the body must have no number of thousands of digits") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        names = [name for name, _ in pairs]
        raise RefusedError(400, f"{shown(next(name for name in names if names.count(name) > 1))} must occur only once "
                                f"in a JSON object; it occurs several times")  # fmt: skip
    return entries


@cache
def _entries_of(model: type[BaseModel]) -> TypeAdapter[Any]:
    annotation: Any = next(iter(model.model_fields.values())).annotation
    return TypeAdapter(annotation)


def _checked(check: Any, value: Any, place: tuple[Any, ...] = ()) -> Any:
    """Return what a check gives; `place` is where the value stands in the body, its last part a number to add."""
    try:
        return check(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where: tuple[Any, ...] = first["loc"]
        if place:
            where = (*place[:-1], place[-1] + where[0], *where[1:])
        raise RefusedError(422, sentence_of(where, first["msg"], first["input"])) from error


def sentence_of(where: tuple[Any, ...], message: str, value: Any) -> str:
    """Return what is wrong with a part of a request."""
    if len(where) > 1 and where[-1] in ("int", "str"):  # which of the two it was tried as
        return f"`{'.'.join(map(str, where[:-1]))}` must be an integer or a text; got {shown(value)}"
    return f"`{'.'.join(map(str, where)) or 'body'}`: {message}; got {shown(value)}"


#: Sets that are made at a time: other requests get their turn in between.
PIECE = 250


def sets_json(live: Live, nodes: Sequence[Any], alpha: float | None) -> Iterator[bytes]:
    """Yield the sets of nodes as JSON, piece by piece and all of one state: no batch takes effect meanwhile."""
    with nullcontext() if len(nodes) <= PIECE else live._writing:
        yield b'{"sets": ['
        for start in range(0, len(nodes), PIECE):
            piece = nodes[start : start + PIECE]
            try:
                sets = live.predict(piece, alpha)
            except InvalidInputError:
                live.predict(nodes, alpha)  # which says how many of all nodes are not there
                raise
            yield (b", " if start else b"") + json.dumps(set_rows(piece, sets), ensure_ascii=False)[1:-1].encode()
        yield b"]}"


def set_rows(nodes: Sequence[Any], sets: PredictionSets) -> list[dict[str, Any]]:
    """Return one entry per node, in their order."""
    names: Any = range(sets.num_classes) if sets.class_names is None else sets.class_names
    entries, columns = np.nonzero(sets.member)
    labels: list[list[Any]] = [[] for _ in nodes]
    for entry, column in zip(entries.tolist(), columns.tolist(), strict=True):
        labels[entry].append(names[column])
    return _rows(
        node=nodes,
        labels=labels,
        size=map(len, labels),
        threshold=map(finite, sets.thresholds.tolist()),
        support=sets.support.tolist(),
        effective_size=sets.effective_size.tolist(),
        alpha=[sets.alpha] * len(nodes),
    )


def _rows(**columns: Iterable[Any]) -> list[dict[str, Any]]:
    """Return columns of one length as entries."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def finite(value: float) -> float | None:
    """Return a number that JSON has, or None."""
    return value if math.isfinite(value) else None


#: Largest number of neighbours that are listed, nearest first.
_MOST_NEIGHBOURS = 50


def explained(live: Live, node: Any, alpha: float | None = None) -> dict[str, Any]:
    """Return the set of one node with its candidates, their p-values, and the labelled neighbours that are evidence."""
    with live._busy:  # all of one state
        sets, p_values = live.predict([node], alpha), live.p_values([node])[0]
        probabilities, scores = live._candidates(node)
        neighbours = live.labelled_around(node, _MOST_NEIGHBOURS)
    names: Any = live.class_names or range(scores.size)
    thresholds = sets.thresholds if sets.label_thresholds is None else sets.label_thresholds[0]
    thresholds = np.broadcast_to(thresholds, scores.shape)
    return set_rows([node], sets)[0] | {
        "reason": _reason(sets, thresholds, p_values),
        "candidates": _rows(
            label=names,
            probability=probabilities.tolist(),
            score=map(finite, scores.tolist()),
            threshold=map(finite, thresholds.tolist()),
            p_value=p_values.tolist(),
            member=sets.member[0].tolist(),
        ),
        "neighbours": [{"node": other, "label": names[label], "hops": hops} for other, label, hops in neighbours],
    }


def _reason(sets: PredictionSets, thresholds: FloatArray, p_values: FloatArray) -> str:
    """Say in a few sentences what decides which labels are in the set."""
    alpha, support = f"alpha = {sets.alpha:g}", int(sets.support[0])
    if np.isposinf(thresholds).all():
        return f"Too few labels count for this node to leave out any label at {alpha}: the set has every label."
    low, high = (in_digits(float(end)).replace("inf", "∞") for end in (thresholds.min(), thresholds.max()))
    which = f"the threshold {low}" if low == high else f"its own threshold, from {low} to {high}"
    text = (
        f"A label is in the set if its p-value is above {alpha}, that is, if its score is at most {which}. The "
        f"threshold is based on {support:,} labelled nodes."
    )
    if sets.member.any() and not (p_values > sets.alpha).any():
        text += " No label's p-value is that large: the best label stands in for the empty set."
    return text
