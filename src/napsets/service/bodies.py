"""Requests and answers as plain JSON: models of bodies, and sets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictFloat, StrictInt, StrictStr
from typing_extensions import TypedDict

from napsets.checks.values import shown
from napsets.errors import InvalidInputError
from napsets.live.explanation import set_rows
from napsets.live.live import Live

Id = Annotated[StrictInt | StrictStr, Field(description='An integer or a text; 1 and "1" are two nodes.')]
Label = Annotated[StrictInt | StrictStr, Field(description="A class: its name, or its number from 0.")]
Row = Annotated[list[StrictFloat], Field(description="One probability per class.", examples=[[0.7, 0.2, 0.1]])]
Alpha = Annotated[StrictFloat | None, Field(gt=0, lt=1, description="Error rate; by default that of the store.")]

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


def sentence_of(where: tuple[int | str, ...], message: str, value: object) -> str:
    """Return a sentence on what is wrong with a part of a request."""
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
