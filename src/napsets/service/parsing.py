"""Bodies of requests: read within the limits, JSON in UTF-8 that names nothing twice, and then FastAPI's own checks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import JsonValue

from napsets.checks.values import shown
from napsets.service.guard import Limits, RefusedError
from napsets.service.owner import Owner

#: Bytes of a body that is parsed at once, without its own thread.
_SMALL = 1 << 14


class StrictRequest(Request):
    """A request whose body is limited, and whose JSON is parsed by `parse_json`, in a thread if it is large."""

    async def body(self) -> bytes:
        """Return the bytes of the body."""
        if not hasattr(self, "_body"):
            limits: Limits = self.app.state.limits
            try:
                self._body = await asyncio.wait_for(self._read(limits.body_bytes), limits.seconds)
            except asyncio.TimeoutError:
                raise RefusedError(408, f"the request must arrive within {limits.seconds:g} seconds") from None
        return self._body

    async def _read(self, most: int) -> bytes:
        announced, body = self.headers.get("content-length", ""), bytearray()
        if not (announced.isdigit() and int(announced) > most):
            async for chunk in self.stream():
                body += chunk
                if len(body) > most:
                    break
            else:
                return bytes(body)
        raise RefusedError(413, f"the body must have at most {most:,} bytes; it has {announced or 'more'}")

    async def json(self) -> JsonValue:
        """Return the body as plain values."""
        owner: Owner = self.app.state.owner
        limits: Limits = self.app.state.limits
        parse = partial(parse_json, await self.body(), limits.batch)
        return parse() if len(self._body) < _SMALL else await owner.wait_for(parse)


class StrictRoute(APIRoute):
    """A route whose requests are strict."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """Return the function that answers a request."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


def parse_json(body: bytes, most: int) -> JsonValue:
    """Return JSON as plain values, or raise for what would be ambiguous, and for lists with too many entries."""
    try:
        document: JsonValue = json.loads(body.decode("utf-8"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise RefusedError(400, f"the body must be JSON; it is not, from character {error.pos}") from error
    except UnicodeDecodeError as error:
        raise RefusedError(400, "the body must be JSON in UTF-8; it is not") from error
    except RecursionError as error:
        raise RefusedError(400, "the body must be JSON with few levels; it has too many") from error
    except ValueError as error:  # Python's own limit, against numbers that take long to read
        raise RefusedError(400, "the body must have no number of thousands of digits") from error
    for name, entries in document.items() if isinstance(document, dict) else ():
        if isinstance(entries, list) and len(entries) > most:
            raise RefusedError(413, f"{shown(name)} must have at most {most:,} entries; it has {len(entries):,}")
    return document


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    entries: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in entries:
            raise RefusedError(400, f"{shown(name)} must occur only once in a JSON object; it occurs several times")
        entries[name] = value
    return entries
