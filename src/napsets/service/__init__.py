"""Prediction sets over HTTP: one process that keeps one living graph, and whose state survives it.

`napsets.service.app.make_app` makes the application (FastAPI), `napsets.service.server.run_server` runs it; both need
the extra ``serve``.
"""
