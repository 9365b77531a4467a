"""Live: a graph that keeps changing, with sets that hold now."""

from __future__ import annotations

import inspect
import logging
import math
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    check_alpha,
    check_count,
    check_flag,
    check_integers,
    shown,
)
from napsets.errors import InvalidInputError
from napsets.graph import as_graph
from napsets.live.calibration import Calibration
from napsets.live.draft import Draft, Repeated
from napsets.live.events import Change, as_ids
from napsets.live.history import History
from napsets.live.monitoring import Monitor
from napsets.live.record import Record
from napsets.live.settings import LiveSettings
from napsets.live.snapshot import Snapshot, read_snapshot, write_snapshot
from napsets.live.state import State, draw_order, in_reference, uniforms
from napsets.live.store import Store, packed, recover
from napsets.methods.auto import AutoMethod
from napsets.methods.data import CalibrationData
from napsets.methods.method import Method
from napsets.predictions import PredictionSets

__all__ = ["Live"]

Array = npt.NDArray[Any]

log = logging.getLogger("napsets")

#: Events that a restart may have to fold again, at the least, before a snapshot is written.
_TAIL = 50_000


class Live:
    """A graph to which nodes, edges and labels keep coming, and the prediction sets of its nodes now.

    Every call that changes something is checked in full before anything changes, entered in the log, and then takes
    effect. The sets are, bit for bit, those of a batch calibration of the present graph, outputs and labels, with the
    labels split by the order of their arrival.

    Parameters
    ----------
    method : str, Method or predictor
        The name of a method with its settings as further arguments (``Live("naps", pool=10)``), a `Method`, or a
        predictor such as ``ns.NAPS(pool=10)``.
    alpha : float
        The error rate at which sets are judged, and given where `predict` is told no other.
    seed : int
        Seed of the nodes' uniform numbers, of the split of labels, and of what breaks ties.
    class_names : sequence of str, optional
        What the classes are called; labels may then be names.
    directed : bool
        Whether edges have a direction.
    **options
        Settings of a method that is given by its name.

    Examples
    --------
    >>> import napsets as ns
    >>> live = ns.Live("split", alpha=0.4)
    >>> live.add_nodes(["ann", "bob", "cy"], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> live.add_edges(["ann"], ["bob"])
    >>> live.add_labels(["ann", "bob"], [0, 1])
    >>> live.predict(["cy"]).support
    array([2])
    """

    def __init__(
        self,
        method: Any = "split",
        alpha: float = 0.1,
        seed: int = 0,
        class_names: Sequence[str] | None = None,
        *,
        directed: bool = False,
        **options: Any,
    ) -> None:
        settings = LiveSettings.check(method, alpha, seed, class_names, directed, options)
        self._attach(Store.create(settings.describe()), settings)

    def _attach(self, store: Store, settings: LiveSettings) -> None:
        """Start from a log: fold all that it holds."""
        self._settings = settings
        self._store = store
        #: Whoever changes something holds the first, and the second while the state is read or changed: sets can be
        #: asked for while a batch is on its way to the disk.
        self._writing, self._busy = threading.RLock(), threading.RLock()
        snapshot = read_snapshot(store.path)
        with store.one_moment():
            store.refuse_lost(snapshot)
            try:
                self._begin(snapshot)
            except Exception:  # the log has all that a snapshot holds
                snapshot = None
                self._begin(None)
            for row in store.rows():
                if snapshot is not None and row.last <= snapshot.events:
                    if row.last == snapshot.events and row.checksum == snapshot.checksum:
                        snapshot = None  # which has all that came so far
                    continue
                if snapshot is not None:  # which is not of this log
                    break
                self._fold(row.first, row.change())
            if snapshot is not None:
                self._begin(None)
                for row in store.rows():
                    self._fold(row.first, row.change())
        self._kept = self._state.events if self._state.events and store.path else 0

    def _begin(self, snapshot: Snapshot | None) -> None:
        """Take the state of a snapshot, or an empty one."""
        settings = self._settings
        self._state = State(settings.seed, settings.share, settings.directed, settings.class_names)
        self._record = Record()
        self._monitor = Monitor(settings.alpha)
        self._history = History(settings.alpha)
        self._calibration = Calibration(settings, self._state)
        if snapshot is not None:
            snapshot.restore(self._state, self._record)
            self._calibration.take(snapshot.arrays)

    # -- from what is there already ------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        graph: Any,
        probabilities: Any = None,
        labels: Any = None,
        calibration: ArrayLike | None = None,
        *,
        ids: Any = None,
        method: Any = "split",
        alpha: float = 0.1,
        seed: int = 0,
        class_names: Sequence[str] | None = None,
        **options: Any,
    ) -> Live:
        """Start from a graph that is there already; its labels count as arrived in an order drawn from the seed.

        Parameters
        ----------
        graph : Graph or another library's, or path
            As in `NAPS.calibrate`: a `Graph`, a PyTorch Geometric ``Data``, a NetworkX graph, a SciPy sparse matrix, an
            ``edge_index``; or a file of edges, beside files of probabilities and labels.
        probabilities : array of shape (nodes, classes), or path
            What the model says.
        labels : array of shape (nodes,), or path
            Integers, −1 where unknown. Of a ``Data``, its ``y`` by default.
        calibration : array, optional
            Node indices or a boolean mask: whose labels count as arrived; by default all that are known.
        ids : array of integers or strings, optional
            What the nodes are called; by default 0..n−1, and in files what stands there.
        method, alpha, seed, class_names, options
            As in `Live`.
        """
        if isinstance(graph, str | os.PathLike):
            from napsets.files.inputs import read_inputs

            inputs = read_inputs(graph, probabilities, labels, predicting=False)
            graph, probabilities, labels, ids = (
                inputs.graph,
                inputs.outputs,
                inputs.truth,
                inputs.ids.values.to_pylist(),
            )
            class_names = inputs.class_names if class_names is None else class_names
        if labels is None:
            labels = getattr(graph, "y", None)
            if labels is None:
                raise InvalidInputError("`labels` must be given, −1 where unknown; got None")
        if calibration is None:
            calibration = PredictionSets.known(check_integers("labels", labels))
        data = CalibrationData.check(graph, probabilities, labels, calibration, class_names=class_names)
        rows = as_graph(data.graph)
        live = cls(method, alpha, seed, data.class_names, directed=rows.directed, **options)
        names = as_ids("ids", np.arange(rows.num_nodes) if ids is None else ids)
        live.add_nodes(names, data.outputs)
        source = np.repeat(np.arange(rows.num_nodes), rows.degrees)
        once = slice(None) if rows.directed else source < rows.indices
        live.add_edges(names[source[once]], names[rows.indices[once]])
        del source, once
        chosen = data.calibration[draw_order(live._settings.seed, names[data.calibration])]
        live.add_labels(names[chosen], data.truth[chosen])
        return live

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> Live:
        """Open what `save` wrote, and stay attached: every change is on the disk before its call returns.

        Parameters
        ----------
        path : str or path
            The folder.
        read_only : bool
            Refuse changes, and leave the folder to its one writer.
        """
        store = Store.open(path, read_only=check_flag("read_only", read_only))
        try:
            live = cls.__new__(cls)
            live._attach(store, LiveSettings.from_description(store.settings))
        except BaseException:
            store.close()
            raise
        return live

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write log and state to a new folder, whole or not at all; this object stays where it is."""
        with self._writing:
            folder = self._store.copy_to(path)
            write_snapshot(folder, self._store.checksum, self._state, self._record, self._calibration.arrays())

    def _keep(self, events: int) -> None:
        """Write a snapshot, where there is a folder and so many events have come since the last.

        The log has all that it holds: where the disk is full, the next start takes longer, and nothing else.
        """
        state, store = self._state, self._store
        if store.path is not None and not store.read_only and state.events - self._kept >= events:
            self._kept = state.events
            try:
                write_snapshot(store.path, store.checksum, state, self._record, self._calibration.arrays())
            except OSError as error:
                log.warning("no snapshot of %s could be written (%s); the log is whole", store.path, error)

    #: Copy the events before a log's damage to a new folder.
    recover = staticmethod(recover)

    def close(self) -> None:
        """Let go of the folder, so that another process may write to it."""
        with self._writing, self._busy:
            if self._store.is_open:
                try:
                    self._keep(1)
                finally:
                    self._store.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what happens --------------------------------------------------------------------------------------------------

    def add_nodes(self, ids: Any, probabilities: ArrayLike, *, key: str | None = None) -> None:
        """Add nodes: what each is called (an integer or a text), and what the model says of it.

        Parameters
        ----------
        ids : array of integers or strings
            New ids; 1 and "1" are two.
        probabilities : array of shape (nodes, classes)
            One row per node.
        key : str, optional
            A name for this batch: a batch with a name that is in the log already does nothing, as after a lost answer.
        """
        self._do("add_nodes", ids, probabilities, key=key)

    def add_edges(self, source: Any, target: Any, *, key: str | None = None) -> None:
        """Add edges between nodes that are there; one that is there already changes nothing."""
        self._do("add_edges", source, target, key=key)

    def add_labels(self, ids: Any, labels: ArrayLike, *, key: str | None = None) -> None:
        """Add labels in the order in which they came; each first judges the set that stood before."""
        self._do("add_labels", ids, labels, key=key)

    def set_probabilities(self, ids: Any, probabilities: ArrayLike, *, key: str | None = None) -> None:
        """Replace what the model says of nodes."""
        self._do("set_probabilities", ids, probabilities, key=key)

    def remove_labels(self, ids: Any, *, key: str | None = None) -> None:
        """Forget labels; what they said of earlier sets stays in the record."""
        self._do("remove_labels", ids, key=key)

    def remove_nodes(self, ids: Any, *, key: str | None = None) -> None:
        """Forget nodes, with their edges and labels."""
        self._do("remove_nodes", ids, key=key)

    def remove_edges(self, source: Any, target: Any, *, key: str | None = None) -> None:
        """Remove edges, all of which must be there."""
        self._do("remove_edges", source, target, key=key)

    def refit(self, *, key: str | None = None) -> None:
        """Choose and fit anew now, instead of when the reference has grown by a quarter."""
        self._do("refit", key=key)

    def update(self, changes: Sequence[tuple[Any, ...]], *, key: str | None = None) -> bool:
        """Do several things as one batch, all of them or none.

        Parameters
        ----------
        changes : sequence of tuples
            The name of a method of this class that changes something, and its arguments:
            ``[("add_nodes", ids, probabilities), ("add_edges", source, target)]``.
        key : str, optional
            As in `add_nodes`.

        Returns
        -------
        bool
            Whether anything was done; False where the key is in the log already.
        """
        if not (key is None or isinstance(key, str)):
            raise InvalidInputError(f"`key` must be text; got {shown(key)}")
        with self._writing:
            with self._busy:
                before = [] if key is None else self._store.batch(key)
                draft = Repeated(self._state) if before else Draft(self._state)
                for change in _listed(changes):
                    name, arguments = change[0], change[1:]
                    action = getattr(draft, name, None) if isinstance(name, str) and not name.startswith("_") else None
                    if not callable(action):
                        raise InvalidInputError(
                            f"`changes` must name methods of Live that change something; got {name!r}"
                        )
                    try:
                        inspect.signature(action).bind(*arguments)
                    except TypeError as error:
                        raise InvalidInputError(f"`changes` must have the arguments of {name}: {error}") from error
                    action(*arguments)
                if before and before != packed(draft.changes):
                    raise InvalidInputError(f"`key` must be new, or that of the same batch; {key!r} is that of another")
            if not before:
                self._commit(draft.changes, key)
            return not before

    def _do(self, name: str, *arguments: Any, key: str | None) -> None:
        self.update([(name, *arguments)], key=key)

    def _commit(self, changes: list[Change], key: str | None) -> None:
        """Enter a batch that was checked in the log, and let it take effect."""
        if changes:
            first = self._store.append(changes, key)
            try:
                with self._busy:
                    for change in changes:
                        self._fold(first, change)
                        first += len(change)
            except BaseException:
                self._store.close()  # the log is ahead of the state; opening it again brings them together
                raise
            self._keep(max(_TAIL, self._state.events // 4))

    # -- the fold ------------------------------------------------------------------------------------------------------

    def _fold(self, first: int, change: Change) -> None:
        """Let events take effect, the first of which has a number; the state depends on nothing else."""
        state, columns = self._state, change.columns
        slots = None if change.kind == "add nodes" or "ids" not in columns else state.names.find(columns["ids"])
        if slots is None:
            self._fold_graph(change)
        elif change.kind == "set probabilities":
            self._set_outputs(slots, columns["probabilities"])
        elif change.kind == "add labels":
            self._add_labels(first, slots, columns["labels"])
        else:
            for slot in slots.tolist():
                if state.labels.values[slot] >= 0:
                    self._calibration.leave(slot)
                    state.remove_label(slot)
                if change.kind == "remove nodes":
                    neighbours = state.adjacency.neighbours(slot).astype(np.int64)
                    self._calibration.touch(neighbours, np.array([slot]))
                    state.adjacency.remove_node(slot)
                    self._calibration.touch(neighbours, np.array([slot]))
                    state.remove_node(slot)
        state.events = first + len(change) - 1

    def _fold_graph(self, change: Change) -> None:
        """Let nodes or edges come, or edges go."""
        state, columns, calibration = self._state, change.columns, self._calibration
        if change.kind == "add nodes":
            state.add_nodes(columns["ids"], columns["probabilities"])
            calibration.grow(columns["ids"].size)
        elif change.kind == "refit":
            calibration.refit()
        else:
            ends = self._slots(change)
            if change.kind == "add edges":
                state.adjacency.add_edges(*ends)
                calibration.touch(*ends)
            else:
                calibration.touch(*ends)
                state.adjacency.remove_edges(*ends)
                calibration.touch(*ends)

    def _set_outputs(self, slots: IntArray, probabilities: Array) -> None:
        """Replace what the model says: labels count with their new scores."""
        state = self._state
        labelled = slots[state.labels.values[slots] >= 0].tolist()
        for slot in labelled:
            self._calibration.leave(slot)
        state.outputs.values[slots] = probabilities  # type: ignore[union-attr]
        self._calibration.see_outputs(slots)
        for slot in labelled:
            self._calibration.enter(slot)

    def _slots(self, change: Change) -> tuple[IntArray, IntArray]:
        names = self._state.names
        return names.find(change.columns["source"]), names.find(change.columns["target"])

    def _add_labels(self, first: int, slots: IntArray, labels: IntArray) -> None:
        """Let each label judge the set that stood before it, and then count."""
        state, calibration, settings = self._state, self._calibration, self._settings
        numbers = state.arrived_labels + np.arange(slots.size)
        reference = in_reference(settings.seed, numbers, settings.share)
        tested = ~reference if settings.keeps_apart else np.ones(slots.size, dtype=bool)
        us = uniforms(settings.seed, first + np.arange(slots.size)).tolist()
        judgements = calibration.judge(slots, labels, settings.alpha)
        for place, (covered, size, score) in enumerate(judgements):
            slot, p_value = int(slots[place]), math.nan
            delay = state.arrived_labels - int(state.arrivals.values[slot])
            judges_after = calibration.judges_after
            if tested[place] and not judges_after:
                p_value = calibration.p_value(slot, score, us[place])
            state.add_label(slot, int(labels[place]), bool(reference[place]))
            calibration.enter(slot, score)
            if tested[place] and judges_after:
                p_value = calibration.p_value(slot, score, us[place])
            self._record.add((first + place, covered, size, p_value, delay))

    # -- what is asked -------------------------------------------------------------------------------------------------

    def predict(self, ids: Any = None, alpha: float | None = None) -> PredictionSets:
        """Return the prediction sets of nodes as everything stands now.

        Parameters
        ----------
        ids : array of integers or strings, optional
            The nodes; by default all without a label. A node's own label never counts for its own set.
        alpha : float, optional
            Error rate; by default that of the living graph.
        """
        with self._busy:
            rate = self._settings.alpha if alpha is None else check_alpha(alpha)
            state = self._state
            if state.outputs is None:
                raise InvalidInputError("`ids` must be nodes of the graph; it has none yet")
            if ids is None:
                slots = np.flatnonzero(state.labels.values == -1)
                names = state.names.of(slots)
            else:
                names = as_ids("ids", ids)
                slots = state.names.known("ids", names)
            sets = self._calibration.predict(slots, rate)
            return sets.with_names(state.names.size, names.astype(str), state.class_names)

    def _one(self, name: str, id: Any) -> int:
        slots = self._state.names.known(name, as_ids(name, id))
        if slots.size != 1:
            raise InvalidInputError(f"`{name}` must be one node; got {slots.size}")
        return int(slots[0])

    def inspect(self, id: Any, alpha: float | None = None) -> Any:
        """Take the set of one node apart, as `inspect_node` does."""
        from napsets.advice.inspection import inspect_node

        with self._busy:
            slot = np.array([self._one("id", id)])
            present = self._calibration.present()
            if present is None:
                raise InvalidInputError("`id` can be inspected once there is a label; there is none yet")
            rate = self._settings.alpha if alpha is None else check_alpha(alpha)
            batch, calibrated = present
            return inspect_node(calibrated, position=int(np.searchsorted(batch.slots, slot[0])), alpha=rate)

    def __contains__(self, id: object) -> bool:
        with self._busy:
            return bool((self._state.names.find(as_ids("id", id)) >= 0).all())

    def ids(self, *, unlabelled: bool = False) -> list[Any]:
        """Return the ids of all nodes, or of those without a label, in the order of their arrival."""
        labels = self._state.labels.values
        names: list[Any] = self._state.names.of(np.flatnonzero(labels == -1 if unlabelled else labels > -2)).tolist()
        return names

    @property
    def method(self) -> Method | AutoMethod:
        """What the sets are made by."""
        return self._settings.method

    def p_values(self, ids: Any) -> FloatArray:
        """Return the p-value of every candidate of nodes: it is in the set at alpha exactly where this exceeds alpha.

        Parameters
        ----------
        ids : array of integers or strings
            The nodes.

        Returns
        -------
        numpy.ndarray
            Shape (nodes, classes).
        """
        with self._busy:
            return self._calibration.p_values(self._state.names.known("ids", as_ids("ids", ids)))

    def labelled_around(self, id: Any, most: int = 50) -> list[tuple[Any, int, int]]:
        """Return labelled nodes one and two hops from a node, at most so many: id, label and hops, nearest first."""
        most = check_count("most", most)
        with self._busy:
            state = self._state
            slot = self._one("id", id)
            near, seen = state.adjacency.neighbours(slot).tolist(), {slot}
            around: list[tuple[Any, int, int]] = []
            for hops in (1, 2):
                for other in near:
                    if other not in seen and state.labels.values[other] >= 0 and len(around) < most:
                        around.append((state.names.of(np.array([other]))[0], int(state.labels.values[other]), hops))
                    seen.add(other)
                if len(around) == most:
                    break
                near = [far for other in near[:most] for far in state.adjacency.neighbours(other)[: 20 * most].tolist()]
            return around

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """What the classes are called."""
        return self._settings.class_names

    def check_writable(self) -> None:
        """Raise what the disk raises where the log cannot be written to now."""
        with self._writing:
            self._store.check_writable()

    @property
    def is_open(self) -> bool:
        """Whether the log can still be written to."""
        return self._store.is_open

    @property
    def events(self) -> int:
        """How many events the log holds."""
        return self._state.events

    def history(self) -> dict[str, list[float | None]]:
        """Return how the sets have done over time, a few hundred points in columns; see `History.columns`."""
        with self._busy:
            return self._history.columns(self._record)

    def status(self) -> dict[str, Any]:
        """Return how many of what there are, and how the sets have done so far, as plain JSON."""
        with self._busy:
            state = self._state
            return {
                "events": state.events,
                "nodes": state.present,
                "edges": state.adjacency.edges if state.adjacency.directed else state.adjacency.edges // 2,
                "labels": sum(state.sizes),
                "reference": state.sizes[0],
                "level": state.sizes[1],
                "alpha": self._settings.alpha,
                "judged": self._record.catch_up(self._monitor).status(),
            }

    def __repr__(self) -> str:
        state = self._state
        return (
            f"Live({state.present:,} nodes, {state.adjacency.edges:,} stored edges, {sum(state.sizes):,} labels, "
            f"{state.events:,} events, {self._settings.method!r})"
        )


def _listed(changes: Any) -> list[tuple[Any, ...]]:
    """Return changes as tuples that are not empty."""
    try:
        listed = [tuple(change) for change in changes]
    except TypeError:
        listed = [()]
    if not all(listed):
        raise InvalidInputError(
            f"`changes` must be a sequence of tuples, a name and its arguments; got {type(changes).__name__}"
        )
    return listed
