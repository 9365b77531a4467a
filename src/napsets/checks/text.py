"""Text of users in a form that a page or a terminal can show safely: names of classes, nodes and files.

Nothing here needs NumPy, so that the command can show an error before anything else is loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from html import escape

#: Control and invisible characters: C0 and C1 controls, marks without width, marks that change the direction of text or
#: break lines, lone surrogates (which no file can hold), and code points that are no characters.
_UNSEEN = r"\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff"
_OBEYED = re.compile(rf"[\x00-\x1f{_UNSEEN}]")
_OBEYED_IN_JSON = re.compile(f"[{_UNSEEN}]")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text with control and invisible characters as escapes; with `lines`, keep line ends.

    Examples
    --------
    >>> print(visible("a\x1b[31m\u2028b"))
    a\x1b[31m\u2028b
    """
    if lines:
        return "\n".join(visible(line) for line in text.split("\n"))
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Return JSON with control and invisible characters as JSON escapes."""
    return _OBEYED_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage, an en dash where there is none.

    Examples
    --------
    >>> percent(0.9012), percent(0.9012, 0), percent(float("nan"))
    ('90.1 %', '90 %', '–')
    """
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def html_table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table for notebooks, with escaped cells."""
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def shown_name(name: object) -> str:
    """Return a visible name; one without visible characters is put in quotes.

    Examples
    --------
    >>> shown_name("cat"), shown_name(7), shown_name("")
    ('cat', '7', "''")
    """
    text = visible(str(name))
    return text if text.strip() else f"'{text}'"
