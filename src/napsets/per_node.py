"""What sets and intervals have in common: a row for each of some nodes, found by place or by name, and tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cached_property
from html import escape
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    IntArray,
    as_array,
    as_column,
    check_alpha,
    check_count,
    check_index,
    check_integers,
)
from napsets.checks.frozen import Sealed, frozen
from napsets.errors import InvalidInputError, MissingDependencyError

__all__ = ["PerNode"]

Self = TypeVar("Self", bound="PerNode")

#: Rows that a notebook shows.
_SHOWN = 10


class PerNode(Sealed):
    """A frozen dataclass with arrays of one row a node: `nodes`, `alpha`, `num_nodes`, `ids` and whatever else."""

    #: What a row is, in messages.
    what: ClassVar[str]
    #: The columns that a notebook shows.
    shown: ClassVar[tuple[str, ...]]

    nodes: npt.NDArray[Any]
    alpha: float
    num_nodes: int | None
    ids: npt.NDArray[Any] | None

    def check_rows(self) -> None:
        """Bring nodes, ids, alpha and the number of nodes to one form, or refuse them."""
        nodes = as_column("nodes", self.nodes)  # which may be names, for tables
        if nodes.ndim != 1:
            raise InvalidInputError(f"`nodes` must have one dimension; got shape {nodes.shape}")
        object.__setattr__(self, "nodes", frozen(nodes))
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        if self.ids is not None:
            names = as_column("ids", self.ids)
            if names.shape != self.nodes.shape:
                raise InvalidInputError(
                    f"`ids` must have as many names as there are {self.what}s, {self.nodes.size}; got shape "
                    f"{names.shape}"
                )
            object.__setattr__(self, "ids", frozen(names.astype(str)))
        if self.num_nodes is not None:
            object.__setattr__(self, "num_nodes", check_count("num_nodes", self.num_nodes))
            if self.nodes.size:  # otherwise they may be any names
                low, high = int(check_integers("nodes", self.nodes).min()), int(self.nodes.max())
                if low < 0 or high >= self.num_nodes:
                    bad = low if low < 0 else high
                    raise InvalidInputError(f"`nodes` must hold ids from 0 to {self.num_nodes - 1}; got {bad}")

    @abstractmethod
    def one(self, row: int) -> Any:
        """Return what one row says."""

    @abstractmethod
    def to_arrow(self) -> Any:
        """Return a PyArrow table."""

    @abstractmethod
    def html_cells(self, row: int) -> tuple[str, ...]:
        """Return the cells of one row after its node, for notebooks."""

    def __len__(self) -> int:
        return int(self.nodes.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self.one(row) for row in range(len(self)))

    def __getitem__(self, which: Any) -> Any:
        """Return what one row says, by its place or by its node's name; some of the rows for anything longer."""
        if isinstance(which, str):
            return self.one(self._place_of(which))
        if isinstance(which, slice):
            return self._take(np.arange(len(self))[which])
        chosen = as_array("which", which)
        if chosen.ndim == 0 and chosen.dtype.kind in "iu":
            if not -len(self) <= int(chosen) < len(self):
                raise IndexError(f"there are {len(self)} {self.what}s, numbered from 0; got {int(chosen)}")
            return self.one(int(chosen))
        return self._take(check_index("which", chosen, len(self)))

    def _place_of(self, name: str) -> int:
        place = self._places.get(name)
        if place is None:
            nameless = self.ids is None and self.nodes.dtype.kind not in "UO"
            known = (
                f"the {self.what}s have no ids: pass ids=... to calibrate"
                if nameless
                else f"no {self.what} is of that node"
            )
            raise KeyError(f"{name!r}: {known}")
        return place

    @cached_property
    def _places(self) -> dict[str, int]:
        named = self.nodes if self.ids is None and self.nodes.dtype.kind in "UO" else self.ids
        return {} if named is None else {str(name): row for row, name in enumerate(named.tolist())}

    def _take(self: Self, rows: IntArray) -> Self:
        """Return some of the rows, in their order: every array has one entry a row."""
        parts = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        taken: dict[str, Any] = {name: part[rows] for name, part in parts.items() if isinstance(part, np.ndarray)}
        return replace(self, **taken)  # type: ignore[type-var]

    @property
    def called(self) -> npt.NDArray[Any]:
        """What the nodes are called: their names where they have some, otherwise their numbers."""
        return self.nodes if self.ids is None else self.ids

    def to_pandas(self) -> Any:
        """Return the same table as a pandas frame."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError("pandas", "spark") from error
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the same table as a Polars frame."""
        try:
            import polars
        except ImportError as error:
            raise MissingDependencyError("polars", "polars") from error
        return polars.from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in self.shown)
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{cell}</td>" for cell in (escape(str(self.called[i])), *self.html_cells(i)))
            + "</tr>"
            for i in range(min(_SHOWN, len(self)))
        )
        more = f"<p>… and {len(self) - _SHOWN:,} more</p>" if len(self) > _SHOWN else ""
        return f"<p>{escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
