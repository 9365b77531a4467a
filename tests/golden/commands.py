"""What the commands answer: their JSON, the files that they write, their exit codes and what they say of wrong use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from golden import adapter
from golden.files import contents, write_files
from golden.inputs import COLUMNS

INPUTS = "-e edges.csv -p p.csv -l y.csv"
ASKED = f"{INPUTS} -n ask.csv"
DIRECTED = "-e directed/edges.csv -p directed/p.csv -l directed/y.csv"
NAMED = "-e named/edges.parquet -p named/p.parquet -l named/y.parquet"
REGRESSION = "--task regression -e edges.csv -l targets.csv"
CQR = f"{REGRESSION} -p cqr.csv"
CQR_DIRECTED = "--task regression -e directed/edges.csv -p directed/cqr.csv -l directed/targets.csv"
CQR_NAMED = "--task regression -e named/edges.parquet -p named/cqr.parquet -l named/targets.parquet"

#: Methods whose sets, intervals and explanations are kept here; the goldens of the library have all of them.
METHODS = ("auto", "informed", "naps-exact")


@dataclass(frozen=True)
class Command:
    """One run of the command.

    Attributes
    ----------
    name : str
        What a failure calls it.
    line : str
        What stands after ``napsets``; words are divided by spaces.
    wrote : str or None
        The file that it writes.
    after : tuple of str
        Runs whose files it reads.
    names : tuple of str
        For wrong use: what standard error must name.
    digits : bool
        Whether last digits depend on the processor.
    """

    name: str
    line: str
    wrote: str | None = None
    after: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    digits: bool = False


def predictions() -> Iterator[Command]:
    """``predict``, for both tasks: a file each, named after the run."""
    runs: dict[str, str] = {
        **{f"method-{name}.parquet": f"{ASKED} --method {name} --alpha 0.2" for name in METHODS},
        "default.parquet": ASKED,
        "naps.parquet": f"{INPUTS} --method naps --alpha 0.2",
        "naps.csv": f"{ASKED} --method naps --alpha 0.2",
        "naps.tsv": f"{ASKED} --method naps --alpha 0.2",
        **{
            f"by-{by}.parquet": f"{ASKED} --hops 2 --pool 6 --by {by} -a 0.2" for by in ("class", "degree", "community")
        },
        "by-clusters.parquet": f"{ASKED} --method split --by clusters --alpha 0.2",
        "by-file.parquet": f"{ASKED} --method naps-exact --by groups.csv --alpha 0.2",
        "auto-by-file.parquet": f"{ASKED} --by groups.csv --alpha 0.2",
        **{
            f"directed-{way}.parquet": f"{DIRECTED} -n directed/ask.csv --directed --direction {way} -m naps-exact"
            for way in ("out", "in", "both")
        },
        "directed-auto.parquet": f"{DIRECTED} --directed -n directed/ask.csv",
        "directed.parquet": f"{DIRECTED} --directed --direction both --alpha 0.3 --hops 2",
        "weights.parquet": f"{ASKED} --hops 3 --decay 1,0.5,0.25 --pool 5 --alike 2 --seed 7 --no-empty",
        "exact.parquet": f"{ASKED} --method naps-h --level exact --score thr",
        "global.parquet": f"{ASKED} --hops 1 --fallback global --score raps",
        "lengths.parquet": f"{ASKED} -m naps-lengths --radius 2.5 --decay linear --weights-are lengths --alpha 0.3",
        "strengths.parquet": f"{ASKED} --method naps-lengths --weights-are strengths --alpha 0.3",
        "features.parquet": f"{ASKED} --method snaps --features features.csv --alpha 0.2",
        "config.parquet": "--config settings.toml",
        "config-flags.parquet": "--config settings.toml --hops 1 --method naps",
        "named.parquet": f"{NAMED} -n named/ask.parquet --method naps --alpha 0.2",
        "named.csv": f"{NAMED} -n named/ask.parquet --method naps --alpha 0.2",
        "named-all.parquet": f"{NAMED} --method naps --alpha 0.2",
        "indices.parquet": "-e edges.csv -p p.csv -l y-indices.csv -n ask.csv --method naps -a 0.2",
        "from-logits.parquet": "-e edges.csv -p logits.parquet --logits -l y.csv -n ask.csv --method naps -a 0.2",
        "odd.csv": "-e odd-edges.csv -p odd-p.csv -l odd-y.csv --method naps --alpha 0.3 --separator ; "
        "--rename uid=node --rename from=source --rename to=target --rename class=label",
        "odd.parquet": "-e odd-edges.csv -p odd-p.csv -l odd-y.csv --method naps --alpha 0.3 --separator ; "
        "--rename uid=node --rename from=source --rename to=target --rename class=label",
        "more.parquet": "-e edges.csv -p p.csv -l y-more.csv -n ask.csv --skip-unknown --method split",
        **{
            f"numbers-{name}-{score}.parquet": f"{REGRESSION} -p {score}.csv -n ask.csv --method {name} --alpha 0.2"
            for name, score in (
                *product(("auto", "informed", "naps-exact"), ("cqr",)),
                *product(("naps", "informed"), ("absolute", "normalised")),
            )
        },
        "numbers.parquet": f"{CQR} --method naps-exact --alpha 0.2",
        "numbers.csv": f"{CQR} -n ask.csv --method naps --alpha 0.2",
        "numbers-default.parquet": f"{CQR} -n ask.csv --score cqr",
        **{
            f"numbers-by-{by}.parquet": f"{CQR} -n ask.csv --method split --by {by} -a 0.2"
            for by in ("degree", "community")
        },
        "numbers-by-file.parquet": f"{CQR} -n ask.csv --method naps-exact --by groups.csv --alpha 0.2",
        "numbers-weights.parquet": f"{CQR} -n ask.csv --hops 3 --decay geometric --pool 5 --seed 7 --fallback global",
        "numbers-lengths.parquet": f"{CQR} -n ask.csv -m naps-lengths --radius 2 --weights-are lengths --alpha 0.3",
        **{
            f"numbers-directed-{way}.parquet": f"{CQR_DIRECTED} --directed --direction {way} -m naps -a 0.3 --pool 4"
            for way in ("in", "both")
        },
        "numbers-named.parquet": f"{CQR_NAMED} --method naps --alpha 0.2",
    }
    loose = ("auto", "informed", "default", "snaps", "features", "logits", "exact.parquet")
    for file, options in runs.items():
        line = f"predict {options} -o {file} --json"
        yield Command(f"predict/{file}", line, file, digits=any(word in f"{file} {line}" for word in loose))
    yield Command("predict/standard output", f"predict {ASKED} --method naps --alpha 0.2 -o -")


#: What each of the other commands is asked.
_OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "evaluate/plain": ("naps.parquet -l truth.csv", ("naps.parquet",)),
    "evaluate/graph and groups": (
        "naps.parquet -l truth.csv -e edges.csv --groups groups.csv",
        ("naps.parquet",),
    ),
    "evaluate/csv": ("naps.csv -l truth.csv", ("naps.csv",)),
    "evaluate/named": ("named-all.parquet -l named/truth.parquet -e named/edges.parquet", ("named-all.parquet",)),
    "evaluate/directed": ("directed.parquet -l directed/truth.csv -e directed/edges.csv", ("directed.parquet",)),
    "evaluate/indices": ("indices.parquet -l truth-indices.csv", ("indices.parquet",)),
    "evaluate/intervals": ("numbers.parquet -l true-targets.csv", ("numbers.parquet",)),
    "evaluate/intervals, graph and groups": (
        "numbers.parquet -l true-targets.csv -e edges.csv --groups groups.csv",
        ("numbers.parquet",),
    ),
    "evaluate/intervals csv": ("numbers.csv -l true-targets.csv", ("numbers.csv",)),
    "evaluate/intervals, directed": (
        "numbers-directed-in.parquet -l directed/true-targets.csv -e directed/edges.csv",
        ("numbers-directed-in.parquet",),
    ),
    **{f"inspect/{name}": (f"--node 157 {INPUTS} --method {name} --alpha 0.2 --neighbours 4", ()) for name in METHODS},
    "inspect/naps, labelled": (f"--node 106 {INPUTS} --hops 2 --alpha 0.2", ()),
    "inspect/isolated": (f"--node 814 {INPUTS} --method naps", ()),
    "inspect/by class": (f"--node 157 {INPUTS} --hops 2 --by class --alpha 0.2", ()),
    "inspect/by file": (f"--node 157 {INPUTS} --method naps-exact --by groups.csv --alpha 0.2", ()),
    "inspect/directed": (f"--node 157 {DIRECTED} --directed --direction in --hops 2 --alpha 0.3", ()),
    "inspect/lengths": (
        f"--node 157 {INPUTS} -m naps-lengths --radius 2.5 --weights-are lengths --alpha 0.3 --decay gaussian",
        (),
    ),
    "inspect/named": (f"--node né-0035 {NAMED} --method naps-h --alpha 0.3", ()),
    "inspect/features": (f"--node 157 {INPUTS} --method snaps --features features.csv --alpha 0.2", ()),
    **{f"inspect/numbers, {name}": (f"--node 157 {CQR} --method {name} -a 0.2 --neighbours 4", ()) for name in METHODS},
    **{
        f"inspect/numbers, {score}": (f"--node 157 {REGRESSION} -p {score}.csv --method informed -a 0.2", ())
        for score in COLUMNS
    },
    "inspect/numbers, by file": (f"--node 157 {CQR} --method split --by groups.csv --alpha 0.2", ()),
    "inspect/numbers, directed": (f"--node 157 {CQR_DIRECTED} --directed --direction both --hops 1 -a 0.3", ()),
    "inspect/numbers, named": (f"--node né-0035 {CQR_NAMED} --method naps --alpha 0.3", ()),
    "homophily/plain": ("-e edges.csv -l y.csv", ()),
    "homophily/directed": ("-e directed/edges.csv -l directed/y.csv --directed --direction both", ()),
    "homophily/named": ("-e named/edges.parquet -l named/y.parquet", ()),
    "methods/all": ("", ()),
}

#: Reports: the file, and what it is asked for.
_REPORTS: dict[str, str] = {
    "report.html": f"{INPUTS} --alpha 0.2 --seed 1",
    "truth.html": f"{INPUTS} --truth truth.csv --methods split,naps,naps-h,daps,by-class --alpha 0.2 --hops 1 --pool 3",
    "directed.html": f"{DIRECTED} --directed --direction both --truth directed/truth.csv --methods split,naps",
    "features.html": f"{INPUTS} --methods split,snaps --features features.csv --alpha 0.2 --level exact --title T",
    "numbers.html": f"{CQR} --alpha 0.2 --seed 1",
    "numbers-truth.html": f"{REGRESSION} -p normalised.csv --truth true-targets.csv --methods naps,split,by-degree",
    "numbers-named.html": f"{CQR_NAMED} --truth named/true-targets.parquet --methods split,naps-exact --alpha 0.2",
}

#: Wrong use and bad input: the line, and what standard error must name.
_WRONG: dict[str, tuple[str, tuple[str, ...]]] = {
    "no such command": ("predikt", ("predikt",)),
    "no such option": (f"predict {INPUTS} -o x.parquet --hopps 3", ("--hopps",)),
    "missing option": ("predict -e edges.csv -p p.csv -o x.parquet", ("--labels",)),
    "alpha": (f"predict {INPUTS} --alpha 2 -o x.parquet", ("--alpha",)),
    "hops": (f"predict {INPUTS} --hops -1 -o x.parquet", ("--hops",)),
    "method": (f"predict {INPUTS} --method napss -o x.parquet", ("--method", "napss")),
    "score": (f"predict {INPUTS} --score apps -o x.parquet", ("--score", "apps")),
    "decay": (f"predict {INPUTS} --hops 2 --decay 1,2,3 -o x.parquet", ("--decay",)),
    "decay of a name": (f"predict {INPUTS} --decay slow -o x.parquet", ("--decay", "slow")),
    "by": (f"predict {INPUTS} --by nothing.csv -o x.parquet", ("--by", "nothing.csv")),
    "features": (f"predict {INPUTS} --method naps --features features.csv -o x.parquet", ("--features",)),
    "direction": (f"predict {INPUTS} --direction up -o x.parquet", ("--direction",)),
    "no file": ("predict -e none.csv -p p.csv -l y.csv -o x.parquet", ("edges", "none.csv")),
    "no column": ("predict -e edges.csv -p p.csv -l y-columns.csv -o x.parquet", ("labels", "node")),
    "rename": (f"predict {INPUTS} --rename node -o x.parquet", ("--rename",)),
    "separator": (f"predict {INPUTS} --separator ab -o x.parquet", ("--separator",)),
    "unknown class": ("predict -e edges.csv -p p.csv -l y-strange.csv -o x.parquet", ("labels", "pine")),
    "unknown node": ("predict -e edges.csv -p p.csv -l y-more.csv -o x.parquet", ("labels", "9")),
    "output over an input": (f"predict {INPUTS} -o p.csv", ("--output", "p.csv")),
    "output of no format": (f"predict {INPUTS} -o sets.xlsx", ("--output", "sets.xlsx")),
    "output and json": (f"predict {INPUTS} -o - --json", ("--output",)),
    "config": (f"predict {INPUTS} --config unknown.toml -o x.parquet", ("unknown.toml", "hopps")),
    "numbers with logits": (f"predict {CQR} --logits -o x.parquet", ("--task", "--logits")),
    "numbers with features": (f"predict {CQR} --features features.csv -o x.parquet", ("--task", "--features")),
    "numbers by class": (f"predict {CQR} --method split --by class -o x.parquet", ("by",)),
    "numbers of labels": (f"predict {CQR} --method daps -o x.parquet", ("score",)),
    "score of other columns": (f"predict {CQR} --score absolute -o x.parquet", ("--score", "cqr")),
    "numbers without columns": (f"predict {REGRESSION} -p p.csv -o x.parquet", ("lower", "upper", "p.csv")),
    "direction without directed": (f"predict {INPUTS} --direction in -o x.parquet", ("--direction", "--directed")),
    "nothing to judge": ("evaluate naps.parquet -l directed/ask.csv", ("labels", "label")),
    "no sets": ("evaluate p.csv -l truth.csv", ("sets", "p.csv")),
    "no such node": (f"inspect --node 5 {INPUTS} --method naps", ("5",)),
    "report of no format": (f"report {INPUTS} -o report.pdf", ("--output", "report.pdf")),
    "report of no method": (f"report {INPUTS} --methods split,napss -o x.html", ("--methods", "napss")),
    "report with nothing left": (f"report {INPUTS} --truth y.csv -o x.html", ("--truth",)),
    "report of numbers with logits": (f"report {CQR} --logits -o x.html", ("--task", "--logits")),
    "report of numbers by labels": (f"report {CQR} --methods split,daps -o x.html", ("methods", "daps")),
}


def commands() -> Iterator[Command]:
    """All runs."""
    yield from predictions()
    for file, options in _REPORTS.items():
        yield Command(f"report/{file}", f"report {options} -o {file} --json", file, digits=True)
    for name, (options, files) in _OTHERS.items():
        command = name.partition("/")[0]
        yield Command(name, f"{command} {options} --json", after=tuple(map(_maker, files)))
    for name, (line, names) in _WRONG.items():
        read = [file for file in ("naps.parquet", "numbers.parquet", "naps.csv") if file in line.split()]
        yield Command(f"wrong/{name}", line, after=tuple(map(_maker, read)), names=names)


def _by_name(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the list of methods by name: a method that joins the table is no difference."""
    return answer | {"methods": {row["name"]: row for row in answer["methods"]}} if "methods" in answer else answer


def _maker(file: str) -> str:
    """Return the run that writes a file."""
    return f"{'report' if file.endswith('.html') else 'predict'}/{file}"


COMMANDS: dict[str, Command] = {command.name: command for command in commands()}


class Runs:
    """Runs of the command in a folder of files, each made once; the folder must be the working directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._results: dict[str, dict[str, Any]] = {}
        write_files(folder)

    def result(self, name: str) -> dict[str, Any]:
        """Return the exit code of a run, its JSON or text, and the file that it wrote; and what it failed to name."""
        if name in self._results:
            return self._results[name]
        command = COMMANDS[name]
        for other in command.after:
            self.result(other)
        code, out, err = adapter.run_command(*command.line.split())
        result: dict[str, Any] = {"exit": code}
        if command.names:
            result["unnamed"] = [word for word in command.names if word not in " ".join(err.split())]
            result["unwritten"] = not any((self.folder / f"x.{suffix}").exists() for suffix in ("parquet", "html"))
        elif code:
            result["error"] = err
        elif "--json" in command.line.split():
            result["json"] = _by_name(json.loads(out))
        else:
            result["text"] = out
        if command.wrote is not None and code == 0:
            result["file"] = contents(self.folder / command.wrote)
        self._results[name] = result
        return result
