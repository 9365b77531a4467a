"""The table of methods: the one place that knows their names.

The command, the comparison, the report, the studies, the docs and the files read it. To add a method, enter a function
of its settings:

>>> from napsets.methods.method import Method
>>> from napsets.localisers import Hops
>>> @METHODS.add("near")
... def near(*, score="aps", pool=0.0):
...     "Only the direct neighbours count."
...     return Method(score, Hops(1, pool=pool))
>>> make_method("near", pool=3).localiser.hops, sorted(settings_of("near"))
(1, ['allow_empty', 'alpha', 'by', 'level', 'pool', 'score', 'seed'])
>>> _ = METHODS.pop("near")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from inspect import signature
from typing import Any, TypeVar

from napsets.checks.values import Record, Registry, Values, choose
from napsets.groups import Groups, make_groups
from napsets.levels import LEVELS, Exact, Level, Nominal
from napsets.methods.auto import Auto
from napsets.methods.method import Method
from napsets.scores import APS, SCORES, THR, Score, learns, make_score

AnyMethod = Method | Auto
MethodT = TypeVar("MethodT", Method, Auto)

#: The function that makes each method from its settings; the first line of its docstring describes the method.
METHODS: Registry[Callable[..., AnyMethod]] = Registry("METHODS")

#: The methods of the paper, by their names there.
PAPER = {"APS": "split", "NAPS": "naps", "NAPS-H": "naps-h", "NAPS-G": "naps-g"}

#: Names that stand for another method with a setting fixed, and that method.
ALIASES = {"naps-h": "naps", "naps-g": "naps"}

#: The settings that all methods have.
COMMON = ("alpha", "seed", "allow_empty", "by")

_LETTERS = ("aps", "raps", "saps", "thr", "cqr")  # scores whose names are abbreviations


def make_method(name: str, *, by: object = None, level: Level | str | None = None, **settings: Any) -> Any:
    """Return a method by its name, with some settings; those that are None are left to the method.

    Parameters
    ----------
    name : str
        A name of the table, see `list_methods`.
    by, level
        Groups within which coverage is to hold, and the level, as of a `Method`. One that chooses sets its own level.
    **settings
        `alpha`, `seed` and `allow_empty`, which all methods have, and the method's own (`settings_of`).

    Examples
    --------
    >>> make_method("naps", hops=3).localiser
    Hops(hops=3, decay='uniform', pool=0.0, alike=0.0)
    """
    entry = choose("method", name, METHODS)
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        choose("settings", key, dict.fromkeys(sorted(settings_of(name))))
    parameters = signature(entry).parameters
    method: Any = entry(**{key: value for key, value in given.items() if key in parameters})
    method = replace(method, **{key: value for key, value in given.items() if key not in parameters})
    if isinstance(method, Method) and level is not None:
        method = replace(method, level=_make_level(level, method.level))
    groups = make_groups(by)
    return method if groups is None else with_groups(method, groups)


def _make_level(level: Level | str, before: Level) -> Level:
    """Return a level from itself or from its name; a nominal one keeps the fallback of the method."""
    if not isinstance(level, str):
        return level
    kind = choose("level", level, LEVELS)
    made: Level = Nominal(getattr(before, "fallback", "full")) if kind is Nominal else kind()
    return made


def with_groups(method: MethodT, groups: Groups) -> MethodT:
    """Return a method with groups; those that learn from labels need some held out."""
    if isinstance(method, Auto):
        return replace(method, by=groups)
    level = method.level if method.level.holds_out_labels or not learns(groups) else Exact()
    return replace(method, groups=groups, level=level)


def settings_of(name: str) -> set[str]:
    """Return the names of a method's settings: the parameters of its function, and those that all methods have.

    Examples
    --------
    >>> "hops" in settings_of("naps"), "hops" in settings_of("split"), "level" in settings_of("auto")
    (True, False, False)
    """
    entry = choose("method", name, METHODS)
    kind = entry.__annotations__.get("return")
    return {*signature(entry).parameters, *COMMON, *([] if kind in (Auto, "Auto") else ["level"])}


def suitable(name: str, settings: Values) -> Record:
    """Return those of some settings that a method has."""
    known = settings_of(name)
    return {key: value for key, value in settings.items() if key in known}


def check_settings_known(names: Iterable[str]) -> None:
    """Reject names that are a setting of no method."""
    known = dict.fromkeys(sorted(set().union(*(settings_of(name) for name in METHODS))))
    for name in names:
        choose("settings", name, known)


def _score_is_no_method(name: str) -> str | None:
    """Return a hint for the name of a score that is passed as a method."""
    name = {"lac": "thr"}.get(name, name)
    if name not in SCORES or name in METHODS:
        return None
    return f"{name!r} is a score: write the method 'split'" + ("" if name == "aps" else f" with score={name!r}")


def _method_is_no_score(name: str) -> str | None:
    """Return a hint for the name of a method that is passed as a score."""
    if name not in METHODS:
        return None
    score = make_method(name).score
    alone = "" if isinstance(score, APS | None) else f", or {type(score).__name__}() for its score alone"
    return f"{name!r} is a method: write make_method({name!r}){alone}"


METHODS.elsewhere = _score_is_no_method
SCORES.elsewhere = _method_is_no_score


def list_methods() -> dict[str, str]:
    """Return the names of all methods, each with one line that describes it."""
    return {name: describe(name) for name in METHODS}


def describe(name: str) -> str:
    """Return one line that describes a method."""
    return (choose("method", name, METHODS).__doc__ or "").strip().partition("\n")[0]


def title(name: str, score: Score | str | None = None) -> str:
    """Return the name of a method in tables and charts; a split goes by its score.

    Examples
    --------
    >>> title("naps-h"), title("naps-exact"), title("thr"), title("split")
    ('NAPS-H', 'NAPS exact', 'Split THR', 'Split APS')
    """
    if name in ("split", "thr"):
        scored = THR if name == "thr" else type(make_score(APS() if score is None else score))
        score_name = SCORES.name_of(scored) or scored.__name__
        return f"Split {score_name.upper() if score_name in _LETTERS else score_name}"
    first, *more = name.split("-")
    start = first.upper() if first.endswith("aps") else first.capitalize()
    return start + "".join(f"-{part.upper()}" if len(part) == 1 else f" {part}" for part in more)


def name_of(method: AnyMethod) -> str:
    """Return the name in the table that fits a method best; "method" if there is none.

    The localiser and the level must be of the kinds of the entry. The decay, the groups and the score decide among
    several entries, in this order.

    Examples
    --------
    >>> from napsets.localisers import Hops
    >>> name_of(Method("raps")), name_of(Method("thr")), name_of(Method("thr", Hops(3, "hyperbolic"), Exact()))
    ('split', 'thr', 'naps-exact')
    """
    if isinstance(method, Auto):
        return "auto" if method.prefer == "even" else "auto-small"
    best, found = (False, False, False), "method"
    for name in METHODS:
        entry = make_method(name)
        if isinstance(entry, Auto) or type(entry.localiser) is not type(method.localiser):
            continue
        if type(entry.level) is not type(method.level):
            continue
        alike = (
            getattr(entry.localiser, "decay", None) == getattr(method.localiser, "decay", None),
            type(entry.groups) is type(method.groups),
            type(entry.score) is type(method.score),
        )
        if found == "method" or alike > best:
            best, found = alike, name
    return found
