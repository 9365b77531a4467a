"""The examples in the docstrings of the core run and give what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import napsets

ROOT = Path(napsets.__file__).parent
CORE = sorted(
    f"napsets.{path.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}"
    for room in (".", "checks", "kernels", "scores", "localisers", "methods", "evaluation", "advice", "live")
    for path in ROOT.joinpath(room).glob("*.py")
    if not path.name.startswith("__")
)


@pytest.mark.parametrize("name", CORE)
def test_the_examples_of(name):
    outcome = doctest.testmod(import_module(name))
    assert outcome.failed == 0


def test_what_people_call_first_has_an_example():
    finder = doctest.DocTestFinder()
    shown = {test.name for name in CORE for test in finder.find(import_module(name)) if test.examples}
    for name in ("graph.Graph.from_edge_index", "scores.rows.aps_scores",
                 "quantile.weighted_quantile", "methods.named.NAPS", "localisers.hops.hop_weights",
                 "advice.theory.sbm_favours_naps",
                 "advice.theory.coverage_gap_bound", "randomness.node_uniforms"):  # fmt: skip
        assert f"napsets.{name}" in shown
