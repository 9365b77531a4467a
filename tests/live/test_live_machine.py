"""Whatever happens to a living graph, its sets are the bits of a batch calibration of what is there."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import napsets as ns
from live_model import CHOOSING, CLASSES, FEATURES, IDS, LEARNING, MEMORY, METHODS, ROWS, STEERED, Dice, Drawn, Model
from napsets.live.alarms import smoothed_p_value
from napsets.live.events import as_ids
from napsets.live.state import in_reference, uniforms
from napsets.methods.method import Method


class Growth(RuleBasedStateMachine):
    """A graph that changes at random, beside its model."""

    methods = METHODS
    alphas = (0.25, 0.5)

    @initialize(data=st.data())
    def begin(self, data):
        self.start(Drawn(data))

    def start(self, draws, method=None):
        """Start with one node; the method is drawn unless it is given."""
        self.draws, self.steered, seed = draws, draws.one(STEERED), draws.one(range(4))
        name, options = draws.one(self.methods) if method is None else method
        options, columns = {k: v for k, v in options.items() if k != "features"}, options.get("features")
        settings = {"alpha": 0.25, "seed": seed, "steered": self.steered, **options}
        self.live = ns.Live(replace(name, seed=seed) if isinstance(name, Method) else name, **settings)
        self.model = Model(self.live._settings.method, seed, options.get("directed", False), columns)
        self.judged, self.compared = [], 0
        self.log = []
        self.add_nodes([IDS[0]])

    def happens(self, *change):
        self.live.update([change])
        self.log.append(change)

    def add_nodes(self, names):
        rows = [self.draws.one(ROWS) for _ in names]
        features = []
        if self.model.columns:
            features = [[np.resize(self.draws.one(FEATURES), self.model.columns) for _ in names]]
            self.model.features |= dict(zip(names, features[0], strict=True))
        self.happens("add_nodes", names, rows, *features)
        self.model.nodes |= dict(zip(names, rows, strict=True))

    @precondition(lambda self: len(self.model.nodes) < len(IDS))
    @rule()
    def nodes_come(self):
        self.add_nodes(self.draws.some([name for name in IDS if name not in self.model.nodes]))

    @rule()
    def edges_come(self):
        ends, count = self.model.nodes, self.draws.one(range(1, 7))
        pairs = [(self.draws.one(ends), self.draws.one(ends)) for _ in range(count)]
        self.happens("add_edges", [a for a, _ in pairs], [b for _, b in pairs])
        order = list if self.model.directed else partial(sorted, key=IDS.index)
        self.model.edges |= {tuple(order(pair)) for pair in pairs if pair[0] != pair[1]}

    @precondition(lambda self: len(self.model.labels) < len(self.model.nodes))
    @rule()
    def labels_come(self):
        names = self.draws.some([name for name in self.model.nodes if name not in self.model.labels])
        for name in names:  # one by one: each may be followed by a refit, and may move a steered level
            label = self.draws.one(range(CLASSES))
            self.judged.append(self.judge(self.live.events + 1, name, label))
            self.model.add_label(name, label)
            self.happens("add_labels", [name], [label])

    def standing(self, calibrated, node):
        """The set of a node that stands at the level of now."""
        level, method = self.live._fold.level, self.model.method
        if level <= 0 or calibrated is None:
            return np.ones(CLASSES, dtype=bool) & (level < 1 or not method.allow_empty)
        if level >= 1 and method.allow_empty:
            return np.zeros(CLASSES, dtype=bool)
        return calibrated.predict(positions=node, alpha=min(level, 1 - 2**-20)).member[0]

    def judge(self, event, name, label):
        """What a label says of the set that stands before it comes."""
        names, calibrated = self.calibrated()
        number = np.array([self.model.arrived])
        apart = self.live._settings.holds_out_labels
        tested = not apart or not in_reference(self.model.seed, number, self.model.share)
        u = float(uniforms(self.model.seed, np.array([event]))[0])
        if calibrated is None:
            covered, size = self.model.judged(name, label, self.standing(None, None))
            return covered, size, u if tested else np.nan
        node = np.array([names.index(name)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ns.NapsetsWarning)
            member = self.standing(calibrated, node)
        score = calibrated.score.at(node, np.array([label]))
        if self.model.method.level.holds_out_labels:
            pairs = [*zip(calibrated.level.shares, calibrated.level.scores, strict=True)]
            own = (calibrated.local.ranks(node, score)[0], score[0])
        else:
            pairs, own = calibrated.scored.reference.scores.tolist(), score[0]
        greater, equal = sum(pair > own for pair in pairs), sum(pair == own for pair in pairs)
        p_value = smoothed_p_value(greater, equal, len(pairs), u) if tested else np.nan
        return *self.model.judged(name, label, member), p_value

    @precondition(lambda self: self.model.labels)
    @rule()
    def labels_go(self):
        names = self.draws.some(self.model.labels, most=2)
        self.happens("remove_labels", names)
        for name in names:
            del self.model.labels[name]

    @precondition(lambda self: self.model.edges)
    @rule()
    def edges_go(self):
        pairs = self.draws.some(sorted(self.model.edges, key=repr), most=3)
        self.happens("remove_edges", [a for a, _ in pairs], [b for _, b in pairs])
        self.model.edges -= set(pairs)

    @precondition(lambda self: len(self.model.nodes) > 3)
    @rule()
    def nodes_go(self):
        names = self.draws.some(self.model.nodes, most=2)
        self.happens("remove_nodes", names)
        for name in names:
            del self.model.nodes[name]
            self.model.labels.pop(name, None)
            self.model.given.pop(name, None)
        self.model.edges = {pair for pair in self.model.edges if not set(pair) & set(names)}

    @rule()
    def the_model_changes_its_mind(self):
        names = self.draws.some(self.model.nodes)
        rows = [self.draws.one(ROWS) for _ in names]
        self.happens("set_probabilities", names, rows)
        self.model.nodes |= dict(zip(names, rows, strict=True))

    @rule()
    def sets_are_given(self):
        names = self.draws.some(self.model.nodes)
        sets = self.live.predict(names, log=True)
        self.log.append(("predict", names))
        given = {name: sets.member[i] for i, name in enumerate(names) if name not in self.model.labels}
        self.model.given |= given

    @rule()
    def refit(self):
        self.happens("refit")

    @rule()
    def it_stops_and_starts_again(self):
        with TemporaryDirectory(dir=MEMORY) as folder:
            store = Path(folder) / "store"
            self.live.save(store)
            if self.draws.one((True, False)):
                (store / "snapshot.npz").unlink()
            with ns.Live.open(store, read_only=True) as again:
                self.live = ns.Live.open(store)
                assert again.status() == self.live.status()

    @rule()
    def what_cannot_be_is_refused(self):
        name = self.draws.one(IDS)
        before = self.live.status()
        there, labelled = name in self.model.nodes, name in self.model.labels
        wrong = [
            ("add_nodes", [name], [[0.2, 0.3, 0.5]]) if there else ("add_edges", [name], [name]),
            ("add_labels", [name], [0]) if labelled or not there else ("add_labels", [name], [CLASSES]),
        ]
        more = [[self.model.features[IDS[0]]]] if self.model.columns else []
        for change in wrong:
            with pytest.raises(ns.InvalidInputError):
                self.live.update([("add_nodes", ["new"], [[0.2, 0.3, 0.5]], *more), change])
        assert self.live.status() == before

    def check_invariants(self, *arguments, **named):
        if hasattr(self, "model"):
            self.compare()

    def calibrated(self):
        """The names of nodes, and their batch calibration under the present map."""
        made = self.live._fold.calibration.map
        self.model.method = made.method
        learned = made.learned
        if learned is not None:  # walks are those of the map; `test_around` compares them with a batch
            slots = self.live._state.names.find(as_ids("ids", list(self.model.nodes)))
            learned = replace(learned, walked=self.live._fold.calibration._around.walked(slots, learned))
        return self.model.calibrated(learned, made.arrived)

    def compare(self):
        names, calibrated = self.calibrated()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ns.NapsetsWarning)
            for alpha in self.alphas:
                sets = self.live.predict(names, alpha)
                if calibrated is None:
                    assert np.isposinf(sets.thresholds).all()
                    assert (self.live.p_values(names) == 1).all()
                    continue
                batch = calibrated.predict(positions=np.arange(len(names)), alpha=alpha)
                for name in ("member", "thresholds", "support", "effective_size", "level", "label_thresholds"):
                    one, other = getattr(sets, name), getattr(batch, name)
                    assert (one is None) == (other is None), name
                    assert one is None or np.array_equal(one, other), name
        record = self.live._fold.record
        for row in range(self.compared, len(self.judged)):
            expected = self.judged[row]
            seen = tuple(record[name][row] for name in ("covered", "size", "p_value"))
            assert seen[:2] == expected[:2]
            assert np.array_equal(seen[2], expected[2], equal_nan=True)
        self.compared = len(self.judged)

    def teardown(self):
        if hasattr(self, "live"):
            again = ns.Live(self.live._settings.method, alpha=0.25, steered=self.steered, directed=self.model.directed)
            for given, changes in groupby(self.log, lambda change: change[0] == "predict"):
                if given:
                    for _, names in changes:
                        again.predict(names, log=True)
                else:
                    again.update(list(changes))  # all of it as one batch
            assert again.status() == self.live.status()
            records = again._fold.record.arrays(), self.live._fold.record.arrays()
            for name in records[0].keys() - {"record_time"}:
                one, other = (record[name] for record in records)
                assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


class Learning(Growth):
    """The same with methods that learn from labels, or choose."""

    methods = LEARNING + CHOOSING


@pytest.fixture
def few_labels(monkeypatch):
    """Let auto choose from six labels on."""
    monkeypatch.setattr("napsets.methods.auto.FEWEST", 6)


def grow(examples, steps, machine=Growth):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=(Phase.reuse, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_sets_are_those_of_a_batch_after_every_step():
    grow(25, 30)


@pytest.mark.usefixtures("few_labels")
def test_sets_are_those_of_a_batch_after_every_step_where_labels_are_evidence():
    grow(25, 30, Learning)


#: Each step of a walk, and how often it is taken.
STEPS = {
    "nodes_come": 3, "edges_come": 4, "labels_come": 6, "labels_go": 1, "edges_go": 1, "nodes_go": 1, "refit": 1,
    "the_model_changes_its_mind": 2, "sets_are_given": 2, "it_stops_and_starts_again": 0.3,
    "what_cannot_be_is_refused": 0.2,
}  # fmt: skip


def walk(method, steps, seed):
    """Take random steps with one method, each compared with a batch; start again after every 50."""
    draws = Dice(seed)
    for start in range(0, steps, 50):
        growth = Growth()
        growth.start(draws, method)
        growth.alphas = (draws.one((0.1, 0.25, 0.5, 0.8)),)
        for _ in range(min(50, steps - start)):
            nodes, model = len(growth.model.nodes), growth.model
            possible = {
                "nodes_come": nodes < 15, "labels_come": len(model.labels) < nodes, "labels_go": bool(model.labels),
                "edges_go": bool(model.edges), "nodes_go": nodes > 3,
            }  # fmt: skip
            names = [name for name in STEPS if possible.get(name, True)]
            (step,) = draws.rng.choices(names, [STEPS[name] for name in names])
            getattr(growth, step)()
            growth.compare()
        growth.teardown()
    return steps


WALKS = METHODS + LEARNING + CHOOSING


@pytest.mark.slow
@pytest.mark.usefixtures("few_labels")
@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
@pytest.mark.parametrize("place", range(len(WALKS)))
def test_sets_are_those_of_a_batch_after_each_of_many_random_steps(place, monkeypatch):
    """With LIVE_STEPS=4600 all methods together take over 10⁵ steps; LIVE_SEED draws others."""
    monkeypatch.setenv("NAPSETS_THREADS", "1")
    steps, seed = int(os.environ.get("LIVE_STEPS", "500")), int(os.environ.get("LIVE_SEED", "0"))
    assert walk(WALKS[place], steps, seed) == steps
