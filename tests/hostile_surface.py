"""All that hostile calls are made of: the public functions, and the methods of what they make.

The boundary is the public one: the names of `napsets`, with those that only experts call, the functions of
`napsets.datasets`, and the methods of what these return. What rooms hand to each other behind it (`Labelled`,
`Reference`, bound scores, fitted localisers, levels and groups) is made of arguments that were checked at the boundary,
and checks nothing again: it is not called here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import napsets as ns
from hostile_worlds import WORLDS, World
from napsets import datasets

ROOMS = {"gnn", "paper", "report", "spark"}  # with surfaces, and tests, of their own


#: Methods that take what other methods of the package made: a step on the way, which users do not call.
INNER = {
    "Calibrated.check_nodes",
    "Cut.accepts",
    "Method.with_ranks",
    "Steering.update",
    "Method.on",
    "bind",
    "spread",
    "of_names",
    "formula",
    "html_cells",
    "one",
    "calibrated",
    "check_rows",
    "explain",
    "fit",
    "unchecked",
    "of_scores",
    "with_names",
    "with_p_values",
    "matrix_of",
    "Weights.arrays",
    "contains_own",
    "calibrate_data",
    "foresee",
    "check_column",
    "name_rows",
    "thresholds_at",
    "check_truth",
    "check_outputs",
    "known",
    "known_to_model",
    "num_labels",
    "reference_size",
    "size_text",
    "of_size",
    "same_as",
    "informed",
    "from_description",
    "concat",
}
#: Records that the package makes and hands out: their constructors take what was checked.
RECORDS = {"Calibrated", "Choice", "CoverageGap", "Prediction"}
#: Parameters that stand for any number of others.
UNNAMED = {"self", "args", "kwargs", "params", "options", "changes", "arguments", "named", "settings"}
#: What takes long: called less often than the others.
SLOW = {
    "Auto.calibrate",
    "compare",
    "amazon_predictions",
    "load",
    "Live.start",
    "sbm",
    "dcsbm",
}


def surface() -> dict[str, Callable[[World], Any]]:
    """Return, by name, how each public function, constructor and method is got hold of in a world."""
    functions: dict[str, Any] = {}
    for name in (*ns._MODULES, *(f"datasets.{each}" for each in datasets.__all__)):
        if name in ROOMS or name == "datasets":
            continue
        value = getattr(datasets, name.removeprefix("datasets.")) if name.startswith("datasets.") else getattr(ns, name)
        if isinstance(value, type) and issubclass(value, BaseException | Warning):
            continue
        if isinstance(value, type):
            if name not in RECORDS:
                functions[name] = lambda world, value=value: value
            for method in methods_of(value, of_class=True):
                functions[f"{name}.{method}"] = lambda world, value=value, method=method: getattr(value, method)
        elif callable(value) and name != "list_methods":
            functions[name] = lambda world, value=value: value
    for name, make in SUBJECTS.items():
        for method in methods_of(type(make(WORLDS[0]))):
            functions[f"{name}: {method}"] = lambda world, make=make, method=method: getattr(make(world), method)
    return functions


def methods_of(kind: type, *, of_class: bool = False) -> list[str]:
    """Return the names of the public methods of instances, or of the class itself."""
    names = []
    for name in sorted(set(dir(kind))):
        if name.startswith("_") and name != "__getitem__":
            continue
        raw = inspect.getattr_static(kind, name)
        of_the_class = isinstance(raw, classmethod | staticmethod)
        if {name, f"{kind.__name__}.{name}"} & INNER:
            continue
        if of_the_class == of_class and (of_the_class or inspect.isfunction(raw)):
            names.append(name)
    return names


def _once(make: Callable[[World], Any]) -> Callable[[World], Any]:
    """Make a thing once for each world."""
    kept: dict[int, Any] = {}

    def get(world: World) -> Any:
        if id(world) not in kept:
            kept[id(world)] = make(world)
        return kept[id(world)]

    return get


LOCALISERS = {
    "Everyone": ns.Everyone(),
    "Hops": ns.Hops(2),
    "Hops pooled": ns.Hops(1, "geometric", 5.0, 5.0),
    "PathLengths": ns.PathLengths(1.5, pool=1.0, alike=1.0),
}
SCORES = {
    "APS": ns.APS(),
    "THR": ns.THR(),
    "RAPS": ns.RAPS(),
    "SAPS": ns.SAPS(),
    "Sharpened": ns.Sharpened(),
    "Diffused": ns.Diffused(),
    "Similarity": ns.Similarity(neighbours=3),
    "Informed": ns.Informed(),
    "ByLabel": ns.ByLabel(),
    "CQR": ns.CQR(),
    "InformedIntervals": ns.InformedIntervals(),
}
GROUPINGS = {"ByClass": ns.ByClass(), "Clustered": ns.Clustered(), "ByDegree": ns.ByDegree(3)}


SUBJECTS: dict[str, Callable[[World], Any]] = {
    "Graph": lambda world: world.graph,
    "PredictionSets": lambda world: world.sets,
    "PredictionIntervals": lambda world: world.intervals,
    "Calibrated": lambda world: world.method,
    "Method": lambda world: world.method.method,
    "Nominal": lambda world: ns.Nominal(),
    "Exact": lambda world: ns.Exact(),
    "ByGroup": lambda world: ns.ByGroup(world.y),
    "NodeDataset": _once(
        lambda world: ns.datasets.NodeDataset(
            world.graph, np.ones((world.size, 2)), world.y, world.calibration, [], world.nodes
        )
    ),
    "NodePredictions": _once(lambda world: ns.datasets.NodePredictions(np.arange(world.size), world.p, world.y)),
    "NAPS": lambda world: ns.NAPS(),
    "SplitConformal": lambda world: ns.SplitConformal(),
    "Auto": lambda world: ns.Auto(),
    "NAPS calibrated": _once(
        lambda world: ns.NAPS(pool=2.0).calibrate(world.graph, world.p, world.y, world.calibration)
    ),
    "Steered": lambda world: ns.Steered(),
    "Live": lambda world: ns.Live.start(WORLDS[0].graph, WORLDS[0].p, WORLDS[0].y, WORLDS[0].calibration),
    "CoverageGap": _once(lambda world: ns.coverage_gap(world.sets, world.y, world.y)),
    **{f"{name}": (lambda world, each=each: each) for name, each in {**LOCALISERS, **SCORES, **GROUPINGS}.items()},
}
