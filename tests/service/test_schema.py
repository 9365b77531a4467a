"""Whatever the description allows, and much that it does not, is answered without a fault."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from .conftest import small_live
from .test_killed import Server

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    store = tmp_path_factory.mktemp("described") / "store"
    small_live().save(store)
    server = Server(store)
    yield schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    server.stop(signal.SIGTERM)


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_is_answered_with_a_fault(api: Any, mode: str) -> None:
    asked = 0
    for entry in api.get_all_operations():
        operation = entry.ok()
        if mode == "negative" and operation.path in ("/livez", "/readyz", "/metrics"):
            continue  # which take nothing that could be wrong

        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def answered(case: Any) -> None:
            nonlocal asked
            asked += 1
            answer = case.call()
            assert answer.status_code < 500, answer.text
            if answer.status_code >= 400:
                assert answer.json()["error"]

        answered()
    assert asked > 100
