"""What a study is: cells that say what each row of results depends on, and what is made of the rows.

A `Cell` is the settings of one row. It knows its key, which columns are measured and between which numbers they can
lie, which other cells it is computed together with, and how. A `Study` is what `napsets reproduce` can be asked for:
it chooses cells, and turns rows into tables, figures and a page. See `napsets.studies` for how to add one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from napsets.checks.values import check_alpha, choose
from napsets.datasets import NodeDataset
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.predictions import NodePredictions
from napsets.studies.tables import Table, fill_page, page_form

if TYPE_CHECKING:
    from napsets.studies.laboratory import Laboratory, RowStore

#: What was measured, by column.
Row = dict[str, Any]
#: The least and the most that a column can be.
Bounds = tuple[float, float]
SHARE: Bounds = (0.0, 1.0)
DIFFERENCE: Bounds = (-1.0, 1.0)
POSITIVE: Bounds = (0.0, math.inf)

CellType = TypeVar("CellType", bound="Cell")
ScopeType = TypeVar("ScopeType")

#: The version of the code as far as results are concerned. A change that can alter a number raises it, and every
#: cell counts as new; a change that cannot (a new command, a faster kernel that gives the same bits) leaves it. The
#: tests recompute committed rows, so that a change which should have raised it is noticed.
RESULTS_VERSION = 1


def digest(settings: dict[str, Any]) -> str:
    """Return a short name for settings: the same for the same settings, on any machine."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def columns(names: str, bounds: Bounds) -> dict[str, Bounds]:
    """Return columns, named in one string, that all have the same bounds."""
    return dict.fromkeys(names.split(), bounds)


@dataclass(frozen=True)
class Cell(ABC):
    """The settings of one row of results: the fields of a subclass."""

    study: ClassVar[str]  #: the folder of its rows
    #: The columns that are numbers, with the least and the most that each can be.
    measured: ClassVar[Mapping[str, Bounds]]
    #: Those of them that may be unknown, in addition to standard errors (``*_se``).
    may_lack: ClassVar[tuple[str, ...]] = ()
    #: The settings that it has in common with the cells that it is computed with, in addition to the neighbours'.
    common: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def title(self) -> str:
        """What the task of this cell is, for people."""

    @classmethod
    @abstractmethod
    def compute(cls: type[CellType], cells: Sequence[CellType], laboratory: Laboratory) -> list[Row]:
        """Return the rows of cells of one task."""

    @property
    def neighbours(self) -> tuple[object, ...]:
        """What it has in common with the cells that should run next to it, and in the same process."""
        return (self.study,)

    @property
    def task(self) -> tuple[object, ...]:
        """What it has in common with the cells that it is computed with."""
        return (*self.neighbours, *(getattr(self, name) for name in self.common))

    def can_run(self, root: str | os.PathLike[str]) -> bool:
        """Say whether what the cell needs is there; `root` is the folder of datasets that are read from files."""
        return True

    def settings(self) -> dict[str, Any]:
        """Return everything that the row depends on."""
        return asdict(self)

    @property
    def key(self) -> str:
        """The row's name: its settings and the version of the code, hashed."""
        return digest({"study": self.study, "version": RESULTS_VERSION, **self.settings()})

    @classmethod
    def from_row(cls: type[CellType], row: Mapping[str, Any]) -> CellType:
        """Return the cell that a row of results belongs to."""
        return cls(**{setting.name: row[setting.name] for setting in fields(cls)})

    def row(self, **measured: Any) -> Row:
        """Return the row of results: the key, the settings, then what was measured, None where that is NaN."""
        known = {name: None if value != value else value for name, value in measured.items()}
        return {"key": self.key, **asdict(self), **known, "version": RESULTS_VERSION}

    @classmethod
    def check_row(cls, row: Mapping[str, Any], where: str) -> None:
        """Refuse a row that was changed by hand: a `FileFormatError` says what is wrong with the row `where`."""
        version = row.get("version")
        if version not in range(1, RESULTS_VERSION + 1):
            raise FileFormatError(
                f"{where} must be of a version of the results from 1 to {RESULTS_VERSION}; it is of {version!r}"
            )
        if version == RESULTS_VERSION:  # the keys of earlier versions come from settings as they were then
            try:
                key = cls.from_row(row).key
            except (KeyError, TypeError, InvalidInputError) as error:
                raise FileFormatError(f"{where} must have the settings of the study {cls.study!r}: {error}") from error
            if row["key"] != key:
                raise FileFormatError(
                    f"{where} must have the key of its settings, {key!r}: one of the two was changed. Remove the file, "
                    f"and run what is missing again."
                )
        for column, (low, high) in cls.measured.items():
            value = row.get(column)
            if value is None and (column in cls.may_lack or column.endswith("_se")):
                continue
            if not isinstance(value, (int, float)) or not low <= value <= high:
                between = f"{low:g} or above" if math.isinf(high) else f"between {low:g} and {high:g}"
                raise FileFormatError(f"{where} must have a {column} that is {between}; it has {value!r}")


@dataclass(frozen=True)
class ModelCell(Cell):
    """A cell about a trained model, whose predictions are kept in a file."""

    #: How files of predictions end, and the settings that tell the model from others: they are in the file's name.
    suffix: ClassVar[str]
    model_settings: ClassVar[tuple[str, ...]] = ("dataset", "model", "seed")
    #: What is trained on what.
    dataset: str
    model: str
    seed: int  #: draws the split and trains the model

    @property
    def model_names(self) -> tuple[str, ...]:
        """What tells the model from others."""
        return tuple(str(getattr(self, name)) for name in self.model_settings)

    @property
    def neighbours(self) -> tuple[object, ...]:
        """The cells of one model run next to each other."""
        return (self.study, *self.model_names)

    @abstractmethod
    def training(self) -> dict[str, Any]:
        """Return what else the predictions depend on, in a form that JSON can hold."""

    @abstractmethod
    def load(self, root: str | os.PathLike[str]) -> NodeDataset:
        """Return the dataset with the split of the seed."""

    @abstractmethod
    def train(self: CellType, data: NodeDataset) -> Iterator[tuple[CellType, NodePredictions]]:
        """Train the model; yield its predictions on the test nodes, and those that come with them for other cells."""

    @abstractmethod
    def prepare(self, data: NodeDataset, predictions: NodePredictions) -> Any:
        """Return what all cells of the model are measured on."""

    def settings(self) -> dict[str, Any]:
        """Return the cell's own settings, and how its model is trained."""
        return {**asdict(self), **self.training()}

    def shipped_predictions(self) -> NodePredictions | None:
        """Return the predictions where they come with the package."""
        return None


#: The part of a scope that an option of the command sets, and what is made of its value there.
_SCOPE_OF: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "dataset": ("datasets", tuple),
    "model": ("models", tuple),
    "method": ("methods", tuple),
    "sparing": ("sparing", tuple),
    "protocol": ("protocols", tuple),
    "share": ("shares", tuple),
    "seeds": ("seeds", lambda count: tuple(range(count))),
    "repetitions": ("repetitions", int),
    "alpha": ("alpha", check_alpha),
    "preset": ("preset", str),
    "inference": ("inferences", lambda name: (name,)),
}


def narrowed(scope: ScopeType, options: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> ScopeType:
    """Return a scope as narrowed or changed by options of the command, whose names must be among those known."""
    changes = {}
    for option, value in options.items():
        if value is None or value == []:
            continue
        if option in known:
            for name in [value] if isinstance(value, str) else value:
                choose(option, name, dict.fromkeys(known[option]))
        part, convert = _SCOPE_OF[option]
        changes[part] = convert(value)
    return replace(scope, **changes)  # type: ignore[type-var]


class Study(ABC):
    """What `napsets reproduce` can be asked for: a scope says which cells to run, and rows are all that is shown."""

    activity: ClassVar[str] = "comparing"  #: what the command says it is doing while cells are run
    kinds: ClassVar[tuple[type[Cell], ...]]  #: the kinds of cells it is made of
    #: The options of the command that it takes in addition to those that all studies take.
    options: ClassVar[tuple[str, ...]]
    page: ClassVar[str]  #: the name of its page of the documentation
    command: ClassVar[str]  #: what writes the committed rows and the page

    @abstractmethod
    def scope(self, quick: bool, options: Mapping[str, Any]) -> Any:
        """Return what to run and show: the whole study, or its quick version, as narrowed by options."""

    @abstractmethod
    def cells(self, scope: Any) -> Sequence[Cell]:
        """Return the cells to run."""

    @abstractmethod
    def rows(self, store: RowStore, scope: Any) -> Any:
        """Return the rows to show."""

    @abstractmethod
    def tables(self, rows: Any) -> list[Table]:
        """Return the tables, those of the page among them."""

    @abstractmethod
    def parts(self, rows: Any) -> dict[str, Any]:
        """Return what is filled into the page; nothing where the rows do not suffice for one."""

    def figures(self, rows: Any) -> dict[str, Any]:
        """Return the figures by name."""
        return {}

    def text(self, rows: Any) -> str:
        """Return the page of the documentation in Markdown."""
        parts = self.parts(rows)
        if parts:
            return fill_page(self.page, command=self.command, **parts)
        heading, *_ = page_form(self.page).splitlines()
        return f"{heading}\n\nNo results yet. Run\n\n```\n{self.command}\n```\n"

    def page_figures(self, rows: Any) -> dict[str, Any]:
        """Return the figures of the page."""
        return self.figures(rows)

    def facts(self, rows: Any, skipped: Mapping[str, str]) -> dict[str, Any]:
        """Return what the command's JSON output has in addition to the tables, some of it sentences for people."""
        return {"rows": len(rows)}

    def left_out(self, scope: Any, root: str | os.PathLike[str]) -> list[str]:
        """Return the datasets that are left out because their files are not there, which users should know."""
        return []
