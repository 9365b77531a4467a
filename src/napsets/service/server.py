"""Run the application in this process until a signal stops it."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from napsets.errors import InvalidInputError, MissingDependencyError

try:
    import uvicorn
except ImportError as error:
    raise MissingDependencyError("uvicorn", "serve") from error

from napsets.live.live import Live
from napsets.service.app import make_app
from napsets.service.guard import Limits, check_token

#: Seconds that a thread keeps the interpreter while others wait for it.
_TURN = 0.001


def run_server(
    live: Live,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits = Limits(),
    ready: Any = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; open requests end, and what was acknowledged is on the disk.

    Parameters
    ----------
    live : Live
        The living graph, opened from a store; it is closed at the end.
    host, port : str, int
        Where to listen; 0 is any free port. Other machines can reach a `host` that is no loopback address: it needs a
        token.
    token : str, optional
        The bearer token without which nothing is answered.
    limits : Limits
        What a request may be.
    ready : callable, optional
        Called with the address once the service listens.
    """
    token = check_token(token, host)
    _warm_up(live)
    app = make_app(live, limits=limits, token=token)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="on",
        ws="none",
        access_log=False,
        log_level=logging.WARNING,
        timeout_graceful_shutdown=max(1, int(limits.seconds) + 5),
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=64 << 10,
        server_header=False,
    )
    with _listen(host, port) as listener:
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{listener.getsockname()[1]}"
        with _short_turns():
            _Server(config, lambda: None if ready is None else ready(url)).run(sockets=[listener])


@contextmanager
def _short_turns() -> Iterator[None]:
    """Let threads take turns of a millisecond, and leave what is there from the start out of garbage collections."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()


class _Server(uvicorn.Server):
    """A server that ends normally when it is told to stop."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so once a signal would end it well."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, and do not raise it again afterwards."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _warm_up(live: Live) -> None:
    """Compile kernels, and count past labels, before the first request."""
    live.status()
    live.history()
    if nodes := live.ids()[:1]:
        live.predict(nodes)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=1024, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        reason = str(error).partition(" (while")[0]  # the rest repeats the address
        raise InvalidInputError(f"`port` must be free to listen on; {host}:{port} is not ({reason})") from error
