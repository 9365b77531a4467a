"""Run the application in this process until a signal stops it."""

from __future__ import annotations

import gc
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from napsets.errors import InvalidInputError
from napsets.live.live import Live
from napsets.service.app import make_app
from napsets.service.guard import HEAD_BYTES, Limits, check_token

#: Seconds that a thread keeps the interpreter while others wait for it.
_TURN = 0.001


def run_server(
    opening: Callable[[], Live],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits = Limits(),
    listening: Callable[[str], None] | None = None,
    ready: Callable[[str, Live], None] | None = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; open requests end, and what was acknowledged is on the disk.

    Parameters
    ----------
    opening : callable
        Opens the living graph, which is closed at the end. Meanwhile the port is open, and requests are answered with
        503. An error ends the service.
    host, port : str, int
        Where to listen; 0 is any free port. Other machines can reach a `host` that is no loopback address: it needs a
        token.
    token : str, optional
        The bearer token without which nothing is answered.
    limits : Limits
        What a request may be.
    listening, ready : callable, optional
        Called with the address once the service listens, and with the address and the graph once it answers.
    """
    app = make_app(limits=limits, token=check_token(token, host))
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",
        h11_max_incomplete_event_size=HEAD_BYTES,
        lifespan="on",
        ws="none",
        access_log=False,
        log_level=logging.WARNING,
        timeout_graceful_shutdown=max(1, int(limits.seconds) + 5),
        timeout_keep_alive=75,
        server_header=False,
    )
    failures: list[BaseException] = []
    with _listen(host, port) as listener:
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{listener.getsockname()[1]}"

        def open_live() -> None:
            try:
                if listening is not None:
                    listening(url)
                live = opening()
                _warm_up(live)
                gc.collect()
                gc.freeze()  # what is there from the start stays out of garbage collections
                app.owner.take(live)
                if ready is not None:
                    ready(url, live)
            except BaseException as error:
                failures.append(error)
                server.should_exit = True

        server = _Server(config)
        before = sys.getswitchinterval()
        sys.setswitchinterval(_TURN)
        try:
            threading.Thread(target=open_live, name="napsets-opening", daemon=True).start()
            server.run(sockets=[listener])
        finally:
            sys.setswitchinterval(before)
            gc.unfreeze()
    if failures:
        raise failures[0]


class _Server(uvicorn.Server):
    """A server that ends normally when it is told to stop."""

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
