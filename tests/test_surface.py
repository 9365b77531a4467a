"""What the package shows, what importing it costs, and how it behaves in other processes."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import napsets as ns
from napsets.kernels import threads
from oracles import same_bits
from searches import hop_thresholds

SOURCE = str(Path(ns.__file__).parents[1])

EDGES = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
QUESTION = ([0.1, 0.2, 0.3], [1, 2, 3], [0, 5], [1.0, 0.5, 0.25], 0.5)


def in_new_process(code, **environment):
    """Run code in a fresh interpreter; return the JSON that it prints last."""
    path = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


#: Rooms that are public names themselves, and need an extra or are heavy.
ROOMS = {"datasets", "gnn", "monitoring", "report", "spark"}

#: Names that only experts call: they work, and are documented where they live.
EXPERTS = {
    "coverage_gap_bound",
    "aps_scores", "coverage_by_class", "coverage_by_degree", "empty_rate", "expected_homophily", "full_rate",
    "groups_by_class", "groups_by_confidence", "groups_by_degree", "groups_by_neighbourhood", "hop_weights",
    "informed_probabilities", "mean_width", "neighbourhood_partition", "node_homophily", "node_uniforms", "pccv",
    "sbm_favours_naps", "similar_nodes", "singleton_rate", "size_given_coverage", "sscv", "weighted_quantile",
}  # fmt: skip


def test_the_exported_names_are_these_and_no_others():
    assert sorted(ns.__all__) == [
        "APS", "AbsoluteResidual", "Auto", "ByClass", "ByCommunity", "ByDegree", "ByGroup", "ByLabel",
        "CQR", "Calibrated", "Choice", "Clustered", "CovariateShift", "CoverageGap", "Diffused", "Everyone",
        "Exact", "FileFormatError", "Graph", "Hops", "Informed", "InformedIntervals", "InvalidInputError",
        "LabelShift", "Live", "Method", "MissingDependencyError", "NAPS", "NapsetsError",
        "NapsetsWarning", "Nominal", "NormalisedResidual", "NotCalibratedError",
        "PathLengths", "Prediction", "PredictionIntervals", "PredictionSets", "RAPS", "SAPS",
        "Sharpened", "Similarity", "SplitConformal", "Steered", "THR", "Weights",
        "compare", "coverage", "coverage_gap", "datasets", "gnn", "inspect_node", "labels_needed",
        "list_methods", "load", "make_method", "mean_size", "monitoring", "report", "select", "spark",
    ]  # fmt: skip


def test_every_name_of_the_stub_comes_when_it_is_used():
    assert set(ns._MODULES) == {*ns.__all__, *EXPERTS}
    for name in ns._MODULES:
        assert getattr(ns, name) is vars(ns)[name]
    assert dir(ns) == sorted(ns.__all__)
    assert len(dir(ns)) <= 70
    with pytest.raises(AttributeError, match="module 'napsets' has no attribute 'confidence'"):
        _ = ns.confidence


USER = """
import numpy as np
import napsets as ns

graph = ns.Graph.from_edge_index(np.zeros((2, 3), dtype=int), 3)
p, y, labelled = np.ones((3, 2)) / 2, np.zeros(3, dtype=int), np.arange(3)
auto = ns.Auto(alpha=0.1).calibrate(graph, p, y, labelled)
sets = auto.predict([0])
print(sets.member, ns.mean_size(sets), auto.predict([0], alpha=[0.1, 0.2])[0].sizes, auto.choice.reason)
intervals = ns.NAPS(score="cqr").calibrate(graph, p, y, labelled).predict([0])
print(intervals.lower, ns.mean_width(intervals), ns.datasets.load("sbm").labels)
"""

#: With the cache of `make lint`, which has read the package already.
STRICT = ["--strict", "--cache-dir", str(Path(__file__).parents[1] / ".mypy_cache")]


def test_a_type_checker_knows_what_users_write(tmp_path):
    from mypy import api

    wrong = {"ns.Auto(alfa=3)": 'Unexpected keyword argument "alfa"', "sets.membr": 'no attribute "membr"'}
    script = tmp_path / "user.py"
    script.write_text(USER + "\n".join(wrong))
    output, errors, _ = api.run([*STRICT, str(script)])
    assert not errors
    assert output.count(": error: ") == len(wrong), output
    for message in wrong.values():
        assert message in output


#: Files that are typed like a user's own strict project.
FIRST_LINES = [str(path) for path in sorted(Path(__file__).parent.glob("test_first_*.py"))]


def test_strict_type_checkers_accept_the_first_lines_of_users():
    from mypy import api

    output, errors, code = api.run([*STRICT, *FIRST_LINES])
    assert (errors, code) == ("", 0), output


@pytest.mark.slow
def test_pyright_accepts_the_first_lines_of_users_and_the_examples():
    pytest.importorskip("pyright")
    examples = [str(path) for path in sorted((Path(__file__).parents[1] / "examples").rglob("*.py"))]
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *FIRST_LINES, *examples]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout


def test_public_functions_and_classes_say_what_they_do():
    for name in set(ns.__all__) - ROOMS:
        assert (getattr(ns, name).__doc__ or "").strip(), name


def test_arguments_have_the_agreed_names():
    import inspect

    def names(function):
        return list(inspect.signature(function).parameters)

    assert names(ns.NAPS)[:4] == ["hops", "decay", "score", "alpha"]
    assert names(ns.SplitConformal)[:2] == ["score", "alpha"]
    assert names(ns.Auto)[:2] == ["alpha", "prefer"]
    assert names(ns.Method.calibrate)[1:5] == ["graph", "probabilities", "labels", "calibration"]
    assert names(ns.Calibrated.predict)[1:3] == ["nodes", "alpha"]
    assert names(ns.weighted_quantile) == ["scores", "weights", "alpha"]
    assert names(ns.aps_scores) == ["probabilities", "u"]
    assert names(ns.node_uniforms) == ["ids", "seed"]
    assert names(ns.sscv) == ["sets", "labels", "strata", "per"]
    assert names(ns.pccv) == ["sets", "labels", "partition", "per"]
    assert names(ns.neighbourhood_partition) == ["graph", "nodes", "radius", "min_size", "seed"]
    assert names(ns.coverage_gap_bound)[:3] == ["hop_weights", "hop_counts", "hop_tv"]
    assert names(ns.sbm_favours_naps) == ["n", "p_in", "p_out"]
    for name in ("nodes", "member", "thresholds", "support", "effective_size", "alpha"):
        assert name in names(ns.PredictionSets)
    assert names(ns.Graph.from_edge_index)[:2] == ["edge_index", "num_nodes"]


HEAVY = (
    "torch torch_geometric numba llvmlite pyspark pandas polars pyarrow altair jinja2 vl_convert scipy networkx rich "
    "typer"
)


def test_rooms_at_the_edges_import_only_from_those_before_them():
    rooms = ["datasets", "gnn", "report", "spark", "cli"]
    for place, room in enumerate(rooms):
        for path in (Path(SOURCE) / "napsets" / room).rglob("*.py"):
            matches = re.findall(
                r"(?:from|import|import_module\(\")\s*napsets\.(\w+)", path.read_text(encoding="utf-8")
            )
            assert not set(matches) & set(rooms[place + 1 :]), path


def test_importing_napsets_loads_nothing_heavy():
    loaded = in_new_process("import napsets, sys, json; print(json.dumps(sorted(sys.modules)))")
    roots = {name.split(".")[0] for name in loaded}
    assert not roots & set(HEAVY.split())
    # Beside NumPy and the standard library there is only the core itself.
    ours = {name for name in loaded if name.startswith("napsets.")}
    assert not {name for name in ours if name.split(".")[1] in (*ROOMS, "kernels", "cli", "predictions")}


def test_checking_and_decaying_need_no_compiler():
    code = """
import napsets as ns, sys, json
ns.hop_weights("uniform", 2); ns.weighted_quantile([1, 2], [1, 1], 0.5)
ns.node_uniforms([1, 2]); ns.THR().matrix([[1.0]])
try: ns.NAPS().calibrate(None, [[1.0]], [0], [0])
except ns.InvalidInputError: pass
print(json.dumps("numba" in sys.modules))
"""
    assert in_new_process(code) is False


def test_where_no_cache_can_be_written_kernels_still_compile(tmp_path):
    code = f"""
from numba.core import caching
for kind in list(vars(caching).values()):
    if isinstance(kind, type) and issubclass(kind, caching._CacheLocator):
        kind.from_function = classmethod(lambda cls, function, path: None)
import json, napsets as ns
from napsets.kernels import csr
from napsets.kernels import threads
threads.SMALL = -1
graph = ns.Graph.from_edge_index({EDGES.tolist()}, 6)
print(json.dumps([graph.indices.tolist(), len(csr._mirror.signatures), type(csr._mirror._cache).__name__]))
"""
    answer = in_new_process(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert answer == [ns.Graph.from_edge_index(EDGES, 6).indices.tolist(), 1, "NullCache"]
    assert not list(tmp_path.rglob("*.nb?"))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_process_gives_the_same_bits(method, monkeypatch):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    monkeypatch.setattr(threads, "SMALL", -1)  # or neither kernels nor threads would run
    graph = ns.Graph.from_edge_index(EDGES, 6)
    here = hop_thresholds(graph, *QUESTION, threads=2)  # threads have run before the fork
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.apply_async(hop_thresholds, (graph, *QUESTION), {"threads": 2}).get(timeout=120)
    assert same_bits(here, there)


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_graph_stays_immutable_when_it_is_copied_or_sent(clone):
    graph = ns.Graph.from_edge_index(EDGES, 6, directed=True).subgraph([3, 2, 1])
    other = clone(graph)
    assert other == graph
    assert other.directed
    assert other.original_ids.tolist() == [3, 2, 1]
    assert not other.indices.flags.writeable
    assert not other.indptr.flags.writeable


class Lazy:
    """Something with `__array__` and nothing else."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values)


def test_anything_with_array_is_taken_in_place_of_arrays():
    graph = ns.Graph.from_edge_index(Lazy(EDGES), 6)
    p, y, calibration = np.full((6, 2), 0.5), [0, 1, 0, 1, 0, 1], [1, 2, 3]
    one = ns.NAPS().calibrate(graph, p, y, calibration=calibration).predict([0, 5], 0.5)
    other = ns.NAPS().calibrate(graph, Lazy(p), Lazy(y), calibration=Lazy(calibration)).predict(Lazy([0, 5]), 0.5)
    assert np.array_equal(one.member, other.member)
    assert ns.coverage(other, Lazy(y)) == ns.coverage(one, y)
    assert ns.weighted_quantile(Lazy([1.0, 2.0]), Lazy([1, 1]), 0.5) == 2.0


def test_a_method_from_any_import_gives_a_verdict():
    code = "import napsets as ns; m = ns.SplitConformal().calibrate([[0.5, 0.5]] * 40, [0, 1] * 20, range(30))"
    done = subprocess.run([sys.executable, "-c", f"{code}; print(m.verdict())"], capture_output=True, text=True)
    assert done.stdout.startswith("Split APS: average set size"), done.stderr
