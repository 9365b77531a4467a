"""Live: a graph that keeps changing, and its present prediction sets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, check_integers
from napsets.checks.values import check_alpha, check_flag, shown
from napsets.errors import InvalidInputError
from napsets.features import Features
from napsets.graph import as_graph
from napsets.live.events import Change, as_ids
from napsets.live.explanation import JsonObject, explain
from napsets.live.logged import Logged
from napsets.live.monitoring import ALARMS
from napsets.live.settings import LiveSettings
from napsets.live.state import NodeId, draw_order
from napsets.live.steering import Steered
from napsets.live.store import Store
from napsets.methods.auto import Auto
from napsets.methods.data import CalibrationData
from napsets.methods.method import Method
from napsets.predictions import PredictionSets


class Live(Logged):
    """A graph to which nodes, edges and labels keep arriving, and the present prediction sets of its nodes.

    Every change is checked in full, entered in the log, and then takes effect. The sets are, bit for bit, those of a
    batch calibration of the present graph and outputs. The labels are split by the order of their arrival: those held
    out for the level count at once, and those of the reference from the next refit on.

    Parameters
    ----------
    method : str, Method or predictor
        The name of a method with its settings as further arguments (``Live("naps", pool=10)``), a `Method`, or a
        predictor such as ``ns.NAPS(pool=10)``.
    alpha : float
        The error rate at which sets are judged, and the default of `predict`.
    seed : int
        Seed of the nodes' uniform numbers, of the split of labels, and of tie-breaking.
    class_names : sequence of str, optional
        The names of the classes; labels may then be names.
    directed : bool
        Whether edges have a direction.
    steered : Steered, optional
        A level that follows drift, so that the long-run share of misses is alpha; by default the level stays at alpha.
    **options
        Settings of a method that is given by name.

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
        method: object = "split",
        alpha: float = 0.1,
        seed: int = 0,
        class_names: Sequence[str] | None = None,
        *,
        directed: bool = False,
        steered: Steered | None = None,
        **options: Any,
    ) -> None:
        settings = LiveSettings.check(method, alpha, seed, class_names, directed, steered, options)
        self._attach(Store.create(settings.describe()), settings)

    # -- from an existing graph ------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        graph: object,
        probabilities: ArrayLike,
        labels: ArrayLike | None = None,
        calibration: ArrayLike | None = None,
        *,
        ids: object = None,
        features: ArrayLike | None = None,
        method: object = "split",
        alpha: float = 0.1,
        seed: int = 0,
        class_names: Sequence[str] | None = None,
        steered: Steered | None = None,
        **options: Any,
    ) -> Live:
        """Start from an existing graph; its labels count as arrived in an order drawn from the seed.

        Parameters
        ----------
        graph : Graph or another library's
            As in `NAPS.calibrate`: a `Graph`, a PyTorch Geometric ``Data``, a NetworkX graph, a SciPy sparse matrix, an
            ``edge_index``.
        probabilities : array of shape (nodes, classes)
            The outputs of the model.
        labels : array of shape (nodes,), optional
            Integers, −1 where unknown. Of a ``Data``, its ``y`` by default.
        calibration : array, optional
            Node indices or a boolean mask: the labels that count as arrived; by default all known ones.
        ids : array of integers or strings, optional
            The ids of the nodes; by default 0..n−1.
        features : array of shape (nodes, columns), optional
            As in `add_nodes`. Of a ``Data``, its ``x`` by default, if the method compares nodes.
        method, alpha, seed, class_names, steered, options
            As in `Live`.
        """
        if labels is None:
            labels = getattr(graph, "y", None)
            if labels is None:
                raise InvalidInputError("`labels` must be given, −1 where unknown; got None")
        if calibration is None:
            calibration = PredictionSets.known(check_integers("labels", labels))
        settings = LiveSettings.check(method, alpha, seed, None, False, steered, options)
        if features is None and settings.compares and hasattr(graph, "edge_index"):
            features = getattr(graph, "x", None)
        data = CalibrationData.check(
            graph, probabilities, labels, calibration, class_names=class_names, features=features
        )
        rows = as_graph(data.graph)
        live = cls(method, alpha, seed, data.class_names, directed=rows.directed, steered=steered, **options)
        names = as_ids("ids", np.arange(rows.num_nodes) if ids is None else ids)
        live.add_nodes(names, data.outputs, data.features)
        source = np.repeat(np.arange(rows.num_nodes), rows.degrees)
        once = slice(None) if rows.directed else source < rows.indices
        live.add_edges(names[source[once]], names[rows.indices[once]])
        del source, once
        chosen = data.calibration[draw_order(live._settings.seed, names[data.calibration])]
        live.add_labels(names[chosen], data.truth[chosen])
        return live

    # -- changes --------------------------------------------------------------------------------------------------

    def add_nodes(
        self,
        ids: object,
        probabilities: ArrayLike,
        features: ArrayLike | Features | None = None,
        *,
        key: str | None = None,
    ) -> None:
        """Add nodes: their ids (integers or texts), the outputs of the model for them, and their features.

        Parameters
        ----------
        ids : array of integers or strings
            New ids; 1 and "1" are two different nodes.
        probabilities : array of shape (nodes, classes)
            One row per node.
        features : array of shape (nodes, columns), optional
            Numbers by which ``"informed"`` and ``"auto"`` compare nodes. Either all nodes have features, or none.
        key : str, optional
            A name for this batch: a batch whose name is in the log already does nothing, as after a lost answer.
        """
        self.update([("add_nodes", ids, probabilities, features)], key=key)

    def add_edges(self, source: object, target: object, *, key: str | None = None) -> None:
        """Add edges between existing nodes; one that exists already changes nothing."""
        self.update([("add_edges", source, target)], key=key)

    def add_labels(self, ids: object, labels: ArrayLike, *, key: str | None = None) -> None:
        """Add labels in the order of their arrival; each first judges the set that stood before."""
        self.update([("add_labels", ids, labels)], key=key)

    def set_probabilities(self, ids: object, probabilities: ArrayLike, *, key: str | None = None) -> None:
        """Replace the outputs of nodes."""
        self.update([("set_probabilities", ids, probabilities)], key=key)

    def remove_labels(self, ids: object, *, key: str | None = None) -> None:
        """Remove labels; their judgements of earlier sets stay in the record."""
        self.update([("remove_labels", ids)], key=key)

    def remove_nodes(self, ids: object, *, key: str | None = None) -> None:
        """Remove nodes, with their edges and labels."""
        self.update([("remove_nodes", ids)], key=key)

    def remove_edges(self, source: object, target: object, *, key: str | None = None) -> None:
        """Remove edges, all of which must exist."""
        self.update([("remove_edges", source, target)], key=key)

    def refit(self, *, key: str | None = None) -> None:
        """Take the present reference, choose and fit again now, instead of when it has grown by a quarter."""
        self.update([("refit",)], key=key)

    def reset_alarms(self, names: str | Sequence[str] = ALARMS, *, key: str | None = None) -> None:
        """Start alarms again, for example once the model was trained again: only labels from now on count for them.

        Parameters
        ----------
        names : sequence of str
            ``"exchangeability"``, ``"coverage"``; by default both.
        key : str, optional
            As in `add_nodes`.
        """
        self.update([("reset_alarms", names)], key=key)

    def steer(self, steered: Steered | None, *, key: str | None = None) -> None:
        """Let the level follow drift from now on, starting at alpha; None lets it stay at alpha."""
        if not (steered is None or isinstance(steered, Steered)):
            raise InvalidInputError(f"`steered` must be None or a Steered, as Steered('aci'); got {shown(steered)}")
        arguments = (None,) if steered is None else (steered.kind, steered.rate)
        self.update([("steer", *arguments)], key=key)

    # -- results -------------------------------------------------------------------------------------------------

    def predict(self, ids: object = None, alpha: float | None = None, *, log: bool = False) -> PredictionSets:
        """Return the present prediction sets of nodes.

        Parameters
        ----------
        ids : array of integers or strings, optional
            The nodes; by default all without a label. A node's own label never counts for its own set.
        alpha : float, optional
            Error rate; by default that of the living graph, or its steered level.
        log : bool
            Enter the sets in the log, with their level. When the label of a node arrives, the set that was logged last
            is judged, instead of the one that stands then. Only without `alpha`.
        """
        if check_flag("log", log) and alpha is not None:
            raise InvalidInputError(f"`alpha` must be None for sets that are logged; got {shown(alpha)}")
        with self._writing if log else nullcontext(), self._busy:
            level = self._fold.level if alpha is None else check_alpha(alpha)
            state = self._state
            if not state.nodes.size:
                raise InvalidInputError("`ids` must be nodes of the graph; it has none yet")
            if ids is None:
                slots = np.flatnonzero(state.nodes["labels"] == -1)
                names = state.names.of(slots)
            else:
                names = as_ids("ids", ids)
                slots = state.names.known("ids", names)
            sets = self._fold.sets(slots, level)
            if log and slots.size:
                rates = np.full(slots.size, self._settings.alpha), np.full(slots.size, level)
                columns = {"ids": names, "alpha": rates[0], "level": rates[1], "member": np.array(sets.member)}
                self._commit([Change("predictions", columns)], None)
            return sets.with_names(state.names.size, names, state.class_names)

    def explain(self, id: NodeId, alpha: float | None = None) -> JsonObject:
        """Explain the set of one node, as plain JSON.

        Parameters
        ----------
        id : int or str
            The node.
        alpha : float, optional
            As in `predict`.

        Returns
        -------
        dict
            The set as the service returns it; ``reason``, a few sentences; ``candidates``, one entry per class with its
            probability, score and p-value; ``neighbours``, up to 50 labelled nodes within two hops, nearest first.
        """
        with self._busy:
            slots = self._state.names.known("id", as_ids("id", id))
            if slots.size != 1:
                raise InvalidInputError(f"`id` must be one node; got {slots.size}")
            return explain(self._fold.calibration.engine, id, int(slots[0]), self.predict(id, alpha))

    def __contains__(self, id: object) -> bool:
        try:
            names = as_ids("id", id)
        except InvalidInputError:
            return False
        with self._busy:
            return names.size == 1 and bool(self._state.names.find(names)[0] >= 0)

    def ids(self, *, unlabelled: bool = False) -> list[NodeId]:
        """Return the ids of all nodes, or of those without a label, in the order of their arrival."""
        labels = self._state.nodes["labels"]
        chosen = labels == -1 if check_flag("unlabelled", unlabelled) else labels > -2
        ids: list[NodeId] = self._state.names.of(np.flatnonzero(chosen)).tolist()
        return ids

    @property
    def method(self) -> Method | Auto:
        """The method of the sets."""
        return self._settings.method

    def p_values(self, ids: object) -> FloatArray:
        """Return the p-value of every candidate of nodes.

        A candidate is in the set at alpha exactly if its p-value exceeds alpha.

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
            p_values: FloatArray = self._fold.calibration.engine.p_values(
                self._state.names.known("ids", as_ids("ids", ids))
            )
            return p_values

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes."""
        return self._settings.class_names

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self._settings.directed

    def history(self) -> dict[str, list[float | None]]:
        """Return the record of the sets over time, a few hundred points in columns; see `History.columns`."""
        with self._busy:
            return self._fold.record.pass_on(self._history).columns()

    def status(self) -> dict[str, Any]:
        """Return the method, the counts of the graph, and how well the sets did so far, as plain JSON."""
        with self._busy:
            state, steering, steered = self._state, self._fold.steering, None
            if steering is not None:  # the delay is in labels
                steered = vars(self._fold.steered) | {"level": steering.level, "delay": steering.delay}
            chosen = self._fold.calibration.chosen
            return {
                "method": self.method.describe(),
                "chosen": None if chosen is None else chosen.describe(),
                "classes": None if self.class_names is None else list(self.class_names),
                "directed": self.directed,
                "events": state.events,
                "nodes": state.present,
                "edges": state.adjacency.edges if state.adjacency.directed else state.adjacency.edges // 2,
                "labels": sum(state.sizes),
                "reference": state.sizes[0],
                "level": state.sizes[1],
                "alpha": self._settings.alpha,
                "steered": steered,
                "judged": self._fold.record.pass_on(self._history).monitor.status(),
            }

    def __repr__(self) -> str:
        state = self._state
        return (
            f"Live({state.present:,} nodes, {state.adjacency.edges:,} stored edges, {sum(state.sizes):,} labels, "
            f"{state.events:,} events, {self._settings.method!r})"
        )
