"""``napsets serve`` and ``status``: the commands of a store; what was calibrated before, for predict."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from napsets.checks.arguments import IntArray
from napsets.cli._options import Alpha, InputFiles, Only, ReadingOptions, Seed
from napsets.cli._output import WARNED, Output, number, percent, table, wrong_use
from napsets.errors import InvalidInputError, arrow
from napsets.files.ids import NodeIds
from napsets.predictions import PredictionSets
from napsets.scores.base import prediction_type

if TYPE_CHECKING:
    from napsets.live.live import Live

EXAMPLES = [
    "napsets serve store --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets serve store --port 8000",
    "napsets serve store --host 0.0.0.0 --token-file token.txt",
    "napsets status store",
    "napsets status store --json",
    "napsets status store --fail-on alarm",
    "napsets status store --prometheus napsets.prom",
]

StorePath = Annotated[Path, typer.Argument(help="The folder of a living graph.", show_default=False)]
#: The options on reading files that have a meaning for a store.
READ = Only("directed", "skip_unknown", "logits")


# -- serve -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FirstFiles:
    """The files that a new store starts from, and its settings."""

    edges: Annotated[Path | None, typer.Option("--edges", "-e", help="Edges of a new store.")] = None
    probabilities: Annotated[
        Path | None, typer.Option("--probabilities", "-p", help="The model's probabilities of a new store.")
    ] = None
    labels: Annotated[Path | None, typer.Option("--labels", "-l", help="Known labels of a new store.")] = None
    method: Annotated[
        str,
        typer.Option(
            "--method", "-m", help="How sets of a new store are made: split, naps, naps-exact, informed or auto."
        ),
    ] = "auto"
    alpha: Alpha = 0.1
    seed: Seed = 0

    def files(self, store: Path) -> InputFiles | None:
        """Return the files that a store is to be made from, if any; refuse some of them, and a store that is there."""
        paths = {"--edges": self.edges, "--probabilities": self.probabilities, "--labels": self.labels}
        missing = [flag for flag, path in paths.items() if path is None]
        if len(missing) == len(paths):
            return None
        if store.is_dir() and any(store.iterdir()):
            message = f"{store} already exists; leave out --edges, --probabilities and --labels"
            raise typer.BadParameter(message, param_hint="STORE")
        if missing:
            raise typer.BadParameter(f"a new store needs {', '.join(missing)} too", param_hint=missing[0])
        return InputFiles(self.edges, self.probabilities, self.labels)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Address:
    """Where the service listens, and what it answers."""

    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. An address that other machines can reach (any but a loopback address) needs a "
            "token."
        ),
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8000
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the bearer token; without it, the variable NAPSETS_TOKEN.")
    ] = None
    most_bytes: Annotated[int, typer.Option("--max-body", min=1, help="Largest request body, in bytes.")] = 64 << 20
    most_entries: Annotated[int, typer.Option("--max-batch", min=1, help="Largest number of entries in one batch.")] = (
        100_000
    )
    seconds: Annotated[
        float,
        typer.Option("--timeout", min=0.001, help="Seconds that a request may take to arrive, and to be answered."),
    ] = 30.0

    def token(self) -> str | None:
        """Return the token, without the line break at its end."""
        if self.token_file is not None:
            try:
                return self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInputError(
                    f"`token_file` must be a file with the token; {self.token_file} is not ({error})"
                ) from error
        return os.environ.get("NAPSETS_TOKEN") or None


def serve(
    run: Output,
    store: StorePath,
    first: FirstFiles = FirstFiles(),
    address: Address = Address(),
    read: Annotated[ReadingOptions, READ] = ReadingOptions(),
) -> None:
    """Answer requests for prediction sets, and keep every change in the store.

    With --edges, --probabilities and --labels a store is made from files first. One process writes to a store at a
    time. The service stops on SIGTERM or Ctrl-C: open requests end, and what was acknowledged is on the disk.
    """
    from napsets.live.live import Live
    from napsets.service.guard import Limits, check_token
    from napsets.service.server import run_server

    token = check_token(address.token(), address.host)
    limits = Limits(address.most_bytes, address.most_entries, address.seconds)
    files = first.files(store)

    def opening() -> Live:
        with run.steps() as steps:
            if files is not None:
                notes: list[str] = []
                settings: dict[str, Any] = {"method": first.method, "alpha": first.alpha, "seed": first.seed}
                with live_from_files(files, read, steps.stage, notes, **settings) as live:
                    run.notes(notes)
                    steps.stage(f"writing {store}")
                    live.save(store)
            steps.stage(f"opening {store}")
            return Live.open(store)

    def ready(url: str, live: Live) -> None:
        run.result({"url": url, "store": str(store)} | live.status(), f"Serving {store} at {url} (stop with Ctrl-C)")

    _log_to_stderr(run)
    run_server(
        opening,
        host=address.host, port=address.port, token=token, limits=limits,
        listening=lambda url: run.note(f"listening at {url}; requests are answered with 503 until the store is open"),
        ready=ready,
    )  # fmt: skip


def _log_to_stderr(run: Output) -> None:
    """Write one line per request and per alarm to standard error, or per alarm alone with ``--quiet``."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("napsets.service")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.WARNING if run.quiet else logging.INFO)


def live_from_files(
    files: InputFiles, read: ReadingOptions, stage: Callable[[str], None], notes: list[str], **settings: Any
) -> Live:
    """Return a living graph that starts from files; its labels count as arrived in an order drawn from the seed."""
    from napsets.live.live import Live

    inputs = files.read(read, stage, predicting=False)
    notes += inputs.notes
    stage("starting")
    ids = inputs.ids.values.to_pylist()
    return Live.start(inputs.graph, inputs.outputs, inputs.truth, ids=ids, class_names=inputs.class_names, **settings)


def one_kind(ids: Sequence[Any]) -> NodeIds:
    """Return the ids of all nodes, which files can name only where all are integers or all are text."""
    kinds = {type(name) for name in ids}
    if len(kinds) > 1:
        raise InvalidInputError(
            "`store` must have ids of one kind, all integers or all text, to be named in files; it has both. Use Live "
            "in Python, or the service."
        )
    pa = arrow()
    return NodeIds(pa.array(ids, pa.large_string() if kinds == {str} else pa.int64()), "nodes")


# -- status ------------------------------------------------------------------------------------------------------------


def status(
    run: Output,
    store: StorePath,
    fail_on: Annotated[
        Literal["alarm"] | None, typer.Option(help=f"Exit with code {WARNED} if an alarm is raised.")
    ] = None,
    prometheus: Annotated[
        Path | None, typer.Option(help="Also write the figures to a file (.prom) that Prometheus' node exporter reads.")
    ] = None,
) -> None:
    """Say how many nodes, edges and labels a store holds, how well its sets covered, and whether an alarm is raised.

    Coverage is prequential: each label evaluates the set that its node had before the label came. Its interval holds at
    all times together. A store that a service writes to can be read meanwhile.
    """
    from napsets.files.paths import check_output, replacing
    from napsets.live.live import Live

    if prometheus is not None:
        with wrong_use("--prometheus"):
            check_output(prometheus, suffixes=(".prom", ".txt"), name="prometheus")
    with run.steps() as steps:
        steps.stage(f"opening {store}")
        with Live.open(store, read_only=True) as live:
            figures = live.status()
    if prometheus is not None:
        from napsets.service.metrics import status_text

        with replacing(prometheus) as draft:
            draft.write_bytes(status_text(figures))
    run.result(figures, table(str(store), ["", ""], _rows(figures)))
    ringing = [name for name, alarm in figures["judged"]["alarms"].items() if alarm["rang"] is not None]
    if fail_on is not None and ringing:
        run.note(f"alarm: {', '.join(ringing)}")
        raise typer.Exit(WARNED)


def _rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    judged = figures["judged"]
    rows = [(name, number(figures[name])) for name in ("nodes", "edges", "labels", "events")]
    low, high = judged["coverage_interval"]
    rows += [
        ("labels that evaluated a set", number(judged["labels"])),
        ("target coverage", percent(1.0 - figures["alpha"])),
        ("coverage so far", percent(judged["coverage"])),
        ("… interval that holds at all times", f"{percent(low)} to {percent(high)}"),
        (f"… of the last {judged['window']} labels", percent(judged["recent_coverage"])),
        ("average set size", number(judged["mean_size"], 2)),
        ("median label delay, in labels", number(judged["label_delay"], 0)),
    ]
    for name, alarm in judged["alarms"].items():
        raised = f"raised after {alarm['rang']:,} labels ({alarm['time']})" if alarm["rang"] is not None else "no"
        rows.append((f"alarm: {name}", raised))
    return rows


# -- what was calibrated before ----------------------------------------------------------------------------------------


class StorePredictor:
    """A living graph as something that predicts nodes by their positions among its ids."""

    prediction = PredictionSets
    integer_labels = False

    def __init__(self, path: Path) -> None:
        from napsets.live.live import Live

        with Live.open(path, read_only=True) as live:  # the state stays, without the log
            self.live, self.method, self.class_names = live, live.method, live.class_names
            self.alpha = live.status()["alpha"]
        self.ids, free = live.ids(), set(live.ids(unlabelled=True))
        self.unlabelled = np.array([place for place, name in enumerate(self.ids) if name in free], dtype=np.int64)
        self.labels = len(self.ids) - len(free)

    def predict(self, nodes: IntArray, alpha: float, progress: Any = None, p_values: bool = False) -> Any:
        """Return the sets of nodes."""
        ids = [self.ids[node] for node in nodes.tolist()]
        sets = self.live.predict(ids, alpha)
        return replace(sets, p_values=self.live.p_values(ids)) if p_values else sets


class SavedMethod:
    """A calibrated method from a file, likewise."""

    def __init__(self, path: Path) -> None:
        from napsets.methods.saving import read_saved

        self.calibrated, integer_labels = read_saved(path)
        scored = self.calibrated.scored
        self.method, self.score = self.calibrated.method, self.calibrated.score
        #: Classes without names go by their numbers.
        self.class_names = scored.class_names or [str(y) for y in range(scored.bound.num_labels)] or None
        self.integer_labels = integer_labels or scored.class_names is None
        self.prediction = prediction_type(self.method.score)
        everyone = np.arange(self.calibrated.num_nodes)
        self.ids: Sequence[Any] = (everyone if scored.ids is None else scored.ids).tolist()
        self.unlabelled = np.setdiff1d(everyone, scored.calibration)
        self.labels = int(scored.calibration.size)

    def predict(self, nodes: IntArray, alpha: float, **options: Any) -> Any:
        """Return the predictions of nodes."""
        return self.calibrated.predict(positions=nodes, alpha=alpha, **options)
