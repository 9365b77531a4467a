"""Prediction sets over HTTP: one process that keeps one living graph, and whose state survives it.

`napsets.service.app.make_app` makes the application (FastAPI), `napsets.service.server.run_server` runs it; both need
the extra ``serve``.
"""

from __future__ import annotations

from napsets.errors import MissingDependencyError

try:
    import fastapi  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(error.name or "fastapi", "serve") from error
