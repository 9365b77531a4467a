"""The outer layer of the application: who may ask, what a request may be, and one log line per request."""

from __future__ import annotations

import hmac
import ipaddress
import logging
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from napsets.checks.values import shown
from napsets.errors import InvalidInputError

if TYPE_CHECKING:
    from napsets.service.metrics import Requests
    from napsets.service.owner import Owner

log = logging.getLogger("napsets.service")

#: Fewest characters of a token: shorter ones can be guessed.
_SHORTEST_TOKEN = 16
#: Largest size of the request line and the headers together, in bytes.
HEAD_BYTES = 32 << 10
#: Characters of a path that a log line shows.
_LOGGED = 200


@dataclass(frozen=True)
class Limits:
    """Limits of the service; a request beyond one of them is answered with 4xx and changes nothing."""

    body_bytes: int = 64 << 20  #: Size of a request's body.
    batch: int = 100_000  #: Nodes, edges, labels or sets in one request.
    seconds: float = 30.0  #: How long a request may take to arrive, and how long it waits for its turn.


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_token(token: str | None, host: str) -> str | None:
    """Return the bearer token; listening to other machines without one is an error."""
    if token is None:
        if not is_loopback(host):
            raise InvalidInputError(
                f"`token` must be set to listen on {host}, which other machines can reach; got None. Set "
                f"NAPSETS_TOKEN, or listen on 127.0.0.1."
            )
        return None
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInputError(
            f"`token` must have at least {_SHORTEST_TOKEN} printable ASCII characters and no space; it has {len(token)}"
        )
    return token


#: Paths that need no token: they reveal nothing about the graph.
_OPEN = ("/livez", "/readyz", "/")
_QUERY = ("alpha", "history")
#: Headers that must be unique: otherwise one of the values would be ignored.
_UNIQUE = (b"host", b"authorization", b"idempotency-key", b"content-type")
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class RefusedError(HTTPException):
    """A request that is not answered: the status, and the sentence that says why."""


class Guard:
    """An ASGI application around another: it refuses strangers and malformed requests, and counts and logs all of them.

    Without a token, only requests to a name of this machine are answered, so that no page of another site can reach the
    service through a user's browser.
    """

    def __init__(self, app: ASGIApp, owner: Owner, token: str | None, requests: Requests) -> None:
        self.app, self.owner, self.token, self.requests = app, owner, token, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = perf_counter(), 500
        # The server leaves out the body of what answers HEAD.
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        try:
            self._check(scope)
            await self.app(inner, receive, watched)
        except RefusedError as refused:
            headers = {"www-authenticate": "Bearer"} if refused.status_code == 401 else None
            await JSONResponse({"error": refused.detail}, refused.status_code, headers)(scope, receive, watched)
        finally:
            seconds = perf_counter() - began
            route = getattr(inner.get("route"), "path", "other").replace(":id}", "}")
            self.requests.add(scope["method"], route, status, seconds)
            path = scope["raw_path"].decode("latin-1")[:_LOGGED]
            log.info("%s %s %d %.1f ms", scope["method"], path, status, 1000 * seconds)

    def _check(self, scope: Scope) -> None:
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size > HEAD_BYTES:
            raise RefusedError(431, f"the address and headers must have at most {HEAD_BYTES:,} bytes; got {size:,}")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        names = [name for name, _ in scope["headers"]]
        for name in _UNIQUE:
            if names.count(name) > 1:
                raise RefusedError(400, f"the header {name.decode().title()} must occur only once")
        if self.token is None:
            host = headers.get(b"host", "localhost")
            name_only = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
            if not is_loopback(name_only):
                raise RefusedError(403, f"the Host header must name this machine; got {shown(host)}")
        elif scope["path"] not in _OPEN:
            scheme, _, token = headers.get(b"authorization", "").partition(" ")
            same = hmac.compare_digest(token.strip().encode("latin-1"), self.token.encode())  # in constant time
            if not same or scheme.lower() != "bearer":
                raise RefusedError(401, "the header Authorization must be `Bearer` and the token of this service")
        if scope["query_string"] and scope["path"] not in _OPEN:
            _check_query(scope["query_string"].decode("latin-1"))
        kind = headers.get(b"content-type", "")
        # What a form or a script of another site may send without asking is no JSON.
        if scope["method"] in ("POST", "PUT") and kind.partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(415, f"the body must be application/json in UTF-8; its Content-Type is {shown(kind)}")


def _check_query(query: str) -> None:
    """Raise for unknown and repeated parameters: with a mistyped `alpha`, that of the store would be used."""
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    for name in names:
        if name not in _QUERY:
            raise RefusedError(422, f"`{name[:100]}` is not a parameter; the parameters are {' and '.join(_QUERY)}")
        if names.count(name) > 1:
            raise RefusedError(422, f"`{name}` must occur only once in the query; it occurs several times")
