"""What ``napsets inspect`` says of a set of labels."""

from __future__ import annotations

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
from napsets.files import Inputs

if TYPE_CHECKING:
    from napsets.advice.evidence import NodeEvidence
    from napsets.advice.inspection import NodeInspection

__all__ = ["set_tables", "told_of_set"]

#: Labels whose evidence the terminal shows; JSON has all of them.
_SHOWN_LABELS = 8


def told_of_set(seen: NodeInspection, inputs: Inputs, shown: int) -> dict[str, Any]:
    """Return all that is said of a set, for tables and JSON."""
    names, own = inputs.class_names, int(inputs.labels[seen.node])
    return told_of_threshold(
        seen, inputs.ids, {"set": [name for name, inside in zip(names, seen.member, strict=True) if inside]}
    ) | {
        "u": seen.u,
        "label": names[own] if own >= 0 else None,
        "reason": seen.reason(),
        "labels": [
            {"label": name, "probability": p, "score": s, "member": bool(inside)}
            for name, p, s, inside in zip(names, seen.probabilities, seen.scores, seen.member, strict=True)
        ],
        "neighbours": with_neighbours(seen, inputs.ids, shown, "label", lambda place: names[inputs.labels[place]]),
        "evidence": None if seen.evidence is None else _evidence(seen.evidence, inputs, shown),
    }


def set_tables(result: dict[str, Any], seen: NodeInspection) -> tuple[Any, list[Any]]:
    """Return the first table of a set, and those that come after what the threshold follows from."""
    rows = [
        ("set", "{" + ", ".join(result["set"]) + "}"),
        *support_rows(result),
        ("its uniform number u", number(result["u"], 6)),
        ("its own label (not in its own threshold τ)", "–" if result["label"] is None else result["label"]),
    ]
    return head_table(result, rows), [
        *hop_tables(seen),
        _label_table(result),
        *([] if seen.evidence is None else _evidence_tables(result["evidence"])),
        neighbour_table(result, seen.neighbours.size, "label"),
    ]


def _label_table(result: dict[str, Any]) -> Any:
    ordered = sorted(result["labels"], key=lambda row: row["score"])
    rows = [
        (row["label"], number(row["probability"]), number(row["score"]), "in the set" if row["member"] else "out")
        for row in ordered
    ]
    return table("Labels: in the set where the score is at most τ", ["label", "probability", "score", ""], rows)


def _evidence(found: NodeEvidence, inputs: Inputs, shown: int) -> dict[str, Any]:
    names = inputs.class_names
    spoken = found.voices[:shown]
    who = inputs.ids.take(np.array([voice.node for voice in spoken], dtype=np.int64)).to_pylist()
    return {
        "sentence": found.sentence,
        "exponents": {name: getattr(found.exponents, name) for name in found.factors},
        "labels": [
            {
                "label": name,
                "model": found.model[y],
                "informed": found.informed[y],
                "log_odds": dict(zip(found.factors, found.contributions[:, y].tolist(), strict=True)),
            }
            for y, name in enumerate(names)
        ],
        "voices": [
            {"node": node, "hop": voice.hop, "label": names[voice.label], "odds": voice.odds}
            for node, voice in zip(who, spoken, strict=True)
        ],
        "speaking": len(found.voices),
    }


def _evidence_tables(found: dict[str, Any]) -> list[Any]:
    factors = list(found["exponents"])
    likely = sorted(found["labels"], key=lambda row: -max(row["informed"], row["model"]))[:_SHOWN_LABELS]
    rows = [
        (
            row["label"],
            number(row["model"]),
            number(row["informed"]),
            *(f"{row['log_odds'][name]:+.2f}" for name in factors),
        )
        for row in sorted(likely, key=lambda row: -row["informed"])
    ]
    title = f"Labels around it as evidence: for the average label here, {found['sentence']}"
    # The model is one of the factors, and what it says by itself a column of its own.
    columns = ["label", "model says", "informed", *factors]
    note = f"{len(rows)} of {len(found['labels'])} labels; from `{factors[0]}` on: what each adds to the log odds"
    voices = [(row["node"], row["label"], row["hop"], f"× {row['odds']:.2f}") for row in found["voices"]]
    spoken = f"Labelled nodes that speak, the strongest first ({len(voices)} of {found['speaking']})"
    return [
        table(title, columns, rows),
        note,
        table(spoken, ["node", "label", "hop", "odds of its label"], voices, left=2),
    ]
