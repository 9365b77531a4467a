"""The outer layer of the application: it refuses requests beyond the limits, and counts and times all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl

from napsets.service.limits import Limits, is_loopback, same_token
from napsets.service.metrics import Requests

Scope = dict[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: Paths that need no token: they reveal nothing about the graph.
_OPEN = ("/livez", "/readyz", "/")
#: What requests are counted by; other names could fill the memory.
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_QUERY = ("alpha", "history")
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class RefusedError(Exception):
    """A request that is not let through: its status and the sentence that says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Guard:
    """An ASGI application around another.

    Parameters
    ----------
    app : ASGI application
        What answers.
    limits : Limits
        What a request may be.
    token : str or None
        The bearer token; without one, only requests to a name of this machine are answered, so that no page of
        another site can reach the service through somebody's browser.
    requests : Requests
        Where requests are counted.
    """

    def __init__(self, app: Any, limits: Limits, token: str | None, requests: Requests) -> None:
        self.app, self.limits, self.token, self.requests = app, limits, token, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = perf_counter(), 500
        # The server leaves out the body of what answers HEAD.
        inner = scope | {"method": "GET"} if scope["method"] == "HEAD" else scope

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        try:
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            if len(headers) < len(scope["headers"]):
                _refuse_repeated([name for name, _ in scope["headers"]])
            self._check(scope, headers)
            await self.app(inner, _replay(await self._body(headers, receive), receive), watched)
        except RefusedError as refused:
            await _answer(watched, refused)
        finally:
            route = getattr(inner.get("route"), "path", "other").replace(":id}", "}")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.requests.add(method, route, status, perf_counter() - began)

    def _check(self, scope: Scope, headers: dict[bytes, str]) -> None:
        if self.token is None:
            host = headers.get(b"host", "localhost")
            name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
            if not is_loopback(name):
                raise RefusedError(403, f"the Host header must name this machine; got {host[:100]!r}")
        elif scope["path"] not in _OPEN and not same_token(self.token, headers.get(b"authorization", "")):
            raise RefusedError(401, "the header Authorization must be `Bearer` and the token of this service")
        if scope["query_string"] and scope["path"] not in _OPEN:
            _check_query(scope["query_string"].decode("latin-1"))
        if scope["method"] == "POST":
            kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RefusedError(415, f"the body must be application/json; got {kind[:100]!r}")
            coding = headers.get(b"content-encoding", "identity").strip().lower()
            if coding != "identity":
                raise RefusedError(415, f"the body must not be compressed; its Content-Encoding is {coding[:100]!r}")

    async def _body(self, headers: dict[bytes, str], receive: Receive) -> bytes:
        """Return the body, as far as it is within the limits."""
        most = self.limits.body_bytes
        announced = headers.get(b"content-length", "0")
        if announced == "0" and b"transfer-encoding" not in headers:
            return b""
        if announced.isdigit() and int(announced) > most:
            raise RefusedError(413, f"the body must have at most {most:,} bytes; it has {int(announced):,}")
        try:
            return await asyncio.wait_for(_read(receive, most), self.limits.seconds)
        except asyncio.TimeoutError:
            raise RefusedError(408, f"the request must arrive within {self.limits.seconds:g} seconds") from None


def _refuse_repeated(names: list[bytes]) -> None:
    """Refuse headers that must be unique and are not: one of the values would be ignored."""
    for name in (b"host", b"authorization", b"idempotency-key", b"content-type", b"content-encoding"):
        if names.count(name) > 1:
            raise RefusedError(400, f"the header {name.decode().title()} must occur only once; it occurs several times")


def _check_query(query: str) -> None:
    """Refuse names that mean nothing: a mistyped alpha would silently be the store's own."""
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    for name in names:
        if name not in _QUERY:
            raise RefusedError(422, f"`{name[:100]}` is not a parameter; the parameters are {' and '.join(_QUERY)}")
        if names.count(name) > 1:
            raise RefusedError(422, f"`{name}` must occur only once in the query; it occurs several times")


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > most:
            raise RefusedError(413, f"the body must have at most {most:,} bytes; it has more")
        if not message.get("more_body"):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives the application a body that was read already, and then whatever comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _answer(send: Send, refused: RefusedError) -> None:
    body = json.dumps({"error": str(refused)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
