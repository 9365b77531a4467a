"""Names are other people's text: whatever is in them, the page draws every chart and shows them as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.checks.text import shown_name, visible
from worlds import guess

from .conftest import explore, find

Open = Callable[..., Any]

#: A name, and how the page shows it.
NAMES: dict[str, str] = {
    "constructor": "constructor",
    "__proto__": "__proto__",
    "toString": "toString",
    "hasOwnProperty": "hasOwnProperty",
    "line\u2028and\u2029paragraph": r"line\u2028and\u2029paragraph",
    "a.b": "a.b",
    "a[0]['x'].y": "a[0]['x'].y",
    'quote " and \\ and `${1}`': 'quote " and \\ and `${1}`',
    "</script><script>document.title='taken'</script>": "</script><script>document.title='taken'</script>",
    "<!--<script>": "<!--<script>",
    "{{ data }} {% raw %}": "{{ data }} {% raw %}",
    "": "''",
    " ": "' '",
    "long " + "x" * 3000: "long " + "x" * 3000,
    "\u202eturned\u200f around\u2066": r"\u202eturned\u200f around\u2066",
    "\x00\x1b[31mred\x07\r\n\t\x9b": r"\x00\x1b[31mred\x07\r\n\t\x9b",
    "half \ud800": r"half \ud800",
    "zero\u200bwidth\u200d\u2060\ufeff": r"zero\u200bwidth\u200d\u2060\ufeff",
    "né 中文 👩": "né 中文 👩",
}
CLASSES = list(NAMES)
SHOWN = list(NAMES.values())


def named_world(**settings: Any) -> dict[str, Any]:
    """As many classes as there are names, each of which calibrates and is judged."""
    rng = np.random.default_rng(0)
    n = 40 * len(CLASSES)
    labels = np.arange(n) % len(CLASSES)
    ends = rng.integers(n, size=(2, 12 * n))
    probabilities = guess(labels, 3.0, rng)
    order = rng.permutation(n)
    return {
        "graph": ns.Graph.from_edge_index(ends[:, labels[ends[0]] % 5 == labels[ends[1]] % 5], num_nodes=n),
        "probabilities": probabilities,
        "labels": labels,
        "calibration": order[: n // 2],
        "nodes": order[n // 2 :],
        "class_names": CLASSES,
    } | settings


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    everything = " ".join(CLASSES)
    path = tmp_path_factory.mktemp("hostile") / "r.html"
    table = (everything, [{everything: everything, "x": 1.0}])
    return ns.report.write_report(
        path, **named_world(), title=everything, dataset=everything, model=everything, tables=[table]
    )


def test_the_file_holds_no_character_that_is_not_shown(hostile: Path) -> None:
    text = hostile.read_text(encoding="utf-8")
    ours = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", ours)
    data = re.findall(r'<script type="application/json" id="[^"]*">(.*?)</script>', text, flags=re.DOTALL)
    assert len(data) == 2
    for part in data:
        assert part.isascii()
        assert "<" not in part
        json.loads(part)


@pytest.mark.browser
def test_every_chart_is_drawn_and_every_name_is_shown(hostile: Path, open_page: Open) -> None:
    page = open_page(hostile)
    assert page.locator('[data-chart][data-drawn="true"] svg.marks').count() == 9
    labels = page.locator('[data-chart="by-class"] .role-axis-label text').all_text_contents()
    classes = [text for text in labels if not re.fullmatch(r"[\d.]+\s%", text)]
    assert len(classes) == len(SHOWN)
    assert all(any(name.startswith(text.removesuffix("…")) for name in SHOWN) for text in classes)
    assert page.title().split() == visible(" ".join(CLASSES)).split()
    page.locator('[data-numbers="by-class"] summary').click()
    rows = page.locator('[data-numbers="by-class"] tbody tr')
    rows.first.wait_for()
    assert {row.locator("td").first.text_content() for row in rows.all()} == set(SHOWN)
    page.locator('[data-chart="by-class"] .mark-symbol.role-mark path').first.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert any(name in tooltip.inner_text() for name in SHOWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.browser
def test_nodes_with_such_ids_are_found_and_shown_by_name(open_page: Open, tmp_path: Path) -> None:
    words = [name for name in CLASSES if "\ud800" not in name and len(name) < 1000]  # ids have at most 1,024 bytes
    world = named_world(methods=["split", "informed"])
    ids = np.array([words[i] if i < len(words) else f"{words[i % len(words)]}{i}" for i in range(world["labels"].size)])
    path = ns.report.write_report(tmp_path / "it's 100%.html", **world, ids=ids)
    page = open_page(path, fragment="#node=%", width=390)
    explore(page)
    explorable = json.loads(page.text_content("#data-finder"))["names"]
    assert set(explorable) <= {shown_name(name) for name in ids}
    for name in explorable[::8]:
        find(page, name)
        assert page.text_content("#node-title") == f"Node {name}"
        assert set(page.locator("#node-set li").all_text_contents()) <= {*SHOWN, "the empty set"}
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
