"""The site builds without a warning, asks nothing of the network, and can be searched without a server."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Elements that make a browser fetch something, with the attribute that says what.
FETCHED = re.compile(r'<(?:script|img|source|iframe|video)\b[^>]*?\bsrc="([^"]+)"|<link\b[^>]*?\bhref="([^"]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_no_page_fetches_anything_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        matches = FETCHED.findall(page.read_text(encoding="utf-8"))
        outside = [url for pair in matches for url in pair if re.match(r"(?:https?:)?//", url)]
        assert outside == [], page.name


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_beside_the_site_lead_somewhere(name):
    matches = re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", (ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in matches if "://" not in link and not (ROOT / link).exists()] == []


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").glob("*.svg"):
        assert picture.stat().st_size < 150_000, picture.name


@pytest.mark.browser
def test_the_search_finds_guides_first_in_a_site_opened_from_a_folder(browser, site):
    """What a newcomer types, and the page that must come first: a guide before the entry of a class or function."""
    from playwright.sync_api import TimeoutError

    wanted = {
        "which labels": "which-labels",
        "how many labels": "how-many-labels",
        "coverage not 90": "why-not-90",
        "label shift": "tasks/biased-labels",
        "SNAPS": "methods/graph-scores",
        "exit code": "command",
        "cite": "cite",
    }
    context = browser.new_context()
    context.set_offline(True)
    page, messages, first = context.new_page(), [], {}
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    result = page.locator(".md-search-result__item a").first
    for query in wanted:
        for patience in (5_000, 10_000, 20_000, 40_000):  # what is typed before the page listens is lost: open it again
            page.goto((site / "index.html").as_uri())
            page.fill("input[name=query]", query)
            with suppress(TimeoutError):
                result.wait_for(state="attached", timeout=patience)
                break
        href = str(result.get_attribute("href"))
        first[query] = re.split(r"[#?]", href.removeprefix(site.as_uri() + "/"))[0]
    assert first == {query: f"{name}.html" for query, name in wanted.items()}
    result.click()
    page.wait_for_url("**/cite*.html*")
    assert "Cite" in page.locator("h1").inner_text()
    context.close()
    assert messages == []
