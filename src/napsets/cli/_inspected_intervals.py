"""What ``napsets inspect --task regression`` says of an interval of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.cli._inspected import (
    head_table,
    hop_tables,
    neighbour_table,
    support_rows,
    told_of_threshold,
    with_neighbours,
)
from napsets.cli._output import number, table
from napsets.files.regression import RegressionInputs

if TYPE_CHECKING:
    from napsets.advice.inspection import IntervalInspection
    from napsets.advice.interval_evidence import IntervalEvidence

__all__ = ["interval_tables", "told_of_interval"]


def told_of_interval(seen: IntervalInspection, inputs: RegressionInputs, shown: int) -> dict[str, Any]:
    """Return all that is said of an interval, for tables and JSON."""
    own = float(inputs.targets[seen.node])
    ends = {"lower": seen.lower, "upper": seen.upper, "width": seen.width, "prediction": seen.centre}
    return told_of_threshold(seen, inputs.ids, ends) | {
        "target": None if math.isnan(own) else own,
        "reason": seen.reason(),
        "rule": seen.rule,
        "outputs": [
            {"output": name, "model": model, "used": used}
            for name, model, used in zip(seen.columns, seen.model.tolist(), seen.outputs.tolist(), strict=True)
        ],
        "neighbours": with_neighbours(seen, inputs.ids, shown, "target", lambda place: float(inputs.targets[place])),
        "evidence": None if seen.evidence is None else _evidence(seen.evidence, inputs, shown),
    }


def _evidence(found: IntervalEvidence, inputs: RegressionInputs, shown: int) -> dict[str, Any]:
    spoken = found.voices[:shown]
    who = inputs.ids.take(np.array([voice.node for voice in spoken], dtype=np.int64)).to_pylist()
    counts = [None] * (len(found.terms) - found.counts.size) + found.counts.tolist()
    return {
        "sentence": found.sentence,
        "outputs": list(found.outputs),
        "terms": [
            {
                "term": name,
                "value": value,
                "labelled": count,
                "coefficients": dict(zip(found.outputs, weights, strict=True)),
                "adds": dict(zip(found.outputs, adds, strict=True)),
            }
            for name, value, count, weights, adds in zip(
                found.terms,
                found.values.tolist(),
                counts,
                found.coefficients.T.tolist(),
                found.contributions.T.tolist(),
                strict=True,
            )
        ],
        "voices": [
            {
                "node": node,
                "hop": voice.hop,
                "target": voice.target,
                "residual": voice.residual,
                "moves": dict(zip(found.outputs, voice.shifts.tolist(), strict=True)),
            }
            for node, voice in zip(who, spoken, strict=True)
        ],
        "speaking": len(found.voices),
    }


def interval_tables(result: dict[str, Any], seen: IntervalInspection) -> tuple[Any, list[Any]]:
    """Return the first table of an interval, and those that come after what the threshold follows from."""
    rows = [
        ("interval", f"[{number(result['lower'])}, {number(result['upper'])}]"),
        (f"how it is made ({result['score']})", result["rule"]),
        ("width", number(result["width"])),
        ("best guess", number(result["prediction"])),
        *support_rows(result),
        ("its own target (left out of its own threshold τ)", number(result["target"])),
    ]
    return head_table(result, rows), [
        *hop_tables(seen),
        _output_table(result),
        *([] if result["evidence"] is None else _evidence_tables(result["evidence"])),
        neighbour_table(result, seen.neighbours.size, "target"),
    ]


def _output_table(result: dict[str, Any]) -> Any:
    if result["evidence"] is None:
        rows = [(row["output"], number(row["model"])) for row in result["outputs"]]
        return table("What the model said", ["", "model says"], rows)
    shifted = [
        (row["output"], number(row["model"]), number(row["used"]), f"{row['used'] - row['model']:+.4f}")
        for row in result["outputs"]
    ]
    return table(
        "What the model said, and what the interval is made of", ["", "model says", "informed", "shift"], shifted
    )


#: What the terms are, in words; those of residuals say of how many labelled nodes.
_WORDS = {
    "constant": "constant",
    "near": "near: mean residual of {:.4g} labelled neighbours",
    "far": "far: mean residual two hops away, of {:.4g} in shares",
}


def _evidence_tables(found: dict[str, Any]) -> list[Any]:
    outputs = found["outputs"]
    rows = [
        (
            _WORDS.get(term["term"], f"the model's {term['term']}").format(term["labelled"]),
            number(term["value"]),
            *(text for name in outputs for text in (f"{term['coefficients'][name]:.4g}", f"{term['adds'][name]:+.4f}")),
        )
        for term in found["terms"]
    ]
    title = f"Targets around it as evidence: {found['sentence']}"
    columns = ["", "here", *(text for name in outputs for text in (f"× for {name}", f"adds to {name}"))]
    voices = [
        (
            row["node"],
            number(row["target"]),
            row["hop"],
            f"{row['residual']:+.4f}",
            *(f"{row['moves'][name]:+.4f}" for name in outputs),
        )
        for row in found["voices"]
    ]
    spoken = f"Labelled nodes that speak, the strongest first ({len(voices)} of {found['speaking']})"
    heads = ["node", "target", "hop", "residual", *(f"moves {name}" for name in outputs)]
    return [table(title, columns, rows), table(spoken, heads, voices)]
