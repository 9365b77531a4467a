"""What random steps of a living graph are drawn from, and the same graph as a batch would be given it."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

import napsets as ns
from napsets.features import check_features
from napsets.levels import Exact
from napsets.live.state import in_reference
from napsets.localisers import Everyone, Hops
from napsets.methods.data import CalibrationData
from napsets.methods.method import Method
from napsets.scores import APS, THR, ByLabel, Informed, Sharpened

CLASSES = 3
METHODS = [
    ("split", {}),
    ("split", {"score": "thr", "allow_empty": False}),
    ("naps", {}),
    ("naps", {"pool": 5.0}),
    ("naps", {"hops": 1, "pool": 2.0, "alike": 3.0, "fallback": "global"}),
    ("naps-h", {"hops": 3}),
    ("naps-exact", {}),
    ("naps-exact", {"pool": 0.0}),
    ("naps-exact", {"hops": 1, "alike": 4.0}),
    ("split", {"level": "exact"}),
    ("naps", {"directed": True, "pool": 2.0}),
    ("naps-exact", {"directed": True}),
]
#: Methods that learn from labels: fitted again when the rule of the log says so, and compared with a batch that takes
#: what was fitted.
LEARNING = [
    (ns.make_method("informed"), {}),
    (ns.make_method("informed", score="thr", allow_empty=False), {}),
    (Method(Informed(Sharpened(APS(), 1.6)), Everyone(), Exact()), {}),
    (Method(ByLabel(Informed(Sharpened(APS(), 2.0)), 0.5), Everyone(), Exact()), {}),
    (Method(ByLabel(Informed(THR()), 0.25), Everyone(), Exact(0.3), allow_empty=False), {}),
    (Method(ByLabel(APS(), 0.5), Everyone(), Exact()), {}),
    (Method(ByLabel(Informed()), Hops(2, pool=2.0), Exact()), {}),
    (Method(Informed(), Hops(1, alike=3.0), Exact()), {}),
    (ns.make_method("informed"), {"directed": True}),
    (ns.make_method("informed"), {"features": 2}),
    (Method(ByLabel(Informed(THR()), 0.25), Hops(1, alike=3.0), Exact(0.7)), {"features": 103}),
]
CHOOSING = [("auto", {}), ("auto-small", {}), ("auto", {"features": 3})]
#: 1 and "1" are two nodes; texts may hold anything, also what NumPy would cut off.
IDS = [0, 1, "1", "", "a\0", "a", "ä 🙂", -7, 2**40, *range(10, 24)]
#: Few values, so that scores are tied.
ROWS = [(0.5, 0.25, 0.25), (0.25, 0.25, 0.5), (1.0, 0.0, 0.0), (0.1, 0.2, 0.7), (0.3, 0.4, 0.3)]
#: Features of nodes, repeated to the columns that there are: some are equally similar, some similar to none.
FEATURES = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (-2.0, 0.5)]
#: Where files need not wait for a disk.
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
STEERED = [None, None, None, ns.Steered(), ns.Steered("aci", rate=0.5)]


class Drawn:
    """What steps draw from Hypothesis."""

    def __init__(self, data):
        self.data = data

    def one(self, values):
        return self.data.draw(st.sampled_from(list(values)))

    def some(self, values, most=4):
        return self.data.draw(st.lists(st.sampled_from(list(values)), min_size=1, max_size=most, unique=True))


class Dice:
    """The same from a generator of random numbers, in much less time."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def one(self, values):
        return self.rng.choice(list(values))

    def some(self, values, most=4):
        values = list(values)
        return self.rng.sample(values, self.rng.randint(1, min(most, len(values))))


def present(live):
    """The slots of a living graph that hold a node, and their batch calibration under its map."""
    calibration, state = live._fold.calibration, live._state
    (data, slots), made = state.batch(), calibration.map
    parts = [np.searchsorted(slots, part) for part in made.parts(state)]
    learned = made.learned
    if learned is not None:
        learned = replace(learned, walked=calibration._around.walked(slots, learned))
    scored = data.scored_in_parts(made.method.score, made.method.seed, *parts, learned=learned)
    return slots, replace(made.method.on(scored), choice=made.choice)


class Model:
    """A living graph in plain Python: what is there, and how a batch would calibrate it."""

    def __init__(self, method, seed, directed, columns=None):
        self.method, self.seed, self.directed, self.columns = method, seed, directed, columns
        self.share = getattr(getattr(method, "level", None), "share", 0.5)
        self.nodes, self.edges, self.labels, self.arrived = {}, set(), {}, 0
        self.features = {}
        self.given = {}  # sets that were logged
        self.last = None

    def judged(self, name, label, sets):
        """Whether the set that was logged last, or that stands now, has the label, and its size."""
        member = self.given.pop(name, sets)
        return bool(member[label]), int(member.sum())

    def add_label(self, name, label):
        self.labels[name] = (label, self.arrived)
        self.arrived += 1

    def calibrated(self, learned=None, arrived=None):
        """Return the names of nodes and their calibration under a map, or None where there is none.

        The map is what was `learned` and how many labels had `arrived` at the last refit. The last calibration is kept
        while nothing changes.
        """
        state = self.method, tuple(self.nodes.items()), frozenset(self.edges), tuple(self.labels.items()), arrived
        if self.last is None or self.last[0] != state or self.last[1] is not learned:
            self.last = state, learned, self.calibrate(learned, arrived)
        return self.last[2]

    def calibrate(self, learned, arrived):
        """Calibrate what is there as a batch; reference labels that came after the last refit are not there."""
        names = list(self.nodes)
        place = {name: i for i, name in enumerate(names)}
        ends = np.array([[place[a], place[b]] for a, b in self.edges], dtype=np.int64).reshape(-1, 2).T
        truth = np.array([self.labels.get(name, (-1, 0))[0] for name in names])
        known = np.flatnonzero(truth >= 0)
        numbers = np.array([self.labels[names[i]][1] for i in known], dtype=np.int64)
        reference, held_out = np.ones(known.size, dtype=bool), np.zeros(known.size, dtype=bool)
        if self.method.level.holds_out_labels:
            held_out = ~in_reference(self.seed, numbers, self.share)
            reference = ~held_out & (numbers < (0 if arrived is None else arrived))
        if not reference.any():
            return names, None
        ids = np.empty(len(names), dtype=object)
        ids[:] = names
        data = CalibrationData(
            ns.Graph.from_edge_index(ends, len(names), directed=self.directed),
            np.array(list(self.nodes.values())),
            truth,
            known,
            ids,
            features=check_features("features", [self.features[name] for name in names]) if self.columns else None,
        )
        return names, self.method.on(
            data.scored_in_parts(self.method.score, self.seed, known[reference], known[held_out], learned=learned)
        )
