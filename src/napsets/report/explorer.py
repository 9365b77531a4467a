"""The explorer's data for sets: for some nodes, all that explains their sets, in arrays of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.advice.evidence import Witnesses
from napsets.checks.arguments import FloatArray, IntArray
from napsets.evaluation.comparison import Comparison
from napsets.graph import Graph
from napsets.methods import Scored
from napsets.report.around import VOICES, Around, Heard, affordable, look_around, sample, scored_nodes
from napsets.scores.informed import BoundInformed, evidence_of

__all__ = ["Explorer", "explorer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Explorer(Around):
    """Nodes that can be looked at, and what explains their sets.

    Attributes
    ----------
    label : numpy.ndarray
        The true label of each.
    probabilities, scores : numpy.ndarray
        Shape (s, m, classes): the probabilities that the score is made of, and the score of each label.
    member : numpy.ndarray
        The sets, shape (methods, m, classes).
    neighbour_label : numpy.ndarray
        The label of every neighbour, −1 where it never calibrates.
    model : numpy.ndarray
        Shape (m, classes): the model's own probabilities; without rows where no method changes them.
    voice_odds : numpy.ndarray
        Shape (e, m, voices): what each voice multiplies the odds of its label by.
    """

    label: IntArray
    probabilities: FloatArray
    scores: FloatArray
    member: npt.NDArray[np.bool_]
    neighbour_label: IntArray
    model: npt.NDArray[np.float32]
    voice_odds: npt.NDArray[np.float32]

    @property
    def score_range(self) -> tuple[float, float]:
        """Between what the scores of labels and of calibration nodes lie."""
        ends = [self.scores.min(), self.edges.min(), self.scores.max(), self.edges.max()]
        return float(min(ends)), float(max(ends))


def explorer(
    graph: Graph,
    found: Comparison,
    labels: IntArray,
    *,
    names: npt.NDArray[Any],
    ball: IntArray,
    focus: int = 1,
) -> Explorer:
    """Choose nodes, walk around each and keep what explains its sets."""
    focus = min(focus, len(found.results) - 1)
    scored, _ = scored_nodes(found)
    informed, evidence = _evidence(scored)
    classes, methods = found.given.outputs.shape[1], len(found.results)
    room = _affordable(classes, found.hops, methods, len(scored), len(evidence))
    rows, reason = sample(found, room, focus)
    nodes = found.nodes[rows]
    heard, odds = _hear(graph, informed, evidence, nodes)
    words = ("empty set", "largest sets")
    parts, met = look_around(found, rows, reason, heard=heard, names=names, ball=ball, focus=focus, words=words)
    return Explorer(
        **parts,
        label=labels[nodes],
        probabilities=np.stack([each.bound.probabilities[nodes].astype(np.float64) for each in scored]),
        scores=np.stack([each.bound.matrix(nodes) for each in scored]),
        member=np.stack([result.sets.member[rows] for result in found]),
        neighbour_label=np.where(np.isnan(parts["neighbour_score"]).all(axis=0), -1, labels[met]),
        model=found.given.outputs[nodes if evidence else nodes[:0]].astype(np.float32),
        voice_odds=odds,
    )


def _affordable(classes: int, hops: int, methods: int, scored: int, informed: int = 0) -> int:
    heard = informed * (VOICES * 16 + 4) + 4 * classes * bool(informed)
    return affordable((16 * scored + methods) * classes + heard, hops, methods, scored)


def _evidence(scored: list[Scored]) -> tuple[IntArray, list[BoundInformed]]:
    """Return what informed scores rest on, each once, and which of it each of the scored nodes has (−1 for none)."""
    each: list[BoundInformed] = []
    place = np.full(len(scored), -1)
    for s, one in enumerate(scored):
        bound = evidence_of(one.bound)
        if bound is None:
            continue
        same = [e for e, other in enumerate(each) if _same_evidence(bound, other)]
        place[s] = same[0] if same else len(each)
        each += [] if same else [bound]
    return place, each


def _same_evidence(one: BoundInformed, other: BoundInformed) -> bool:
    return one.exponents == other.exponents and np.array_equal(one.reference.nodes, other.reference.nodes)


def _hear(
    graph: Graph, informed: IntArray, evidence: list[BoundInformed], nodes: IntArray
) -> tuple[Heard, npt.NDArray[np.float32]]:
    """Return who speaks loudest of each node's label, and what each multiplies its odds by."""
    heard = Heard(informed, len(evidence), nodes.size)
    odds = np.ones(heard.voices.shape, dtype=np.float32)
    for e, bound in enumerate(evidence):
        witnesses = Witnesses(bound, graph)
        heard.sentences.append(witnesses.sentence)
        for i, node in enumerate(nodes):
            voices = witnesses.voices(int(node))
            heard.hear(e, i, voices)
            odds[e, i, : min(VOICES, len(voices))] = [voice.odds for voice in voices[:VOICES]]
    return heard, odds
