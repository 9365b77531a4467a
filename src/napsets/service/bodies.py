"""What requests and answers hold; FastAPI checks the first and describes both."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

__all__ = ["FAILURES", "EdgesBody", "Failure", "LabelsBody", "NodesBody", "ProbabilitiesBody", "Receipt"]
__all__ += ["SetRow", "Sets", "SetsBody"]

Id = Annotated[StrictInt | StrictStr, Field(description='An integer or a text; 1 and "1" are two nodes.')]
Label = Annotated[StrictInt | StrictStr, Field(description="A class: its name, or its number from 0.")]
Row = Annotated[list[StrictFloat], Field(description="One probability per class.", examples=[[0.7, 0.2, 0.1]])]
Alpha = Annotated[StrictFloat | None, Field(gt=0, lt=1, description="Error rate; that of the store by default.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NodeEntry(_Body):
    """A node, and what the model says of it."""

    node: Id
    probabilities: Row


class LabelEntry(_Body):
    """The label of a node."""

    node: Id
    label: Label


class EdgeEntry(_Body):
    """An edge between two nodes that are there."""

    source: Id
    target: Id


class NodesBody(_Body):
    """New nodes."""

    nodes: list[NodeEntry]
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"nodes": [{"node": "ann", "probabilities": [0.7, 0.2, 0.1]}]}]}
    )


class ProbabilitiesBody(_Body):
    """New outputs of the model for nodes that are there."""

    nodes: list[NodeEntry]
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"nodes": [{"node": "ann", "probabilities": [0.1, 0.8, 0.1]}]}]}
    )


class LabelsBody(_Body):
    """Labels, in the order in which they came."""

    labels: list[LabelEntry]
    model_config = ConfigDict(json_schema_extra={"examples": [{"labels": [{"node": "ann", "label": 0}]}]})


class EdgesBody(_Body):
    """New edges."""

    edges: list[EdgeEntry]
    model_config = ConfigDict(json_schema_extra={"examples": [{"edges": [{"source": "ann", "target": "bob"}]}]})


class SetsBody(_Body):
    """The nodes whose sets are wanted."""

    nodes: list[Id]
    alpha: Alpha = None
    model_config = ConfigDict(json_schema_extra={"examples": [{"nodes": ["ann", "bob"], "alpha": 0.1}]})


class SetRow(BaseModel):
    """The prediction set of one node."""

    node: Id
    labels: list[Label] = Field(description="The set.")
    size: int
    threshold: float | None = Field(description="The threshold of the score; null where it is infinite.")
    support: int = Field(description="How many calibration nodes the threshold rests on.")
    effective_size: float
    alpha: float


class Sets(BaseModel):
    """Prediction sets, in the order of the nodes."""

    sets: list[SetRow]


class Receipt(BaseModel):
    """What a batch did; it is on the disk."""

    events: int = Field(description="Events in the log, this batch included.")
    repeated: bool = Field(description="Whether a batch with this Idempotency-Key was there already.")


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
