"""The page shows the service as it is, in a real browser, and hostile names do nothing there."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import CLASSES, small_live
from .test_killed import Server

pytestmark = pytest.mark.browser
READY = "html[data-ready='true'] body"
HOSTILE = "<img src=x onerror=alert(1)>/é?#"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    live, store = small_live(), tmp_path_factory.mktemp("served") / "store"
    live.add_nodes([HOSTILE], [[0.2, 0.3, 0.5]])
    live.add_edges([HOSTILE], ["n0"])
    live.save(store)
    running = Server(store)
    yield running
    running.stop(signal.SIGTERM)


@pytest.fixture
def page(server: Server, browser: Any) -> Iterator[Any]:
    """The page, whose console must stay silent and which may ask nobody but the service."""
    said: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: said.append(dialog.message))
    opened.on("request", lambda request: said.append(request.url) if not request.url.startswith(server.url) else None)
    opened.goto(server.url)
    opened.wait_for_selector(READY)
    yield opened
    context.close()
    assert said == []


def test_the_page_shows_figures_charts_and_alarms(page: Any) -> None:
    assert "Of 30 labels that have arrived" in page.inner_text("#summary")
    assert "61" in page.inner_text("#cards")
    assert page.locator("#alarms .card").count() == 2
    for name in ("coverage", "size", "alarms", "delay"):
        assert page.locator(f"#plot-{name} svg path.line").count() >= 1


def test_the_page_follows_what_happens(page: Any, server: Server) -> None:
    assert server.http.post("/labels", json={"labels": [{"node": "n1", "label": "ham"}]}).is_success
    page.wait_for_selector("#summary:has-text('Of 31 labels')")


def test_a_node_is_explained_and_hostile_names_stay_text(page: Any) -> None:
    page.fill("#id", HOSTILE)
    page.click("#find button")
    page.wait_for_selector("#explained h3:has-text('onerror')")
    assert page.locator("#explained img").count() == page.locator("#explained script").count() == 0
    assert CLASSES[2] in page.inner_text("#explained")
    page.fill("#id", "nobody")
    page.click("#find button")
    page.wait_for_selector("#explained p:has-text('nobody')")


def test_characters_that_cannot_be_seen_are_spelled_out(page: Any, server: Server) -> None:
    name = "a\u202egnp.exe\u200b"
    assert server.http.post("/nodes", json={"nodes": [{"node": name, "probabilities": [0.2, 0.3, 0.5]}]}).is_success
    page.fill("#id", name)
    page.click("#find button")
    page.wait_for_selector("#explained h3:has-text('gnp.exe')")
    assert page.inner_text("#explained h3").startswith(r"a\u202egnp.exe\u200b: ")


def test_the_page_fits_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_asks_for_the_token(store: Path, browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "a-token-of-many-characters"
    monkeypatch.setenv("NAPSETS_TOKEN", token)
    served = Server(store)
    opened = browser.new_page()
    opened.goto(served.url)
    opened.wait_for_selector("#login", state="visible")
    assert opened.inner_text("#summary") == "This service needs its token."
    assert opened.locator("#main").is_hidden()
    opened.fill("#token", "another-token-of-many")
    opened.click("#login button")
    opened.wait_for_selector("#summary:has-text('That is not the token of this service.')")
    opened.fill("#token", token)
    opened.click("#login button")
    opened.wait_for_selector(READY)
    assert opened.locator("#login").is_hidden()
    opened.close()
    served.stop(signal.SIGTERM)
