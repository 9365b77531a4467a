"""Run the application in this process until a signal stops it."""

from __future__ import annotations

import gc
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from napsets.errors import InvalidInputError, MissingDependencyError

try:
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingDependencyError("uvicorn", "serve") from error

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
        http=LimitedProtocol,
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

        server = _Server(config, threading.Thread(target=open_live, name="napsets-opening", daemon=True))
        before = sys.getswitchinterval()
        sys.setswitchinterval(_TURN)
        try:
            server.run(sockets=[listener])
        finally:
            sys.setswitchinterval(before)
            gc.unfreeze()
    if failures:
        raise failures[0]


class _Server(uvicorn.Server):
    """A server that ends normally when it is told to stop."""

    def __init__(self, config: uvicorn.Config, opening: threading.Thread) -> None:
        super().__init__(config)
        self._opening = opening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and open the graph once a signal would end the service well."""
        await super().startup(sockets)
        if self.started:
            self._opening.start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, and do not raise it again afterwards."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if too many bytes lead to nothing: the parser has no limit for headers and trailers.

    What arrives in one piece is bounded by the size of a piece, and refused by the `Guard` if it is too large.
    """

    _silent = 0  #: Bytes since the last headers were complete, or the last part of a body came.

    def data_received(self, data: bytes) -> None:
        """Parse the next piece."""
        self._silent += len(data)
        began = self._silent
        super().data_received(data)
        if self._silent >= began > HEAD_BYTES + len(data) and not self.transport.is_closing():
            text = f'{{"error": "the address and headers must have at most {HEAD_BYTES:,} bytes"}}'
            head = f"content-type: application/json\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
            self.transport.write(f"HTTP/1.1 431 Request Header Fields Too Large\r\n{head}{text}".encode())
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Go on with the body."""
        self._silent = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Go on with the next request."""
        self._silent = 0
        super().on_message_complete()


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
