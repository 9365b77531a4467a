"""Calls of the whole public surface, made from its signatures, with right arguments and with wrong ones.

``python hostile_calls.py CALLS SEED RECORD [FIRST]`` makes this many calls, and prints as JSON what went wrong: foreign
exceptions, calls that take too long, and results that change when the caller writes to an array that it passed. Before
each call, the file RECORD gets its description, so that a process that dies says in which. Call i is a function of SEED
and i alone: ``hostile_calls.py 1 SEED RECORD i`` makes it again.
"""

from __future__ import annotations

import copy
import faulthandler
import inspect
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import napsets as ns
from hostile_surface import SLOW, UNNAMED, methods_of, surface
from hostile_values import draw
from hostile_worlds import FOLDER, WORLDS, World

LONGEST = 30  # seconds that a call may take


# -- one call ----------------------------------------------------------------------------------------------------------


def arguments(rng: np.random.Generator, world: World, function: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments for a function, by its signature; those with defaults are left out at times."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    hostile = rng.choice([0.1, 0.3, 0.6])
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self" or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.default is not parameter.empty and rng.random() < 0.5:
            continue
        if parameter.name not in world.good:
            raise LookupError(f"tests/hostile_calls.py knows no values for the parameter {parameter.name!r}")
        value = draw(rng, world, parameter.name, hostile)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[parameter.name] = value
    return positional, named


def described(name: str, world: int, arguments: tuple[list[Any], dict[str, Any]]) -> str:
    def short(value: Any) -> str:
        if isinstance(value, np.ndarray):
            text = np.array2string(value.ravel()[:4], separator=",").replace("\n", "")
            return f"{type(value).__name__} {value.dtype} {value.shape} {text}"
        try:
            return repr(value)[:60]
        except Exception as error:
            return f"{type(value).__name__} ({error})"[:60]

    positional, named = arguments
    parts = [*map(short, positional), *(f"{key}={short(value)}" for key, value in named.items())]
    return f"{name}({', '.join(parts)}) in world {world}"


def scribble(value: Any) -> None:
    """Write over every array that a caller still holds."""
    for part in value if isinstance(value, list | tuple) else value.values() if isinstance(value, dict) else [value]:
        if isinstance(part, np.ndarray) and part.flags.writeable and part.size and part.dtype.kind in "iufbU":
            part[...] = np.zeros(1, part.dtype)[0] if part.dtype.kind in "bU" else np.array(119, part.dtype)
        elif isinstance(part, list | tuple | dict):
            scribble(part)


def same(one: Any, other: Any) -> bool:
    """Return whether two results say the same, as far as that can be told."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and (one.tobytes() == other.tobytes() or bool((one == other).all()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | int | str | bool):
        return one == other or one != one
    return True


def ours(value: Any) -> bool:
    return type(value).__module__.startswith("napsets.") and not type(value).__module__.startswith("napsets.kernels")


class TooLongError(Exception):
    """A call took longer than it may."""


class Fuzz:
    def __init__(self, seed: int, record: str) -> None:
        self.seed = seed
        self.surface = surface()
        self.names = sorted(self.surface)
        self.record = os.open(record, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.problems: dict[str, str] = {}
        self.fine = self.refused = 0
        for name, get in self.surface.items():
            for parameter in set(inspect.signature(get(WORLDS[0])).parameters) - set(WORLDS[0].good) - UNNAMED:
                self.problems[f"{name}: {parameter}"] = "a parameter for which hostile_values.py has no values"

    def note(self, text: str) -> None:
        """Write down what comes next: whoever finds this process dead reads it."""
        os.ftruncate(self.record, 0)
        os.pwrite(self.record, text.encode("utf-8", "replace"), 0)

    def attempt(self, text: str, call: Callable[[], Any]) -> tuple[bool, Any]:
        """Make a call; return whether it gave something, and what."""
        self.note(text)
        signal.alarm(LONGEST)
        try:
            result = call()
            if inspect.isgenerator(result) or isinstance(result, Iterator):
                result = list(result)
            self.fine += 1
            return True, result
        except ns.NapsetsError:
            self.refused += 1
        except LookupError as error:
            if "getitem" not in text:
                self.blame(text, error)
        except Exception as error:
            self.blame(text, error)
        finally:
            signal.alarm(0)
        return False, None

    def blame(self, text: str, error: Exception) -> None:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "napsets/" in f.filename]
        place = " < ".join(f"{Path(f.filename).stem}:{f.lineno}" for f in reversed(frames[-4:]))
        self.problems.setdefault(
            f"{text.partition(': ')[2].partition('(')[0]} {type(error).__name__} {place}", f"{text}: {error} [{place}]"
        )

    def call(self, i: int) -> None:
        rng = np.random.default_rng([self.seed, i])
        which = int(rng.choice(len(WORLDS), p=[0.35, 0.3, 0.2, 0.15]))
        world = WORLDS[which]
        name = self.names[rng.integers(len(self.names))]
        while name.removeprefix("datasets.").replace(": ", ".") in SLOW and rng.random() > 0.02:
            name = self.names[rng.integers(len(self.names))]
        done, function = self.attempt(f"{i}: getting {name}", lambda: self.surface[name](world))
        if not done:
            return
        try:
            mine = arguments(rng, world, function)
        except LookupError as error:
            self.problems.setdefault(str(error), f"{name}: {error}")
            return
        text = f"{i}: {described(name, which, mine)}"
        done, result = self.attempt(text, lambda: function(*mine[0], **mine[1]))
        if not done:
            return
        parts = [part for part in (result if isinstance(result, list | tuple) else [result]) if ours(part)]
        for part in parts[:1]:
            self.follow(rng, world, which, text, part)
            if rng.random() < 0.3 and inspect.isclass(function):
                self.scribbled(rng, world, text, function, mine)

    def follow(self, rng: np.random.Generator, world: World, which: int, text: str, part: Any) -> None:
        """Look at what came of a call: its properties, and one of its methods."""
        kind = type(part)
        for name in dir(kind):
            if not name.startswith("_") and isinstance(inspect.getattr_static(kind, name), property | cached_property):
                self.attempt(f"{text} -> .{name}", lambda name=name: getattr(part, name))
        self.attempt(f"{text} -> repr", lambda: repr(part))
        names = [name for name in methods_of(kind) if f"{kind.__name__}.{name}" not in SLOW]
        if names:
            name = names[rng.integers(len(names))]
            method = getattr(part, name)
            try:
                more = arguments(rng, world, method)
            except LookupError as error:
                self.problems.setdefault(str(error), f"{kind.__name__}.{name}: {error}")
                return
            self.attempt(f"{text} -> {described(name, which, more)}", lambda: method(*more[0], **more[1]))

    def scribbled(self, rng: np.random.Generator, world: World, text: str, make: Any, mine: Any) -> None:
        """Make a thing twice, write over the arrays that one was made of, and let both say what they are."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = copy.deepcopy(mine)
                one, other = make(*mine[0], **mine[1]), make(*theirs[0], **theirs[1])
            except Exception:  # what an argument cannot be copied for, or gives out for the second time
                return
        scribble(list(mine))
        for name in dir(type(one)):
            if name.startswith("_"):
                continue
            raw = inspect.getattr_static(type(one), name)
            if isinstance(raw, property | cached_property) or name in getattr(type(one), "__dataclass_fields__", ()):
                looks = [partial(getattr, each, name) for each in (other, one)]
                before, after = (self.attempt(f"{text} -> .{name}", look) for look in looks)
                if before[0] and after[0] and not same(before[1], after[1]):
                    self.problems.setdefault(
                        f"{type(one).__name__}.{name} changed", f"{text}: .{name} changes with the caller's arrays"
                    )


def main(calls: int, seed: int, record: str, first: int = 0) -> None:
    """Make the calls, and print what came of them."""

    def too_long(*_: Any) -> None:
        raise TooLongError(f"more than {LONGEST} s")

    faulthandler.enable()
    signal.signal(signal.SIGALRM, too_long)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    fuzz = Fuzz(seed, record)
    os.chdir(FOLDER)  # some calls write to files
    for i in range(first, first + calls):
        fuzz.call(i)
    fuzz.note("the end")
    print(json.dumps({"problems": fuzz.problems, "fine": fuzz.fine, "refused": fuzz.refused, "names": len(fuzz.names)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
