"""The examples run, and their sets cover about as often as they say."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from scipy.stats import betabinom

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *arguments):
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(*arguments)


def covered(printed):
    return float(re.search(r"coverage (\d\.\d+)", printed)[1])


def band(apart, tested, alpha=0.1, level=1e-4):
    """Between what coverage lies but once in 1/level draws, if labels are random."""
    place = -(-(apart + 1) * 9 // 10)
    law = betabinom(tested, place, apart + 1 - place)
    return (law.ppf(level / 2) - 1) / tested, law.ppf(1 - level / 2) / tested


@pytest.mark.gnn
def test_a_pyg_model_with_masks_gets_its_sets(capsys):
    pytest.importorskip("torch_geometric")
    run("pyg_masks", 20)
    low, high = band(apart=375, tested=750)
    assert low <= covered(capsys.readouterr().out) <= high


def test_a_model_of_another_framework_gets_its_sets(capsys):
    pytest.importorskip("sklearn")
    run("another_framework")
    printed = capsys.readouterr().out
    low, high = band(apart=200, tested=600)
    assert low <= covered(printed) <= high
    assert re.search(r"user-\d+ works in \w+", printed)
