"""The routes: sets, what changes them, what is known of the whole, and a page that shows it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from importlib.resources import files
from typing import Annotated, Any

from napsets import __version__
from napsets.checks.values import shown
from napsets.errors import InvalidInputError, MissingDependencyError, NapsetsError
from napsets.live.live import Live
from napsets.service import bodies
from napsets.service.guard import Guard, Limits, RefusedError, Requests, prometheus_text, read_body
from napsets.service.owner import Owner, Thread

try:
    from fastapi import FastAPI, Header, Path, Query, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
    from fastapi.routing import APIRoute
    from starlette.convertors import PathConvertor, register_url_convertor
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise MissingDependencyError("fastapi", "serve") from error


#: Bytes of a body that is read directly, without its own thread.
_SMALL = 1 << 14

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


class ParsedRequest(Request):
    """A request whose body was read already: its bytes, and its model."""

    content: bytes = b""
    model: Any = None

    async def body(self) -> bytes:
        """Return the bytes of the body."""
        return self.content

    async def json(self) -> Any:
        """Return the body as its model."""
        return self.model


class ParsedRoute(APIRoute):
    """A route whose bodies are read by `parse_body`, large ones in a thread of their own."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handler, field = super().get_route_handler(), self.body_field

        if field is None:
            return handler

        async def parsing(request: Request) -> Response:
            owner, limits = request.app.state.owner, request.app.state.limits
            parsed = ParsedRequest(request.scope, request.receive)
            parsed.content = await read_body(request.headers.get("content-length", ""), request.receive, limits)
            if parsed.content:
                model: Any = field.field_info.annotation
                parse = partial(bodies.parse_body, model, parsed.content, limits.batch)
                parsed.model = parse() if len(parsed.content) < _SMALL else await owner.wait_for(parse)
            return await handler(parsed)

        return parsing


def make_app(live: Live, *, limits: Limits = Limits(), token: str | None = None) -> Any:
    """Return the ASGI application of a living graph; it owns the graph, and closes it when it stops.

    Parameters
    ----------
    live : Live
        The living graph, opened from a store.
    limits : Limits
        What a request may be.
    token : str, optional
        The bearer token without which nothing is answered.
    """
    owner, requests = Owner(live, limits.seconds), Requests()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        owner.close()

    app = FastAPI(
        title="napsets",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys((RefusedError, NapsetsError, RequestValidationError, 404, 405), _refuse),
    )
    app.router.route_class = ParsedRoute
    app.state.owner, app.state.limits = owner, limits
    _add_sets(app, owner)
    _add_changes(app, owner)
    _add_status(app, owner, requests)
    return Guard(app, token, requests)


def _add_sets(app: FastAPI, owner: Owner) -> None:
    failures = bodies.FAILURES | {404: {"model": bodies.Failure, "description": "There is no such node."}}

    @app.get("/sets/{node:id}", response_model=bodies.SetRow, responses=failures, summary="The set of one node")
    async def get_set(node: NodePath, alpha: AlphaQuery = None) -> JSONResponse:
        def work(live: Live) -> dict[str, Any]:
            name = _node_of(live, node)
            return bodies.set_rows([name], live.predict([name], alpha))[0]

        return JSONResponse(await owner.call(work))

    @app.post("/sets", response_model=bodies.Sets, responses=bodies.FAILURES, summary="The sets of several nodes")
    async def post_sets(body: bodies.SetsBody) -> Response:
        thread: Thread = "reader" if len(body.nodes) <= bodies.PIECE else "batches"
        content = await owner.call(lambda live: b"".join(bodies.sets_json(live, body.nodes, body.alpha)), thread)
        return Response(content, media_type="application/json")

    @app.get("/nodes/{node:id}", responses=failures, summary="Explain the set of one node")
    async def get_node(node: NodePath, alpha: AlphaQuery = None) -> JSONResponse:
        return JSONResponse(await owner.call(lambda live: bodies.explained(live, _node_of(live, node), alpha)))


def _add_changes(app: FastAPI, owner: Owner) -> None:
    async def change(action: str, entries: list[Any], columns: tuple[str, str], key: str | None) -> JSONResponse:
        def work(live: Live) -> dict[str, Any]:
            arguments = [[getattr(entry, column) for entry in entries] for column in columns]
            if columns[1] == "probabilities":
                _check_rows(arguments[1])
            if action == "add_labels":
                arguments[1] = _numbers_of(live, arguments[1])
            done = live.update([(action, *arguments)] if entries else [], key=key)
            return {"events": live.events, "repeated": not done}

        return JSONResponse(await owner.call(work, "writer"))

    post = partial(app.post, response_model=bodies.Receipt, responses=bodies.FAILURES)

    @post("/labels", summary="Add labels")
    async def post_labels(body: bodies.LabelsBody, key: Key = None) -> JSONResponse:
        return await change("add_labels", body.labels, ("node", "label"), key)

    @post("/nodes", summary="Add nodes")
    async def post_nodes(body: bodies.NodesBody, key: Key = None) -> JSONResponse:
        return await change("add_nodes", body.nodes, ("node", "probabilities"), key)

    @post("/edges", summary="Add edges")
    async def post_edges(body: bodies.EdgesBody, key: Key = None) -> JSONResponse:
        return await change("add_edges", body.edges, ("source", "target"), key)

    @post("/probabilities", summary="Replace the model's outputs")
    async def post_probabilities(body: bodies.ProbabilitiesBody, key: Key = None) -> JSONResponse:
        return await change("set_probabilities", body.nodes, ("node", "probabilities"), key)


def _add_status(app: FastAPI, owner: Owner, requests: Requests) -> None:
    @app.get("/status", responses=bodies.FAILURES, summary="Counts, coverage so far and alarms")
    async def get_status(history: HistoryQuery = False) -> JSONResponse:
        def work(live: Live) -> dict[str, Any]:
            with live._busy:  # all of one moment
                return live.status() | ({"history": live.history()} if history else {})

        return JSONResponse(await owner.call(work) | {"slowest": requests.slowest()})

    @app.get("/metrics", response_class=PlainTextResponse, responses=bodies.FAILURES, summary="Metrics for Prometheus")
    async def get_metrics() -> Response:
        text = prometheus_text(await owner.call(lambda live: live.status()), requests)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @app.get("/livez", response_class=PlainTextResponse, summary="Whether the process is alive")
    async def livez() -> str:
        return "ok"

    @app.get(
        "/readyz",
        response_class=PlainTextResponse,
        responses=bodies.FAILURES,
        summary="Whether the service is ready to answer and to write",
    )
    async def readyz() -> str:
        await owner.check_ready()
        return "ok"

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> str:
        return render_page()


def _node_of(live: Live, text: str) -> Any:
    """Return the id that a path means: a text, or an integer that is written like that."""
    names: list[Any] = [text]
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


def _check_rows(rows: list[list[float]]) -> None:
    """Refuse rows of several lengths, which are no table."""
    for place, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidInputError(
                f"`nodes.{place}.probabilities` must have {len(rows[0])} entries like the first; it has {len(row)}"
            )


def _numbers_of(live: Live, labels: list[Any]) -> list[Any]:
    """Return labels as numbers, whether they were named or numbered."""
    numbers = {name: number for number, name in enumerate(live.class_names or ())}
    for label in labels:
        if isinstance(label, str) and label not in numbers:
            known = f"one of {', '.join(map(shown, numbers))}" if numbers else "numbers: the classes have no names"
            raise InvalidInputError(f"`labels` must be {known}; got {shown(label)}")
    return [numbers[label] if isinstance(label, str) else label for label in labels]


async def _refuse(request: Request, error: Any) -> JSONResponse:
    """Answer a request that is refused, in a sentence."""
    status, text, headers = 422, str(error), None
    if isinstance(error, RefusedError):
        status = error.status
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        text = bodies.sentence_of(first["loc"][1:], first["msg"], first.get("input"))
    elif isinstance(error, InvalidInputError) and text.startswith("`key`"):
        status = 409
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
