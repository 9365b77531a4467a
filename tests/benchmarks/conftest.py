"""Benchmarks train with the recipes of `studies`, whose methods other tests do not see."""

import laboratory  # noqa: F401
