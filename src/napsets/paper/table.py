"""A table as data, and its four forms: for the terminal, Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple

from napsets.errors import MissingDependencyError

__all__ = ["FORMATS", "Entry", "Spread", "Table"]

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


Entry = str | int | float | Spread | None


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words under a title.

    Attributes
    ----------
    name : str
        File name without suffix.
    title : str
        A sentence above it.
    columns : list of str
        Heads.
    rows : list of rows
        Entries: text is shown as it is, integers with separators, None and NaN as a dash, a spread as mean ± sd, other
        numbers with `digits`.
    digits : mapping
        Digits after the point by column; 3 unless told. A sign is shown in columns whose head begins with Δ.
    notes : list of str
        Sentences below it.
    for_screen : bool
        Whether a terminal is wide and long enough for it; files always are.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    digits: dict[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    for_screen: bool = True

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
        heads = [_escape_markdown(head) for head in self.columns]
        rule = ["---" if self._is_text(i) else "---:" for i in range(len(heads))]
        lines = [heads, rule, *([_escape_markdown(cell) for cell in row] for row in self.text_rows())]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.title}**", body, *self.notes]) + "\n"

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
        lines = [" & ".join(_escape_latex(cell) for cell in row) + r" \\" for row in self.text_rows()]
        head = " & ".join(_escape_latex(column) for column in self.columns) + r" \\"
        caption = _escape_latex(" ".join([f"{self.title}.", *self.notes]).replace("..", "."))
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{caption}}}",
                rf"\label{{tab:{self.name}}}",
                rf"\begin{{tabular}}{{{form}}}",
                r"\toprule",
                head,
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def rich(self) -> Any:
        """Return a table for Rich's console."""
        try:
            from rich.table import Table as RichTable
        except ImportError as error:
            raise MissingDependencyError("rich", "cli") from error
        table = RichTable(title=self.title, caption="\n".join(self.notes) or None, title_justify="left")
        for i, head in enumerate(self.columns):
            number = not self._is_text(i)
            table.add_column(head, justify="right" if number else "left", no_wrap=number)
        rows = self.text_rows()
        for row, following in zip(rows, [*rows[1:], []], strict=True):
            table.add_row(*row, end_section=row[:2] != following[:2])
        return table

    def _is_text(self, column: int) -> bool:
        return any(isinstance(row[column], str) for row in self.rows)


def _parts(entry: Entry, two: bool) -> list[str | int | float]:
    values = [*entry] if isinstance(entry, Spread) else [entry, None] if two else [entry]
    return ["" if value is None or value != value else value for value in values]


def _escape_markdown(text: str) -> str:
    return text.replace("|", "\\|")


_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: rf"\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "−": r"$-$",
    "–": "--",
    "|": r"$|$",
    "≤": r"$\leq$",
    "α": r"$\alpha$",
}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
