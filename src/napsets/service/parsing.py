"""Bodies of requests: limited, and parsed as JSON in UTF-8 that names nothing twice; FastAPI checks the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import JsonValue
from starlette.concurrency import run_in_threadpool

from napsets.checks.values import shown
from napsets.service.guard import Limits, RefusedError

#: Bodies of at least this many bytes are parsed in a thread.
_LARGE = 1 << 14


class StrictRequest(Request):
    """A request whose body is limited, and whose JSON is parsed by `parse_json`."""

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
        announced, body = self.headers.get("content-length", "0"), bytearray()
        if int(announced) <= most:
            async for chunk in self.stream():
                body += chunk
                if len(body) > most:
                    break
            else:
                return bytes(body)
        raise RefusedError(413, f"the body must have at most {most:,} bytes; it has more")

    async def json(self) -> JsonValue:
        """Return the body as plain values."""
        body, most = await self.body(), self.app.state.limits.batch
        return parse_json(body, most) if len(body) < _LARGE else await run_in_threadpool(parse_json, body, most)


class StrictRoute(APIRoute):
    """A route whose requests are strict."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """Return the function that answers a request."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


def parse_json(body: bytes, most: int) -> JsonValue:
    """Parse JSON, or raise if it is ambiguous or has a list with more than `most` entries."""
    try:
        document: JsonValue = json.loads(body.decode("utf-8"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise RefusedError(400, f"the body must be JSON; it is not, from character {error.pos}") from error
    except UnicodeDecodeError as error:
        raise RefusedError(400, "the body must be JSON in UTF-8; it is not") from error
    except RecursionError as error:
        raise RefusedError(400, "the body must be JSON with few levels; it has too many") from error
    except ValueError as error:  # Python's limit against numbers that take long to read
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
