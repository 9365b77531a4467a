"""Take the screenshots of the report and of the service's page for the documentation, in a real browser.

Run ``python docs/make_screenshots.py REPORT`` from the root of the repository, with the report that ``napsets demo``
wrote; it writes PNG files into ``docs/images``. With names of pictures after the report, it takes only these, from any
report: ``report-many-classes`` is of one with dozens of classes, ``intervals-report`` and ``intervals-explorer`` are of
the one that ``python -m benchmarks.intervals --report REPORT`` writes, and ``service`` is of a service that runs,
whose address is passed in place of the report. Needs the extra ``dev`` and chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent / "images"
READY = "html[data-ready='true']"
ARGUMENTS = ["--no-sandbox", "--disable-gpu"]
#: For each picture: the width of the window, the first element and the last element shown.
PICTURES = {
    "report": (1440, "h1", ".cards"),
    "report-groups": (1440, "#groups h2", "#groups .two"),
    "report-neighbourhoods": (1280, "#neighbourhoods h2", "#neighbourhoods .scroll"),
    "report-explorer": (1280, "#explorer h2", "#node-tables > :nth-child(2)"),
    "report-phone": (390, "h1", "#figure-front"),
    "report-many-classes": (1440, "#groups h2", "#groups .two"),
    "intervals-report": (1440, "h1", ".cards"),
    "intervals-explorer": (1280, "#explorer h2", "#node-tables > :nth-child(2)"),
    "service": (1280, "h1", "#over-time .two"),
}
#: The pictures of other reports than that of the demo.
OTHERS = {"report-many-classes", "intervals-report", "intervals-explorer", "service"}


def main(report: str, wanted: list[str]) -> None:
    """Take the named screenshots, or all of the demo."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name in wanted or PICTURES.keys() - OTHERS:
            width, first, last = PICTURES[name]
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(report if report.startswith("http") else Path(report).resolve().as_uri())
            page.wait_for_selector(READY, state="attached")  # the service's page allows no script but its own
            if "explorer" in name:
                page.click("#explorer > summary")
                page.wait_for_selector("html[data-explored='true']", state="attached")
                page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=IMAGES / f"{name}.png", full_page=True, clip=_between(page, first, last, width))
        browser.close()


def _between(page: Any, first: str, last: str, width: int) -> dict[str, float]:
    """Return the part of the page from the top of one element to the bottom of another, with a little room."""
    # The navigation bar sticks to the top while a page is scrolled, and would cover part of the picture.
    page.add_style_tag(content="nav { position: static !important }")
    top, bottom = (page.locator(place).first.bounding_box() for place in (first, last))
    side = max(0.0, min(top["x"], bottom["x"]) - 20)
    start = max(0.0, top["y"] - 16)
    return {"x": side, "y": start, "width": width - 2 * side, "height": bottom["y"] + bottom["height"] + 16 - start}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
