"""Notes on predictions that fall short of what was wanted: by how much, and the command that would do better."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from napsets.checks.text import percent
from napsets.methods.table import settings_of
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

#: A smaller share of sets without a threshold of their own is not mentioned.
_WORTH_SAYING = 0.1

#: From this share of full sets on, a note says that they are uninformative.
_MOSTLY_FULL = 0.5

#: Options that do not change what is computed; --config is replaced by what it filled in.
_LEFT_OUT = {"json", "quiet", "debug", "config", "help"}

_USUAL_HOPS = 2

#: What nodes with too little support get.
_WITHOUT_SUPPORT: dict[type[Prediction], str] = {
    PredictionSets: "sets ({}) contain every label",
    PredictionIntervals: "intervals ({}) are the whole line",
}


def support_note(result: Mapping[str, Any], context: Any, prediction: type[Prediction]) -> str | None:
    """Return a note on predictions that leave nothing out for lack of support, or None where there are few."""
    from napsets.advice.theory import fewest_labels

    share = result["infinite"] / max(result["nodes"], 1)
    if share < _WORTH_SAYING:
        return None
    alpha, hops, calibration = result["alpha"], result["hops"], result.get("calibration")
    without = _WITHOUT_SUPPORT[prediction].format(percent(share, 0))
    opening = f"{result['infinite']:,} of {result['nodes']:,} {without} because of too little support: "
    method, settings = result["method"], settings_of(result["method"])
    everyone = {"fallback": "global"} if "fallback" in settings else {}
    needed = fewest_labels(alpha)
    if calibration is not None and calibration < needed:
        larger = math.ceil(1000 / (calibration + 1)) / 1000
        reason = f"there are {calibration:,} calibration nodes, and alpha = {alpha:g} needs {needed:,} at least. "
        return (
            f"{opening}{reason}Label more nodes, or lower the target: {command_with(context, alpha=larger, **everyone)}"
        )
    if not (everyone or "hops" in settings):
        return f"{opening}{method} finds too few labels for them. To see what each method is for: napsets methods"
    if hops == 0:
        reason = "no node is within 0 hops of another. Use one hop: "
        split = " (or use --fallback global: split conformal prediction)" if everyone else ""
        return opening + reason + command_with(context, **_hops(result, _USUAL_HOPS)) + split
    reason = f"too few calibration nodes are within {hops} hop{'s' * (hops > 1)}. "
    if everyone:
        better = command_with(context, **everyone)
        return f"{opening}{reason}To give those the threshold of all calibration nodes: {better}"
    better = command_with(context, **_hops(result, hops + 1))
    return f"{opening}{reason}To look further: {better}"


def full_note(result: Mapping[str, Any], context: Any) -> str | None:
    """Return a note on sets that are full though support is not what they lack, or None where there are few."""
    nodes, alpha, full = result["nodes"], result["alpha"], result.get("full_rate", 0.0)
    reached = round(full * nodes) - result["infinite"]
    # One class alone fills every set; and where most full sets lack support, that is what there is to say.
    if full < _MOSTLY_FULL or 2 * reached < full * nodes or result.get("classes", 2) < 2:
        return None
    larger = min(2 * alpha, (1 + alpha) / 2)
    return (
        f"{reached:,} of {nodes:,} sets ({percent(reached / nodes, 0)}) contain every label although they have "
        "support: the "
        "probabilities hardly distinguish the classes. Use a better model, or lower the target: "
        f"{command_with(context, alpha=larger)}"
    )


def _hops(result: Mapping[str, Any], hops: int) -> dict[str, Any]:
    """Return what to change for a deeper search: weights that were given for each hop do not reach further."""
    return {"hops": hops} if isinstance(result.get("decay", ""), str) else {"hops": hops, "decay": "uniform"}


def command_with(context: Any, **changes: Any) -> str:
    """Return the command line that is being run, with some options changed; what is as by default is left out."""
    words = [context.command_path]
    for parameter in context.command.params:
        if parameter.name in _LEFT_OUT:
            continue
        value = changes.get(parameter.name, context.params.get(parameter.name))
        if value is None or (value == parameter.default and parameter.name not in changes):
            continue
        if getattr(parameter, "is_flag", False):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[0], shlex.quote(str(value))]
    return " ".join(words)
