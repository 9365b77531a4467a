"""The file: whole, self-contained, the same each time, and with the library's very bits in it."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import COMPARED, CURVE_ALPHAS, compare
from worlds import guess, make_numbers


@pytest.fixture(scope="module")
def text(page_file: Path) -> str:
    return page_file.read_text(encoding="utf-8")


def explorer_of(text: str) -> Any:
    match = re.search(r'id="data-explorer">([^<]*)</script>', text)
    assert match is not None
    return json.loads(gzip.decompress(base64.b64decode(match[1])))


def test_nothing_is_loaded_from_elsewhere(text: str) -> None:
    markup = re.sub(r"(<script[^>]*>).*?</script>", r"\1", text, flags=re.DOTALL)
    assert not re.search(r"\ssrc=|<link|<base", markup)
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', markup))
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(", text.split("</style>")[0])


def test_names_and_titles_cannot_become_markup(text: str) -> None:
    head = text.split('<script type="application/json"')[0]
    assert "Blocks &amp; &lt;i&gt;circles&lt;/i&gt;" in head
    assert "Table of &lt;b&gt;tests&lt;/b&gt;" in head
    assert "<b>delta</b>" not in text
    assert "<b>delta</b>" in json.dumps(explorer_of(text))


def test_reproduction_tables_stand_there_only_when_given(text: str, world: dict[str, Any], tmp_path: Path) -> None:
    assert 'id="tables"' in text
    assert '<td data-label="seeds">1,000</td>' in text
    plain = ns.report.write_report(tmp_path / "plain.html", **world | {"methods": ["split"]}).read_text("utf-8")
    assert 'id="tables"' not in plain


def test_the_score_decides_what_a_report_is_about(tmp_path: Path) -> None:
    numbers = make_numbers(n=300, labelled=150)
    shared = {name: numbers[name] for name in ("graph", "calibration", "nodes")} | {"methods": ["split", "naps"]}
    path = ns.report.write_report(
        tmp_path / "r.html", **shared, probabilities=numbers["outputs"], labels=numbers["targets"], score="cqr"
    )
    text = path.read_text(encoding="utf-8")
    assert "<h1>Prediction intervals on a graph</h1>" in text


def test_another_process_gives_the_same_bytes(world: dict[str, Any], tmp_path: Path) -> None:
    """Neither the time, nor the order of a set, nor the folder is in the page."""
    code = (
        "import sys; from conftest import make_world; import napsets as ns; "
        "ns.report.write_report(sys.argv[1], **make_world())"
    )
    (tmp_path / "elsewhere").mkdir()
    there = tmp_path / "elsewhere" / "b.html"
    environment = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    folders = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if folder)
    subprocess.run([sys.executable, "-c", code, there], check=True, cwd=Path(__file__).parent, env=environment)
    assert ns.report.write_report(tmp_path / "a.html", **world).read_bytes() == there.read_bytes()


def test_a_failure_leaves_no_file_behind(world: dict[str, Any], tmp_path: Path, monkeypatch) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        ns.report.write_report(target, **world | {"methods": ["split"]})
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.read_bytes() == b"before"


def test_a_folder_that_does_not_exist_is_named_before_any_work(world: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(
        ns.InvalidInputError, match=r"`path` must be in a folder that exists; there is no folder .*missing"
    ):
        ns.report.write_report(tmp_path / "missing" / "report.html", **world)


@pytest.mark.parametrize(
    ("package", "name"), [("jinja2", "jinja2"), ("vl_convert", "vl-convert-python"), ("altair", "altair")]
)
def test_a_missing_package_is_named_with_its_extra(world, tmp_path: Path, monkeypatch, package: str, name: str) -> None:
    from napsets.report import html

    html.library.cache_clear()
    for module in ("charts", "parts", "sets", "intervals", "explorer"):  # which the page imports when it is made
        monkeypatch.delitem(sys.modules, f"napsets.report.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ns.MissingDependencyError, match=rf"{name}.*napsets\[report\]"):
        ns.report.write_report(tmp_path / "report.html", **world | {"methods": ["split"]})


def test_a_page_about_the_embedded_graph_stays_below_three_megabytes(tmp_path: Path) -> None:
    data = ns.datasets.load("amazon-computers", seed=0)
    rng = np.random.default_rng(0)
    p = guess(data.labels, 2.5, rng)
    half = np.array_split(rng.permutation(np.asarray(data.test)), 2)
    methods = (*COMPARED, "daps")
    compared = compare(data.graph, p, data.labels, *half, methods=methods, alphas=CURVE_ALPHAS)
    for names in (methods, COMPARED, ("split", "naps", "informed", "auto")):
        page = replace(compared, results=tuple(result for result in compared.results if result.name in names))
        assert ns.report.write_page(tmp_path / "report.html", page).stat().st_size < 3_000_000
