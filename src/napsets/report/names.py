"""Names of classes, nodes and data sets as a page can show them: other people's text, whatever is in it."""

from __future__ import annotations

import re

__all__ = ["shown_name", "visible"]

#: Control characters, line separators, what turns the text around it, and half characters, which no file can hold.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    r"""Return text with what a page would not show, or obey, as an escape.

    Examples
    --------
    >>> print(visible("a\x1b[31m\u2028b"))
    a\x1b[31m\u2028b
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown_name(name: object) -> str:
    """Return a name that can be seen: one without any letter stands in quotes.

    Examples
    --------
    >>> shown_name("cat"), shown_name(7), shown_name("")
    ('cat', '7', "''")
    """
    text = visible(str(name))
    return text if text.strip() else f"'{text}'"
