"""Bodies of requests, limited in size and in time; FastAPI parses and checks them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from fastapi import Request, Response
from fastapi.routing import APIRoute

from napsets.service.guard import Limits, RefusedError


class LimitedRequest(Request):
    """A request whose body is limited."""

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


class LimitedRoute(APIRoute):
    """A route whose requests are limited."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """Return the function that answers a request."""
        handler = super().get_route_handler()

        async def limited(request: Request) -> Response:
            return await handler(LimitedRequest(request.scope, request.receive))

        return limited
