"""Graphs to report on, of classes and of numbers, the pages about them, and a way to open one in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from napsets.report import ReportData, page_data
from worlds import FOUR, compare_intervals, draw_world, make_numbers

READY = "document.documentElement.dataset.ready === 'true'"
#: What the nodes of the page about intervals are called.
NODE_NAMES = np.array([f"<i>{i}</i> & co" for i in range(900)])
CLASSES = ["alpha", "beta & gamma", "<b>delta</b>", "epsilon", "zeta"]


def make_world() -> dict[str, Any]:
    """Five classes that mostly link among themselves, of which the first is harder, and ten nodes without edges."""
    inputs = draw_world(5, 1500, 5, 20000, strength=2.4, first=1.2, alone=10)
    return inputs | {"seed": 3, "methods": FOUR}


@pytest.fixture(scope="session")
def world() -> dict[str, Any]:
    return make_world()


@pytest.fixture(scope="session")
def comparison(world: dict[str, Any]) -> Comparison:
    """Methods compared by their sets."""
    return compare(**world, alphas=CURVE_ALPHAS)


@pytest.fixture(scope="session")
def interval_comparison() -> Comparison:
    """Methods compared by their intervals."""
    return compare_intervals(**make_numbers(), seed=3, alphas=CURVE_ALPHAS)


@pytest.fixture(scope="session")
def sets_data(comparison: Comparison) -> ReportData:
    return page_data(comparison, dataset="blocks", model="noise")


@pytest.fixture(scope="session")
def intervals_data(interval_comparison: Comparison) -> ReportData:
    return page_data(interval_comparison, ids=NODE_NAMES, dataset="ring", model="noise")


@pytest.fixture(scope="session", params=["sets", "intervals"])
def data(request: pytest.FixtureRequest) -> ReportData:
    """What a page about sets shows, and what one about intervals shows."""
    shown: ReportData = request.getfixturevalue(f"{request.param}_data")
    return shown


@pytest.fixture(scope="session")
def page_file(world: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = ("Table of <b>tests</b>", [{"method": "NAPS", "coverage": 0.9, "printed": None, "seeds": 1000}])
    path = tmp_path_factory.mktemp("report") / "report.html"
    return ns.report.write_report(
        path, **world, class_names=CLASSES, dataset="Blocks & <i>circles</i>", model="noise", tables=[table]
    )


@pytest.fixture(scope="session")
def intervals_file(interval_comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("intervals") / "report.html"
    return ns.report.write_page(path, interval_comparison, ids=NODE_NAMES, dataset="A ring & <i>co</i>", model="noise")


def marks(page: Any, chart: str) -> int:
    return page.locator(f'[data-chart="{chart}"] .mark-symbol.role-mark path').count()


def wait_for_marks(page: Any, chart: str, count: int) -> None:
    selector = f'[data-chart="{chart}"] .mark-symbol.role-mark path'
    page.wait_for_function("([where, n]) => document.querySelectorAll(where).length === n", arg=[selector, count])


def explore(page: Any) -> None:
    """Open the explorer and wait until it is there."""
    page.click("#explorer > summary")
    page.wait_for_function("document.documentElement.dataset.explored === 'true'")


def find(page: Any, node: object) -> None:
    page.fill("#search", str(node))
    page.press("#search", "Enter")


def tables(page: Any) -> dict[str, list[list[str]]]:
    """Return the tables of the explorer by their titles."""
    found = page.evaluate(
        """() => [...document.querySelectorAll('#node-tables .card')].map((card) => [card.querySelector('h3').innerText,
             [...card.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))])"""
    )
    return dict(found)


class Spare:
    """Windows that no test looks at, of computers and of phones.

    A page opens in half the time where its scripts were compiled before, as in all windows of one context.
    """

    def __init__(self, browser: Any) -> None:
        self.contexts = {phone: browser.new_context(is_mobile=phone, has_touch=phone) for phone in (False, True)}
        self.windows: dict[bool, list[Any]] = {False: [], True: []}
        for context in self.contexts.values():
            context.set_offline(True)

    def take(self, phone: bool) -> Any:
        return self.windows[phone].pop() if self.windows[phone] else self.contexts[phone].new_page()


@pytest.fixture(scope="session")
def spare(browser: Any) -> Spare:
    return Spare(browser)


class Tabs:
    """Pages in the browser, and what they wrote to the console or fetched."""

    def __init__(self, spare: Spare) -> None:
        self.spare = spare
        self.windows: list[tuple[bool, Any, dict[str, Any]]] = []
        self.said: list[str] = []
        self.fetched: list[str] = []

    def open(
        self,
        path: Path,
        *,
        fragment: str = "",
        width: int = 1280,
        height: int = 900,
        phone: bool = False,
        color_scheme: str = "light",
    ) -> Any:
        """Open a file in an empty window."""
        page = self.spare.take(phone)
        page.bring_to_front()  # a window behind another draws once per second
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="null", color_scheme=color_scheme)
        listeners = {
            "console": lambda message: self.said.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.said.append(f"error: {error}"),
            "request": lambda request: self.fetched.append(request.url),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        self.windows.append((phone, page, listeners))
        page.goto(path.as_uri() + fragment)
        page.wait_for_function(READY)
        return page

    def close(self) -> None:
        """Empty the windows, and leave them to the next test."""
        for phone, page, listeners in self.windows:
            page.remove_listener("request", listeners.pop("request"))
            page.goto("about:blank")
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
            page.mouse.move(0, 0)
            self.spare.windows[phone].append(page)

    def check_silence(self) -> None:
        assert self.said == []
        assert len(self.fetched) == len(self.windows)
        assert all(address.startswith("file:") for address in self.fetched)


@pytest.fixture
def open_page(spare: Spare) -> Iterator[Callable[..., Any]]:
    """Open a file; at the end of the test, insist that the console stayed silent and nothing was fetched."""
    tabs = Tabs(spare)
    yield tabs.open
    tabs.close()
    tabs.check_silence()
