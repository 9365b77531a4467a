"""How many threads torch uses.

Torch cuts its sums among threads, so their number changes the last bits, and training carries these into the result.
It is therefore a setting with one default, not whatever the machine has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from napsets.checks.arguments import check_count

__all__ = ["THREADS", "torch_threads"]

THREADS = 2


@contextmanager
def torch_threads(count: int | None = None) -> Iterator[None]:
    """Let torch use so many threads inside, `THREADS` unless told, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(check_count("threads", THREADS if count is None else count, minimum=1))
    try:
        yield
    finally:
        torch.set_num_threads(before)
