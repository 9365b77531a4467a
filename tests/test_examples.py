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


@pytest.mark.gnn
def test_a_model_that_the_library_trains_gets_its_sets(capsys):
    pytest.importorskip("torch_geometric")
    run("train_and_predict", 3)
    low, high = band(apart=3000, tested=6000)
    assert low <= covered(capsys.readouterr().out) <= high


def test_a_model_of_another_framework_gets_its_sets(capsys):
    pytest.importorskip("sklearn")
    run("another_framework")
    printed = capsys.readouterr().out
    low, high = band(apart=200, tested=600)
    assert low <= covered(printed) <= high
    assert re.search(r"user-\d+ works in \w+", printed)


@pytest.fixture
def pyg_module(monkeypatch):
    pytest.importorskip("torch_geometric")
    monkeypatch.syspath_prepend(EXAMPLES / "pyg")
    import conformal_sets

    return conformal_sets


@pytest.mark.parametrize("diffusion", [0.0, 0.5])
@pytest.mark.parametrize("score", ["aps", "thr"])
def test_the_module_for_pyg_gives_the_sets_of_napsets(pyg_module, score, diffusion):
    import numpy as np
    import torch

    import napsets as ns
    from worlds import make_ring

    world = make_ring(0)
    graph, p, y = world["graph"], world["probabilities"], world["labels"]
    known = np.isin(np.arange(y.size), world["calibration"])
    row = np.repeat(np.arange(y.size), graph.degrees)
    edge_index = torch.tensor(np.stack([row, graph.indices.astype(np.int64)]))
    u = torch.tensor(ns.node_uniforms(np.arange(y.size)))
    tensors = torch.tensor(p), torch.tensor(y), torch.tensor(known)
    module = pyg_module.ConformalSets(0.1, score, diffusion).calibrate(*tensors, edge_index, u)
    method = ns.Method(ns.Diffused(score, diffusion) if diffusion else score)
    sets = method.calibrate(graph, p, y, known).predict(alpha=0.1)
    assert np.array_equal(module(tensors[0], edge_index, u).numpy()[~known], sets.member)


def test_the_module_for_pyg_passes_its_own_tests(tmp_path):
    pytest.importorskip("torch_geometric")
    import subprocess
    import sys

    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "pyg")]
    done = subprocess.run(arguments, cwd=EXAMPLES / "pyg", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
