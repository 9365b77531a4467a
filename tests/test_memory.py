"""Building a graph takes little more memory than the graph."""

from __future__ import annotations

import sys

import pytest

from test_surface import in_new_process

BUILD = """
import json, numpy as np, napsets as ns

def status(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))

def edges(m, n):
    pairs = np.random.default_rng(0).integers(n, size=(m, 2), dtype=np.int64)
    return pairs.T if {strided} else np.ascontiguousarray(pairs.T)

from napsets.kernels import threads
threads.SMALL = -1
ns.Graph.from_edge_index(edges(20_000, 5), 5, directed={directed})  # compile first
given = edges(5_000_000, 500_000)
open("/proc/self/clear_refs", "w").write("5")  # forget the highest memory so far
before = status("VmRSS")
graph = ns.Graph.from_edge_index(given, 500_000, directed={directed})
print(json.dumps([status("VmHWM") - before, graph.indptr.nbytes + graph.indices.nbytes, graph.num_edges]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the highest memory can be reset on Linux only")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("strided", [False, True])
def test_five_million_edges_need_at_most_three_times_the_memory_of_their_graph(directed, strided):
    extra, result, stored = in_new_process(BUILD.format(directed=directed, strided=strided))
    assert stored > 4_900_000 * (1 if directed else 2)
    assert extra <= 3 * result
