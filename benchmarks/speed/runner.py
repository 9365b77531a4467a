"""Running tasks in fresh processes, in turns, with a progress bar on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.speed.floor import compile_floor
from benchmarks.speed.tasks import Spec

_ROOT = Path(__file__).parents[2]


class Bench:
    """A temporary folder with the graphs and the compiled floor, and a way to run tasks in it."""

    def __init__(self, torchcp_python: str | None) -> None:
        self._temporary = TemporaryDirectory(prefix="napsets-speed-")
        self.folder = Path(self._temporary.name)
        self.torchcp_python = torchcp_python
        self.graphs: dict[str, Spec] = {}
        self.console = Console(stderr=True)

    def __enter__(self) -> Bench:
        for name in ("floor", "dijkstra"):
            compile_floor(self.folder, name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._temporary.cleanup()

    @property
    def environment(self) -> dict[str, str]:
        """Where compiled kernels are kept: in the temporary folder, so that the first process compiles them."""
        source = os.pathsep.join([str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        return {**os.environ, "PYTHONPATH": source, "NUMBA_CACHE_DIR": str(self.folder / "numba")}

    def command(self, spec: Spec) -> list[str]:
        """Return the command line that does a task."""
        if spec["task"] == "torchcp":
            script = str(Path(__file__).with_name("torchcp_way.py"))
            graph = str(self.folder / f"{spec['graph']}.npz")
            return [
                str(self.torchcp_python),
                "-W",
                "ignore",
                script,
                graph,
                *map(str, (spec["hops"], spec["sources"], 41, 1)),
            ]
        return [sys.executable, "-m", "benchmarks.speed.worker", str(self.folder), json.dumps(spec)]

    def build(self, *names: str) -> None:
        """Make the graphs that are not there yet, each in a process of its own."""
        for name in names:
            if name not in self.graphs:
                self.console.print(f"building {name}", style="dim")
                self.graphs[name] = self.run({"task": "build", "graph": name})

    def run(self, spec: Spec) -> Spec:
        """Do one task in a fresh process; return the spec with what was measured."""
        done = subprocess.run(
            self.command(spec), env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True
        )
        return {**spec, **json.loads(done.stdout.splitlines()[-1])}

    def rounds(self, title: str, specs: list[Spec], count: int) -> list[Spec]:
        """Do every task `count` times: all of them in turns, each round starting with another."""
        rows = []
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console) as progress:
            bar = progress.add_task(title, total=len(specs) * count)
            for turn in range(count):
                first = turn % len(specs)
                for spec in specs[first:] + specs[:first]:
                    rows.append({**self.run(spec), "round": turn})
                    progress.advance(bar)
        return rows
