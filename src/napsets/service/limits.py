"""Limits of requests: size, time, number of entries, and who may send them."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass

from napsets.checks.values import check_count
from napsets.errors import InvalidInputError

#: Fewest characters of a token: shorter ones can be guessed.
_SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """Limits of the service; a request beyond one of them is answered with 4xx and changes nothing.

    Attributes
    ----------
    body_bytes : int
        Size of a request's body.
    batch : int
        Nodes, edges, labels or sets in one request.
    seconds : float
        How long a request may take to arrive, and how long it waits for its turn.
    """

    body_bytes: int = 64 << 20
    batch: int = 100_000
    seconds: float = 30.0

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


def same_token(expected: str, authorization: str) -> bool:
    """Compare the token of an ``Authorization`` header in constant time."""
    scheme, _, token = authorization.partition(" ")
    same = hmac.compare_digest(token.strip().encode("latin-1", "replace"), expected.encode())
    return same and scheme.lower() == "bearer"
