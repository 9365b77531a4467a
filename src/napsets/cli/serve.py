"""``napsets serve``: prediction sets over HTTP, from a store that survives."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from napsets.cli._options import Alpha, ReadingOptions, Seed
from napsets.cli._output import Output
from napsets.cli._store import READ, StorePath, live_from_files
from napsets.errors import InvalidInputError

EXAMPLES = [
    "napsets serve store --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets serve store --port 8000",
    "napsets serve store --host 0.0.0.0 --token-file token.txt",
]


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


@dataclass(frozen=True)
class Address:
    """Where the service listens, and what it answers."""

    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="Address to listen on. An address that other machines can reach (any but a loopback address) needs a "
            "token.",
        ),
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 picks a free one.")] = 8000
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="A file with the bearer token; without it, the variable NAPSETS_TOKEN."),
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
    with run.steps() as steps:
        if _files(store, first):
            notes: list[str] = []
            live = live_from_files(
                first.edges, first.probabilities, first.labels, read.reading, steps.stage, notes,  # type: ignore[arg-type]
                method=first.method, alpha=first.alpha, seed=first.seed,
            )  # fmt: skip
            run.notes(notes)
            steps.stage(f"writing {store}")
            live.save(store)
            live.close()
        steps.stage(f"opening {store}")
        live = Live.open(store)

    def ready(url: str) -> None:
        run.result({"url": url, "store": str(store)} | live.status(), f"Serving {store} at {url} (stop with Ctrl-C)")

    run_server(live, host=address.host, port=address.port, token=token, limits=limits, ready=ready)


def _files(store: Path, first: FirstFiles) -> bool:
    """Return whether a store is to be made from files; refuse that where there is one, or where files are missing."""
    files = {"--edges": first.edges, "--probabilities": first.probabilities, "--labels": first.labels}
    missing = [flag for flag, path in files.items() if path is None]
    there = store.is_dir() and any(store.iterdir())
    if len(missing) == len(files):
        return False
    if there:
        raise typer.BadParameter(
            f"{store} already exists; leave out --edges, --probabilities and --labels", param_hint="STORE"
        )
    if missing:
        raise typer.BadParameter(f"a new store needs {', '.join(missing)} too", param_hint=missing[0])
    return True
