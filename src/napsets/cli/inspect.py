"""``napsets inspect``: why a node's set is what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from napsets.cli._like import Like, Record, read_record
from napsets.cli._methods import (
    Alike,
    By,
    LevelOption,
    MethodOption,
    Pool,
    chosen_method,
    ignored,
    make,
    with_features,
    with_file_groups,
)
from napsets.cli._options import (
    DEFAULT_SCORE,
    AllowEmpty,
    Alpha,
    DecayOption,
    Directed,
    DirectionName,
    DirectionOption,
    Edges,
    FallbackName,
    FallbackOption,
    FeaturesOption,
    Hops,
    IdKind,
    IdKindName,
    Labels,
    LabelsAre,
    LabelsName,
    Logits,
    Probabilities,
    Radius,
    ScoreOption,
    Seed,
    SkipUnknown,
    WeightsAre,
    make_decay,
    make_score,
)
from napsets.cli._output import Output, number, percent, table
from napsets.files import Inputs, read_inputs

if TYPE_CHECKING:
    from napsets.advice.evidence import NodeEvidence
    from napsets.advice.inspection import NodeInspection

__all__ = ["EXAMPLES", "inspect"]

EXAMPLES = [
    "napsets inspect --node 42 --like sets.parquet --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets inspect --node 42 --like report.html -e edges.csv -p p.csv -l y.csv --method naps-h",
    "napsets inspect --node user-7 -e edges.csv -p p.csv -l y.csv --hops 3 --decay geometric --neighbours 50",
    "napsets inspect --node 42 -e edges.csv -p p.csv -l y.csv --method informed",
    "napsets inspect --node 42 --config napsets.toml --json",
]

#: Labels whose evidence the terminal shows; JSON has all of them.
_SHOWN_LABELS = 8


def inspect(
    run: Output,
    context: typer.Context,
    node: Annotated[str, typer.Option("--node", help="The node's id, as the files have it.")],
    edges: Edges,
    probabilities: Probabilities,
    labels: Labels,
    like: Like = None,
    method: MethodOption = None,
    alpha: Alpha = 0.1,
    hops: Hops = 2,
    decay: DecayOption = None,
    pool: Pool = None,
    alike: Alike = None,
    radius: Radius = None,
    features: FeaturesOption = None,
    by: By = None,
    score: ScoreOption = DEFAULT_SCORE,
    seed: Seed = 0,
    allow_empty: AllowEmpty = True,
    fallback: FallbackOption = FallbackName.full,
    level: LevelOption = None,
    neighbours: Annotated[int, typer.Option("--neighbours", min=0, help="How many calibration nodes to list.")] = 10,
    directed: Directed = False,
    direction: DirectionOption = DirectionName.out,
    weights_are: WeightsAre = None,
    ids: IdKind = IdKindName.auto,
    skip_unknown: SkipUnknown = False,
    labels_are: LabelsAre = LabelsName.auto,
    logits: Logits = False,
) -> None:
    """Show why a node's set is what it is.

    Its neighbourhood by hop with weights, the scores of its labels, the threshold and where that comes from, and the
    calibration nodes whose scores are nearest to it. Where the labels around a node are evidence (informed, auto), also
    what the model said by itself, what each kind of evidence adds, and which labelled neighbours speak for which label.

    With the files and settings that `napsets predict` had, it explains the set that was written. --like takes the
    settings from that file, or from a report, where half of the labels may have been kept to judge. Without it, all
    labels calibrate.
    """
    from napsets.advice.inspection import inspect_node

    method = chosen_method(context, method)
    made = make(
        method,
        {
            "score": make_score(score),
            "alpha": alpha,
            "hops": hops,
            "decay": make_decay(decay, hops),
            "pool": pool,
            "alike": alike,
            "radius": radius,
            "direction": direction.value,
            "seed": seed,
            "allow_empty": allow_empty,
            "fallback": fallback.value,
            "level": None if level is None else level.value,
            "by": by,
        },
    )
    with run.steps() as steps:
        record = None if like is None else read_record(like)
        inputs = read_inputs(
            edges,
            probabilities,
            labels,
            directed=directed,
            ids=ids.value,
            skip_unknown=skip_unknown,
            labels_are=labels_are.value,
            logits=logits,
            weights_are=None if weights_are is None else weights_are.value,
            predicting=False,
            stage=steps.stage,
        )
        reading = {"ids": ids.value, "skip_unknown": skip_unknown}
        made = with_features(made, features, inputs, reading, steps.stage)
        made = with_file_groups(made, by, inputs, reading, steps.stage)
        place = inputs.ids.find(node)
        calibration = inputs.calibration if record is None else record.calibration(inputs)
        calibrated = made.calibrate(
            inputs.graph, inputs.probabilities, inputs.labels, calibration=calibration, ids=inputs.ids.keys
        )
        seen: Any = inspect_node(calibrated, place, alpha)
    notes = [*inputs.notes, *([] if record is None else record.notes(context.params, inputs))]
    for note in [*notes, *ignored(context, method)]:
        run.note(note)
    result = {"method": method} | _described(seen, inputs, neighbours)
    result |= {"calibration": int(calibration.size), "labelled": int(inputs.calibration.size)}
    result |= {"like": None if like is None else str(like)}
    choice = None if calibrated.choice is None else str(calibrated.choice)
    result |= {"choice": choice, "evidence": None}
    if seen.evidence is not None:
        result["evidence"] = _evidence(seen.evidence, inputs, neighbours)
    run.result(
        result,
        _head_table(result),
        seen.reason(),
        _calibrated_on(result, record),
        *([] if choice is None else [f"Chosen: {choice}."]),
        *([_hop_table(seen)] if seen.hops else []),
        _label_table(result),
        *([] if seen.evidence is None else _evidence_tables(result["evidence"])),
        _neighbour_table(result, seen.neighbours.size),
    )


def _calibrated_on(result: dict[str, Any], record: Record | None) -> str:
    used, labelled = result["calibration"], result["labelled"]
    which = f"all {labelled:,}" if used == labelled else f"{used:,} of {labelled:,}"
    return f"Calibrated on {which} labelled nodes" + ("." if record is None else f", as {record.path.name} was.")


def _described(seen: NodeInspection, inputs: Inputs, shown: int) -> dict[str, Any]:
    names = inputs.class_names
    chosen = seen.nearest(shown)
    around = zip(
        inputs.ids.take(seen.neighbours[chosen]).to_pylist(),
        seen.neighbour_hops[chosen],
        seen.neighbour_weights[chosen],
        inputs.labels[seen.neighbours[chosen]],
        seen.neighbour_scores[chosen],
        strict=True,
    )
    far = [None] * chosen.size if seen.neighbour_distances is None else seen.neighbour_distances[chosen].tolist()
    own = int(inputs.labels[seen.node])
    return {
        "node": inputs.ids.take(np.array([seen.node]))[0].as_py(),
        "alpha": seen.alpha,
        "set": [name for name, inside in zip(names, seen.member, strict=True) if inside],
        "threshold": seen.threshold,
        "support": seen.support,
        "effective_size": seen.effective_size,
        "fell_back": seen.fell_back,
        "neighbourhood_support": seen.neighbourhood_support,
        "neighbourhood_effective_size": seen.neighbourhood_effective_size,
        "u": seen.u,
        "label": names[own] if own >= 0 else None,
        "total_mass": seen.total_mass,
        "needed_mass": seen.needed_mass,
        "reached_mass": seen.reached_mass,
        "reason": seen.reason(),
        "hops": [vars(row) for row in seen.hops],
        "labels": [
            {"label": name, "probability": p, "score": s, "member": bool(inside)}
            for name, p, s, inside in zip(names, seen.probabilities, seen.scores, seen.member, strict=True)
        ],
        "neighbours": [
            {"node": who, "hop": int(hop) or None, "weight": weight, "label": names[label], "score": s}
            | ({} if distance is None else {"distance": distance})
            for (who, hop, weight, label, s), distance in zip(around, far, strict=True)
        ],
    }


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


def _head_table(result: dict[str, Any]) -> Any:
    own = [
        ("support of its neighbourhood", number(result["neighbourhood_support"])),
        ("effective size of its neighbourhood", number(result["neighbourhood_effective_size"], 2)),
    ]
    stands_in = result["support"] != result["neighbourhood_support"]
    rows = [
        ("method", result["method"]),
        ("set", "{" + ", ".join(result["set"]) + "}"),
        ("threshold τ", number(result["threshold"])),
        ("support", number(result["support"])),
        ("effective size", number(result["effective_size"], 2)),
        *(own if stands_in else []),
        ("its uniform number u", number(result["u"], 6)),
        ("its own label (never used for its own set)", "–" if result["label"] is None else result["label"]),
    ]
    return table(f"Node {result['node']} at alpha = {result['alpha']:g}", ["", ""], rows)


def _hop_table(seen: NodeInspection) -> Any:
    rows = [
        (
            row.hop,
            number(row.nodes),
            number(row.calibration),
            f"{row.weight:.4g}",
            f"{row.mass:.4g}",
            percent(row.mass / seen.total_mass if seen.total_mass else 0.0),
            number(row.median_score),
            number(row.within),
        )
        for row in seen.hops
    ]
    columns = ["hop", "nodes", "calibration", "weight w(k)", "mass", "share", "median score", "scores ≤ τ"]
    return table("Neighbourhood by hop", columns, rows)


def _label_table(result: dict[str, Any]) -> Any:
    ordered = sorted(result["labels"], key=lambda row: row["score"])
    rows = [
        (row["label"], number(row["probability"]), number(row["score"]), "in the set" if row["member"] else "out")
        for row in ordered
    ]
    return table("Labels: in the set where the score is at most τ", ["label", "probability", "score", ""], rows)


def _neighbour_table(result: dict[str, Any], in_reach: int) -> Any:
    by_length = any("distance" in row for row in result["neighbours"])

    def away(row: dict[str, Any]) -> Any:
        return f"{row['distance']:.4g}" if by_length else row["hop"] or "–"

    rows = [
        (row["node"], row["label"], away(row), f"{row['weight']:.4g}", number(row["score"]))
        for row in result["neighbours"]
    ]
    title = f"Calibration nodes with scores nearest to τ ({len(rows)} of {in_reach} in reach)"
    return table(title, ["node", "label", "distance" if by_length else "hop", "weight", "score"], rows, left=2)
