"""What the library answers: every method of the table, of labels and of numbers, and what predictors and files give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

import napsets as ns
from golden import adapter
from golden.inputs import CLASSES, COLUMNS, World, world
from napsets.methods.table import suitable

ALPHAS = (0.05, 0.2, 0.4)

#: Why another processor may give other last digits, by what a case is made of. There the case is compared with a
#: relative tolerance of 1e-7; on a processor with the digits of the one that wrote the goldens, bit for bit.
_DIGITS = "logarithms and exponentials of evidence"
_SUMS = "sums of products (BLAS)"
_CURVES = "exponentials"


@dataclass(frozen=True)
class Of:
    """An array of the world, by its name."""

    name: str


@dataclass(frozen=True)
class Case:
    """One way to ask for sets or intervals.

    Attributes
    ----------
    name : str
        What a failure calls it.
    world : str
        What it is computed on.
    method : str
        A name of the table, or of a class of `napsets`.
    settings : dict
        Its settings; `Of` stands for an array of the world.
    alphas : tuple of float
        Error rates, from one search.
    score : str or None
        A score of numbers, for intervals.
    named : bool
        Whether nodes and classes have names.
    probabilities : str
        Which array of the world holds them.
    """

    name: str
    world: str
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    alphas: tuple[float, ...] = ALPHAS
    score: str | None = None
    named: bool = False
    probabilities: str = "probabilities"

    @property
    def digits(self) -> str:
        """Why the last digits depend on the processor; nothing where they do not."""
        words = f"{self.name} {self.method} {self.settings}".lower()
        reasons = {"informed": _DIGITS, "auto": _DIGITS, "snaps": _SUMS, "similarity": _SUMS, "gaussian": _CURVES}
        reasons |= {"geometric path": _CURVES, "sharpened": _CURVES}
        return next((reason for word, reason in reasons.items() if word in words), "")


def calibrate(case: Case) -> Any:
    """Return the predictor of a case, calibrated."""
    around = world(case.world)
    settings = {key: getattr(around, v.name) if isinstance(v, Of) else v for key, v in case.settings.items()}
    features = settings.pop("features", None)
    if case.score is not None:
        settings["score"] = case.score
    predictor = getattr(ns, case.method)(**settings) if case.method[0].isupper() else make(case.method, settings)
    outputs = getattr(around, case.probabilities) if case.score is None else around.outputs(case.score)
    truth = around.known if case.score is None else around.known_targets
    names: dict[str, Any] = {"ids": around.ids} if case.named else {}
    if features is not None:
        names["features"] = features
    if case.named and case.score is None:
        names["class_names"] = CLASSES
    if case.method == "SplitConformal":
        return predictor.calibrate(outputs, truth, around.calibration, graph=around.graph, **names)
    return predictor.calibrate(around.graph, outputs, truth, around.calibration, **names)


def make(method: str, settings: dict[str, Any]) -> Any:
    """Return a method of the table."""
    return ns.make_method(method, **suitable(method, settings))


def predicted(predictor: Any, around: World, alphas: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Return all that a user can see of the sets or intervals that a predictor gives."""
    predictions = predictor.predict(around.nodes, list(alphas))
    return {f"{alpha}/{key}": v for alpha, one in zip(alphas, predictions, strict=True) for key, v in kept(one).items()}


def kept(prediction: Any) -> dict[str, np.ndarray]:
    """Return the arrays of sets or intervals."""
    columns = {
        "thresholds": prediction.thresholds,
        "support": np.asarray(prediction.support).astype(np.int32),
        "effective_size": prediction.effective_size,
        "level": np.array([] if prediction.level is None else [prediction.level]),
    }
    if prediction.ids is not None:
        columns["ids"] = np.asarray(prediction.ids).astype("U7")
    if getattr(prediction, "class_names", None) is not None:
        columns["class_names"] = np.array(prediction.class_names, dtype="U5")
    if isinstance(prediction, ns.PredictionIntervals):
        return columns | {"lower": prediction.lower, "upper": prediction.upper, "centre": prediction.centre}
    columns["member"] = np.packbits(prediction.member, axis=1)
    if prediction.label_thresholds is not None:
        columns["label_thresholds"] = prediction.label_thresholds
    return columns


def chosen(predictor: Any) -> dict[str, Any] | None:
    """Return what an automatic method looked at and took, as data; None where nothing was chosen."""
    choice = adapter.choice_of(predictor)
    if choice is None:
        return None
    rows = [{key: row[key] for key in ("step", "name", "value", "difference", "se", "chosen")} for row in choice.rows()]
    record = {key: getattr(choice, key) for key in ("prefer", "alpha", "labels", "reference")}
    return {"candidates": rows, "choice": str(choice), **record}


# -- labels ------------------------------------------------------------------------------------------------------------

TABLE = (
    *("split", "thr", "naps", "naps-h", "naps-g", "naps-exact", "naps-lengths", "daps", "snaps"),
    *("by-class", "clustered", "by-degree", "by-community", "informed", "auto", "auto-small"),
)
GROUPS: dict[str, Any] = {
    "class": "class",
    "clusters": "clusters",
    "degree": "degree",
    "community": "community",
    "own numbers": Of("numbers"),
    "own names": Of("names"),
}
GROUPED = ("split", "naps", "naps-exact", "naps-lengths", "daps", "informed", "auto")
HOPS = ("naps", "naps-h", "naps-g", "naps-exact", "naps-lengths")


def of_labels() -> Iterator[Case]:
    """Every method of the table, and every setting where it makes a difference."""
    features = {"snaps": {"features": Of("features")}}
    for name in TABLE:
        yield Case(f"sets/{name}", "plain", name)
        yield Case(f"sets/{name}/no empty", "plain", name, {"allow_empty": False}, (0.6,))
        yield Case(f"sets/{name}/lengths", "lengths", name, features.get(name, {}), (0.2,))
        yield Case(f"sets/{name}/directed", "directed", name, {"seed": 3}, (0.2,))
    for name, by in product(GROUPED, GROUPS):
        yield Case(f"sets/{name}/by {by}", "plain", name, {"by": GROUPS[by]}, (0.2, 0.4))
    for name, direction in product(HOPS, ("out", "in", "both")):
        settings: dict[str, Any] = {"direction": direction}
        yield Case(f"sets/{name}/{direction}", "directed lengths", name, settings, (0.2, 0.4))
    for direction in ("in", "both"):
        settings = {"direction": direction, "by": "degree", "pool": 5.0, "alike": 3.0}
        yield Case(f"sets/naps/{direction}, by degree, pooled", "directed", "naps", settings, (0.2, 0.4))
    for name, score in product(
        ("split", "naps", "naps-exact", "daps", "informed", "by-class"), ("raps", "saps", "thr")
    ):
        yield Case(f"sets/{name}/{score}", "plain", name, {"score": score}, (0.2, 0.4))
    for name in ("naps", "naps-h", "naps-lengths"):
        yield Case(f"sets/{name}/global", "plain", name, {"fallback": "global", "hops": 1, "radius": 1.0}, (0.02, 0.2))
    for name in ("split", "naps", "naps-h", "naps-lengths", "daps", "by-class"):
        yield Case(f"sets/{name}/exact", "plain", name, {"level": "exact"}, (0.02, 0.2, 0.4))
    yield Case("sets/naps-exact/nominal", "plain", "naps-exact", {"level": "nominal"}, (0.2,))
    for hops in (0, 1, 3):
        yield Case(f"sets/naps/{hops} hops", "plain", "naps", {"hops": hops, "pool": 2.0}, (0.2,))
        yield Case(f"sets/naps-exact/{hops} hops", "plain", "naps-exact", {"hops": hops, "alike": 7.0}, (0.2,))
    for decay in ("uniform", "hyperbolic", "geometric", "linear", "gaussian"):
        settings = {"decay": decay, "radius": 2.5, "alike": 4.0}
        yield Case(f"sets/naps-lengths/{decay} path", "lengths", "naps-lengths", settings, (0.2, 0.4))
    yield Case("sets/naps/weights", "plain", "naps", {"decay": (1.0, 0.25, 0.5), "hops": 3}, (0.2,))
    yield Case("sets/snaps/features", "plain", "snaps", {"features": Of("features")}, (0.2, 0.4))
    for name in ("split", "naps", "daps", "informed"):
        yield Case(f"sets/{name}/single precision", "plain", name, {}, (0.2,), probabilities="single")
    for name in ("split", "naps", "naps-exact", "informed"):
        yield Case(f"sets/{name}/names", "plain", name, {"seed": 2**40 + 3}, (0.2,), named=True)


def of_predictors() -> Iterator[Case]:
    """The classes that people use, and what an automatic method chooses."""
    yield Case("classes/NAPS", "plain", "NAPS", {"hops": 3, "decay": "hyperbolic", "by": "class"})
    yield Case("classes/NAPS exact", "directed", "NAPS", {"exact": True, "pool": 4.0, "direction": "both"})
    yield Case("classes/SplitConformal", "plain", "SplitConformal", {"score": ns.RAPS(0.05, 1), "by": "clusters"})
    yield Case("classes/SplitConformal informed", "plain", "SplitConformal", {"score": ns.Informed()})
    yield Case("classes/Method by label", "plain", "Method", {"score": ns.ByLabel(ns.APS(), 0.5), "level": ns.Exact()})
    sharp = ns.Sharpened(ns.APS(), 1.6)
    yield Case("classes/Method sharpened", "plain", "Method", {"score": sharp, "localiser": ns.Hops(2, pool=3.0)})
    yield Case("classes/Method diffused", "plain", "Method", {"score": ns.Diffused(ns.THR(), 0.3), "groups": "degree"})
    yield Case("classes/Method similarity", "plain", "Method", {"score": ns.Similarity(ns.APS()), "groups": "class"})
    for about in (
        "few labels",
        "plain",
        "many labels",
        "many labels, lengths",
        "many labels, directed",
        "uneven",
        "uneven lengths",
    ):
        yield Case(f"choice/{about}", about, "Auto", {}, (0.1,))
        yield Case(f"choice/{about}, small", about, "Auto", {"prefer": "small", "alpha": 0.2}, (0.2,))
    yield Case("choice/one hop", "many labels", "Auto", {"max_hops": 1, "alpha": 0.05}, (0.05, 0.2))
    yield Case("choice/by class", "many labels", "Auto", {"by": "class", "seed": 2}, (0.2,))
    yield Case("choice/few labels, by class", "few labels", "Auto", {"by": "class"}, (0.2,))
    for score, about in product(COLUMNS, ("few labels", "many labels, lengths", "uneven lengths")):
        yield Case(f"choice/{score}, {about}", about, "Auto", {}, (0.1,), score)


# -- numbers -----------------------------------------------------------------------------------------------------------

NUMBERS = (
    *("split", "naps", "naps-h", "naps-g", "naps-exact", "naps-lengths"),
    *("by-degree", "by-community", "informed", "auto", "auto-small"),
)
NODE_GROUPS = ("degree", "community", "own numbers", "own names")


def of_numbers() -> Iterator[Case]:
    """Every method that makes intervals × every score of numbers."""
    for name, score in product(NUMBERS, COLUMNS):
        yield Case(f"intervals/{name}/{score}", "plain", name, {}, ALPHAS, score)
    for name, by in product(("split", "naps", "naps-exact", "informed", "auto"), NODE_GROUPS):
        yield Case(f"intervals/{name}/by {by}", "plain", name, {"by": GROUPS[by]}, (0.2, 0.4), "cqr")
    for score, by in product(("absolute", "normalised"), ("degree", "own names")):
        yield Case(f"intervals/naps/{score}, by {by}", "plain", "naps", {"by": GROUPS[by]}, (0.2,), score)
    for name, direction in product(HOPS, ("out", "in", "both")):
        yield Case(f"intervals/{name}/{direction}", "directed lengths", name, {"direction": direction}, (0.2,), "cqr")
    for score, direction in product(("absolute", "normalised"), ("in", "both")):
        settings = {"direction": direction, "pool": 5.0}
        yield Case(f"intervals/naps/{score}, {direction}", "directed", "naps", settings, (0.2,), score)
    for name in ("informed", "by-degree", "auto"):
        yield Case(f"intervals/{name}/directed", "directed", name, {}, (0.2,), "normalised")
    for name, level in (("split", "exact"), ("naps", "exact"), ("naps-exact", "nominal")):
        yield Case(f"intervals/{name}/{level}", "plain", name, {"level": level}, (0.02, 0.2), "absolute")
    settings = {"fallback": "global", "hops": 1}
    yield Case("intervals/naps/global", "plain", "naps", settings, (0.02, 0.2), "cqr")
    yield Case("intervals/naps/names", "plain", "naps", {"seed": 5}, (0.2,), "cqr", named=True)
    yield Case("intervals/naps-exact/names", "plain", "naps-exact", {"seed": 5}, (0.2,), "cqr", named=True)
    yield Case("intervals/NAPS", "lengths", "NAPS", {"exact": True, "by": "degree"}, (0.2,), "normalised")
    yield Case("intervals/SplitConformal", "plain", "SplitConformal", {"by": Of("numbers")}, (0.2,), "absolute")
    gaussian = ns.PathLengths(3.0, "gaussian", pool=2.0)
    yield Case("intervals/Method gaussian", "lengths", "Method", {"localiser": gaussian}, (0.2,), "cqr")


CASES: tuple[Case, ...] = (*of_labels(), *of_predictors(), *of_numbers())

# -- saved methods -----------------------------------------------------------------------------------------------------

_LENGTHS = ns.PathLengths(2.5, "hyperbolic", pool=3.0, direction="in")

#: What is saved and read again: predictions before and after are goldens.
FILES: tuple[Case, ...] = (
    Case("saved/naps", "saved", "NAPS", {"hops": 3, "decay": "hyperbolic", "fallback": "global"}),
    Case("saved/naps-exact-by-class", "saved", "NAPS", {"exact": True, "pool": 5.0, "by": "class"}, named=True),
    Case("saved/naps-directed", "saved lengths", "NAPS", {"direction": "both", "alike": 4.0, "by": "community"}),
    Case("saved/naps-informed", "saved", "NAPS", {"score": ns.Informed(), "exact": True, "seed": 8}),
    Case("saved/naps-cqr", "saved", "NAPS", {"pool": 4.0, "exact": True}, score="cqr", named=True),
    Case("saved/split-clusters", "saved", "SplitConformal", {"score": ns.SAPS(0.2), "by": "clusters"}, named=True),
    Case("saved/split-diffused", "saved", "SplitConformal", {"score": ns.Diffused(ns.APS(), 0.4)}),
    Case("saved/split-absolute-by-names", "saved", "SplitConformal", {"by": Of("names")}, score="absolute"),
    Case("saved/auto", "saved", "Auto", {"alpha": 0.2, "by": "degree"}, named=True),
    Case("saved/auto-small", "saved", "Auto", {"prefer": "small", "max_hops": 2}),
    Case("saved/auto-cqr", "saved", "Auto", {}, score="cqr", named=True),
    Case("saved/method-lengths", "saved lengths", "Method", {"localiser": _LENGTHS}, named=True),
    Case(
        "saved/method-lengths-by-numbers", "saved lengths", "Method", {"localiser": _LENGTHS, "groups": Of("numbers")}
    ),
    Case("saved/method-by-label", "saved", "Method", {"score": ns.ByLabel(ns.THR(), 0.25), "level": ns.Exact()}),
    Case("saved/method-similarity", "saved", "Method", {"score": ns.Similarity(ns.APS())}),
    Case(
        "saved/method-lengths-cqr", "saved lengths", "Method", {"localiser": _LENGTHS, "groups": "degree"}, score="cqr"
    ),
)
