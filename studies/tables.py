"""Pages, tables and figures: a table in Markdown, means with their spread, and the templates of the pages."""

from __future__ import annotations

import importlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: The settings and the measured columns of one row of results.
Row = dict[str, Any]
#: A chart of altair, which is imported only where one is drawn.
Chart = Any
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PAGES = Path(__file__).parent / "pages"


class Spread(NamedTuple):
    """A mean and its standard deviation, which is NaN for a single value."""

    mean: float
    sd: float


def spread(rows: Iterable[Row], name: str) -> Spread | None:
    """Return mean and sample standard deviation of a column; None if no row has a value."""
    values = [row[name] for row in rows if row[name] is not None]
    return Spread(fmean(values), stdev(values) if len(values) > 1 else math.nan) if values else None


class MeanInterval(NamedTuple):
    """A mean and its 95 % confidence interval, whose ends are NaN for a single value."""

    mean: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        """Return the mean, and the interval in brackets."""
        if math.isnan(self.mean):
            return "–"
        mean, low, high = (f"{value:.{digits}f}".replace("-", "−") for value in self)
        return mean if math.isnan(self.low) or self.low == self.high else f"{mean} ({low} to {high})"


def interval(values: Floats) -> MeanInterval:
    """Return the mean of values and its 95 % Student interval.

    Examples
    --------
    >>> interval(np.array([1.0, 2.0, 3.0])).text(2)
    '2.00 (−0.48 to 4.48)'
    """
    from scipy.stats import t

    mean = float(np.mean(values))
    if values.size < 2:
        return MeanInterval(mean, math.nan, math.nan)
    reach = float(t.ppf(0.975, values.size - 1) * np.std(values, ddof=1)) / math.sqrt(values.size)
    return MeanInterval(mean, mean - reach, mean + reach)


def percent(share: float, digits: int = 0) -> str:
    """Return a share as a percentage.

    Examples
    --------
    >>> percent(0.3), percent(0.0512, 1)
    ('30 %', '5.1 %')
    """
    return f"{100 * share:.{digits}f} %"


def select(rows: Iterable[Row], **values: object) -> list[Row]:
    """Return the rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def distinct(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the different values of a column in ascending order."""
    return sorted({row[name] for row in rows})


def grouped(rows: Iterable[Row], *names: str) -> dict[Any, list[Row]]:
    """Return the rows by the value of a column, or by the values of several, in the order of their appearance."""
    groups: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)].append(row)
    return dict(groups)


Entry = str | int | float | Spread | None
#: The columns of a table by their heads: the name of a column of rows, or a function of a row.
Columns = Mapping[str, str | Callable[[Row], Entry]]


@dataclass(frozen=True)
class Table:
    """Rows of entries under a title, in Markdown.

    Text is shown as it is, integers with separators, None and NaN as a dash, a spread as mean ± standard deviation, and
    other numbers with `digits` (3 by default) by column. Columns whose head begins with Δ show the sign.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    digits: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()  #: sentences below the table

    @classmethod
    def of(cls, title: str, rows: Iterable[Row], columns: Columns, **more: Any) -> Table:
        """Return a table with one line per row."""
        lines = [[row[c] if isinstance(c, str) else c(row) for c in columns.values()] for row in rows]
        return cls(title, list(columns), lines, **more)

    def __str__(self) -> str:
        texts = [[self._text(head, entry) for head, entry in zip(self.heads, row, strict=True)] for row in self.rows]
        words = [any(isinstance(row[i], str) for row in self.rows) for i in range(len(self.heads))]
        rule = ["---" if text else "---:" for text in words]
        lines = [[cell.replace("|", "\\|") for cell in line] for line in (self.heads, rule, *texts)]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.title}**", body, *self.notes]) + "\n"

    def _text(self, head: str, entry: Entry) -> str:
        if entry is None or isinstance(entry, str):
            return entry or "–"
        if isinstance(entry, Spread):
            mean, sd = (self._text(head, part) for part in entry)
            return mean if math.isnan(entry.sd) else f"{mean} ± {sd.lstrip('+')}"
        if isinstance(entry, int):
            return f"{entry:,}"
        if math.isnan(entry):
            return "–"
        return f"{entry:{'+' if head.startswith('Δ') else ''},.{self.digits.get(head, 3)}f}"


def fill_page(name: str, command: str, parts: Mapping[str, object]) -> str:
    """Return a page with its parts (text, tables or lists of them); sections without text are left out.

    Without parts the page says how to compute some.
    """
    template = (_PAGES / f"{name}.md").read_text(encoding="utf-8")
    if not parts:
        return f"{template.splitlines()[0]}\n\nNo results yet. Run\n\n```\n{command}\n```\n"
    texts = {part: "\n\n".join(map(str, text)) if isinstance(text, list) else text for part, text in parts.items()}
    page = re.sub(r"\n{3,}", "\n\n", template.format(command=command, **texts))
    return re.sub(r"^## .*\n\n(?=## )", "", page.strip() + "\n", flags=re.MULTILINE)


def write_page(path: Path, text: str, figures: Mapping[str, Chart]) -> None:
    """Write a page, and its figures as SVG into ``figures`` beside it."""
    folder = path.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in figures.items():
        (folder / f"{name}.svg").write_text(svg(chart), encoding="utf-8")
    path.write_text(text, encoding="utf-8")


def svg(chart: Chart) -> str:
    """Return a chart as SVG."""
    text: str = importlib.import_module("vl_convert").vegalite_to_svg(chart.to_json())
    return text


def altair() -> Any:
    """Import altair, which takes a second that only figures need."""
    return importlib.import_module("altair")


def panels(charts: Sequence[Chart], columns: int) -> Chart:
    """Put charts side by side, in rows of so many."""
    alt = altair()
    return alt.vconcat(*(alt.hconcat(*charts[i : i + columns]) for i in range(0, len(charts), columns)))


def colours(column: str, names: Mapping[str, str]) -> Any:
    """Return the colours of the names in a column, with a legend below the chart."""
    alt = altair()
    scale = alt.Scale(domain=list(names), range=list(names.values()))
    return alt.Color(f"{column}:N", scale=scale, legend=alt.Legend(title=None, orient="bottom"))
