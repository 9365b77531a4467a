"""The words of a page: what nodes and their labels are called, numbers as people read them, and code in sentences."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.text import visible

#: Words of sentences made elsewhere that the user's own words replace; names that contain them are left alone.
_PLAIN = re.compile(r"(?<![\w`“./-])([Nn]odes?|[Cc]lass(?:es)?)(?![\w`”/-]|\.\w)")


@dataclass(frozen=True, kw_only=True)
class Words:
    """What things are called on a page.

    Attributes
    ----------
    node, label : str
        What a node is, and what the truth about it is.
    noun, item : str
        What a prediction is: a set or an interval, and in plain words a list or an interval.
    short, shorter, longer : str
        What is said of the size of an item.
    full : str
        What a node gets that has too little support.
    given : bool
        Whether `node` and `label` are the user's own words.
    """

    node: str = "node"
    label: str = "class"
    noun: str = "set"
    item: str = "list"
    short: str = "short"
    shorter: str = "shorter"
    longer: str = "longer"
    full: str = "every label"
    given: bool = False

    @classmethod
    def parse(cls, text: str | None, noun: str) -> Words:
        """Return the words of a page about sets or intervals: two words of the user's, or the usual ones."""
        parts = [part.strip() for part in (text or "").split(",")]
        usual = "class" if noun == "set" else "value"
        node, label = parts[0] or "node", parts[1] if len(parts) > 1 and parts[1] else usual
        given = bool(text and text.strip(" ,"))
        if noun == "set":
            return cls(node=node, label=label, full=f"every {label}", given=given)
        return cls(
            node=node, label=label, noun=noun, item=noun, short="narrow", shorter="narrower", longer="wider",
            full="the whole line", given=given,
        )  # fmt: skip

    @property
    def each_node(self) -> str:
        """Each node, with what a node is where the user has no word for it."""
        return f"each {self.node}{' (each item of the graph)' * (self.node == Words.node)}"

    @property
    def nodes(self) -> str:
        """Several nodes."""
        return plural(self.node)

    @property
    def labels(self) -> str:
        """Several labels."""
        return plural(self.label)

    @property
    def Label(self) -> str:  # noqa: N802
        """A label, at the beginning of a sentence or as a heading."""
        return self.label[:1].upper() + self.label[1:]

    @property
    def Labels(self) -> str:  # noqa: N802
        """Several labels, at the beginning of a sentence or as a heading."""
        return self.labels[:1].upper() + self.labels[1:]

    @property
    def Nodes(self) -> str:  # noqa: N802
        """Several nodes, at the beginning of a sentence or as a heading."""
        return self.nodes[:1].upper() + self.nodes[1:]

    def put(self, text: str) -> str:
        """Return a sentence with the user's words for nodes and classes; code and quoted names stay.

        Examples
        --------
        >>> Words.parse("package, section", "set").put("3 of 7 classes; `--by class` helps these nodes")
        '3 of 7 sections; `--by class` helps these packages'
        """
        if not self.given:
            return text
        own = {"node": self.node, "nodes": self.nodes, "class": self.label, "classes": self.labels}
        own |= {word.capitalize(): f"{mine[:1].upper()}{mine[1:]}" for word, mine in own.items()}
        parts = text.split("`")
        parts[::2] = [_PLAIN.sub(lambda match: own[match[0]], part) for part in parts[::2]]
        return "`".join(parts)

    def put_titles(self, spec: Any) -> Any:
        """Return a chart's specification with the user's words in the titles of axes and tooltips."""
        if isinstance(spec, list):
            return [self.put_titles(part) for part in spec]
        if not isinstance(spec, dict):
            return spec
        return {
            key: self.put(part) if key == "title" and isinstance(part, str) else self.put_titles(part)
            for key, part in spec.items()
        }


def plural(word: str) -> str:
    """Return the plural of a word, or of the first word of one such as "branch of trade".

    Examples
    --------
    >>> plural("city"), plural("build system"), plural("branch of trade")
    ('cities', 'build systems', 'branches of trade')
    """
    head, of, rest = word.partition(" of ")
    if of:
        return f"{plural(head)}{of}{rest}"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def sizes_text(sizes: np.ndarray, words: Words) -> str:
    """Return a sentence on the size of most sets and the share of larger ones.

    Examples
    --------
    >>> sizes_text(np.array([1] * 6 + [3] * 3 + [7]), Words(label="section"))
    '60 of 100 lists have at most 1 section, and 10 of 100 have more than 3.'
    """
    low, high = (int(end) for end in np.quantile(sizes, [0.5, 0.9], method="nearest"))
    share = round(100 * float((sizes <= low).mean()))
    many = f"{low} {words.label if low == 1 else words.labels}"
    if share == 100:
        return f"All {words.item}s have at most {many}."
    text = f"{share} of 100 {words.item}s have at most {many}"
    larger = round(100 * float((sizes > high).mean()))
    if high == low or not larger:
        return f"{text}, and the longest has {int(sizes.max())}."
    return f"{text}, and {larger} of 100 have more than {high}."


def quoted(names: list[str], most: int = 8) -> str:
    """Return names in quotation marks as a list, of many names only the first."""
    marked = [f"“{name}”" for name in names]
    if len(marked) > most:
        marked[most - 1 :] = [f"{len(marked) - most + 1} more"]
    return f"{', '.join(marked[:-1])} and {marked[-1]}" if len(marked) > 1 else marked[0]


def number(value: float, digits: int = 2) -> str:
    """Return a number with this many decimals, an en dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def cell(value: object) -> str:
    """Return the text of a cell in a user's own table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None else number(value, 3) if isinstance(value, float) else str(value)


def sentence(text: str) -> str:
    """Return a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def unbroken(text: str) -> str:
    """Return text in which a number and its percent sign stay on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def code(text: str) -> Any:
    """Return a sentence as HTML, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    parts = [visible(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if k % 2 else escape(unbroken(part)) for k, part in enumerate(parts)
    )
