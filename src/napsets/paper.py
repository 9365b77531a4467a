"""`napsets.studies` under the name that it had when it held the paper's experiments only."""

from __future__ import annotations

from napsets.studies import *  # noqa: F403
from napsets.studies import __all__ as __all__
