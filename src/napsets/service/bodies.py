"""Requests and answers as plain JSON: models of bodies, sets and explanations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictFloat, StrictInt, StrictStr
from typing_extensions import TypedDict

from napsets.checks.arguments import FloatArray
from napsets.checks.values import in_digits, shown
from napsets.errors import InvalidInputError
from napsets.live.live import Live
from napsets.predictions import PredictionSets

Id = Annotated[StrictInt | StrictStr, Field(description='An integer or a text; 1 and "1" are two nodes.')]
Label = Annotated[StrictInt | StrictStr, Field(description="A class: its name, or its number from 0.")]
Row = Annotated[list[StrictFloat], Field(description="One probability per class.", examples=[[0.7, 0.2, 0.1]])]
Alpha = Annotated[StrictFloat | None, Field(gt=0, lt=1, description="Error rate; by default that of the store.")]
Record = dict[str, Any]  # plain JSON

_STRICT = ConfigDict(extra="forbid")


def _example(**body: JsonValue) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [body]})


# Entries, of which there may be many, are plain dictionaries, and bodies models.


class NodeEntry(TypedDict):
    """A node and the model's probabilities for it."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    node: Id
    probabilities: Row


class LabelEntry(TypedDict):
    """The label of a node."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    node: Id
    label: Label


class Correction(TypedDict):
    """The right label of a node, or null to remove its label."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    node: Id
    label: Label | None


class EdgeEntry(TypedDict):
    """An edge between two existing nodes."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    source: Id
    target: Id


class NodesBody(BaseModel):
    """New nodes."""

    nodes: list[NodeEntry]
    model_config = _example(nodes=[{"node": "ann", "probabilities": [0.7, 0.2, 0.1]}])


class ProbabilitiesBody(NodesBody):
    """New probabilities for existing nodes."""

    model_config = _example(nodes=[{"node": "ann", "probabilities": [0.1, 0.8, 0.1]}])


class LabelsBody(BaseModel):
    """Labels, in the order in which they came."""

    labels: list[LabelEntry]
    model_config = _example(labels=[{"node": "ann", "label": 0}])


class CorrectionsBody(BaseModel):
    """Labels that replace those of their nodes."""

    labels: list[Correction]
    model_config = _example(labels=[{"node": "ann", "label": 1}, {"node": "bob", "label": None}])


class EdgesBody(BaseModel):
    """New edges."""

    edges: list[EdgeEntry]
    model_config = _example(edges=[{"source": "ann", "target": "bob"}])


class AlarmsBody(BaseModel):
    """The alarms to start again."""

    alarms: list[Literal["exchangeability", "coverage"]]
    model_config = _example(alarms=["coverage"])


class SteeringBody(BaseModel):
    """How the level follows drift; null if it stays at alpha."""

    kind: Literal["aci", "dtaci"] | None
    rate: StrictFloat | None = Field(None, description='The rate of "aci".')
    model_config = _example(kind="aci", rate=0.01)


class SetsBody(BaseModel):
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
FAILURES: dict[int | str, dict[str, object]] = {
    code: {"model": Failure, "description": text}
    for code, text in {
        400: "The body is not JSON in UTF-8.",
        401: "The bearer token is missing or wrong.",
        403: "The Host header names another machine.",
        408: "The request took too long to arrive.",
        409: "The Idempotency-Key is that of another batch.",
        413: "The body or the batch is too large.",
        415: "The body is not application/json.",
        431: "The address and headers are too large.",
        500: "The batch could not be applied.",
        422: "A value is not what it must be.",
        503: "The service is starting, busy or stopping, or cannot write.",
    }.items()
}


def sentence_of(where: tuple[int | str, ...], message: str, value: object) -> str:
    """Return what is wrong with a part of a request."""
    if len(where) > 1 and where[-1] in ("int", "str"):  # which of the two it was tried as
        return f"`{'.'.join(map(str, where[:-1]))}` must be an integer or a text; got {shown(value)}"
    return f"`{'.'.join(map(str, where)) or 'body'}`: {message}; got {shown(value)}"


#: Sets that are made at a time: other requests get their turn in between.
PIECE = 250


def sets_json(live: Live, nodes: Sequence[int | str], alpha: float | None) -> Iterator[bytes]:
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


def set_rows(nodes: Sequence[int | str], sets: PredictionSets) -> list[Record]:
    """Return one entry per node, in their order."""
    names = sets.class_names or range(sets.num_classes)
    entries, columns = np.nonzero(sets.member)
    labels: list[list[int | str]] = [[] for _ in nodes]
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


def _rows(**columns: Iterable[object]) -> list[Record]:
    """Return columns of one length as entries."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def finite(value: float) -> float | None:
    """Return a number that JSON has, or None."""
    return value if math.isfinite(value) else None


#: Largest number of neighbours that are listed, nearest first.
_MOST_NEIGHBOURS = 50


def explained(live: Live, node: int | str, alpha: float | None = None) -> Record:
    """Return the set of one node with its candidates, their p-values, and the labelled neighbours that are evidence."""
    with live._busy:  # all of one state
        sets, p_values = live.predict([node], alpha), live.p_values([node])[0]
        probabilities, scores = live._candidates(node)
        neighbours = live.labelled_around(node, _MOST_NEIGHBOURS)
    names = live.class_names or range(scores.size)
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
    """Return a few sentences on what decides which labels are in the set."""
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
