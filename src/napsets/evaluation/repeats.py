"""A comparison over repeated random splits, with means and standard deviations, as papers report them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.text import html_table
from napsets.checks.values import Record
from napsets.errors import InvalidInputError, imported

if TYPE_CHECKING:
    import altair
    import pandas


#: Methods that are printed, and how wide, so that a table fits a screen.
_SHOWN, _WIDTH = 20, 80


def random_splits(
    calibration: IntArray, nodes: IntArray, splits: int, seed: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Divide the calibration nodes and the judged nodes anew at random, with the same sizes each time.

    Examples
    --------
    >>> for calibration, nodes in random_splits(np.array([0, 1]), np.array([2, 3, 4]), splits=2, seed=0):
    ...     print(calibration, nodes)
    [2 4] [0 1 3]
    [1 4] [0 2 3]
    """
    together = np.union1d(calibration, nodes)
    if together.size < calibration.size + nodes.size:
        raise InvalidInputError(
            "`nodes` must hold no calibration nodes for repeated `splits`: a label either calibrates or evaluates"
        )
    for split in range(splits):
        order = np.random.default_rng([seed, split]).permutation(together)
        yield np.sort(order[: calibration.size]), np.sort(order[calibration.size :])


class Table(ABC):
    """Methods side by side as a table: printed, in Markdown, LaTeX and notebooks, and as a frame."""

    alpha: float

    @abstractmethod
    def rows(self) -> list[Record]:
        """Return one plain dictionary per method."""

    @abstractmethod
    def _table(self) -> list[list[str]]:
        """Return the cells of the table: a row of headings, then one row per method."""

    @property
    @abstractmethod
    def _heading(self) -> str:
        """One line that says what was compared on what."""

    def to_pandas(self) -> pandas.DataFrame:
        """Return the `rows` as a frame, with every measure in a column."""
        return imported("pandas", "spark").DataFrame(self.rows()).set_index("method")

    def to_markdown(self) -> str:
        """Return the table that is printed, in Markdown."""
        return markdown_table(self._table())

    def to_latex(self) -> str:
        """Return the table that is printed, in LaTeX, with the rules of the package ``booktabs``."""
        return latex_table(self._table())

    def __str__(self) -> str:
        table = self._table()
        names, *columns = zip(*table[: _SHOWN + 1], strict=True)
        cells = [[cell.rjust(max(map(len, column))) for cell in column] for column in columns]
        room = max(12, _WIDTH - sum(2 + len(column[0]) for column in cells))
        fitted = [name if len(name) <= room else f"{name[: room - 1]}…" for name in names]
        lines = ["  ".join(row) for row in zip([n.ljust(max(map(len, fitted))) for n in fitted], *cells, strict=True)]
        rest = len(table) - 1 - _SHOWN
        left = [f"… and {rest} more: to_pandas() has all"] if rest > 0 else []
        return "\n".join([self._heading, *lines, *left])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table, for notebooks."""
        head, *rows = self._table()
        return f"<p>{escape(self._heading)}</p>{html_table(head, rows)}"

    def _chart(
        self, points: list[Record], size: str, methods: list[str]
    ) -> tuple[altair.Chart, altair.Chart, altair.Y]:
        """Return a line at the target, the chart of points with a finite size, and the axis of coverage."""
        alt = imported("altair", "report")
        finite = [point for point in points if np.isfinite(point["size"])]
        base = alt.Chart(alt.Data(values=finite)).encode(
            x=alt.X("size:Q", title=size.replace("_", " "), scale=alt.Scale(zero=False)),
            color=alt.Color("method:N", sort=methods),
        )
        target = alt.Chart(alt.Data(values=[{"target": 1.0 - self.alpha}])).mark_rule(strokeDash=[4, 4])
        axis = alt.Y("coverage:Q", title="coverage", scale=alt.Scale(zero=False), axis=alt.Axis(format="%"))
        return target.encode(y="target:Q"), base, axis


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RepeatedComparison(Table):
    """Methods compared on repeated random splits of the same labels.

    Attributes
    ----------
    splits : list of list of dict
        The rows of the comparison on each split, as in `Comparison.rows`.
    alpha : float
        The error rate.
    size : str
        The measure of size in the rows: "mean_size" of sets, "finite_width" of intervals.
    calibration, nodes : int
        How many labels calibrated and how many evaluated in each split.
    """

    splits: list[list[Record]]
    alpha: float
    size: str
    calibration: int
    nodes: int

    @property
    def methods(self) -> list[str]:
        """The names of the methods, the baseline first."""
        return [row["method"] for row in self.splits[0]]

    def __len__(self) -> int:
        return len(self.splits)

    def values(self, method: str, measure: str) -> FloatArray:
        """Return a measure of one method on each split, for example ``values("auto", "mean_size")``."""
        if method not in self.methods:
            raise KeyError(f"{method!r}: compared were {', '.join(self.methods)}")
        place = self.methods.index(method)
        if measure not in self.splits[0][place]:
            raise KeyError(f"{measure!r}: measured were {', '.join(self._measures)}")
        return np.array([rows[place][measure] for rows in self.splits], dtype=np.float64)

    @property
    def _measures(self) -> list[str]:
        first = self.splits[0][0]
        about = ("hops", "alpha", "nodes")
        return [name for name, value in first.items() if isinstance(value, int | float) and name not in about]

    def rows(self) -> list[Record]:
        """Return one row per method: the mean of every measure over the splits, and its deviation as ``…_sd``."""
        rows = []
        for place, method in enumerate(self.methods):
            row: Record = {"method": method, "title": self.splits[0][place]["title"], "splits": len(self)}
            for measure in self._measures:
                values = self.values(method, measure)
                row |= {measure: float(values.mean()), f"{measure}_sd": _deviation(values)}
            rows.append(row)
        return rows

    def plot(self) -> altair.LayerChart:
        """Draw coverage against size as an Altair chart (extra ``report``): a small point per split, large means."""
        points = [
            {"method": method, "size": size, "coverage": coverage}
            for method in self.methods
            for size, coverage in zip(self.values(method, self.size), self.values(method, "coverage"), strict=True)
        ]
        target, base, coverage = self._chart(points, self.size, self.methods)
        means = base.mark_point(filled=True, size=110, opacity=1).encode(x="mean(size):Q", y="mean(coverage):Q")
        splits = base.mark_point(size=20, opacity=0.5).encode(y=coverage)
        return (target + splits + means).properties(width=420, height=280)

    def _table(self) -> list[list[str]]:
        first = self.splits[0][0]
        gaps = [name for name in first if name.startswith("gap_") and np.isfinite(first[name])][:2]
        head = ["method", "coverage", self.size.replace("_", " "), *(f"gap over {name[4:]}" for name in gaps)]
        digits = {"coverage": 3, self.size: 2} | dict.fromkeys(gaps, 3)
        return [
            head,
            *(
                [method, *(_mean_text(self.values(method, name), places) for name, places in digits.items())]
                for method in self.methods
            ),
        ]

    @property
    def _heading(self) -> str:
        return (
            f"{len(self.methods)} methods on {len(self)} random splits at alpha = {self.alpha:g}: {self.calibration:,} "
            f"labels calibrate, {self.nodes:,} evaluate; mean ± standard deviation over the splits"
        )


def _deviation(values: npt.NDArray[np.float64]) -> float:
    """Return the standard deviation of a sample; NaN of a single value."""
    return float(values.std(ddof=1)) if values.size > 1 and np.isfinite(values).all() else float("nan")


def _mean_text(values: FloatArray, digits: int) -> str:
    mean, deviation = float(values.mean()), _deviation(values)
    spread = "" if np.isnan(deviation) else f" ± {deviation:.{digits}f}"
    return "∞" if np.isinf(mean) else f"{mean:.{digits}f}{spread}"


def markdown_table(table: list[list[str]]) -> str:
    """Return a table, whose first row is the head, in Markdown."""
    head, *rows = table
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.strip().replace("|", "\\|") for cell in line) + " |" for line in lines)


#: Characters that LaTeX reads as commands or does not have, and how to write them.
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", "∞": r"$\infty$", "→": r"$\to$"}
)


def latex_table(table: list[list[str]]) -> str:
    """Return a table, whose first row is the head, in LaTeX."""
    head, *lines = [" & ".join(cell.strip().translate(_LATEX) for cell in line) + r" \\" for line in table]
    columns = "l" + "r" * (len(table[0]) - 1)
    return "\n".join(
        [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}"]
    )
