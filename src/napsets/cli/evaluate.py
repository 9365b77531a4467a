"""``napsets evaluate``: how good a file of sets is, once labels are known."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from napsets.cli._options import (
    LARGEST_SEED,
    Directed,
    IdKind,
    IdKindName,
    Labels,
    LabelsAre,
    LabelsName,
)
from napsets.cli._output import Output, number, percent, table
from napsets.files import read_groups, read_sets

__all__ = ["EXAMPLES", "evaluate"]

EXAMPLES = [
    "napsets evaluate sets.parquet --labels truth.csv",
    "napsets evaluate sets.parquet --labels truth.csv --edges edges.parquet --strata 0-1,2-3,4-10",
    "napsets evaluate sets.parquet --labels truth.csv --groups regions.csv",
    "napsets evaluate sets.parquet --labels truth.csv --json",
    "napsets evaluate sets.jsonl --labels truth.tsv --columns node=id --ids string --skip-unknown",
    "napsets evaluate - --format csv --labels truth.csv < sets.csv",
]


def evaluate(
    run: Output,
    sets: Annotated[Path, typer.Argument(help="A file that `napsets predict` wrote.", show_default=False)],
    labels: Labels,
    edges: Annotated[
        Path | None,
        typer.Option("--edges", "-e", help="Edges: adds coverage by degree and by neighbourhood (PCCV)."),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option("--groups", help="Groups of your own: columns node, group. Adds coverage by group and chance."),
    ] = None,
    strata: Annotated[
        str | None, typer.Option("--strata", help="Ranges of set sizes for SSCV, as in 0-1,2-3,4-10.")
    ] = None,
    radius: Annotated[int, typer.Option("--radius", min=0, help="Radius of the neighbourhoods of PCCV.")] = 2,
    min_size: Annotated[int, typer.Option("--min-size", min=1, help="Smallest neighbourhood that PCCV counts.")] = 30,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the neighbourhoods' roots.", min=0, max=LARGEST_SEED)
    ] = 0,
    directed: Directed = False,
    ids: IdKind = IdKindName.auto,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Say nothing of labels without a set, which are left out anyway.")
    ] = False,
    labels_are: LabelsAre = LabelsName.auto,
) -> None:
    """Compare sets with the truth: coverage, size, and how evenly the coverage is spread.

    Sets whose node has no label in --labels are left out and counted; so are labels without a set. Labels that were
    used to make the sets should not be used to judge them.
    """
    from napsets.evaluation.comparison import size_strata
    from napsets.evaluation.sets_files import evaluate_sets, graph_around, label_sets

    ranges = None if strata is None else _parse_strata(strata)
    with run.steps() as steps:
        steps.stage("reading sets")
        file = read_sets(sets, ids=ids.value)
        steps.stage("reading labels")
        labelled = label_sets(file, labels, ids=ids.value, labels_are=labels_are.value, silent=skip_unknown)
        graph = None
        if edges is not None:
            steps.stage("reading edges")
            graph = graph_around(edges, file.ids, directed=directed, ids=ids.value)
        named = None
        if groups is not None:
            steps.stage("reading groups")
            named = read_groups(groups, file.ids, ids=ids.value, skip_unknown=True)
        ranges = ranges or size_strata(labelled.sets.num_classes)
        result = evaluate_sets(labelled, ranges, graph=graph, radius=radius, min_size=min_size, seed=seed, groups=named)
    result |= {"sets": str(sets), "settings": file.metadata}
    for note in [*labelled.notes, *_caveats(result, radius=radius, min_size=min_size)]:
        run.note(note)
    tables = [_main_table(result), _group_table("Coverage by class", "class", result["coverage_by_class"])]
    if edges is not None:
        tables.append(_group_table("Coverage by degree", "degree", result["coverage_by_degree"]))
    if groups is not None:
        rows = [(row["group"], number(row["count"]), percent(row["coverage"])) for row in result["coverage_by_group"]]
        tables.append(table("Coverage by group", ["group", "nodes", "coverage"], rows))
    run.result(result, *tables)


#: PCCV is the worst of so many averages; over fewer, or over a smaller share of the nodes, it says little of the rest.
_MANY_NEIGHBOURHOODS = 10
_MOST_NODES = 0.5


def _caveats(result: dict[str, Any], *, radius: int, min_size: int) -> list[str]:
    """Say which of the numbers are missing or mean little, and why."""
    caveats = []
    if math.isnan(result["full_rate"]):
        caveats.append(
            f"which sets are full is not known: {result['sets']} does not list its classes. Parquet and npz files that "
            f"napsets wrote do"
        )
    count, share = result.get("neighbourhoods"), result.get("share_in_neighbourhoods", 1.0)
    if count is not None and (count < _MANY_NEIGHBOURHOODS or share < _MOST_NODES):
        what = "PCCV is not known" if count == 0 else "PCCV means little"
        caveats.append(
            f"{what}: {count} neighbourhood{'s' * (count != 1)} of radius {radius} with at least {min_size} judged "
            f"nodes hold{'s' * (count == 1)} {percent(share)} of those nodes. Judge more nodes, or count smaller "
            f"neighbourhoods (--min-size {max(min_size // 3, 1)})"
        )
    return caveats


def _parse_strata(text: str) -> list[tuple[int, int]]:
    parts = re.findall(r"(?:^|,)\s*(\d+)(?:-(\d+))?\s*(?=,|$)", text)
    if len(parts) != text.count(",") + 1:
        raise typer.BadParameter(f"must be ranges of sizes as in 0-1,2-3,4-10; got {text!r}", param_hint="--strata")
    return [(int(low), int(high or low)) for low, high in parts]


def _main_table(result: dict[str, Any]) -> Any:
    rows = [
        ("nodes judged", number(result["nodes"])),
        ("sets without a known label", number(result["unlabelled"])),
        ("coverage", f"{percent(result['coverage'])} ± {percent(result['coverage_se'])}"),
        ("asked for", percent(1.0 - result["alpha"])),
        ("mean size", f"{number(result['mean_size'])} ± {number(result['mean_size_se'])}"),
        ("size given coverage", number(result["size_given_coverage"])),
        ("SSCV", number(result["sscv"])),
    ]
    if "pccv" in result:
        held = percent(result["share_in_neighbourhoods"])
        rows.append((f"PCCV ({result['neighbourhoods']} neighbourhoods, {held} of the nodes)", number(result["pccv"])))
        rows.append(("PCCV by chance, if every set covered as asked for", number(result["pccv_chance"])))
    for kind in ("class", "degree", "neighbourhood", "group"):
        if f"gap_{kind}" in result:
            gap, chance = (number(result[f"{name}_{kind}"]) for name in ("gap", "chance"))
            rows.append((f"gap by {kind}, and by chance", f"{gap}, {chance}"))
    rows += [
        ("sets of one label", percent(result["singleton_rate"])),
        ("empty sets", percent(result["empty_rate"])),
        ("full sets", percent(result["full_rate"]) if result["full_rate"] >= 0 else "classes not listed"),
        ("too little support (threshold ∞)", number(result["infinite"])),
    ]
    return table(f"{result['sets']} against labels", ["", ""], rows)


def _group_table(title: str, name: str, groups: list[dict[str, Any]]) -> Any:
    rows = [
        (group["group"], number(group["nodes"]), percent(group["coverage"]), number(group["mean_size"], 3))
        for group in groups
    ]
    return table(title, [name, "nodes", "coverage", "mean size"], rows)
