"""What pyproject.toml promises is documented, and said once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import napsets

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_extra_has_a_row_in_the_table_that_names_what_it_brings():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", (ROOT / "docs" / "install.md").read_text("utf-8"), flags=re.M))
    assert set(rows) == set(PROJECT["optional-dependencies"])
    called = {"torch": "pytorch", "torch_geometric": "pytorch geometric", "vl-convert-python": "vl-convert"}
    called |= {"jinja2": "jinja", "mkdocs-material": "material for mkdocs"}
    for extra, packages in PROJECT["optional-dependencies"].items():
        for package in packages if extra != "dev" else []:
            name = re.match(r"[\w-]+", package)[0]
            assert called.get(name, name) in rows[extra].lower(), f"{extra}: {name}"


def test_the_extra_for_developers_brings_the_others_that_its_row_says():
    (own,) = [package for package in PROJECT["optional-dependencies"]["dev"] if package.startswith("napsets[")]
    assert set(re.findall(r"\w+", own)[1:]) == set(PROJECT["optional-dependencies"]) - {"dev", "polars"}


def test_the_version_stands_in_one_place():
    assert re.fullmatch(r"\d+\.\d+\.\d+", napsets.__version__)
    for file in ("pyproject.toml", "CITATION.cff", "docs/cite.md", "README.md"):
        assert napsets.__version__ not in (ROOT / file).read_text("utf-8"), file
    assert f"## {napsets.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_package_says_that_it_is_typed():
    assert (Path(napsets.__file__).parent / "py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]
