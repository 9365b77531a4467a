"""The paper's study: the cells that its tables and figures need, and tables, figures and page from the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from napsets.studies.block_model import BlockCell, BlockGrid, block_figures, block_paragraph, block_tables
from napsets.studies.coverage import INFERENCES, MODELS, PROTOCOLS, CoverageCell, DatasetCell
from napsets.studies.paper_tables import ablation, ablation_figures, accuracy, claims_table, metric, paragraph, table1
from napsets.studies.protocols import CUTOFF_HOPS, METHODS, PAPER_DATASETS, SETUPS, setup_of
from napsets.studies.study import Cell, Row, Study, narrowed
from napsets.studies.tables import Table, distinct, select

if TYPE_CHECKING:
    from napsets.studies.laboratory import RowStore

#: What rows of Tables 2 and 3 have in common.
_SETTINGS = ("preset", "alpha", "repetitions", "evaluated")


@dataclass(frozen=True)
class Scope:
    """How much of the paper to run.

    Attributes
    ----------
    datasets, models, seeds, protocols
        What Tables 1, 2 and 3 go over.
    preset : str
        Training settings; the default is the one whose accuracies are nearer to the printed ones.
    inferences : tuple of str
        The first is what tables show and the ablation uses; the others are compared with it.
    alpha, repetitions, evaluated
        As in `CoverageCell`.
    hops : int
        The depth of Tables 2 and 3.
    ablation_datasets, ablation_model, ablation_hops
        What the ablation goes over.
    large_seeds : tuple of int
        Training seeds on the ablation's datasets that the tables do not go over: trainings there take minutes.
    blocks : BlockGrid
        What the block-model study goes over.
    """

    datasets: tuple[str, ...] = PAPER_DATASETS
    models: tuple[str, ...] = tuple(MODELS)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    protocols: tuple[str, ...] = PROTOCOLS
    preset: str = "released-code"
    inferences: tuple[str, ...] = INFERENCES
    alpha: float = 0.1
    repetitions: int = 100
    evaluated: int = 1000
    hops: int = 2
    ablation_datasets: tuple[str, ...] = ("reddit2", "amazon-computers", "reddit2-like")
    ablation_model: str = "graphsage-mean"
    ablation_hops: tuple[int, ...] = (1, 2, 3, 4)
    large_seeds: tuple[int, ...] = (0,)
    blocks: BlockGrid = field(default_factory=BlockGrid)

    def holds(self, row: Row, inference: str) -> bool:
        """Return whether a row of the coverage study was measured with the settings of this scope, for any seed."""
        wanted = {name: getattr(self, name) for name in _SETTINGS} | {"inference": inference}
        return all(row[name] == value for name, value in wanted.items()) and row["protocol"] in self.protocols


FULL = Scope()
#: A version that takes a minute: one model, one seed, a tenth of the repetitions, four corners of the block model.
QUICK = Scope(
    models=("graphsage-mean",),
    seeds=(0,),
    repetitions=10,
    inferences=("sampled",),
    ablation_datasets=("amazon-computers",),
    blocks=BlockGrid(n=(250,), p_in=(0.1, 0.4), p_out=(0.1, 0.4), tv=(0.2,), draws=20),
)


def _dataset_cells(scope: Scope) -> list[Cell]:
    return [DatasetCell(dataset, seed) for dataset, seed in product(scope.datasets, scope.seeds)]


def _table_cells(scope: Scope) -> list[Cell]:
    return [
        _cell(scope, (dataset, model, seed, protocol), method, scope.hops, inference)
        for dataset, seed, model, inference, protocol, method in product(
            scope.datasets, scope.seeds, scope.models, scope.inferences, scope.protocols, METHODS
        )
    ]


def _ablation_cells(scope: Scope) -> list[Cell]:
    return [
        _cell(scope, (dataset, scope.ablation_model, seed, protocol), method, hops, scope.inferences[0])
        for dataset in scope.ablation_datasets
        for seed in (scope.seeds if dataset in scope.datasets else scope.large_seeds)
        for protocol, hops, method in product(scope.protocols, scope.ablation_hops, METHODS)
    ]


def _cell(scope: Scope, where: tuple[str, str, int, str], method: str, hops: int, inference: str) -> CoverageCell:
    """Return a cell of the dataset, model, seed and protocol `where`; the baseline has no hops."""
    depth = 0 if METHODS[method] is None else hops
    settings = {name: getattr(scope, name) for name in _SETTINGS}
    return CoverageCell(*where, method, depth, inference=inference, **settings)


class PaperRows(NamedTuple):
    """The rows that belong to a scope, by study."""

    scope: Scope
    datasets: list[Row]
    coverage: list[Row]
    others: dict[str, list[Row]]  #: those of the inferences that the tables do not show
    blocks: list[Row]


class Target(NamedTuple):
    """One of the paper's tables or figures: its cells, and what is made of their rows."""

    cells: Callable[[Scope], Sequence[Cell]]
    tables: Callable[[PaperRows], list[Table]]
    sentence: Callable[[PaperRows], str] = lambda rows: ""
    figures: Callable[[PaperRows], dict[str, Any]] = lambda rows: {}


def _compared(rows: PaperRows) -> str:
    return paragraph(rows.coverage, rows.scope)


_TARGETS = {
    "table1": Target(_dataset_cells, lambda rows: [table1(rows.datasets)]),
    "table2": Target(
        _table_cells,
        lambda rows: [
            accuracy(rows.coverage, rows.scope),
            *(metric(rows.coverage, rows.scope, name) for name in ("coverage", "mean_size", "size_given_coverage")),
        ],
        _compared,
    ),
    "table3": Target(
        _table_cells,
        lambda rows: [
            *(metric(rows.coverage, rows.scope, name) for name in ("sscv", "pccv")),
            claims_table(rows.coverage, rows.scope),
        ],
        _compared,
    ),
    "ablation": Target(
        _ablation_cells,
        lambda rows: [ablation(rows.coverage, rows.scope)],
        figures=lambda rows: ablation_figures(rows.coverage, rows.scope),
    ),
    "sbm": Target(
        lambda scope: scope.blocks.cells(scope.alpha),
        lambda rows: block_tables(rows.blocks),
        lambda rows: block_paragraph(rows.blocks),
        lambda rows: block_figures(rows.blocks),
    ),
}
TARGETS = (*_TARGETS, "all")


def _targets(name: str) -> list[Target]:
    return [*_TARGETS.values()] if name == "all" else [_TARGETS[name]]


def cells_of(target: str, scope: Scope) -> list[Cell]:
    """Return the cells that a target needs, those of the same model next to each other."""
    return list(dict.fromkeys(cell for part in _targets(target) for cell in part.cells(scope)))


_INFERENCES = """\
Sampled inference draws a node's neighbours as in training, as the released code did. Exact inference uses every
neighbour. Both use the same trained models.
"""


class PaperStudy(Study):
    """One target of the paper's tables and figures (see `TARGETS`), or all of them."""

    kinds = (DatasetCell, CoverageCell, BlockCell)
    options = ("protocol", "preset", "inference")
    activity = "reproducing"
    page = "reproduction"
    command = "napsets reproduce all --output results --page docs/reproduction.md"

    def __init__(self, target: str) -> None:
        self.target = target

    def scope(self, quick: bool, options: Mapping[str, Any]) -> Scope:
        """Return the scope as narrowed or changed by options; names must be known."""
        known: dict[str, Iterable[str]] = {
            "dataset": SETUPS, "model": MODELS, "protocol": PROTOCOLS, "inference": INFERENCES,
            "preset": ("released-code", "paper"),
        }  # fmt: skip
        scope = narrowed(QUICK if quick else FULL, options, known)
        if options.get("dataset"):
            scope = replace(scope, ablation_datasets=scope.datasets)
        if options.get("model"):
            scope = replace(scope, ablation_model=scope.models[0])
        return scope

    def cells(self, scope: Scope) -> list[Cell]:  # noqa: D102
        return cells_of(self.target, scope)

    def rows(self, store: RowStore, scope: Scope) -> PaperRows:
        """Return the rows that were measured with the settings of the scope, for any seed."""
        first, *others = ([row for row in store.rows("coverage") if scope.holds(row, i)] for i in scope.inferences)
        blocks = select(store.rows("sbm"), draws=scope.blocks.draws, alpha=scope.alpha)
        by_inference = dict(zip(scope.inferences[1:], others, strict=True))
        return PaperRows(scope, store.rows("datasets"), first, by_inference, blocks)

    def tables(self, rows: PaperRows) -> list[Table]:
        """Return the tables of the target that have rows."""
        return [table for part in _targets(self.target) for table in part.tables(rows) if table.rows]

    def figures(self, rows: PaperRows) -> dict[str, Any]:  # noqa: D102
        return {name: chart for part in _targets(self.target) for name, chart in part.figures(rows).items()}

    def page_figures(self, rows: PaperRows) -> dict[str, Any]:
        """Return all figures, as the page is about all targets."""
        return PaperStudy("all").figures(rows)

    def facts(self, rows: PaperRows, skipped: Mapping[str, str]) -> dict[str, Any]:  # noqa: D102
        sentences = dict.fromkeys(part.sentence(rows) for part in _targets(self.target))
        return {"sentences": [*filter(None, sentences)], "judged_on": self._evaluated_on(rows.scope)}

    def parts(self, rows: PaperRows) -> dict[str, Any]:
        """Return tables, figures and sentences about all targets."""
        tables = {table.name: table for part in _TARGETS.values() for table in part.tables(rows)}
        pictures = {
            name: [f"![{figure}](figures/{figure}.svg)" for figure in part.figures(rows)]
            for name, part in _TARGETS.items()
        }
        return {
            "settings": _settings(rows.coverage, rows.scope),
            "claims": [_compared(rows), tables["claims"]],
            "inferences": [part for inference in rows.others for part in _inference_parts(rows, inference)],
            "table1": tables["table1"],
            **{n: [text for name, text in tables.items() if name.startswith(n)] for n in ("table2", "table3")},
            "ablation": [tables["ablation"], *pictures["ablation"]],
            "sbm": [block_paragraph(rows.blocks), tables["sbm-summary"], *pictures["sbm"]],
        }

    def _evaluated_on(self, scope: Scope) -> str:
        """Describe the evaluated nodes, because the demo evaluates others; empty for targets without sets."""
        if self.target not in ("table2", "table3", "ablation", "all"):
            return ""
        least = ", ".join(f"{setup_of(name).cutoff:,} on {setup_of(name).title}" for name in scope.datasets)
        return (
            f"As in the paper, each repetition evaluates {scope.evaluated:,} nodes, drawn from those with enough other "
            f"test nodes within {CUTOFF_HOPS} hops ({least}). `napsets demo` and `napsets report` evaluate every node "
            f"that did not calibrate, including those with few nodes nearby, to which NAPS gives large sets."
        )


def _inference_parts(rows: PaperRows, inference: str) -> list[str | Table]:
    """Return which claims hold with an inference that the tables do not show."""
    ours, scope = rows.others[inference], rows.scope
    if not ours:
        return []
    heading = [f"### With {inference} inference", _INFERENCES, paragraph(ours, scope)]
    return [*heading, accuracy(ours, scope), claims_table(ours, scope)]


def _settings(rows: list[Row], scope: Scope) -> str:
    """Describe what was run, and how long it took."""
    if not rows:
        return ""
    seeds = ", ".join(map(str, distinct(rows, "seed")))
    lines = [
        f"Training preset `{scope.preset}`, {scope.inferences[0]} inference, seeds {seeds}; "
        f"alpha {scope.alpha:g}, {scope.repetitions} repetitions of {scope.evaluated:,} evaluation nodes."
    ]
    for dataset in scope.datasets:
        ours = [row for row in select(rows, dataset=dataset) if row["hops"] in (0, scope.hops)]
        if ours:
            trained = {(row["model"], row["seed"]): row["train_seconds"] for row in ours}
            times = ", ".join(
                f"{MODELS[model]} {fmean(seconds):.0f} s"
                for model in scope.models
                if (seconds := [s for (m, _), s in trained.items() if m == model and s is not None])
            )
            conformal = sum(row["seconds"] for row in ours) / len(distinct(ours, "seed"))
            lines.append(
                f"{SETUPS[dataset].title}: training took {times} per seed; the conformal part of Tables 2 and 3, "
                f"both protocols and all models, {conformal:.1f} s per seed."
            )
    return " ".join(lines)
