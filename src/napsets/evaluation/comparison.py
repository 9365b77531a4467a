"""Methods side by side on the same nodes: what every table and the report are made from.

Methods of the same scores share one search of the neighbourhoods. The truth of `nodes` is used to judge, never to make
what is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, FloatArray, IntArray, check_index, frozen, sealed
from napsets.checks.frames import find_nodes
from napsets.checks.values import (
    Record,
    Values,
    check_alpha,
    check_count,
    check_hops,
    check_list,
    check_progress,
    check_seed,
    shown,
)
from napsets.errors import InvalidInputError, warn
from napsets.evaluation.gains import rates_around, slope_of
from napsets.evaluation.gaps import own_groups
from napsets.evaluation.judgement import check_groups, judge_rows
from napsets.evaluation.kinds import SETS, Kind, kind_of
from napsets.evaluation.kinds import interval_methods as interval_methods
from napsets.evaluation.metrics import groups_of_partition, neighbourhood_partition
from napsets.evaluation.repeats import RepeatedComparison, random_splits
from napsets.evaluation.results import Comparison, MethodResult
from napsets.graph import check_graph
from napsets.kernels.threads import Progress, complete, stages
from napsets.localisers import LocalThresholds
from napsets.methods import (
    Auto,
    Calibratable,
    Calibrated,
    CalibrationData,
    Method,
    find_thresholds,
    make_method,
    predict_in_parts,
)
from napsets.methods.table import check_settings_known, name_of, suitable, title
from napsets.predictions import Prediction, PredictionIntervals
from napsets.scores import APS, Score, learns, make_score, prediction_type

#: What is compared by default: names of the table `napsets.methods.METHODS`.
COMPARED: tuple[str, ...] = SETS.compared

#: Where a calibration curve is drawn.
CURVE_ALPHAS: tuple[float, ...] = (0.01, 0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)

#: The name of a method, or a method, calibrated already or not.
AnyMethod = str | Calibratable | Calibrated


@overload
def compare(
    graph: Any, probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike, nodes: ArrayLike, *,
    splits: None = None, **options: Any,
) -> Comparison: ...  # fmt: skip


@overload
def compare(
    graph: Any, probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike, nodes: ArrayLike, *,
    splits: int, **options: Any,
) -> RepeatedComparison: ...  # fmt: skip


def compare(
    graph: Any,
    probabilities: ArrayLike,
    labels: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    *,
    splits: int | None = None,
    evidence: ArrayLike | None = None,
    features: ArrayLike | None = None,
    methods: Sequence[AnyMethod] | Mapping[str, AnyMethod] | None = None,
    alpha: float = 0.1,
    hops: int = 2,
    score: Score | str | None = None,
    seed: int = 0,
    ids: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    alphas: Sequence[float] = (),
    strata: Sequence[tuple[int, int]] | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    training: ArrayLike | None = None,
    logits: bool = False,
    progress: Any = None,
    **settings: Any,
) -> Comparison | RepeatedComparison:
    """Predict `nodes` with several methods, and evaluate the predictions on the truth.

    Parameters
    ----------
    graph, probabilities, labels, calibration, ids, class_names, logits
        As in `NAPS.calibrate`; with a score of numbers, the model's outputs and the targets.
    nodes : array
        What to predict and judge, where the truth is known: a boolean mask, or nodes as in `NAPS.predict`.
    splits : int, optional
        Repeat the comparison on this many random divisions of `calibration` and `nodes` into as many of each.
        The result is a `RepeatedComparison`, with means and standard deviations.
    evidence : array, optional
        As in `NAPS.calibrate`, for methods that learn from labels. The others are calibrated without it, on the same
        `calibration`, and the result says which they are.
    features : array of shape (nodes, columns) or SciPy sparse matrix, optional
        As in `NAPS.calibrate`, for methods that compare nodes.
    methods : sequence or mapping of names and methods, optional
        The baseline first: names of the table of methods (`napsets.methods.METHODS`), and methods with
        their own settings and score, ``{"mine": ns.NAPS(pool=20, score="thr"), "daps": "daps"}``. All of them are
        calibrated here, on the same labels. By default those of `COMPARED` that suit the score.
    alpha : float
        Error rate.
    hops : int
        Depth of the neighbourhoods of methods that are named.
    score : Score or str, optional
        The score of methods that are named: `APS()` by default. A score of numbers gives intervals.
    seed : int
        Seed of the nodes' uniform numbers, for methods that are named, and of the partition's roots.
    alphas : sequence of float
        More error rates, for the calibration curve (see `CURVE_ALPHAS`).
    strata : sequence of (low, high), optional
        Set sizes that SSCV groups; by default `size_strata` of the number of classes.
    groups : mapping, optional
        Your own groupings by name, each an array with one entry per node as in `coverage_gap`. Gaps over them
        are added to those over the usual ones, or take their place under the same name. The usual ones of sets are
        "neighbourhood", "class", "degree" and "confidence"; of intervals "neighbourhood", "degree", "prediction"
        (fifths by the model's best guess) and "width" (fifths by the method's own width).
    training : array, optional
        A boolean mask, or positions: the nodes that the model was trained on. The verdict does not compare them with
        the labelled nodes, and says so where labels of theirs calibrate.
    progress : bool or callable
        True for a line on the terminal, or a function that is called as ``progress(done, total)`` in nodes.
    **settings
        Further settings of the methods that are named, each of which uses those that it has (`napsets methods`).

    Examples
    --------
    >>> from napsets.graph import Graph
    >>> rng = np.random.default_rng(0)
    >>> ring = Graph.from_edge_index(np.stack([np.arange(400), np.roll(np.arange(400), 1)]), num_nodes=400)
    >>> x, half = rng.normal(size=400), np.arange(400) % 2 == 0
    >>> outputs, targets = np.column_stack([x - 1, x + 1]), x + rng.normal(size=400)
    >>> comparison = compare(ring, outputs, targets, half, ~half, methods=["split", "naps-exact"], score="cqr")
    >>> [round(result.coverage, 2) for result in comparison]
    [0.89, 0.9]
    """
    rates = (check_alpha(alpha), *(check_alpha(rate) for rate in check_list("alphas", alphas, "error rates")))
    check_settings_known(settings)
    items = {} if methods is None else _items(methods)
    chosen = make_score(_usual_score(items) if score is None else score)
    kind = kind_of(prediction_type(chosen))
    items = items or _items(kind.compared)
    shared = {"score": chosen, "hops": check_hops("hops", hops), "seed": check_seed(seed), "alpha": rates[0]} | settings
    named = _make_methods(items, shared, kind)
    groupings = check_groups(groups)
    if graph is None:
        check_graph(graph)
    data = CalibrationData.of(
        graph, probabilities, labels, calibration, evidence=evidence, features=features, ids=ids,
        class_names=class_names, score=chosen, logits=logits,
        compares=any(method.uses_features for method in named.values()),
    )  # fmt: skip
    trained = np.empty(0, np.int64) if training is None else check_index("training", training, data.outputs.shape[0])
    overlap = data.trained or int(np.isin(data.calibration, trained).sum())
    data = replace(data, trained=overlap, _scored={})
    evaluation_nodes = frozen(_check_judged(nodes, data))
    if data.evidence is not None and not any(method.uses_evidence for method in named.values()):
        raise InvalidInputError(
            "`evidence` must be left out where no method learns from it: all of these set their thresholds on all "
            "calibration labels. Compare 'auto', 'informed' or 'naps-exact' too."
        )

    setup = _Setup(items, kind, chosen, rates, hops, shared, groupings, strata, trained)
    report = check_progress(progress)
    if splits is None:
        return setup.compare(data, evaluation_nodes, named, report)
    repetitions = check_count("splits", splits, minimum=1, maximum=100_000)
    tables = []
    for split, (known, judged) in enumerate(
        random_splits(data.calibration, evaluation_nodes, repetitions, shared["seed"])
    ):
        trained_on = int(np.isin(known, trained).sum()) if trained.size else data.trained
        divided = replace(data, calibration=frozen(known), trained=trained_on, _scored={})
        methods_again = _make_methods(items, shared | {"seed": (shared["seed"] + split) % 2**64}, kind)
        tables.append(setup.compare(divided, frozen(judged), methods_again, None).rows())
        if report is not None:
            report((split + 1) * judged.size, repetitions * judged.size)
    return RepeatedComparison(
        splits=tables, alpha=rates[0], size=kind.size, calibration=data.calibration.size, nodes=evaluation_nodes.size
    )


@dataclass(frozen=True)
class _Setup:
    """The checked settings of a comparison, which are the same on every division of the labels."""

    items: Values  #: what the user named, by the names of the results
    kind: Kind
    chosen: Score  #: the score of methods that are named
    rates: tuple[float, ...]
    hops: int
    shared: Values  #: the settings of methods that are named
    groupings: Values
    strata: Sequence[tuple[int, int]] | None
    trained: IntArray  #: the nodes that the model was trained on

    def compare(self, data: CalibrationData, nodes: IntArray, methods: Values, progress: Progress | None) -> Comparison:
        """Calibrate and evaluate the methods on one division of the labels."""
        graph = data.graph
        assert graph is not None
        truth = data.truth[nodes]
        plain = data.without_evidence()
        # Calibration takes about as long as finding thresholds.
        weights = [*[1] * len(methods), len(methods)]
        *fits, finding = stages(progress, weights, nodes.size)
        calibrated = []
        for method, report in zip(methods.values(), fits, strict=True):
            calibrated.append(method.calibrate_data(data if method.uses_evidence else plain))
            complete(report)
        alpha, *curve = self.rates
        around = rates_around(alpha)
        rates = list(dict.fromkeys([alpha, *around, *curve]))
        near, drawn = ([rates.index(rate) for rate in wanted] for wanted in (around, curve))
        thresholds = find_thresholds(calibrated, nodes, rates, progress=finding)
        predictions, curves = _predict(calibrated, thresholds, rates, nodes, truth, self.kind)
        first = predictions[0]
        ranges = self.kind.check_strata(self.strata, first)
        partition = neighbourhood_partition(graph, nodes, seed=self.shared["seed"])
        usual = {"neighbourhood": groups_of_partition(partition, graph.num_nodes)}
        usual |= self.kind.groups(graph, data, self.chosen, nodes)
        groups_of_rows = {name: group[nodes] for name, group in usual.items()}
        neighbourhoods = groups_of_rows["neighbourhood"]
        groups_of_rows |= {name: own_groups(first, group) for name, group in self.groupings.items()}
        results = tuple(
            MethodResult(
                **vars(
                    judge_rows(prediction, truth, strata=ranges, neighbourhoods=neighbourhoods, groups=groups_of_rows)
                ),
                name=name,
                title=title(name, self.chosen) if self.items[name] == name else name,
                calibrated=method,
                prediction=prediction,
                curves={what: sealed(values[drawn]) for what, values in of_rates.items()},
                slope=slope_of(of_rates, near),
            )
            for name, method, prediction, of_rates in zip(methods, calibrated, predictions, curves, strict=True)
        )
        data.forget()
        plain.forget()
        return Comparison(
            results=results,
            alpha=self.rates[0],
            hops=self.hops,
            partition=partition,
            alphas=self.rates[1:],
            data=data,
            settings=self.shared,
            ids=data.ids if data.named else None,
            strata=ranges,
            training=self.trained,
        )


def _items(methods: Any) -> Record:
    """Return the methods to compare, by name; a method with its own settings is called by its title."""
    if isinstance(methods, Mapping):
        items = dict(methods)
    else:
        listed = check_list("methods", methods, "names of methods, or of methods")
        items = {}
        for item in listed:
            name = item if isinstance(item, str) else _title_of(item)
            if isinstance(item, str) and name in items:
                raise InvalidInputError(f"`methods` must name no method twice; got {shown(listed)}")
            again = sum(_title_of(other) == name for other in items.values())
            items[f"{name} {again + 1}" if again and name in items else name] = item
    for name, item in items.items():
        if not isinstance(name, str) or not isinstance(item, str | Calibratable | Calibrated):
            raise InvalidInputError(
                f"`methods` must hold names of methods, or methods such as NAPS(); got {shown(item)} in it"
            )
    if not items:
        raise InvalidInputError("`methods` must hold at least one method; it is empty")
    return items


def _title_of(item: object) -> str:
    """Return the title of a method that has no name of the user's own."""
    method = _unnamed(item)
    return title(name_of(method), method.score) if isinstance(method, Method | Auto) else type(item).__name__


def _usual_score(items: Values) -> Any:
    """Return the score of methods that are named: that of the first that has one of numbers, otherwise APS."""
    scores = (getattr(_unnamed(item), "score", None) for item in items.values() if not isinstance(item, str))
    return next((score for score in scores if prediction_type(score) is PredictionIntervals), APS())


def _unnamed(item: Any) -> Any:
    """Return the method of one that is calibrated already; a method as it is."""
    return item.method if isinstance(item, Calibrated) else item


def _make_methods(items: Values, settings: Values, kind: Kind) -> Record:
    """Make the methods by name, or raise for those that make other predictions."""
    kind.check_methods([item for item in items.values() if isinstance(item, str)])
    methods = {name: _make(item, settings) if isinstance(item, str) else _unnamed(item) for name, item in items.items()}
    for name, method in methods.items():
        if kind_of(prediction_type(method.score)) is not kind:
            noun = prediction_type(settings["score"]).noun
            raise InvalidInputError(
                f"`methods` must all predict {noun}s to be compared; {name!r} predicts "
                f"{prediction_type(method.score).noun}s"
            )
    return methods


def _make(name: str, settings: Values) -> Any:
    """Make a method, or raise with the methods that take a score that learns."""
    try:
        return make_method(name, **suitable(name, settings))
    except InvalidInputError as error:
        score = settings["score"]
        if not learns(score):
            raise
        make_method(name, **suitable(name, {**settings, "score": APS()}))  # it is wrong with any score, and says so
        raise InvalidInputError(
            f"`score` must not learn from labels where {name!r} is compared, which holds out none; "
            f"{type(score).__name__} does. Leave it out, or compare 'split' and 'naps-exact'."
        ) from error


def _check_judged(nodes: ArrayLike, data: CalibrationData) -> IntArray:
    """Check the nodes to judge: warn where they also calibrate, and raise where the truth is unknown."""
    places = find_nodes("nodes", nodes, data.ids if data.named else None, hint="a boolean mask")
    judged = check_index("nodes", places, data.outputs.shape[0], unique=True)
    if judged.size == 0:
        raise InvalidInputError("`nodes` must hold at least one node; it is empty")
    both = int(np.isin(judged, data.calibration).sum())
    if both:
        warn(f"`nodes` holds {both} calibration nodes: labels that evaluate these sets also calibrated others")
    taught = 0 if data.evidence is None else int(np.isin(judged, data.evidence).sum())
    if taught:
        warn(f"`nodes` holds {taught} nodes of `evidence`: methods have learned from the labels that evaluate them")
    unknown = ~data.prediction.known(data.truth[judged])
    if unknown.any():
        node = int(judged[unknown.argmax()])
        raise InvalidInputError(
            f"`nodes` must have known labels to be compared on; {unknown.sum()} do not, node {node} first"
        )
    return judged


def _predict(
    calibrated: Sequence[Calibrated],
    thresholds: Sequence[LocalThresholds],
    rates: Sequence[float],
    nodes: IntArray,
    truth: AnyArray,
    kind: Kind,
) -> tuple[list[Prediction], list[dict[str, FloatArray]]]:
    """Return each method's prediction at the first error rate, and its curves over all of them."""
    at_rates = [
        [method.thresholds_at(local, row, rate) for row, rate in enumerate(rates)]
        for method, local in zip(calibrated, thresholds, strict=True)
    ]
    parts: list[list[Prediction]] = [[] for _ in calibrated]
    hits = np.zeros((len(calibrated), len(rates)), dtype=np.int64)
    kept: list[list[list[AnyArray]]] = [[[] for _ in rates] for _ in calibrated]
    for rows, by_method in predict_in_parts(calibrated, at_rates, nodes):
        for m, predictions in by_method.items():
            parts[m].append(predictions[0])
            for r in range(len(rates)):
                hits[m, r] += predictions[r].contains_own(truth[rows]).sum()
                kept[m][r].append(kind.curve_part(predictions[r].sizes))
    curves = []
    for m in range(len(calibrated)):
        values = [
            {"coverage": hits[m, r] / nodes.size} | kind.curve_point(np.concatenate(kept[m][r]), nodes.size)
            for r in range(len(rates))
        ]
        names = ("coverage", *kind.curves)
        curves.append({name: np.array([value[name] for value in values], dtype=np.float64) for name in names})
    whole = [method.name_rows(type(pieces[0]).concat(pieces)) for method, pieces in zip(calibrated, parts, strict=True)]
    return whole, curves
