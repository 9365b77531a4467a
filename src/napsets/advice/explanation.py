"""An inspection in words and tables: the same for the command, its JSON and the explorer of a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.advice.evidence import EvidenceKind, NodeEvidence
from napsets.advice.inspection import IntervalInspection, SetInspection
from napsets.advice.threshold import NodeInspection
from napsets.checks.arguments import AnyArray, FloatArray, IntArray
from napsets.checks.text import percent
from napsets.checks.values import Record, in_digits, number

#: Attributes of an inspection that say what the threshold is based on.
_THRESHOLD = (
    "threshold", "support", "effective_size", "fell_back", "neighbourhood_support", "neighbourhood_effective_size",
    "total_mass", "needed_mass", "reached_mass",
)  # fmt: skip
#: Classes whose factors a table shows: the likeliest, before or after.
_SHOWN_CLASSES = 5
#: Classes that are named when labels are counted.
_NAMED_CLASSES = 3
#: What each kind of evidence is, in words.
_KINDS = {
    "model": "the model's own probabilities, more or less pronounced",
    "around": "the model's probabilities around it",
    "near": "labels of neighbours",
    "alike": "labels of nodes with the same predicted class",
    "wide": "labels met by a random walk",
    "similar_5": "labels of the 5 nodes with the most similar features",
    "similar_25": "labels of the 25 nodes with the most similar features",
    "linear": "a linear model of the features",
    "recalibration": "corrections of the model learned from labels",
}
#: The same of intervals.
_TERMS = {
    "recalibration": "corrections of the model learned from targets",
    "near": "residuals of labelled neighbours",
    "far": "residuals two hops away",
}


@dataclass(frozen=True)
class TextTable:
    """A table of texts under a title; its first `left` columns are text, the others numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    note: str = ""


@dataclass(frozen=True, eq=False)
class Explained:
    """An inspection with the names of nodes and classes, and the truth as far as it is known.

    Attributes
    ----------
    inspection : NodeInspection
        The inspection.
    node_names : callable
        Returns the names of some nodes.
    truth : numpy.ndarray
        The label or target of every node; −1 or NaN where it is not known.
    class_names : sequence of str
        One per class; empty for intervals.
    neighbours : int
        How many calibration nodes, and labelled neighbours, are listed.
    """

    inspection: NodeInspection
    node_names: Callable[[IntArray], list[Any]]
    truth: AnyArray
    class_names: Sequence[str] = ()
    neighbours: int = 10

    def record(self) -> Record:
        """Return everything as plain values."""
        seen, noun = self.inspection, self.truth_noun
        return {
            "node": self.node_names(np.array([seen.node]))[0],
            "alpha": seen.alpha,
            **(self._set(seen) if isinstance(seen, SetInspection) else self._interval(seen)),
            **{name: getattr(seen, name) for name in _THRESHOLD},
            "hops": [vars(row) for row in seen.hops],
            noun: self._truth(seen.node),
            "reason": seen.reason(),
            "neighbours": self._neighbours(),
            "evidence": None if seen.evidence is None else self._evidence(seen.evidence),
        }

    @property
    def truth_noun(self) -> str:
        """The word for the truth about a node: label or target."""
        return "label" if isinstance(self.inspection, SetInspection) else "target"

    def head(self) -> TextTable:
        """Return the prediction and its threshold as a table of two columns."""
        seen, truth = self.inspection, self._truth(self.inspection.node)
        if isinstance(seen, SetInspection):
            first = [("set", "{" + ", ".join(self._included(seen)) + "}")]
            last = [("its uniform number u", number(seen.u, 6))]
            truth_row = ("its label (not used for its own threshold)", "–" if truth is None else str(truth))
        else:
            assert isinstance(seen, IntervalInspection)
            first = [
                ("interval", f"[{number(seen.lower)}, {number(seen.upper)}]"),
                ("how it is made", seen.rule),
                ("width", number(seen.width)),
                ("best guess", number(seen.centre)),
            ]
            last = []
            truth_row = ("its own target (left out of its own threshold τ)", number(truth))
        title = f"Node {self.node_names(np.array([seen.node]))[0]} at alpha = {seen.alpha:g}"
        return TextTable(title, ("", ""), [*first, *self._support(), *last, truth_row])

    def tables(self, *, calibration: bool = True) -> list[TextTable]:
        """Return tables that explain the threshold and the scores; `calibration` adds the calibration nodes."""
        seen = self.inspection
        hops = [hop_table(seen)] if seen.hops else []
        evidence = [] if seen.evidence is None else self._evidence_tables(seen.evidence)
        last = [self._neighbour_table()] if calibration else []
        return [*hops, self._score_table(), *evidence, *last]

    # -- the prediction ------------------------------------------------------------------------------------------------

    def _included(self, seen: SetInspection) -> list[str]:
        return [self.class_names[y] for y in np.flatnonzero(seen.member).tolist()]

    def _truth(self, node: int) -> Any:
        value = self.truth[node]
        if isinstance(self.inspection, SetInspection):
            return self.class_names[int(value)] if value >= 0 else None
        return None if math.isnan(value) else float(value)

    def _set(self, seen: SetInspection) -> Record:
        columns: Record = {"label": self.class_names, "probability": seen.probabilities, "score": seen.scores}
        columns["member"] = seen.member.tolist()
        if seen.label_thresholds is not None:
            columns["threshold"] = seen.label_thresholds
        return {"set": self._included(seen), "u": seen.u, "labels": _records(columns)}

    def _interval(self, seen: NodeInspection) -> Record:
        assert isinstance(seen, IntervalInspection)
        columns: Record = {"output": seen.columns, "model": seen.model.tolist(), "used": seen.outputs.tolist()}
        ends = {"lower": seen.lower, "upper": seen.upper, "width": seen.width}
        return ends | {"prediction": seen.centre, "rule": seen.rule, "outputs": _records(columns)}

    def _support(self) -> list[tuple[str, str]]:
        """Describe the labels behind the threshold, and the local ones if a fallback replaces them."""
        seen = self.inspection
        rows = [("threshold τ", number(seen.threshold)), ("support", number(seen.support))]
        rows.append(("effective size", number(seen.effective_size, 2)))
        if seen.support != seen.neighbourhood_support:
            rows.append(("support of its neighbourhood", number(seen.neighbourhood_support)))
            rows.append(("effective size of its neighbourhood", number(seen.neighbourhood_effective_size, 2)))
        return rows

    def _score_table(self) -> TextTable:
        seen = self.inspection
        if isinstance(seen, SetInspection):
            by_label = seen.label_thresholds
            rows = [
                [self.class_names[y], number(seen.probabilities[y]), number(seen.scores[y])]
                + ([] if by_label is None else [number(by_label[y])])
                + ["in the set" if seen.member[y] else "out"]
                for y in np.argsort(seen.scores, kind="stable").tolist()
            ]
            its = [] if by_label is None else ["its τ"]
            title = f"A label is in the set if its score is at most {'its ' * len(its)}τ"
            return TextTable(title, ["label", "probability", "score", *its, ""], rows)
        assert isinstance(seen, IntervalInspection)
        pairs = zip(seen.columns, seen.model, seen.outputs, strict=True)
        if seen.evidence is None:
            rows = [[name, number(model)] for name, model, _ in pairs]
            return TextTable("The model's outputs", ["", "model"], rows)
        rows = [[name, number(model), number(used), signed(used - model)] for name, model, used in pairs]
        return TextTable("The model's outputs and the terms of the interval", ["", "model", "informed", "shift"], rows)

    # -- evidence ------------------------------------------------------------------------------------------------------

    def _evidence(self, evidence: NodeEvidence) -> Record:
        names = list(self.class_names or getattr(self.inspection, "columns", ()))
        effect = "factors" if evidence.multiplies else "adds"
        columns = {"label" if evidence.multiplies else "output": names}
        columns |= {"model": evidence.model.tolist(), "informed": evidence.informed.tolist()}
        kinds = [
            {
                "kind": kind.name,
                "counted": self._counted(kind),
                effect: dict(zip(names, kind.effect.tolist(), strict=True)),
            }
            for kind in evidence.kinds
        ]
        named = {"labelled": self._labelled(evidence.labelled, evidence.truth)}
        if evidence.similar.size:
            named["similar"] = self._labelled(evidence.similar, evidence.similar_truth)
        return {"outputs": _records(columns), "kinds": kinds, **named}

    def _labelled(self, labelled: IntArray, truths: AnyArray) -> list[Record]:
        nodes, truth = labelled[: self.neighbours], truths[: self.neighbours].tolist()
        values = [self.class_names[y] for y in truth] if self.class_names else [float(value) for value in truth]
        return [
            {"node": name, self.truth_noun: value} for name, value in zip(self.node_names(nodes), values, strict=True)
        ]

    def _counted(self, kind: EvidenceKind) -> str:
        """Describe the counts of one kind of evidence for this node; empty if it counts nothing."""
        if not self.class_names:
            if kind.counts is None or kind.value is None:
                return ""
            return f"{_amount(float(kind.counts[0]))} labelled, mean residual {number(float(kind.value[0]))}"
        if kind.counts is not None:
            found = float(kind.counts.sum())
            return f"{_amount(found)}: {self._largest(kind.counts, _amount)}" if round(found, 2) > 0 else "none"
        return "" if kind.value is None else self._largest(kind.value, lambda share: percent(share, 0))

    def _largest(self, values: FloatArray, write: Callable[[float], str]) -> str:
        first = np.argsort(-values, kind="stable")[:_NAMED_CLASSES]
        named = [f"{self.class_names[y]} {write(float(values[y]))}" for y in first if round(float(values[y]), 2) > 0]
        rest = int((np.round(values, 2) > 0).sum()) - len(named)
        return ", ".join(named) + (f" and {rest} more" if rest > 0 else "")

    def _evidence_tables(self, evidence: NodeEvidence) -> list[TextTable]:
        if evidence.multiplies:
            likely = np.argsort(-np.maximum(evidence.model, evidence.informed), kind="stable")[:_SHOWN_CLASSES]
            likely = likely[np.argsort(-evidence.informed[likely], kind="stable")]
            names, words = [self.class_names[y] for y in likely], _KINDS
            title = "Evidence: the factors of a column multiply to what changed its probability"
        else:
            likely, words = np.arange(evidence.model.size), _TERMS
            names = list(getattr(self.inspection, "columns", ()))
            title = "Evidence: what the terms of a column add up to is its shift"
        write = _factor if evidence.multiplies else signed
        ends = _chance if evidence.multiplies else number
        rows = [["model", "", *(ends(value) for value in evidence.model[likely])]]
        rows += [
            [words.get(kind.name, f"labels: {kind.name}"), self._counted(kind), *map(write, kind.effect[likely])]
            for kind in evidence.kinds
        ]
        rows.append(["with evidence", "", *(ends(value) for value in evidence.informed[likely])])
        many = f"{likely.size} of {evidence.model.size} classes are shown." if likely.size < evidence.model.size else ""
        tables = [TextTable(title, ["kind", "counted", *names], rows, left=2, note=many)]
        for title, nodes, truth in (
            ("Labelled neighbours", evidence.labelled, evidence.truth),
            ("Labelled nodes with the most similar features", evidence.similar, evidence.similar_truth),
        ):
            listed = [
                [number(value) if isinstance(value, float) else str(value) for value in row.values()]
                for row in self._labelled(nodes, truth)
            ]
            title = f"{title} ({len(listed)} of {nodes.size})"
            head = ["node", self.truth_noun]
            tables += [TextTable(title, head, listed, left=1 + evidence.multiplies)] * bool(listed)
        return tables

    # -- calibration nodes ---------------------------------------------------------------------------------------------

    def _neighbours(self) -> list[Record]:
        """Return the calibration nodes with scores nearest to the threshold."""
        seen = self.inspection
        chosen = seen.nearest(self.neighbours)
        nodes = seen.neighbours[chosen]
        columns: Record = {
            "node": self.node_names(nodes),
            "hop": [int(hop) or None for hop in seen.neighbour_hops[chosen]],
            "weight": seen.neighbour_weights[chosen],
            self.truth_noun: [self._truth(int(node)) for node in nodes],
            "score": seen.neighbour_scores[chosen],
        }
        if seen.neighbour_distances is not None:
            columns["distance"] = seen.neighbour_distances[chosen].tolist()
        return _records(columns)

    def _neighbour_table(self) -> TextTable:
        listed, noun = self._neighbours(), self.truth_noun
        by_length = self.inspection.neighbour_distances is not None
        rows = [
            [
                str(row["node"]),
                row[noun] if isinstance(row[noun], str) else number(row[noun]),
                f"{row['distance']:.4g}" if by_length else str(row["hop"] or "–"),
                f"{row['weight']:.4g}",
                number(row["score"]),
            ]
            for row in listed
        ]
        title = (
            f"Calibration nodes with scores nearest to τ ({len(rows)} of {self.inspection.neighbours.size} in reach)"
        )
        columns = ["node", noun, "distance" if by_length else "hop", "weight", "score"]
        return TextTable(title, columns, rows, left=1 + (noun == "label"))


def hop_table(seen: NodeInspection) -> TextTable:
    """Return the neighbourhood by hop."""
    whole = seen.total_mass or 1.0  # where it is 0, so is that of every hop
    rows = [
        [
            str(row.hop), number(row.nodes), number(row.calibration), f"{row.weight:.4g}", f"{row.mass:.4g}",
            percent(row.mass / whole, 2), number(row.median_score), number(row.within),
        ]
        for row in seen.hops
    ]  # fmt: skip
    head = ["hop", "nodes", "calibration", "weight w(k)", "mass", "share", "median score", "scores ≤ τ"]
    return TextTable("Neighbourhood by hop", head, rows)


def signed(value: float) -> str:
    """Write a difference for people, with its sign."""
    return in_digits(value, 4, sign="+")


def _factor(value: float) -> str:
    return f"× {value:.3g}" if 0.001 <= value < 1000 else f"× {value:.1e}"


def _chance(share: float) -> str:
    return percent(share, 1 if share >= 0.001 else 4)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 0.005 or value >= 100 else f"{value:.2f}"


def _records(columns: Mapping[str, Iterable[Any]]) -> list[Record]:
    """Return columns as rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
