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
    kind, held_out = _KINDS[inputs.prediction], {}
    if inspection.listeners is not None:  # at a full level: for which held-out nodes a candidate is evidence
        listeners = inputs.ids.take(inspection.listeners).to_pylist()
        held_out = {"base_threshold": inspection.base_threshold, "listeners": listeners}
    return {
        "node": inputs.ids.take(np.array([inspection.node]))[0].as_py(),
        "alpha": inspection.alpha,
        **kind.outcome(inspection, inputs),
        **held_out,
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


def _records(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return columns as rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _neighbours(inspection: Any, inputs: Inputs, shown: int) -> list[dict[str, Any]]:
    """Return the calibration nodes with scores nearest to the threshold."""
    kind, chosen = _KINDS[inputs.prediction], inspection.nearest(shown)
    nodes, distances = inspection.neighbours[chosen], inspection.neighbour_distances
    columns = {
        "node": inputs.ids.take(nodes).to_pylist(),
        "hop": [int(hop) or None for hop in inspection.neighbour_hops[chosen]],
        "weight": inspection.neighbour_weights[chosen],
        kind.truth: [kind.truth_of(inputs, int(node)) for node in nodes],
        "score": inspection.neighbour_scores[chosen],
    }
    return _records(columns if distances is None else columns | {"distance": distances[chosen].tolist()})


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
        names, member, own = inputs.class_names or [], inspection.member.tolist(), inspection.label_thresholds
        columns: dict[str, Any] = {"label": names, "probability": inspection.probabilities, "score": inspection.scores}
        columns |= {"member": member} | ({} if own is None else {"threshold": own})
        included = [name for name, inside in zip(names, member, strict=True) if inside]
        return {"set": included, "u": inspection.u, "labels": _records(columns)}

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
        columns: dict[str, Any] = {"label": inputs.class_names or []}
        columns |= {"model": evidence.model, "informed": evidence.informed}
        columns["log_odds"] = _records(dict(zip(evidence.factors, evidence.contributions.tolist(), strict=True)))
        exponents = {name: getattr(evidence.exponents, name) for name in evidence.factors}
        return {"exponents": exponents, "labels": _records(columns)}

    def voice(self, voice: Any, evidence: Any, inputs: Inputs) -> dict[str, Any]:
        return {"label": (inputs.class_names or [])[voice.label], "odds": voice.odds}

    def evidence_tables(self, evidence: dict[str, Any]) -> list[Any]:
        factors = list(evidence["exponents"])
        likely = sorted(evidence["labels"], key=lambda row: -max(row["informed"], row["model"]))[:_SHOWN_LABELS]
        likely.sort(key=lambda row: -row["informed"])
        added = [[f"{row['log_odds'][name]:+.2f}" for name in factors] for row in likely]
        rows = [
            (row["label"], number(row["model"]), number(row["informed"]), *odds)
            for row, odds in zip(likely, added, strict=True)
        ]
        title = f"Neighbours' labels as evidence: for the average label here, {evidence['sentence']}"
        # The model is one of the factors, and what it says by itself a column of its own.
        columns = ["label", "P(model)", "P(informed)", *factors]
        labels = f"{len(rows)} of {len(evidence['labels'])} labels"
        voices = [(row["node"], row["label"], row["hop"], f"× {row['odds']:.2f}") for row in evidence["voices"]]
        return [
            table(title, columns, rows),
            f"{labels}; from `{factors[0]}` on: what each adds to the log odds",
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
        columns = {
            "output": inspection.columns,
            "model": inspection.model.tolist(),
            "used": inspection.outputs.tolist(),
        }
        ends = {"lower": inspection.lower, "upper": inspection.upper, "width": inspection.width}
        return ends | {"prediction": inspection.centre, "rule": inspection.rule, "outputs": _records(columns)}

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
        rows = [
            (row["output"], number(row["model"]), number(row["used"]), signed(row["used"] - row["model"]))
            for row in result["outputs"]
        ]
        if result["evidence"] is None:
            return table("The model's outputs", ["", "model"], [row[:2] for row in rows])
        return table("The model's outputs and the terms of the interval", ["", "model", "informed", "shift"], rows)

    def evidence_parts(self, evidence: Any, inputs: Inputs) -> dict[str, Any]:
        outputs = list(evidence.outputs)
        columns: dict[str, Any] = {"term": evidence.terms, "value": evidence.values.tolist()}
        columns["labelled"] = [None] * (len(evidence.terms) - evidence.counts.size) + evidence.counts.tolist()
        for name, per_output in (("coefficients", evidence.coefficients), ("adds", evidence.contributions)):
            columns[name] = _records(dict(zip(outputs, per_output.tolist(), strict=True)))
        return {"outputs": outputs, "terms": _records(columns)}

    def voice(self, voice: Any, evidence: Any, inputs: Inputs) -> dict[str, Any]:
        moves = dict(zip(evidence.outputs, voice.shifts.tolist(), strict=True))
        return {"target": voice.target, "residual": voice.residual, "moves": moves}

    def evidence_tables(self, evidence: dict[str, Any]) -> list[Any]:
        outputs, columns, rows = evidence["outputs"], ["", "here"], []
        for name in outputs:
            columns += [f"× for {name}", f"adds to {name}"]
        for term in evidence["terms"]:
            words = _WORDS.get(term["term"], f"the model's {term['term']}").format(term["labelled"])
            rows.append([words, number(term["value"])])
            for name in outputs:
                rows[-1] += [f"{term['coefficients'][name]:.4g}", signed(term["adds"][name])]
        voices = [
            (
                row["node"],
                number(row["target"]),
                row["hop"],
                signed(row["residual"]),
                *map(signed, row["moves"].values()),
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
    rows = [("threshold τ", number(result["threshold"]))]
    alike = result["support"] == result["neighbourhood_support"]
    for which, words in [("", "")] if alike else [("", ""), ("neighbourhood_", " of its neighbourhood")]:
        rows.append((f"support{words}", number(result[f"{which}support"])))
        rows.append((f"effective size{words}", number(result[f"{which}effective_size"], 2)))
    return rows


def _hop_tables(inspection: Any) -> list[Any]:
    """Return the neighbourhood by hop, where hops count."""
    if not inspection.hops:
        return []
    whole = inspection.total_mass or 1.0  # where it is 0, so is that of every hop
    rows = [
        (row.hop, number(row.nodes), number(row.calibration), f"{row.weight:.4g}", f"{row.mass:.4g}",
         percent(row.mass / whole), number(row.median_score), number(row.within))
        for row in inspection.hops
    ]  # fmt: skip
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
