"""The site builds without a warning, and its pages ask nothing of the network."""

from __future__ import annotations

import re
import subprocess
import sys
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
        found = FETCHED.findall(page.read_text(encoding="utf-8"))
        outside = [url for pair in found for url in pair if re.match(r"(?:https?:)?//", url)]
        assert outside == [], page.name


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").glob("*.svg"):
        assert picture.stat().st_size < 150_000, picture.name
