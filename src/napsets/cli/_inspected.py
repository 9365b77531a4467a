"""What ``napsets inspect`` says of one node's set or interval, for tables and JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from napsets.cli._output import number, percent, signed, table
from napsets.files import Inputs
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

#: What is said of the threshold.
_THRESHOLD = (
    "threshold", "support", "effective_size", "fell_back", "neighbourhood_support", "neighbourhood_effective_size",
    "total_mass", "needed_mass", "reached_mass",
)  # fmt: skip
#: Labels whose evidence the terminal shows; JSON has all of them.
_SHOWN_LABELS = 8


def explain(inspection: Any, inputs: Inputs, shown: int) -> dict[str, Any]:
    """Return all that is said of a node, with at most this many neighbours and labelled nodes as evidence."""
    kind = _KINDS[inputs.prediction]
    return {
        "node": inputs.ids.take(np.array([inspection.node]))[0].as_py(),
        "alpha": inspection.alpha,
        **kind.outcome(inspection, inputs),
        **_full_level(inspection, inputs),
        **{name: getattr(inspection, name) for name in _THRESHOLD},
        "hops": [vars(row) for row in inspection.hops],
        kind.truth: kind.truth_of(inputs, inspection.node),
        "reason": inspection.reason(),
        "neighbours": _neighbours(inspection, inputs, shown),
        "evidence": None if inspection.evidence is None else _evidence(inspection.evidence, inputs, shown),
    }


def explanation_tables(result: dict[str, Any], inspection: Any, prediction: type[Prediction]) -> tuple[Any, list[Any]]:
    """Return the first table, and those that come after what the threshold follows from."""
    kind = _KINDS[prediction]
    title = f"Node {result['node']} at alpha = {result['alpha']:g}"
    evidence = [] if result["evidence"] is None else kind.evidence_tables(result["evidence"])
    return table(title, ["", ""], [("method", result["method"]), *kind.head_rows(result)]), [
        *_hop_tables(inspection),
        kind.score_table(result),
        *evidence,
        _neighbour_table(result, inspection.neighbours.size, kind.truth),
    ]


def _full_level(inspection: Any, inputs: Inputs) -> dict[str, Any]:
    """Return for which held-out nodes a candidate is evidence, and the threshold without any, at a full level."""
    if inspection.listeners is None:
        return {}
    listeners = inputs.ids.take(inspection.listeners).to_pylist()
    return {"base_threshold": inspection.base_threshold, "listeners": listeners}


def _neighbours(inspection: Any, inputs: Inputs, shown: int) -> list[dict[str, Any]]:
    """Return the calibration nodes with scores nearest to the threshold."""
    kind, chosen = _KINDS[inputs.prediction], inspection.nearest(shown)
    nodes, distances = inspection.neighbours[chosen], inspection.neighbour_distances
    rows = [
        {"node": name, "hop": int(hop) or None, "weight": weight, kind.truth: kind.truth_of(inputs, int(node)),
         "score": score}
        for name, node, hop, weight, score in zip(
            inputs.ids.take(nodes).to_pylist(), nodes, inspection.neighbour_hops[chosen],
            inspection.neighbour_weights[chosen], inspection.neighbour_scores[chosen], strict=True,
        )
    ]  # fmt: skip
    if distances is not None:
        rows = [row | {"distance": distance} for row, distance in zip(rows, distances[chosen].tolist(), strict=True)]
    return rows


def _evidence(evidence: Any, inputs: Inputs, shown: int) -> dict[str, Any]:
    """Return what the labels around the node contributed, and the labelled nodes with the strongest evidence."""
    kind, voices = _KINDS[inputs.prediction], evidence.voices[:shown]
    nodes = inputs.ids.take(np.array([voice.node for voice in voices], dtype=np.int64)).to_pylist()
    return {
        "sentence": evidence.sentence,
        **kind.evidence_parts(evidence, inputs),
        "voices": [
            {"node": node, "hop": voice.hop} | kind.voice(voice, evidence, inputs)
            for node, voice in zip(nodes, voices, strict=True)
        ],
        "speaking": len(evidence.voices),
    }


class _Sets:
    """What is said of a set."""

    truth = "label"

    def outcome(self, inspection: Any, inputs: Inputs) -> dict[str, Any]:
        names = inputs.class_names or []
        return {
            "set": [name for name, inside in zip(names, inspection.member, strict=True) if inside],
            "u": inspection.u,
            "labels": [
                {"label": name, "probability": p, "score": s, "member": bool(inside)}
                | ({} if inspection.label_thresholds is None else {"threshold": inspection.label_thresholds[y]})
                for y, (name, p, s, inside) in enumerate(
                    zip(names, inspection.probabilities, inspection.scores, inspection.member, strict=True)
                )
            ],
        }

    def truth_of(self, inputs: Inputs, node: int) -> Any:
        label = int(inputs.truth[node])
        return (inputs.class_names or [])[label] if label >= 0 else None

    def head_rows(self, result: dict[str, Any]) -> list[tuple[str, str]]:
        return [
            ("set", "{" + ", ".join(result["set"]) + "}"),
            *_support_rows(result),
            ("its uniform number u", number(result["u"], 6)),
            ("its label (not used for its own threshold)", "–" if result["label"] is None else result["label"]),
        ]

    def score_table(self, result: dict[str, Any]) -> Any:
        rows = [
            (
                *(row["label"], number(row["probability"]), number(row["score"])),
                *([number(row["threshold"])] if "threshold" in row else []),
                "in the set" if row["member"] else "out",
            )
            for row in sorted(result["labels"], key=lambda row: row["score"])
        ]
        own = ["its τ"] if "threshold" in result["labels"][0] else []
        title = f"A label is in the set if its score is at most {'its ' * len(own)}τ"
        return table(title, ["label", "probability", "score", *own, ""], rows)

    def evidence_parts(self, evidence: Any, inputs: Inputs) -> dict[str, Any]:
        return {
            "exponents": {name: getattr(evidence.exponents, name) for name in evidence.factors},
            "labels": [
                {
                    "label": name,
                    "model": evidence.model[y],
                    "informed": evidence.informed[y],
                    "log_odds": dict(zip(evidence.factors, evidence.contributions[:, y].tolist(), strict=True)),
                }
                for y, name in enumerate(inputs.class_names or [])
            ],
        }

    def voice(self, voice: Any, evidence: Any, inputs: Inputs) -> dict[str, Any]:
        return {"label": (inputs.class_names or [])[voice.label], "odds": voice.odds}

    def evidence_tables(self, evidence: dict[str, Any]) -> list[Any]:
        factors = list(evidence["exponents"])
        likely = sorted(evidence["labels"], key=lambda row: -max(row["informed"], row["model"]))[:_SHOWN_LABELS]
        rows = [
            (
                row["label"],
                number(row["model"]),
                number(row["informed"]),
                *(f"{row['log_odds'][name]:+.2f}" for name in factors),
            )
            for row in sorted(likely, key=lambda row: -row["informed"])
        ]
        title = f"Neighbours' labels as evidence: for the average label here, {evidence['sentence']}"
        # The model is one of the factors, and what it says by itself a column of its own.
        columns = ["label", "P(model)", "P(informed)", *factors]
        note = (
            f"{len(rows)} of {len(evidence['labels'])} labels; from `{factors[0]}` on: what each adds to the log odds"
        )
        voices = [(row["node"], row["label"], row["hop"], f"× {row['odds']:.2f}") for row in evidence["voices"]]
        return [
            table(title, columns, rows),
            note,
            table(_spoken(evidence), ["node", "label", "hop", "odds of its label"], voices, left=2),
        ]


#: What the terms of shifted outputs are, in words; those of residuals say of how many labelled nodes.
_WORDS = {
    "constant": "constant",
    "near": "near: mean residual of {:.4g} labelled neighbours",
    "far": "far: mean residual two hops away, total weight {:.4g}",
}


class _Intervals:
    """What is said of an interval."""

    truth = "target"

    def outcome(self, inspection: Any, inputs: Inputs) -> dict[str, Any]:
        columns = zip(inspection.columns, inspection.model.tolist(), inspection.outputs.tolist(), strict=True)
        return {
            "lower": inspection.lower,
            "upper": inspection.upper,
            "width": inspection.width,
            "prediction": inspection.centre,
            "rule": inspection.rule,
            "outputs": [{"output": name, "model": model, "used": used} for name, model, used in columns],
        }

    def truth_of(self, inputs: Inputs, node: int) -> Any:
        target = float(inputs.truth[node])
        return None if math.isnan(target) else target

    def head_rows(self, result: dict[str, Any]) -> list[tuple[str, str]]:
        return [
            ("interval", f"[{number(result['lower'])}, {number(result['upper'])}]"),
            (f"how it is made ({result['score']})", result["rule"]),
            ("width", number(result["width"])),
            ("best guess", number(result["prediction"])),
            *_support_rows(result),
            ("its own target (left out of its own threshold τ)", number(result["target"])),
        ]

    def score_table(self, result: dict[str, Any]) -> Any:
        if result["evidence"] is None:
            rows = [(row["output"], number(row["model"])) for row in result["outputs"]]
            return table("The model's outputs", ["", "model"], rows)
        shifted = [
            (row["output"], number(row["model"]), number(row["used"]), signed(row["used"] - row["model"]))
            for row in result["outputs"]
        ]
        title = "The model's outputs and the terms of the interval"
        return table(title, ["", "model", "informed", "shift"], shifted)

    def evidence_parts(self, evidence: Any, inputs: Inputs) -> dict[str, Any]:
        outputs = evidence.outputs
        counts = [None] * (len(evidence.terms) - evidence.counts.size) + evidence.counts.tolist()
        columns = zip(
            evidence.terms,
            evidence.values.tolist(),
            counts,
            evidence.coefficients.T.tolist(),
            evidence.contributions.T.tolist(),
            strict=True,
        )
        return {
            "outputs": list(outputs),
            "terms": [
                {
                    "term": name,
                    "value": value,
                    "labelled": count,
                    "coefficients": dict(zip(outputs, weights, strict=True)),
                    "adds": dict(zip(outputs, adds, strict=True)),
                }
                for name, value, count, weights, adds in columns
            ],
        }

    def voice(self, voice: Any, evidence: Any, inputs: Inputs) -> dict[str, Any]:
        moves = dict(zip(evidence.outputs, voice.shifts.tolist(), strict=True))
        return {"target": voice.target, "residual": voice.residual, "moves": moves}

    def evidence_tables(self, evidence: dict[str, Any]) -> list[Any]:
        outputs = evidence["outputs"]
        rows = [
            (
                _WORDS.get(term["term"], f"the model's {term['term']}").format(term["labelled"]),
                number(term["value"]),
                *(
                    text
                    for name in outputs
                    for text in (f"{term['coefficients'][name]:.4g}", signed(term["adds"][name]))
                ),
            )
            for term in evidence["terms"]
        ]
        columns = ["", "here", *(text for name in outputs for text in (f"× for {name}", f"adds to {name}"))]
        voices = [
            (
                row["node"],
                number(row["target"]),
                row["hop"],
                signed(row["residual"]),
                *(signed(row["moves"][name]) for name in outputs),
            )
            for row in evidence["voices"]
        ]
        heads = ["node", "target", "hop", "residual", *(f"moves {name}" for name in outputs)]
        title = f"Neighbours' targets as evidence: {evidence['sentence']}"
        return [table(title, columns, rows), table(_spoken(evidence), heads, voices)]


_KINDS: dict[type[Prediction], Any] = {PredictionSets: _Sets(), PredictionIntervals: _Intervals()}


def _spoken(evidence: dict[str, Any]) -> str:
    shown, total = len(evidence["voices"]), evidence["speaking"]
    return f"Labelled nodes that are evidence, the strongest first ({shown} of {total})"


def _support_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the threshold rests on, and the neighbourhood's own where another stands in."""
    rows = [
        ("threshold τ", number(result["threshold"])),
        ("support", number(result["support"])),
        ("effective size", number(result["effective_size"], 2)),
    ]
    if result["support"] == result["neighbourhood_support"]:
        return rows
    return [
        *rows,
        ("support of its neighbourhood", number(result["neighbourhood_support"])),
        ("effective size of its neighbourhood", number(result["neighbourhood_effective_size"], 2)),
    ]


def _hop_tables(inspection: Any) -> list[Any]:
    """Return the neighbourhood by hop, where hops count."""
    if not inspection.hops:
        return []
    rows = [
        (
            row.hop,
            number(row.nodes),
            number(row.calibration),
            f"{row.weight:.4g}",
            f"{row.mass:.4g}",
            percent(row.mass / inspection.total_mass if inspection.total_mass else 0.0),
            number(row.median_score),
            number(row.within),
        )
        for row in inspection.hops
    ]
    columns = ["hop", "nodes", "calibration", "weight w(k)", "mass", "share", "median score", "scores ≤ τ"]
    return [table("Neighbourhood by hop", columns, rows)]


def _neighbour_table(result: dict[str, Any], in_reach: int, name: str) -> Any:
    """Return the calibration nodes nearest to the threshold, with the column of what is true of them."""
    by_length = any("distance" in row for row in result["neighbours"])

    def away(row: dict[str, Any]) -> Any:
        return f"{row['distance']:.4g}" if by_length else row["hop"] or "–"

    def truth(row: dict[str, Any]) -> Any:
        return row[name] if isinstance(row[name], str) else number(row[name])

    rows = [
        (row["node"], truth(row), away(row), f"{row['weight']:.4g}", number(row["score"]))
        for row in result["neighbours"]
    ]
    title = f"Calibration nodes with scores nearest to τ ({len(rows)} of {in_reach} in reach)"
    columns = ["node", name, "distance" if by_length else "hop", "weight", "score"]
    return table(title, columns, rows, left=1 + all(isinstance(row[name], str) for row in result["neighbours"]))
