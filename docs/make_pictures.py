"""Draw the pictures of the documentation.

Run ``python docs/make_pictures.py`` from the root of the repository; it writes SVG files into ``docs/images``. With
names of pictures as arguments, it draws only these; for ``bias`` it also prints the measurements. Needs the extra
``dev`` (Altair, vl-convert, NetworkX, scikit-learn). All random data come from fixed seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from picture_growing import growing
from sklearn.linear_model import LogisticRegression

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.advice.threshold import hop_rings
from napsets.evaluation.comparison import compare
from napsets.methods import PAPER, make_method, title

IMAGES = Path(__file__).parent / "images"
ALPHA = 0.1
METHOD_COLOURS = alt.Scale(domain=list(PAPER), range=["#8a8a8a", "#00796b", "#e08214", "#5e3c99"])
#: The names of the methods in the paper, which the pictures use.
PRINTED = {name: printed for printed, name in PAPER.items()}


def main(wanted: list[str]) -> None:
    """Draw all pictures, or those that are named."""
    alt.data_transformers.disable_max_rows()
    pictures: dict[str, Callable[[], Any]] = {
        "coverage-by-class": coverage_by_class,
        "neighbourhood": neighbourhood,
        "blocks": blocks,
        "threshold": lambda: threshold(amazon_computers()),
        "neighbourhoods": lambda: neighbourhoods(amazon_computers()),
        "hops": lambda: hops(amazon_computers()),
        "bias": bias,
        "growing": growing,
    }
    IMAGES.mkdir(exist_ok=True)
    for name in wanted or pictures:
        chart = pictures[name]()
        styled = chart.configure_view(stroke=None).configure(font="sans-serif", background="white", padding=12)
        styled.save(IMAGES / f"{name}.svg")


@cache
def amazon_computers() -> dict[str, Any]:
    """Return the data of the five-minute start: test nodes, half of which calibrate."""
    data = ns.datasets.load("amazon-computers", seed=0)
    calibration, nodes = np.split(np.random.default_rng(0).permutation(data.test.size), 2)
    return {
        "graph": data.graph.subgraph(data.test),
        "probabilities": ns.datasets.amazon_predictions().probabilities,
        "labels": data.labels[data.test],
        "calibration": calibration,
        "nodes": nodes,
    }


def coverage_by_class() -> alt.LayerChart:
    """Coverage of the ten classes in the example of the README, with and without the graph."""
    data = ns.datasets.load("amazon-computers", seed=0)
    p = ns.datasets.amazon_predictions().probabilities
    graph, labels = data.graph.subgraph(data.test), data.labels[data.test]
    known = np.random.default_rng(0).random(labels.size) < 0.5
    calibrated = {
        "Auto": ns.Auto(alpha=ALPHA).calibrate(graph, p, labels, calibration=known),
        "split THR": ns.SplitConformal("thr").calibrate(p, labels, calibration=known),
        "split APS": ns.SplitConformal().calibrate(p, labels, calibration=known),
    }
    rows = []
    for name, method in calibrated.items():
        sets = method.predict(~known, alpha=ALPHA)
        row = f"{name}: {ns.mean_size(sets):.2f} labels"
        rows += [{"method": row, "coverage": float(c)} for c in ns.coverage_by_class(sets, labels).coverage]
    order = list(dict.fromkeys(row["method"] for row in rows))
    x = alt.X(
        "coverage:Q", title="coverage of each class", scale=alt.Scale(domain=[0.45, 1.0]), axis=alt.Axis(format="%")
    )
    y = alt.Y("method:N", title=None, sort=order, axis=alt.Axis(labelLimit=300, labelFontSize=12, minExtent=150))
    colour = alt.Color("method:N", legend=None, scale=alt.Scale(domain=order, range=["#00796b", "#8a8a8a", "#8a8a8a"]))
    dots = alt.Chart(alt.Data(values=rows)).mark_circle(size=90, opacity=0.8).encode(x, y, colour)
    target = alt.Chart(alt.Data(values=[{"coverage": 1.0 - ALPHA}])).mark_rule(strokeDash=[5, 4], color="#d62728")
    return alt.layer(target.encode(x), dots).properties(width=460, height=80)


def neighbourhood() -> alt.HConcatChart:
    """The calibration nodes that count for one node: all of them, or those nearby."""
    import networkx

    whole, block = ns.datasets.sbm_graph(40, 0.11, 0.008, seed=3)
    parts = networkx.connected_components(networkx.from_scipy_sparse_array(whole.to_scipy()))
    kept = np.array(sorted(max(parts, key=len)))
    graph = whole.subgraph(kept)
    calibrates = np.random.default_rng(1).random(graph.num_nodes) < 0.6
    drawn = networkx.from_scipy_sparse_array(graph.to_scipy())
    found = networkx.spring_layout(drawn, seed=5, iterations=500, k=0.25)
    place = {v: np.round(xy, 3) for v, xy in found.items()}
    node = int(np.argmax(np.where(block[kept] == 0, graph.degrees, 0)))
    calibrates[node] = False
    hop = np.full(graph.num_nodes, 99)
    for k, ring in enumerate(hop_rings(graph, node, 2), start=1):
        hop[ring] = k
    edges = [
        {"x": place[u][0], "y": place[u][1], "x2": place[v][0], "y2": place[v][1]} for u, v in drawn.edges if u != v
    ]

    def role(v: int, near: bool) -> str:
        if v == node:
            return "node to predict"
        if not calibrates[v]:
            return "no label"
        if near:
            return {1: "calibrates, 1 hop", 2: "calibrates, 2 hops"}.get(int(hop[v]), "label not used")
        return "calibrates"

    order = ["node to predict", "calibrates", "calibrates, 1 hop", "calibrates, 2 hops", "label not used", "no label"]
    colours = ["#d62728", "#004d40", "#004d40", "#4db6ac", "#cfd8dc", "#ffffff"]
    hidden = {"axis": None, "scale": alt.Scale(zero=False, nice=False, padding=12)}

    def panel(title: str, near: bool) -> alt.LayerChart:
        dots = [{"x": place[v][0], "y": place[v][1], "role": role(v, near)} for v in range(graph.num_nodes)]
        lines = alt.Chart(alt.Data(values=edges)).mark_rule(color="#b0bec5", opacity=0.6, strokeWidth=0.7)
        lines = lines.encode(alt.X("x:Q", **hidden), alt.Y("y:Q", **hidden), x2="x2:Q", y2="y2:Q")
        points = alt.Chart(alt.Data(values=dots)).mark_circle(stroke="#78909c", strokeWidth=0.7, opacity=1)
        points = points.encode(
            alt.X("x:Q", **hidden),
            alt.Y("y:Q", **hidden),
            color=alt.Color(
                "role:N",
                sort=order,
                scale=alt.Scale(domain=order, range=colours),
                title=None,
                legend=alt.Legend(orient="bottom"),
            ),
            size=alt.condition("datum.role == 'node to predict'", alt.value(260), alt.value(75)),
        )
        return (lines + points).properties(title=title, width=300, height=270)

    return panel("APS: every calibration node", near=False) | panel("NAPS: those within two hops", near=True)


def blocks() -> alt.HConcatChart:
    """Coverage in each block of the paper's case study, over 20 draws of the graph."""
    rows = []
    for seed in range(20):
        data = ns.datasets.sbm(noise=(0.5, 3.0), seed=seed)
        model = LogisticRegression(max_iter=1000).fit(data.features[data.train], data.labels[data.train])
        calibration, nodes = np.split(np.random.default_rng(seed).permutation(data.test.size), 2)
        labels, block = data.labels[data.test], data.blocks[data.test]
        comparison = compare(
            data.graph.subgraph(data.test),
            model.predict_proba(data.features[data.test]),
            labels,
            calibration,
            nodes,
            alpha=ALPHA,
            hops=1,
        )
        for name in ("split", "naps"):
            covered = comparison[name].sets.contains(labels)
            for b, called in enumerate(("easy block", "hard block")):
                rows.append(
                    {"method": PRINTED[name], "block": called, "coverage": float(covered[block[nodes] == b].mean())}
                )

    def panel(called: str) -> alt.LayerChart:
        ticks = alt.Chart(alt.Data(values=[row for row in rows if row["block"] == called]))
        ticks = ticks.mark_tick(thickness=1.5, height=20).encode(
            x=_coverage_axis(0.7),
            y=alt.Y("method:N", title=None),
            color=alt.Color("method:N", scale=METHOD_COLOURS, legend=None),
        )
        return (ticks + _target()).properties(width=280, height=80, title=called)

    return panel("easy block") | panel("hard block")


def threshold(amazon: dict[str, Any]) -> alt.VConcatChart:
    """One node: the scores around it, the threshold and the set."""
    settings = {key: amazon[key] for key in ("graph", "probabilities", "labels", "calibration")}
    naps = ns.NAPS(hops=2, decay="hyperbolic").calibrate(**settings)
    sets = naps.predict(amazon["nodes"], alpha=ALPHA)
    # This node's picture is neither empty nor crowded.
    near = sets.effective_size < 0.92 * sets.support
    fair = (sets.sizes == 3) & (sets.support > 30) & (sets.support < 60) & near & sets.contains(amazon["labels"])
    node = int(sets.nodes[np.flatnonzero(fair)[0]])
    seen = inspect_node(naps, node, ALPHA)
    mass = np.cumsum(seen.neighbour_weights)
    scores = [
        {"score": float(s), "mass": float(m), "hop": "1 hop" if k == 1 else f"{k} hops"}
        for s, m, k in zip(seen.neighbour_scores, mass, seen.neighbour_hops, strict=True)
    ]
    start = [{"score": 0.0, "mass": 0.0}]
    across = alt.X("score:Q", title="score", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=10))
    step = alt.Chart(alt.Data(values=start + scores)).mark_line(interpolate="step-after", color="#90a4ae")
    step = step.encode(across, alt.Y("mass:Q", title="weight gathered"))
    dots = (
        alt.Chart(alt.Data(values=scores))
        .mark_circle(size=55, opacity=1)
        .encode(
            across,
            alt.Y("mass:Q"),
            color=alt.Color(
                "hop:N",
                title="calibration node at",
                scale=alt.Scale(domain=["1 hop", "2 hops"], range=["#004d40", "#4db6ac"]),
            ),
        )
    )
    needed = alt.Chart(alt.Data(values=[{"mass": seen.needed_mass}])).mark_rule(strokeDash=[5, 4]).encode(y="mass:Q")
    told = (
        alt.Chart(alt.Data(values=[{"score": 0.01, "mass": seen.needed_mass}]))
        .mark_text(align="left", dy=-9, text=f"needed: (1 − α)(1 + Σw) = {seen.needed_mass:.2f}")
        .encode(across, y="mass:Q")
    )
    tau = _vertical(seen.threshold, f"τ = {seen.threshold:.3f}")
    upper = (step + needed + told + dots + tau).properties(
        width=600, height=220, title=f"The scores of the {seen.support} calibration nodes within two hops"
    )
    truth = int(amazon["labels"][node])
    labels = [
        {"label": f"class {y}" + (" (true)" if y == truth else ""), "score": float(s), "in": "in" if m else "out"}
        for y, (s, m) in enumerate(zip(seen.scores, seen.member, strict=True))
    ]
    bars = (
        alt.Chart(alt.Data(values=labels))
        .mark_bar(height=11)
        .encode(
            across,
            y=alt.Y("label:N", sort=alt.EncodingSortField("score"), title=None),
            color=alt.Color(
                "in:N", title="the set", scale=alt.Scale(domain=["in", "out"], range=["#00796b", "#cfd8dc"])
            ),
        )
    )
    lower = (bars + _vertical(seen.threshold, None)).properties(
        width=600, height=190, title="The node's own labels: those with a score of at most τ are its set"
    )
    return alt.vconcat(upper, lower).resolve_scale(color="independent")


def neighbourhoods(amazon: dict[str, Any]) -> alt.LayerChart:
    """Coverage in each neighbourhood of 30 nodes or more, for APS and NAPS."""
    comparison = compare(**amazon, alpha=ALPHA, hops=2)
    row = np.full(amazon["labels"].size, -1)
    row[amazon["nodes"]] = np.arange(amazon["nodes"].size)
    rows = [
        {
            "method": PRINTED[name],
            "coverage": float(comparison[name].sets.contains(amazon["labels"])[row[part]].mean()),
            "nodes": part.size,
        }
        for name in ("split", "naps")
        for part in comparison.partition
    ]
    dots = (
        alt.Chart(alt.Data(values=rows))
        .mark_circle(opacity=0.75)
        .encode(
            x=_coverage_axis(0.6),
            y=alt.Y("method:N", title=None),
            size=alt.Size("nodes:Q", title="nodes in it"),
            color=alt.Color("method:N", scale=METHOD_COLOURS, legend=None),
        )
    )
    return (dots + _target()).properties(width=600, height=120)


def hops(amazon: dict[str, Any]) -> alt.VConcatChart:
    """The effect of hops and decay: means over ten random halves."""
    everyone = np.concatenate([amazon["calibration"], amazon["nodes"]])
    fixed = {key: amazon[key] for key in ("graph", "probabilities", "labels")}
    found: dict[tuple[str, int], list[list[float]]] = {}
    for seed in range(10):
        calibration, nodes = np.split(np.random.default_rng(seed).permutation(everyone), 2)
        for k in range(1, 5):
            for result in compare(**fixed, calibration=calibration, nodes=nodes, alpha=ALPHA, hops=k, seed=seed):
                values = [result.coverage, result.mean_size, result.infinite / nodes.size, result.pccv]
                found.setdefault((PRINTED[result.name], k), []).append(values)
    names = ("coverage", "labels in a set", "nodes with too little support", "worst neighbourhood (PCCV)")
    rows = [
        {"method": method, "hops": k, "what": what, "value": float(value)}
        for (method, k), values in found.items()
        for what, value in zip(names, np.mean(values, axis=0), strict=True)
    ]

    def panel(what: str, form: str) -> alt.Chart:
        return (
            alt.Chart(alt.Data(values=[r for r in rows if r["what"] == what]))
            .mark_line(point=True)
            .encode(
                alt.X("hops:O", title="hops (K)", axis=alt.Axis(labelAngle=0)),
                alt.Y("value:Q", title=None, axis=alt.Axis(format=form), scale=alt.Scale(zero=False)),
                color=alt.Color("method:N", scale=METHOD_COLOURS, title=None),
            )
            .properties(title=what, width=250, height=150)
        )

    upper = panel(names[0], "%") | panel(names[1], "")
    return upper & (panel(names[2], "%") | panel(names[3], ".2f"))


#: The methods in the picture of biased labels, with their colours.
BIASED = {"split": "#8a8a8a", "naps": "#00796b", "naps-exact": "#5e3c99", "informed": "#e08214"}
_DRAWS = 10


def bias() -> alt.HConcatChart:
    """Coverage of new nodes drawn at random, by how biased the choice of the labelled ones is: means over ten draws."""
    by_degree, by_block = list(_biased_by_degree()), list(_biased_by_block())
    left = _bias_panel(
        by_degree,
        "Amazon Computers: nodes of high degree are labelled",
        "b, where the probability of a label grows as (1 + degree)^b",
    )
    right = _bias_panel(by_block, "Two blocks: the easy one is labelled", "share of the labels in the easy block")
    return (left | right).resolve_scale(y="shared")


def _biased_by_degree() -> Iterator[dict[str, Any]]:
    data = amazon_computers()
    graph, labels = data["graph"], data["labels"]
    for power in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        for seed in range(_DRAWS):
            rng = np.random.default_rng(seed)
            others, new = np.split(rng.permutation(labels.size), 2)
            weights = (1.0 + graph.degrees[others]) ** power
            known = rng.choice(others, 1500, replace=False, p=weights / weights.sum())
            yield from _evaluated(graph, data["probabilities"], labels, known, new, power, seed, hops=2)


def _biased_by_block() -> Iterator[dict[str, Any]]:
    for seed in range(_DRAWS):
        data = ns.datasets.sbm(noise=(0.5, 3.0), seed=seed)
        model = LogisticRegression(max_iter=1000).fit(data.features[data.train], data.labels[data.train])
        graph, labels, block = data.graph.subgraph(data.test), data.labels[data.test], data.blocks[data.test]
        order = np.random.default_rng(seed).permutation(labels.size)
        new, others = order[:400], order[400:]
        easy, hard = others[block[others] == 0], others[block[others] == 1]
        for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            count = round(400 * share)
            known = np.concatenate([easy[:count], hard[: 400 - count]])
            probabilities = model.predict_proba(data.features[data.test])
            yield from _evaluated(graph, probabilities, labels, known, new, share, seed, hops=1)


def _evaluated(
    graph: ns.Graph, probabilities: Any, labels: Any, known: Any, new: Any, how: float, seed: int, *, hops: int
) -> Iterator[dict[str, Any]]:
    for name in BIASED:
        method = make_method(name, hops=hops, seed=seed).calibrate(graph, probabilities, labels, known)
        sets = method.predict(new, ALPHA)
        yield {
            "method": title(name),
            "bias": how,
            "coverage": ns.coverage(sets, labels),
            "size": ns.mean_size(sets),
        }


def _bias_panel(rows: list[dict[str, Any]], heading: str, across: str) -> alt.LayerChart:
    means = []
    print(heading)
    for how in sorted({row["bias"] for row in rows}):
        parts = []
        for name in BIASED:
            selected = [row for row in rows if row["bias"] == how and row["method"] == title(name)]
            coverage, size = (np.array([row[key] for row in selected]) for key in ("coverage", "size"))
            se = coverage.std(ddof=1) / np.sqrt(coverage.size)
            means.append({"method": title(name), "bias": how, "coverage": float(coverage.mean())})
            parts.append(f"{title(name)} {coverage.mean():.3f} ± {se:.3f} (size {size.mean():.2f})")
        print(f"  {how:g}: " + ", ".join(parts))
    names = [title(name) for name in BIASED]
    lines = (
        alt.Chart(alt.Data(values=means))
        .mark_line(point=True)
        .encode(
            alt.X(
                "bias:Q",
                title=across,
                scale=alt.Scale(zero=False, nice=False),
                axis=alt.Axis(values=sorted({row["bias"] for row in rows}), format="g"),
            ),
            alt.Y(
                "coverage:Q",
                title="coverage of new nodes",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0.6, 1.0]),
            ),
            color=alt.Color("method:N", title=None, scale=alt.Scale(domain=names, range=list(BIASED.values()))),
        )
    )
    target = alt.Chart().mark_rule(strokeDash=[5, 4], color="#d62728").encode(y=alt.datum(1 - ALPHA))
    return (lines + target).properties(title=heading, width=310, height=220)


def _coverage_axis(low: float) -> alt.X:
    marks = [round(float(value), 4) for value in np.arange(low, 1.001, 0.05)]
    return alt.X("coverage:Q", scale=alt.Scale(domain=[low, 1.0]), axis=alt.Axis(format="%", values=marks))


def _target() -> alt.Chart:
    return alt.Chart().mark_rule(strokeDash=[5, 4], color="#d62728").encode(x=alt.datum(1 - ALPHA))


def _vertical(at: float, text: str | None) -> alt.LayerChart:
    one = alt.Chart(alt.Data(values=[{"score": at}]))
    rule = one.mark_rule(color="#d62728").encode(alt.X("score:Q"))
    return (
        rule
        if text is None
        else rule + one.mark_text(align="left", dx=5, y=205, color="#d62728", text=text).encode(alt.X("score:Q"))
    )


if __name__ == "__main__":
    main(sys.argv[1:])
