"""``napsets evaluate``: how good a file of sets or of intervals is, once the truth is known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from napsets.cli._evaluated import caveats, coverage_table, gap_tables, pccv_rows
from napsets.cli._methods import is_given
from napsets.cli._options import (
    LARGEST_SEED,
    Directed,
    DirectionName,
    DirectionOption,
    IdKind,
    IdKindName,
    Labels,
    LabelsAre,
    LabelsName,
    direction_notes,
)
from napsets.cli._output import Output, number, percent, table
from napsets.files import holds_intervals, read_groups, read_intervals, read_sets

__all__ = ["EXAMPLES", "evaluate"]

EXAMPLES = [
    "napsets evaluate sets.parquet --labels truth.csv",
    "napsets evaluate sets.parquet --labels truth.csv --edges edges.parquet --strata 0-1,2-3,4-10",
    "napsets evaluate sets.parquet --labels truth.csv --groups regions.csv",
    "napsets evaluate sets.parquet --labels truth.csv --json",
    "napsets evaluate intervals.parquet --labels targets.csv --edges edges.parquet --groups regions.csv",
    "napsets evaluate sets.jsonl --labels truth.tsv --columns node=id --ids string --skip-unknown",
    "napsets evaluate - --format csv --labels truth.csv < sets.csv",
]


def evaluate(
    run: Output,
    context: typer.Context,
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
    direction: DirectionOption = DirectionName.out,
    ids: IdKind = IdKindName.auto,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Say nothing of labels without a set, which are left out anyway.")
    ] = False,
    labels_are: LabelsAre = LabelsName.auto,
) -> None:
    """Compare sets, or intervals, with the truth: coverage, size, and how evenly the coverage is spread.

    Sets whose node has no label in --labels are left out and counted; so are labels without a set. Labels that were
    used to make the sets should not be used to judge them.

    A file of intervals is known by its columns; --labels then has the columns node and target. Coverage stands beside
    where chance puts it, and width in place of size. With --directed, degrees and neighbourhoods are those along
    --direction; where neither is given, they are those that the file was made with, if it says so.
    """
    from napsets.evaluation.sets_files import graph_around

    ranges = None if strata is None else _parse_strata(strata)
    with run.steps() as steps:
        steps.stage("reading sets")
        numbers = holds_intervals(sets)
        if numbers and (strata is not None or labels_are is not LabelsName.auto):
            flag = "--labels-are" if strata is None else "--strata"
            raise typer.BadParameter(
                f"is for sets of labels; {context.params['sets']} holds intervals", param_hint=flag
            )
        judged = (_Intervals if numbers else _Sets)(
            sets, labels, ids.value, labels_are.value, skip_unknown, steps.stage
        )
        graph, asked = None, direction is not DirectionName.out
        on_edges: list[str] = []
        if edges is not None:
            directed, way, on_edges = _as_made(context, judged.file.metadata)
            steps.stage("reading edges")
            graph = graph_around(edges, judged.file.ids, directed=directed, ids=ids.value).along(way)
        named = None
        if groups is not None:
            steps.stage("reading groups")
            named = read_groups(groups, judged.file.ids, ids=ids.value, skip_unknown=True)
        how = {"graph": graph, "radius": radius, "min_size": min_size, "seed": seed, "groups": named}
        result = judged.evaluate(how, ranges)
    # As it was called: what comes from standard input is read from a file of another name.
    result |= {"sets": str(context.params["sets"]), "settings": judged.file.metadata}
    notes = [*judged.labelled.notes, *judged.caveats(result), *caveats(result, radius=radius, min_size=min_size)]
    for note in [*notes, *on_edges, *direction_notes(asked=asked, directed=directed)]:
        run.note(note)
    run.result(result, *judged.tables(result))


class _Sets:
    """A file of sets, the labels that judge it, and what is said of it."""

    def __init__(
        self, path: Path, labels: Path, ids: Any, labels_are: Any, silent: bool, stage: Callable[[str], None]
    ) -> None:
        from napsets.evaluation.sets_files import label_sets

        self.file = read_sets(path, ids=ids)
        stage("reading labels")
        self.labelled = label_sets(self.file, labels, ids=ids, labels_are=labels_are, silent=silent)

    def evaluate(self, how: dict[str, Any], strata: list[tuple[int, int]] | None) -> dict[str, Any]:
        from napsets.evaluation.comparison import size_strata
        from napsets.evaluation.sets_files import evaluate_sets

        return evaluate_sets(self.labelled, strata or size_strata(self.labelled.sets.num_classes), **how)

    def caveats(self, result: dict[str, Any]) -> list[str]:
        if not math.isnan(result["full_rate"]):
            return []
        return [
            f"which sets are full is not known: {result['sets']} does not list its classes. Parquet and npz files that "
            f"napsets wrote do"
        ]

    def tables(self, result: dict[str, Any]) -> list[Any]:
        found = [_main_table(result), *gap_tables(result)]
        found.append(coverage_table("class", result["coverage_by_class"], "mean_size"))
        if "coverage_by_degree" in result:
            found.append(coverage_table("degree", result["coverage_by_degree"], "mean_size"))
        if "coverage_by_group" in result:
            found.append(coverage_table("group", result["coverage_by_group"]))
        return found


class _Intervals:
    """A file of intervals, the numbers that judge it, and what is said of it."""

    def __init__(
        self, path: Path, labels: Path, ids: Any, labels_are: Any, silent: bool, stage: Callable[[str], None]
    ) -> None:
        from napsets.evaluation.intervals_files import label_intervals

        self.file = read_intervals(path, ids=ids)
        stage("reading targets")
        self.labelled = label_intervals(self.file, labels, ids=ids, silent=silent)

    def evaluate(self, how: dict[str, Any], strata: list[tuple[int, int]] | None) -> dict[str, Any]:
        from napsets.evaluation.intervals_files import evaluate_intervals

        return {"task": "regression"} | evaluate_intervals(self.labelled, **how)

    def caveats(self, result: dict[str, Any]) -> list[str]:
        if "level_labels" in self.file.metadata:
            return []
        return [
            f"where chance puts the coverage is that of the judged nodes alone: {result['sets']} does not say how many "
            f"labels set the level. Parquet and npz files that napsets wrote do"
        ]

    def tables(self, result: dict[str, Any]) -> list[Any]:
        found = [_interval_table(result), *gap_tables(result)]
        return found + [
            coverage_table(kind, result[f"coverage_by_{kind}"], "mean_width")
            for kind in ("degree", "group")
            if f"coverage_by_{kind}" in result
        ]


def _as_made(context: typer.Context, made: dict[str, Any]) -> tuple[bool, Any, list[str]]:
    """Return whether edges are directed, which way they are followed, and what to say: as the file, where not asked."""
    plain: dict[str, Any] = {"directed": False, "direction": DirectionName.out.value}
    asked = {key: getattr(context.params[key], "value", context.params[key]) for key in plain if is_given(context, key)}
    here = plain | made | asked
    there = plain | made if "directed" in made else here
    told = []
    if _edges_are(here) != _edges_are(there):
        told = [f"{context.params['sets']} was made with {_edges_are(there)}, and is judged with {_edges_are(here)}"]
    elif _edges_are(here) != _edges_are(plain | asked):
        told = [f"judged with {_edges_are(here)}, as {context.params['sets']} was made"]
    return here["directed"], here["direction"], told


def _edges_are(settings: dict[str, Any]) -> str:
    return f"directed edges, --direction {settings['direction']}" if settings["directed"] else "undirected edges"


def _parse_strata(text: str) -> list[tuple[int, int]]:
    parts = re.findall(r"(?:^|,)\s*(\d+)(?:-(\d+))?\s*(?=,|$)", text)
    if len(parts) != text.count(",") + 1:
        raise typer.BadParameter(f"must be ranges of sizes as in 0-1,2-3,4-10; got {text!r}", param_hint="--strata")
    return [(int(low), int(high or low)) for low, high in parts]


def _judged_rows(result: dict[str, Any], what: str) -> list[tuple[str, str]]:
    return [
        ("nodes judged", number(result["nodes"])),
        (f"{what}s without a known {'target' if what == 'interval' else 'label'}", number(result["unlabelled"])),
        ("coverage", f"{percent(result['coverage'])} ± {percent(result['coverage_se'])}"),
    ]


def _main_table(result: dict[str, Any]) -> Any:
    rows = [
        *_judged_rows(result, "set"),
        ("asked for", percent(1.0 - result["alpha"])),
        ("mean size", f"{number(result['mean_size'])} ± {number(result['mean_size_se'])}"),
        ("size given coverage", number(result["size_given_coverage"])),
        ("SSCV", number(result["sscv"])),
        *pccv_rows(result, "set"),
        ("sets of one label", percent(result["singleton_rate"])),
        ("empty sets", percent(result["empty_rate"])),
        ("full sets", percent(result["full_rate"]) if result["full_rate"] >= 0 else "classes not listed"),
        ("too little support (threshold ∞)", number(result["infinite"])),
    ]
    return table(f"{result['sets']} against labels", ["", ""], rows)


def _interval_table(result: dict[str, Any]) -> Any:
    endless = [("mean width of the finite ones", number(result["finite_width"]))] * (result["infinite_rate"] > 0)
    rows = [
        *_judged_rows(result, "interval"),
        ("asked for", percent(1.0 - result["alpha"])),
        (
            "where chance puts it in 95 of 100 draws",
            f"{percent(result['coverage_low'])} to {percent(result['coverage_high'])}",
        ),
        ("mean width", f"{number(result['mean_width'])} ± {number(result['mean_width_se'])}"),
        *endless,
        ("median width", number(result["median_width"])),
        *pccv_rows(result, "interval"),
        ("intervals that are the whole line", percent(result["infinite_rate"])),
        ("intervals of one point", percent(result["point_rate"])),
    ]
    return table(f"{result['sets']} against targets", ["", ""], rows)
