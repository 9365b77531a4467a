"""How fast the service starts and answers over loopback while labels arrive; run as ``python -m benchmarks.service``.

Requests leave at fixed times, whether or not earlier ones were answered, so that waiting in a queue counts. Client and
service share the machine. Four of five edges join nodes of one class, so that neighbours' labels are evidence.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import napsets as ns
from napsets.live.events import Change
from napsets.live.store import Store

CLASSES = 8
RESULTS = Path(__file__).parent / "results" / "service.json"
#: What is measured: the name of a figure, what it is, its unit, and what it should be at the most.
FIGURES = (
    ("get_p50_ms", "`GET /sets/{id}`, median", "ms", 3.0),
    ("get_p99_ms", "… 99th percentile", "ms", 15.0),
    ("label_p50_ms", "`POST /labels` of one label, median", "ms", None),
    ("label_p99_ms", "… 99th percentile", "ms", None),
    ("get_beside_body_ms", "`GET /sets/{id}` while a body of 100,000 nodes is read, longest", "ms", None),
    ("batch_of_1000_ms", "`POST /sets` of 1,000 nodes, median", "ms", 100.0),
    ("explained_ms", "`GET /nodes/{id}`, median", "ms", None),
    ("start_s", "start from a snapshot", "s", 10.0),
    ("start_with_replay_s", "start with 100,000 labels to replay", "s", 60.0),
    ("memory_mb", "memory at the most", "MB", None),
)


def make_store(folder: Path, nodes: int, edges: int, labels: int, method: str) -> list[int]:
    """Write a store whose snapshot has the graph, and whose log has labels besides; return nodes without a label."""
    rng = np.random.default_rng(0)
    y = np.arange(nodes) % CLASSES
    logits = rng.normal(size=(nodes, CLASSES)).astype(np.float32)
    logits[np.arange(nodes), y] += 1.5
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    source, target = rng.integers(0, nodes, (2, edges))
    alike = rng.random(edges) < 0.8
    target[alike] += y[source[alike]] - y[target[alike]]
    target = np.minimum(target, nodes - 1)
    with ns.Live(method, seed=0) as live:
        live.add_nodes(np.arange(nodes), p)
        live.add_edges(source, target)
        live.save(folder)
    known = rng.permutation(nodes)[:labels]
    store = Store.open(folder)
    for some in np.array_split(known, max(1, labels // 100)):
        store.append([Change("add labels", {"ids": some, "labels": y[some], "times": np.zeros(some.size)})])
    store.close()
    free = np.setdiff1d(np.arange(nodes), known)
    chosen: list[int] = rng.permutation(free)[:20_000].tolist()
    return chosen


class Client:
    """Bare connections that are kept open: a full HTTP client would need more of the machine than the service."""

    def __init__(self, url: str, connections: int = 16) -> None:
        self._host, port = url.removeprefix("http://").split(":")
        self._port = int(port)
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        for _ in range(connections):
            self._free.put_nowait(None)

    async def send(self, method: str, path: str, body: Any = None, status: int = 200) -> bytes:
        """Return the body of an answer, which must have this status."""
        connection = await self._free.get()
        reader, writer = connection or await asyncio.open_connection(self._host, self._port)
        payload = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(payload)}\r\n\r\n".encode() + payload)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        content: bytes = await reader.readexactly(int(length.split(b":")[1]))
        if f" {status} ".encode() not in answer.split(b"\r\n")[0]:
            raise RuntimeError(f"{method} {path}: {content.decode()}")
        self._free.put_nowait((reader, writer))
        return content


async def at_rate(rate: float, seconds: float, send: Any) -> list[float]:
    """Send at fixed times, and return how many milliseconds after its time each was answered."""
    delays: list[float] = []

    async def one(number: int, due: float) -> None:
        await send(number)
        delays.append(1000 * (perf_counter() - due))

    start, tasks = perf_counter(), []
    for number in range(int(rate * seconds)):
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - perf_counter()))
        tasks.append(asyncio.create_task(one(number, due)))
    await asyncio.gather(*tasks)
    return delays


async def load(url: str, free: list[int], seconds: float) -> dict[str, Any]:
    """Ask for 200 sets per second while 50 labels per second arrive; then for 1,000 sets at once, and explanations."""
    wanted, labelled, client = free[::2], free[1::2], Client(url)

    async def get(number: int) -> None:
        await client.send("GET", f"/sets/{wanted[number % len(wanted)]}")

    async def label(number: int) -> None:
        node = labelled[number]
        await client.send("POST", "/labels", {"labels": [{"node": node, "label": node % CLASSES}]})

    # Kernels compile, connections open.
    await asyncio.gather(at_rate(50, 3, get), at_rate(10, 3, lambda number: label(len(labelled) - 1 - number)))
    gets, posts = await asyncio.gather(at_rate(200, seconds, get), at_rate(50, seconds, label))
    batches = [await timed(client, "POST", "/sets", {"nodes": wanted[turn : turn + 1000]}) for turn in range(10)]
    explained = [await timed(client, "GET", f"/nodes/{node}") for node in wanted[:20]]
    row = [1.0 / CLASSES] * CLASSES
    body = {
        "nodes": [{"node": node % 1000, "probabilities": row} for node in range(100_000)]
    }  # refused once it is read
    large = asyncio.create_task(client.send("POST", "/probabilities", body, 422))
    beside = []
    while not large.done():
        beside.append(await timed(client, "GET", f"/sets/{wanted[0]}"))
    await large
    return {
        "get_p50_ms": float(np.percentile(gets, 50)),
        "get_p99_ms": float(np.percentile(gets, 99)),
        "label_p50_ms": float(np.percentile(posts, 50)),
        "label_p99_ms": float(np.percentile(posts, 99)),
        "get_beside_body_ms": max(beside),
        "batch_of_1000_ms": float(np.median(batches)),
        "explained_ms": float(np.median(explained)),
    }


async def timed(client: Client, *request: Any) -> float:
    """Return how many milliseconds a request takes."""
    began = perf_counter()
    await client.send(*request)
    return 1000 * (perf_counter() - began)


def main() -> None:
    """Measure, and write the figures after each method; rows of other methods are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--labels", type=int, default=100_000, help="Labels in the log, which the first start replays.")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--method", action="append", help="As often as wanted; split and auto by default.")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else []
    for method in options.method or ["split", "auto"]:
        began = perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            row = measure(Path(folder) / "store", method, options)
        print(json.dumps(row, indent=2), f"{perf_counter() - began:.0f} s in all", sep="\n", flush=True)
        rows = [*(other for other in rows if other["method"] != method), row]
        options.output.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    options.output.with_suffix(".md").write_text(table_of(rows), encoding="utf-8")


def table_of(rows: list[dict[str, Any]]) -> str:
    """Return the figures as a table in Markdown, one column per method."""
    first, names = rows[0], [f"`{row['method']}`" for row in rows]
    lines = [
        "# The service",
        "",
        "Written by `python -m benchmarks.service`.",
        f"Random graphs with {first['nodes']:,} nodes, {first['edges']:,} edges, {CLASSES} classes and "
        f"{first['labels']:,} labels, over loopback: 200 requests for one set and 50 for one label per second for "
        f"{first['seconds']:g} seconds, then the others. The client ran on the same machine ({first['cores']} cores).",
        "",
        f"| | {' | '.join(names)} | goal |",
        f"|---{'|---:' * len(rows)}|---:|",
    ]
    for name, text, unit, goal in FIGURES:
        cells = [f"{row[name]:,.{0 if row[name] >= 100 else 1}f} {unit}" for row in rows]
        lines.append(f"| {text} | {' | '.join(cells)} | {'' if goal is None else f'{goal:g} {unit}'} |")
    return "\n".join([*lines, ""])


def measure(store: Path, method: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one method: starts, answers under load, and memory."""
    free = make_store(store, options.nodes, options.edges, options.labels, method)
    row: dict[str, Any] = {"method": method, "nodes": options.nodes, "edges": options.edges, "labels": options.labels}
    row |= {"seconds": options.seconds, "cores": os.cpu_count()}
    with serving(store) as (_, _, start):
        row["start_with_replay_s"] = start
    with serving(store) as (service, url, start):
        row["start_s"] = start
        row |= asyncio.run(load(url, free, options.seconds))
        status = Path(f"/proc/{service.pid}/status").read_text(encoding="utf-8")
        row["memory_mb"] = next(int(line.split()[1]) // 1024 for line in status.splitlines() if "VmHWM" in line)
    return row


@contextmanager
def serving(store: Path) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
    """Serve a store in a process of its own, and yield it, its address and how long it took to listen."""
    began = perf_counter()
    command = [sys.executable, "-m", "napsets", "serve", str(store), "--port", "0", "--json", "--quiet"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    try:
        line = service.stdout.readline()
        if not line:
            raise RuntimeError(f"the service did not start; it ended with {service.wait()}")
        url = json.loads(line)["url"]
        yield service, url, perf_counter() - began
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(timeout=300)


if __name__ == "__main__":
    main()
