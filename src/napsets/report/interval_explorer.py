"""The explorer's data for intervals: for some nodes, all that explains their intervals, in arrays of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.advice.inspection import IntervalInspection
from napsets.advice.interval_evidence import ResidualWitnesses
from napsets.advice.threshold import inspect_threshold
from napsets.checks.arguments import FloatArray, IntArray
from napsets.evaluation.interval_comparison import IntervalComparison, IntervalResult
from napsets.methods import Scored
from napsets.report.around import VOICES, Around, Heard, affordable, look_around, sample, scored_nodes
from napsets.scores.informed_intervals import BoundInformedIntervals

__all__ = ["IntervalExplorer", "interval_explorer"]

#: Bytes of the sentence that says where a threshold comes from, about.
_SENTENCE = 220


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalExplorer(Around):
    """Nodes that can be looked at, and what explains their intervals.

    Attributes
    ----------
    columns : list of str
        What the model's outputs are: lower and upper, or prediction and maybe spread.
    target : numpy.ndarray
        The true target of each node.
    lower, upper : numpy.ndarray
        The intervals, shape (methods, m).
    told : list of list of str
        For each method and node, where its threshold comes from.
    model : numpy.ndarray
        Shape (m, columns): what the model itself said.
    outputs : numpy.ndarray
        Shape (s, m, columns): what intervals are made of, which targets around a node may have shifted.
    scores : numpy.ndarray
        Shape (s, m): the score of the true target.
    neighbour_target : numpy.ndarray
        The target of every neighbour, NaN where it never calibrates.
    voice_residual : numpy.ndarray
        Shape (e, m, voices): how far the target of each voice is above the model's best guess for it.
    voice_shifts : numpy.ndarray
        Shape (e, m, voices, columns): how far each voice moves each output.
    """

    columns: list[str]
    target: FloatArray
    lower: FloatArray
    upper: FloatArray
    told: list[list[str]]
    model: FloatArray
    outputs: FloatArray
    scores: FloatArray
    neighbour_target: FloatArray
    voice_residual: npt.NDArray[np.float32]
    voice_shifts: npt.NDArray[np.float32]

    @property
    def score_range(self) -> tuple[float, float]:
        """Between what the scores of calibration nodes lie; own targets further out are drawn at the ends."""
        return float(self.edges.min()), float(self.edges.max())


def interval_explorer(
    found: IntervalComparison, *, names: npt.NDArray[Any], ball: IntArray, focus: int = 1
) -> IntervalExplorer:
    """Choose nodes, walk around each and keep what explains its intervals."""
    focus = min(focus, len(found.results) - 1)
    scored, _ = scored_nodes(found)
    bounds: list[Any] = [each.bound for each in scored]
    bound = bounds[0]
    columns, methods = list(bound.score.columns), len(found.results)
    informed, evidence = _evidence(scored)
    own = methods * (_SENTENCE + 16) + 8 * (len(scored) + 1) * (len(columns) + 1)
    own += len(evidence) * VOICES * (16 + 4 * len(columns))
    rows, reason = sample(found, affordable(own, found.hops, methods, len(scored)), focus)
    nodes = found.nodes[rows]
    heard, residuals, shifts = _hear(found, informed, evidence, nodes, len(columns))
    words = ("a single point", "widest intervals")
    parts, met = look_around(found, rows, reason, heard=heard, names=names, ball=ball, focus=focus, words=words)
    target = found.targets[nodes]
    return IntervalExplorer(
        **parts,
        columns=columns,
        target=target,
        lower=np.stack([result.intervals.lower[rows] for result in found]),
        upper=np.stack([result.intervals.upper[rows] for result in found]),
        told=[[_told(result, int(row), found.alpha) for row in rows] for result in found],
        model=bound.score.check(found.given.outputs)[nodes],
        outputs=np.stack([each.outputs[nodes] for each in bounds]),
        scores=np.stack([each.at(nodes, target) for each in bounds]),
        neighbour_target=np.where(np.isnan(parts["neighbour_score"]).all(axis=0), np.nan, found.targets[met]),
        voice_residual=residuals,
        voice_shifts=shifts,
    )


def _told(result: IntervalResult, row: int, alpha: float) -> str:
    """Say where the threshold of one node comes from, in the words of `inspect_node`, which would search anew."""
    made = result.intervals
    bound: Any = result.calibrated.score
    assert made.centre is not None
    node, threshold, centre = int(made.nodes[row]), float(made.thresholds[row]), made.centre[row : row + 1]
    return IntervalInspection(
        lower=float(made.lower[row]),
        upper=float(made.upper[row]),
        centre=float(centre[0]),
        columns=bound.score.columns,
        model=bound.outputs[node],
        outputs=bound.outputs[node],
        rule=bound.score.rule,
        smallest_score=float(bound.at(made.nodes[row : row + 1], centre)[0]),
        support=int(made.support[row]),
        effective_size=float(made.effective_size[row]),
        **inspect_threshold(result.calibrated, node, alpha, threshold),
    ).reason()


def _evidence(scored: list[Scored]) -> tuple[IntArray, list[BoundInformedIntervals]]:
    """Return what shifted outputs rest on, each once, and which of it each of the scored nodes has (−1 for none)."""
    bounds: list[Any] = [each.bound for each in scored]
    each = [bound for bound in bounds if isinstance(bound, BoundInformedIntervals)]
    order = [id(bound) for bound in each]
    return np.array([order.index(id(bound)) if id(bound) in order else -1 for bound in bounds]), each


def _hear(
    found: IntervalComparison, informed: IntArray, evidence: list[BoundInformedIntervals], nodes: IntArray, columns: int
) -> tuple[Heard, npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return who moves each node's outputs furthest, how far each is off the model's guess, and how far it moves."""
    heard = Heard(informed, len(evidence), nodes.size)
    residuals = np.zeros(heard.voices.shape, dtype=np.float32)
    shifts = np.zeros((*heard.voices.shape, columns), dtype=np.float32)
    for e, bound in enumerate(evidence):
        witnesses = ResidualWitnesses(bound, found.graph)
        heard.sentences.append(witnesses.sentence)
        for i, node in enumerate(nodes):
            voices = witnesses.voices(int(node))
            heard.hear(e, i, voices)
            for c, voice in enumerate(voices[:VOICES]):
                residuals[e, i, c], shifts[e, i, c] = voice.residual, voice.shifts
    return heard, residuals, shifts
