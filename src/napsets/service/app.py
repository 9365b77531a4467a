"""The routes: sets, what changes them, what is known of the whole, and a page that shows it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from importlib.resources import files
from typing import Annotated

from fastapi import FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException

from napsets import __version__
from napsets.checks.values import shown
from napsets.errors import InvalidInputError, NapsetsError
from napsets.live.explanation import JsonObject, set_rows
from napsets.live.live import Live
from napsets.live.logged import BatchError
from napsets.service import bodies
from napsets.service.guard import Guard, Limits, RefusedError
from napsets.service.metrics import Requests, status_text
from napsets.service.owner import Owner, Thread
from napsets.service.parsing import StrictRoute

_ABOUT = """Prediction sets for the nodes of a graph that keeps changing. Each set contains the true label with the
probability 1 − alpha, on average over nodes. Batches are accepted whole or not at all, and are on the disk before they
are acknowledged. A batch that is sent again with the same `Idempotency-Key` does nothing."""

NodePath = Annotated[
    str, Path(description="The node's id, percent-encoded. Where an integer and a text look alike, use POST /sets.")
]
AlphaQuery = Annotated[float | None, Query(gt=0, lt=1, description="Error rate; by default that of the store.")]
HistoryQuery = Annotated[bool, Query(description="Include the data of the charts over time.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class IdConvertor(PathConvertor):
    """The rest of a path, line breaks included."""

    regex = r"[\s\S]*"


register_url_convertor("id", IdConvertor())


def make_app(live: Live | None = None, *, limits: Limits = Limits(), token: str | None = None) -> Guard:
    """Return the ASGI application of a living graph; it owns the graph, and closes it when it stops.

    Parameters
    ----------
    live : Live, optional
        The living graph, opened from a store; it may also come later, by ``owner.take``.
    limits : Limits
        What a request may be.
    token : str, optional
        The bearer token without which nothing is answered.
    """
    owner, requests = Owner(limits.seconds), Requests()
    if live is not None:
        owner.take(live)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        owner.close()

    app = FastAPI(
        title="napsets",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        responses={"4XX": _refusal("The request is refused."), "5XX": _refusal("The request cannot be answered now.")},
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys((RefusedError, NapsetsError, RequestValidationError, 404, 405), _refuse),
    )
    app.router.route_class = StrictRoute
    app.state.owner, app.state.limits = owner, limits
    _add_sets(app, owner)
    _add_changes(app, owner)
    _add_status(app, owner, requests)
    return Guard(app, owner, token, requests)


def _add_sets(app: FastAPI, owner: Owner) -> None:
    @app.get("/sets/{node:id}", response_model=bodies.SetRow, summary="The set of one node")
    async def get_set(node: NodePath, alpha: AlphaQuery = None) -> JSONResponse:
        def work(live: Live) -> JsonObject:
            name = _node_of(live, node)
            return set_rows([name], live.predict([name], alpha))[0]

        return JSONResponse(await owner.call(work))

    @app.post("/sets", response_model=bodies.Sets, summary="The sets of several nodes")
    async def post_sets(body: bodies.SetsBody) -> Response:
        thread: Thread = "reader" if len(body.nodes) <= bodies.PIECE else "batches"
        content = await owner.call(lambda live: b"".join(bodies.sets_json(live, body.nodes, body.alpha)), thread)
        return Response(content, media_type="application/json")

    @app.get("/nodes/{node:id}", summary="Explain the set of one node")
    async def get_node(node: NodePath, alpha: AlphaQuery = None) -> JSONResponse:
        return JSONResponse(await owner.call(lambda live: live.explain(_node_of(live, node), alpha)))


def _add_changes(app: FastAPI, owner: Owner) -> None:
    async def change(key: str | None, *changes: tuple[object, ...]) -> JSONResponse:
        def work(live: Live) -> JsonObject:
            done = live.update([item for item in changes if item[1:] != ([], [])], key=key)
            return {"events": live.events, "repeated": not done}

        return JSONResponse(await owner.call(work, "writer"))

    post, put = (partial(method, response_model=bodies.Receipt) for method in (app.post, app.put))

    @post("/labels", summary="Add labels")
    async def post_labels(body: bodies.LabelsBody, key: Key = None) -> JSONResponse:
        return await change(key, ("add_labels", *_columns(body.labels, "node", "label")))

    @put("/labels", summary="Correct or remove labels")
    async def put_labels(body: bodies.CorrectionsBody, key: Key = None) -> JSONResponse:
        nodes, _ = _columns(body.labels, "node", "label")
        right = _columns([row for row in body.labels if row["label"] is not None], "node", "label")
        return await change(key, ("remove_labels", nodes), ("add_labels", *right))

    @post("/nodes", summary="Add nodes")
    async def post_nodes(body: bodies.NodesBody, key: Key = None) -> JSONResponse:
        return await change(key, ("add_nodes", *_columns(body.nodes, "node", "probabilities")))

    @post("/edges", summary="Add edges")
    async def post_edges(body: bodies.EdgesBody, key: Key = None) -> JSONResponse:
        return await change(key, ("add_edges", *_columns(body.edges, "source", "target")))

    @post("/probabilities", summary="Replace the model's outputs")
    async def post_probabilities(body: bodies.ProbabilitiesBody, key: Key = None) -> JSONResponse:
        return await change(key, ("set_probabilities", *_columns(body.nodes, "node", "probabilities")))

    @post("/alarms", summary="Start alarms again")
    async def post_alarms(body: bodies.AlarmsBody, key: Key = None) -> JSONResponse:
        return await change(key, ("reset_alarms", body.alarms))

    @put("/steering", summary="Choose how the level follows drift")
    async def put_steering(body: bodies.SteeringBody, key: Key = None) -> JSONResponse:
        return await change(key, ("steer", body.kind, body.rate))


def _add_status(app: FastAPI, owner: Owner, requests: Requests) -> None:
    @app.get("/status", summary="Method, counts, coverage so far and alarms")
    async def get_status(history: HistoryQuery = False) -> JSONResponse:
        def work(live: Live) -> JsonObject:
            with live._busy:  # all of one moment
                return {"version": __version__} | live.status() | ({"history": live.history()} if history else {})

        return JSONResponse(await owner.call(work))

    @app.get("/metrics", response_class=PlainTextResponse, summary="Metrics for Prometheus")
    async def get_metrics() -> Response:
        text = status_text(await owner.call(lambda live: live.status())) + requests.text()
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @app.get("/livez", response_class=PlainTextResponse, summary="Whether the process is alive")
    async def livez() -> str:
        return "ok"

    @app.get(
        "/readyz",
        response_class=PlainTextResponse,
        summary="Whether the service is ready to answer and to write",
    )
    async def readyz() -> str:
        await owner.check_ready()
        return "ok"

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> str:
        return render_page()


def _node_of(live: Live, text: str) -> int | str:
    """Return the id that a path means: a text, or an integer that is written like that."""
    names: list[int | str] = [text]
    if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) and -(2**63) <= int(text) < 2**63:
        names.append(int(text))
    there = [name for name in names if name in live]
    if not there:
        raise RefusedError(404, f"`node` must be the id of an existing node; got {shown(text)}")
    if len(there) > 1:
        raise RefusedError(
            422, f"`node` must be the id of one node; {shown(text)} is a text and an integer. Use POST /sets."
        )
    return there[0]


def _columns(entries: Sequence[Mapping[str, object]], *names: str) -> tuple[list[object], ...]:
    """Return entries as columns; rows of probabilities must have one length."""
    columns = tuple([entry[name] for entry in entries] for name in names)
    if names[-1] == "probabilities":
        sizes = [len(row) for row in columns[-1]]  # type: ignore[arg-type]
        for place, size in enumerate(sizes):
            if size != sizes[0]:
                raise InvalidInputError(
                    f"`nodes.{place}.probabilities` must have {sizes[0]} entries like the first; it has {size}"
                )
    return columns


def _refusal(description: str) -> dict[str, object]:
    return {"model": bodies.Failure, "description": description}


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a request that is refused, in a sentence."""
    status, text, headers = 422, str(error), None
    if isinstance(error, RefusedError):
        status, text = error.status_code, error.detail
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        text = bodies.sentence_of(first["loc"][1:], first["msg"], first.get("input"))
    elif isinstance(error, BatchError):
        status = 500
    elif isinstance(error, InvalidInputError) and text.startswith("`key`"):
        status = 409
    elif isinstance(error, InvalidInputError):
        text = error.on("http")
    elif isinstance(error, HTTPException):
        status, headers = error.status_code, error.headers  # which say what methods are allowed
        nothing = f"there is nothing at {request.url.path!r}"
        text = nothing if status == 404 else f"the method {request.method} is not allowed here"
    return JSONResponse({"error": text}, status, headers)


@lru_cache(maxsize=1)
def render_page() -> str:
    """Return the page; it holds nothing that is known of the graph."""
    assets = files("napsets.service") / "assets"
    style = files("napsets.report") / "assets" / "report.css"
    text, script, own = ((assets / f"service.{kind}").read_text(encoding="utf-8") for kind in ("html", "js", "css"))
    return text.replace("/*STYLE*/", style.read_text(encoding="utf-8") + own).replace("/*SCRIPT*/", script)
