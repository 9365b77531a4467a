"""Graphs to report on, of classes and of numbers, the pages about them, and a way to open one in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare, compare_intervals
from napsets.evaluation.results import Comparison
from napsets.levels import Exact
from napsets.localisers import Hops, LocalThresholds, Reference
from napsets.methods import METHODS, Method
from napsets.report import ReportData, page_data
from worlds import FOUR, draw_world, make_numbers

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


@pytest.fixture
def seven(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Seven methods, three of them made up: two of another score (one exact), and one without weights."""

    class Halves:
        """Half of the nodes get one threshold, half another: no quantile of anything."""

        def fit(self, reference: Reference) -> Any:
            return self

        def thresholds(self, nodes: Any, cuts: Any, **_: Any) -> LocalThresholds:
            values = np.tile(0.5 + 0.4 * (np.asarray(nodes) % 2), (len(cuts), 1))
            return LocalThresholds(values, np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes)))

        def ranks(self, nodes: Any, scores: Any, **_: Any) -> Any:
            return np.asarray(scores)

    monkeypatch.setitem(METHODS, "thr-naps", lambda s: Method("thr", Hops(s.hops), seed=s.seed))
    monkeypatch.setitem(METHODS, "thr-split", lambda s: Method("thr", level=Exact(0.5), seed=s.seed))
    monkeypatch.setitem(METHODS, "odd & <b>even</b>", lambda s: Method(s.score, Halves(), seed=s.seed))
    return ["split", "naps", "naps-h", "naps-g", "thr-naps", "thr-split", "odd & <b>even</b>"]


def marks(page: Any, chart: str) -> int:
    return page.locator(f'[data-chart="{chart}"] .mark-symbol.role-mark path').count()


def find(page: Any, node: object) -> None:
    page.fill("#search", str(node))
    page.press("#search", "Enter")


def shown_set(page: Any) -> list[str]:
    return page.locator("#node-set li").all_inner_texts()


def check_scores(page: Any, scores: np.ndarray) -> None:
    shown_scores = [float(text) for text in page.locator("#node-labels tbody tr td:nth-child(3)").all_inner_texts()]
    assert shown_scores == pytest.approx(np.sort(scores), abs=5.0001e-5)


#: Windows that no test looks at, by their settings.
Spare = dict[str, list[Any]]


@pytest.fixture(scope="session")
def spare() -> Spare:
    """Windows that were used before: a page opens there in half the time, because its scripts are compiled already."""
    return {}


class Tabs:
    """Pages in the browser, and what they wrote to the console or fetched."""

    def __init__(self, browser: Any, spare: Spare) -> None:
        self.browser, self.spare = browser, spare
        self.pages: dict[Path, Any] = {}
        self.windows: list[tuple[str, Any, dict[str, Any]]] = []
        self.said: list[str] = []
        self.fetched: list[str] = []

    def open(self, path: Path, *, fragment: str = "", **settings: Any) -> Any:
        """Open a file in an empty window."""
        settings = {"viewport": {"width": 1280, "height": 900}} | settings
        kind = repr(sorted(settings.items()))
        page = self.spare[kind].pop() if self.spare.get(kind) else self._window(settings)
        listeners = {
            "console": lambda message: self.said.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.said.append(f"error: {error}"),
            "request": lambda request: self.fetched.append(request.url),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        self.windows.append((kind, page, listeners))
        page.goto(path.as_uri() + fragment)
        page.wait_for_function(READY)
        return page

    def _window(self, settings: dict[str, Any]) -> Any:
        context = self.browser.new_context(**settings)
        context.set_offline(True)
        return context.new_page()

    def keep(self, path: Path) -> Any:
        """Open a file the first time; later return the same window."""
        if path not in self.pages:
            self.pages[path] = self.open(path)
        return self.pages[path]

    def close(self) -> None:
        """Empty the windows, and leave them to the next test."""
        for kind, page, listeners in self.windows:
            page.remove_listener("request", listeners.pop("request"))
            page.goto("about:blank")
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
            page.mouse.move(0, 0)
            page.emulate_media(media="null")
            self.spare.setdefault(kind, []).append(page)

    def check_silence(self) -> None:
        assert self.said == []
        assert len(self.fetched) == len(self.windows)
        assert all(address.startswith("file:") for address in self.fetched)


@pytest.fixture
def open_page(browser: Any, spare: Spare) -> Iterator[Callable[..., Any]]:
    """Open a file; at the end of the test, insist that the console stayed silent and nothing was fetched."""
    tabs = Tabs(browser, spare)
    yield tabs.open
    tabs.close()
    tabs.check_silence()


@pytest.fixture(scope="module")
def kept_tabs(browser: Any, spare: Spare) -> Iterator[Tabs]:
    tabs = Tabs(browser, spare)
    yield tabs
    tabs.close()


@pytest.fixture
def keep_page(kept_tabs: Tabs) -> Iterator[Callable[..., Any]]:
    """Open a file once for those tests of a module that choose node and method themselves, or look at neither."""
    yield kept_tabs.keep
    kept_tabs.check_silence()
