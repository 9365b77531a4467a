"""One entry in the table of methods is enough: the method then stands everywhere that methods stand."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from napsets.errors import InvalidInputError
from napsets.evaluation.comparison import CURVE_ALPHAS
from napsets.localisers import Hops
from napsets.methods import ALIASES, METHODS, Method, list_methods, make_method
from napsets.methods.table import settings_of

ROOT = Path(__file__).parents[2]
WHAT = "A toy: direct neighbours only, for tests"


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    def near(*, score="aps"):
        return Method(score, Hops(1, pool=0.0))

    near.__doc__ = f"{WHAT}.\n\nAnd more."
    monkeypatch.setitem(METHODS, "toy", near)


def calibrated(world):
    keys = np.asarray(world.ids)
    return make_method("toy").calibrate_rows(world.graph, world.probabilities, world.labels, world.calibration, keys)


def test_it_is_listed(must_run):
    assert list_methods()["toy"] == f"{WHAT}."
    assert WHAT in must_run("methods").stdout
    rows = json.loads(must_run("methods", "--json").stdout)["methods"]
    assert {"name": "toy", "title": "Toy", "description": f"{WHAT}."} in rows


def test_it_predicts_and_explains_files(must_run, world, tmp_path):
    from napsets.files import read_sets

    target = tmp_path / "sets.parquet"
    answer = json.loads(must_run("predict", *world.files, "--method", "toy", "-o", target, "--json").stdout)
    assert answer["method"] == "toy"
    file = read_sets(target)
    expected = calibrated(world).predict(world.rest, alpha=0.1)
    assert (file.metadata["method"], file.metadata["hops"]) == ("toy", 1)
    assert np.array_equal(file.sets.member, expected.member)
    assert np.array_equal(file.sets.thresholds, expected.thresholds)
    node = world.ids[world.rest[3]]
    answer = json.loads(must_run("inspect", *world.files, "--node", node, "--method", "toy", "--json").stdout)
    assert answer["method"] == "toy"
    assert answer["support"] == expected.support[3]
    assert len(answer["hops"]) == 1


def test_it_stands_on_the_report(must_run, world, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    target = tmp_path / "r.html"
    done = must_run("report", *world.files, "--methods", "split,toy", "-o", target, "--json")
    assert [row["method"] for row in json.loads(done.stdout)["results"]] == ["split", "toy"]
    text = target.read_text(encoding="utf-8")
    assert WHAT in text
    assert 'name="shown" value="Toy"' in text
    specs = json.loads(re.search(r'id="data-specs">(.*?)</script>', text, re.DOTALL)[1])
    rows = {name: specs[name]["datasets"]["rows"] for name in ("front", "gap")}
    assert [row["method"] for row in rows["front"]] == ["Split APS", "Toy"]
    assert {row["method"] for row in rows["gap"]} == {"Split APS", "Toy"}
    assert len(rows["gap"]) == 2 * len(CURVE_ALPHAS)


def test_it_stands_in_the_documentation():
    spec = spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    hooks = module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks.on_page_markdown((ROOT / "docs" / "methods.md").read_text(encoding="utf-8"), page=None)
    assert f"| `toy` | Toy | `APS` × `Hops(hops=1)` × `Nominal` | {WHAT}. |" in page
    for name in METHODS.keys() - {"toy"}:  # which has no page of its own yet
        assert re.search(rf"\| \[`{name}`\]\(methods/[a-z-]+\.md#{ALIASES.get(name, name)}\) \|", page)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_predicts_and_explains_files(must_run, world, tmp_path, name):
    from napsets.files import read_sets

    target = tmp_path / "sets.parquet"
    must_run("predict", *world.files, "--method", name, "-o", target)
    file = read_sets(target)
    assert file.metadata["method"] == name
    node = world.ids[world.rest[3]]
    answer = json.loads(must_run("inspect", *world.files, "--node", node, "--method", name, "--json").stdout)
    assert answer["method"] == name
    assert float(answer["threshold"]) == file.sets.thresholds[3]  # "Infinity" is a float, too


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_of_a_method_makes_a_difference_and_others_are_refused(name):
    values = {
        "hops": (1, 2), "decay": ("hyperbolic", "geometric"), "pool": (1.0, 2.0), "alike": (1.0, 2.0),
        "fallback": ("full", "global"), "level": ("nominal", "exact"), "direction": ("in", "both"),
        "radius": (1.0, 2.0),
    }  # fmt: skip
    for setting, pair in values.items():
        if setting not in settings_of(name):
            if setting != "level":  # which a method that chooses sets itself
                with pytest.raises(InvalidInputError, match="`settings` must be one of"):
                    make_method(name, **{setting: pair[0]})
            continue
        try:
            first, second = (make_method(name, **{setting: value}) for value in pair)
        except InvalidInputError:  # of a value that needs another one
            continue
        assert first != second, setting


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_made_again_from_its_description(name):
    method = make_method(name)
    description = json.loads(json.dumps(method.describe()))
    assert type(method).from_description(description) == method


def test_a_description_of_another_kind_is_refused():
    with pytest.raises(InvalidInputError, match=r"`description` must be what Method.describe returns; .*localiser"):
        Method.from_description(make_method("auto").describe())
