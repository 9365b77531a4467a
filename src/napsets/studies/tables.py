"""What people look at: a table as data in its four forms, parts of figures, and files of tables, figures and pages."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeVar

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.errors import imported
from napsets.files.paths import replacing

#: The forms that are files, and their suffixes.
FORMATS = {"markdown": ".md", "csv": ".csv", "latex": ".tex"}


class Spread(NamedTuple):
    """A mean and its standard deviation; the latter is NaN where there is one value only."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return mean and sample standard deviation."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else float("nan"))


class MeanInterval(NamedTuple):
    """A mean, and where it lies with 95 % confidence; the ends are NaN where there is one value only."""

    mean: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        """Return it as people read it."""
        if math.isnan(self.mean):
            return "–"
        mean, low, high = (f"{value:.{digits}f}".replace("-", "−") for value in self)
        return mean if math.isnan(self.low) or self.low == self.high else f"{mean} ({low} to {high})"


def interval(values: FloatArray) -> MeanInterval:
    """Return the mean of values and the 95 % interval that Student's law gives it.

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


Item = TypeVar("Item")
Entry = str | int | float | Spread | None
#: What a column shows of an item: an attribute or a key, or a function of it.
Column = str | Callable[[Any], Entry]


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words under a title."""

    name: str  #: file name without suffix
    title: str  #: a sentence above it
    columns: Sequence[str]  #: heads
    #: Entries: text is shown as it is, integers with separators, None and NaN as a dash, a spread as mean ± sd, other
    #: numbers with `digits`.
    rows: Sequence[Sequence[Entry]]
    #: Digits after the point by column; 3 by default. A sign is shown in columns whose head begins with Δ.
    digits: dict[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()  #: sentences below it
    for_screen: bool = True  #: whether a terminal is wide and long enough for it; files always are

    @classmethod
    def of(cls, name: str, title: str, items: Iterable[Any], columns: Mapping[str, Column], **more: Any) -> Table:
        """Return a table with one row per item."""
        return cls(name, title, list(columns), [[_entry(item, c) for c in columns.values()] for item in items], **more)

    def text_rows(self) -> list[list[str]]:
        """Return the cells as people read them."""
        return [[self._text(head, cell) for head, cell in zip(self.columns, row, strict=True)] for row in self.rows]

    def _text(self, column: str, entry: Entry) -> str:
        if entry is None or isinstance(entry, str):
            return entry or "–"
        if isinstance(entry, Spread):
            mean, sd = (self._text(column, part) for part in entry)
            return mean if entry.sd != entry.sd else f"{mean} ± {sd.lstrip('+')}"
        if isinstance(entry, int):
            return f"{entry:,}"
        if entry != entry:
            return "–"
        return f"{entry:{'+' if column.startswith('Δ') else ''},.{self.digits.get(column, 3)}f}"

    def markdown(self) -> str:
        """Return the table in GitHub's Markdown."""
        rule = ["---" if self._is_text(i) else "---:" for i in range(len(self.columns))]
        lines = [[cell.replace("|", "\\|") for cell in line] for line in (self.columns, rule, *self.text_rows())]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.title}**", body, *self.notes]) + "\n"

    __str__ = markdown  # in a page

    def csv(self) -> str:
        """Return the table as comma-separated values: numbers in full, a spread in two columns."""
        wide = [any(isinstance(row[i], Spread) for row in self.rows) for i in range(len(self.columns))]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        heads = zip(self.columns, wide, strict=True)
        writer.writerow([name for head, two in heads for name in ([head, f"{head} sd"] if two else [head])])
        for row in self.rows:
            writer.writerow([part for entry, two in zip(row, wide, strict=True) for part in _parts(entry, two)])
        return stream.getvalue()

    def latex(self) -> str:
        """Return a LaTeX table that needs the package booktabs."""
        form = "".join("l" if self._is_text(i) else "r" for i in range(len(self.columns)))
        texts = (self.columns, *self.text_rows())
        head, *lines = (" & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in texts)
        caption = " ".join([f"{self.title}.", *self.notes]).replace("..", ".").translate(_LATEX)
        before = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{self.name}}}"]
        before += [rf"\begin{{tabular}}{{{form}}}", r"\toprule", head, r"\midrule"]
        return "\n".join([*before, *lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])

    def rich(self) -> Any:
        """Return a table for Rich's console."""
        rich_table = imported("rich.table", "cli", "rich")
        table = rich_table.Table(title=self.title, caption="\n".join(self.notes) or None, title_justify="left")
        for i, head in enumerate(self.columns):
            number = not self._is_text(i)
            table.add_column(head, justify="right" if number else "left", no_wrap=number)
        rows = self.text_rows()
        for row, following in zip(rows, [*rows[1:], []], strict=True):
            table.add_row(*row, end_section=row[:2] != following[:2])
        return table

    def _is_text(self, column: int) -> bool:
        return any(isinstance(row[column], str) for row in self.rows)


def _entry(item: Any, column: Column) -> Any:
    if callable(column):
        return column(item)
    return item[column] if isinstance(item, Mapping) else getattr(item, column)


def select(items: Iterable[Item], **wanted: object) -> list[Item]:
    """Return the items (rows, or summaries of rows) that have these values."""
    return [item for item in items if all(_entry(item, name) == value for name, value in wanted.items())]


def distinct(items: Iterable[Any], name: str) -> list[Any]:
    """Return the different values that items have in a column, in their order."""
    return sorted({_entry(item, name) for item in items})


def _parts(entry: Entry, two: bool) -> list[str | int | float]:
    values = [*entry] if isinstance(entry, Spread) else [entry, None] if two else [entry]
    return ["" if value is None or value != value else value for value in values]


_LATEX = str.maketrans(
    {character: rf"\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    | {"±": r"$\pm$", "Δ": r"$\Delta$", "−": r"$-$", "|": r"$|$", "≤": r"$\leq$", "α": r"$\alpha$"}
)


def write_tables(tables: Iterable[Table], folder: str | os.PathLike[str]) -> list[Path]:
    """Write each table in each of the forms that are files; return the files."""
    return [
        _write(Path(folder) / f"{table.name}{suffix}", getattr(table, name)().encode())
        for name, suffix in FORMATS.items()
        for table in tables
    ]


def write_figures(
    figures: dict[str, Any], folder: str | os.PathLike[str], suffixes: Sequence[str] = (".svg", ".png")
) -> list[Path]:
    """Write each figure as SVG and PNG, or as one of the two; return the files."""
    files = []
    for name, chart in figures.items():
        vl_convert = imported("vl_convert", "report", "vl-convert-python")
        spec = chart.to_json()
        for suffix in suffixes:
            svg = suffix == ".svg"
            content = vl_convert.vegalite_to_svg(spec).encode() if svg else vl_convert.vegalite_to_png(spec, scale=2)
            files.append(_write(Path(folder) / f"{name}{suffix}", content))
    return files


def write_page(path: str | os.PathLike[str], text: str, figures: dict[str, Any]) -> Path:
    """Write a page in Markdown, and its figures into ``figures`` beside it."""
    write_figures(figures, Path(path).parent / "figures", [".svg"])
    return _write(Path(path), text.encode())


def _write(target: Path, content: bytes) -> Path:
    with replacing(target) as draft:
        draft.write_bytes(content)
    return target


def page_form(name: str) -> str:
    """Return a page of the documentation as it is written before its parts are filled in."""
    return files("napsets.studies").joinpath(f"pages/{name}.md").read_text(encoding="utf-8")


def fill_page(name: str, **parts: object) -> str:
    """Return a page with its parts, which are text, tables or lists of them; sections without a text are left out."""
    whole = {part: "\n\n".join(map(str, text)) if isinstance(text, list) else text for part, text in parts.items()}
    text = re.sub(r"\n{3,}", "\n\n", page_form(name).format(**whole))
    return re.sub(r"^## .*\n\n(?=## )", "", text.strip() + "\n", flags=re.MULTILINE)


def fold(summary: str, *parts: str | Table) -> str:
    """Return parts of a page behind a summary that opens at a click, on GitHub and in the documentation."""
    return "\n\n".join([f'<details markdown="1">\n<summary>{summary}</summary>', *map(str, parts), "</details>"])


def mean(values: Iterable[float]) -> float:
    """Return the mean of the values that are known; NaN where none is."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def panels(charts: Sequence[Any], columns: int) -> Any:
    """Put charts side by side, in rows of so many."""
    alt = imported("altair", "report")
    return alt.vconcat(*(alt.hconcat(*charts[i : i + columns]) for i in range(0, len(charts), columns)))


def colours(column: str, names: Mapping[str, str]) -> Any:
    """Return the colours of the names in a column, with a legend below the chart."""
    alt = imported("altair", "report")
    scale = alt.Scale(domain=list(names), range=list(names.values()))
    return alt.Color(f"{column}:N", scale=scale, legend=alt.Legend(title=None, orient="bottom"))
