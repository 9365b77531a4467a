"""The outer layer of the application: limits of requests, and counts and times of all of them."""

from __future__ import annotations

import asyncio
import heapq
import hmac
import ipaddress
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import accumulate
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl

from napsets.checks.values import check_count
from napsets.errors import InvalidInputError

#: Fewest characters of a token: shorter ones can be guessed.
_SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """Limits of the service; a request beyond one of them is answered with 4xx and changes nothing."""

    body_bytes: int = 64 << 20  #: Size of a request's body.
    batch: int = 100_000  #: Nodes, edges, labels or sets in one request.
    seconds: float = 30.0  #: How long a request may take to arrive, and how long it waits for its turn.

    def __post_init__(self) -> None:
        check_count("body_bytes", self.body_bytes, minimum=1)
        check_count("batch", self.batch, minimum=1)
        if not 0 < self.seconds < float("inf"):
            raise InvalidInputError(f"`seconds` must be a positive number; got {self.seconds!r}")


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
    """Return the bearer token; refuse to listen to other machines without one."""
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


#: Upper ends of the histogram's buckets, in seconds.
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
#: Slow requests that are remembered, and for how many seconds.
_SLOWEST, _REMEMBERED = 10, 3600.0

#: Figures of a status that are metrics: their name there, what they are called, their type and their help.
_FIGURES = (
    ("nodes", "nodes", "gauge", "Nodes in the graph."),
    ("edges", "edges", "gauge", "Edges in the graph."),
    ("labels", "labels", "gauge", "Labels known now."),
    ("events", "events_total", "counter", "Events in the log."),
)
#: The same of what labels said of the sets that stood before they came.
_JUDGED = (
    ("labels", "judged_total", "counter", "Labels that judged the set that stood before they came."),
    ("coverage", "coverage", "gauge", "Share of those labels that were in the set."),
    ("recent_coverage", "recent_coverage", "gauge", "The same in the last window."),
    ("mean_size", "set_size", "gauge", "Average size of those sets."),
    ("label_delay", "label_delay", "gauge", "Median label delay in the last window, in labels."),
)


class Requests:
    """What requests there were: how many of each kind, how long they took, and the slowest of the last hour."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self._buckets = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0
        #: Seconds, when by a clock that never jumps, when by the clock on the wall, method, route, status.
        self._slowest: list[tuple[float, float, float, str, str, int]] = []

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.counts[method, route, status] += 1
        self._buckets[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds += seconds
        entry = (seconds, time.monotonic(), time.time(), method, route, status)
        self._slowest = heapq.nlargest(_SLOWEST, [entry, *self._recent()])

    def _recent(self) -> list[tuple[float, float, float, str, str, int]]:
        return [entry for entry in self._slowest if time.monotonic() - entry[1] < _REMEMBERED]

    def slowest(self) -> list[dict[str, Any]]:
        """Return the slowest requests of the last hour, slowest first."""
        return [
            {"milliseconds": round(1000 * seconds, 3), "at": round(at, 3), "method": method, "route": route,
             "status": status}
            for seconds, _, at, method, route, status in self._recent()
        ]  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Yield the figures as Prometheus reads them."""
        yield from _head("requests_total", "counter", "Requests by method, route and status.")
        for (method, route, status), count in sorted(self.counts.items()):
            yield f'napsets_requests_total{{method="{method}",route="{_escaped(route)}",status="{status}"}} {count}'
        yield from _head("request_seconds", "histogram", "How long requests took.")
        totals = list(accumulate(self._buckets))
        for end, total in zip((*_BUCKETS, "+Inf"), totals, strict=True):
            yield f'napsets_request_seconds_bucket{{le="{end}"}} {total}'
        yield f"napsets_request_seconds_sum {self._seconds!r}"
        yield f"napsets_request_seconds_count {totals[-1]}"


def prometheus_text(status: Mapping[str, Any], requests: Requests | None = None) -> str:
    """Return a status, and requests where there were some, in Prometheus' text format.

    Examples
    --------
    >>> print(prometheus_text({"nodes": 3, "judged": {"alarms": {"coverage": {"rang": 9}}}}))
    # HELP napsets_nodes Nodes in the graph.
    # TYPE napsets_nodes gauge
    napsets_nodes 3
    # HELP napsets_alarm Whether an alarm has rung.
    # TYPE napsets_alarm gauge
    napsets_alarm{name="coverage"} 1
    <BLANKLINE>
    """
    lines: list[str] = []
    judged = status.get("judged", {})
    for source, figures in ((status, _FIGURES), (judged, _JUDGED)):
        for key, name, kind, text in figures:
            if source.get(key) is not None:
                lines += [*_head(name, kind, text), f"napsets_{name} {source[key]!r}"]
    lines += _head("alarm", "gauge", "Whether an alarm has rung.")
    for name, alarm in judged.get("alarms", {}).items():
        lines.append(f'napsets_alarm{{name="{_escaped(name)}"}} {int(alarm["rang"] is not None)}')
    if requests is not None:
        lines += requests.lines()
    return "\n".join([*lines, ""])


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP napsets_{name} {text}", f"# TYPE napsets_{name} {kind}"]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


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
    """An ASGI application around another, which refuses strangers and malformed requests, and counts all of them.

    Without a token, only requests to a name of this machine are answered, so that no page of another site can reach the
    service through somebody's browser.
    """

    def __init__(self, app: Any, token: str | None, requests: Requests) -> None:
        self.app, self.token, self.requests = app, token, requests

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
            self._check(scope)
            await self.app(inner, receive, watched)
        except RefusedError as refused:
            from starlette.responses import JSONResponse

            headers = {"www-authenticate": "Bearer"} if refused.status == 401 else None
            await JSONResponse({"error": str(refused)}, refused.status, headers)(scope, receive, watched)
        finally:
            route = getattr(inner.get("route"), "path", "other").replace(":id}", "}")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.requests.add(method, route, status, perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if len(headers) < len(scope["headers"]):
            _refuse_repeated([name for name, _ in scope["headers"]])
        if self.token is None:
            host = headers.get(b"host", "localhost")
            name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
            if not is_loopback(name):
                raise RefusedError(403, f"the Host header must name this machine; got {host[:100]!r}")
        elif scope["path"] not in _OPEN:
            scheme, _, token = headers.get(b"authorization", "").partition(" ")
            same = hmac.compare_digest(token.strip().encode("latin-1"), self.token.encode())  # in constant time
            if not same or scheme.lower() != "bearer":
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


async def read_body(announced: str, receive: Receive, limits: Limits) -> bytes:
    """Return the body of a request, whose header announced its length, as far as it is within the limits."""
    most = limits.body_bytes
    if announced.isdigit() and int(announced) > most:
        raise RefusedError(413, f"the body must have at most {most:,} bytes; it has {int(announced):,}")
    try:
        return await asyncio.wait_for(_read(receive, most), limits.seconds)
    except asyncio.TimeoutError:
        raise RefusedError(408, f"the request must arrive within {limits.seconds:g} seconds") from None


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > most:
            raise RefusedError(413, f"the body must have at most {most:,} bytes; it has more")
        if not message.get("more_body"):
            return bytes(body)
