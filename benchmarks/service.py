"""How fast the service answers over loopback while labels arrive; run as ``python -m benchmarks.service``.

Requests leave at fixed times, whether or not earlier ones were answered, so that waiting in a queue counts. Client and
service share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
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

CLASSES = 8


def make_stores(folder: Path, nodes: int, edges: int, labels: int, method: str, events: int) -> list[int]:
    """Write a store of a random graph and one with further labels that its snapshot lacks; return unlabelled nodes."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(nodes, CLASSES)).astype(np.float32) * 2
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((nodes, 1))).argmax(axis=1)
    graph = ns.Graph.from_edge_index(rng.integers(0, nodes, (2, edges)), num_nodes=nodes)
    known = rng.permutation(nodes)[:labels]
    began = perf_counter()
    live = ns.Live.start(graph, p, y, known, method=method, seed=0)
    print(f"started from arrays in {perf_counter() - began:.1f} s ({labels:,} labels)", flush=True)
    live.save(folder / "store")
    free = np.setdiff1d(np.arange(nodes), known)
    for late in np.array_split(free[:events], max(1, events // 100)):
        live.add_labels(late, y[late])
    live.save(folder / "behind")
    live.close()
    shutil.copy(folder / "store" / "snapshot.npz", folder / "behind" / "snapshot.npz")
    return free[:: max(1, free.size // 20_000)].tolist()


class Client:
    """Bare connections that are kept open: a full HTTP client would need more of the machine than the service."""

    def __init__(self, url: str, connections: int = 16) -> None:
        self._host, port = url.removeprefix("http://").split(":")
        self._port = int(port)
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        for _ in range(connections):
            self._free.put_nowait(None)

    async def send(self, method: str, path: str, body: Any = None) -> bytes:
        """Return the body of an answer, which must be 200."""
        connection = await self._free.get()
        reader, writer = connection or await asyncio.open_connection(self._host, self._port)
        payload = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(payload)}\r\n\r\n".encode() + payload)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        content: bytes = await reader.readexactly(int(length.split(b":")[1]))
        assert b" 200 " in answer.split(b"\r\n")[0], content
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
    """Ask for 200 sets per second while 50 labels per second arrive; then for 1,000 sets at once."""
    asked, labelled, client = free[::2], free[1::2], Client(url)
    began = perf_counter()
    await client.send("GET", f"/sets/{asked[0]}")
    first = 1000 * (perf_counter() - began)

    async def get(number: int) -> None:
        await client.send("GET", f"/sets/{asked[number % len(asked)]}")

    async def label(number: int) -> None:
        body = {"labels": [{"node": labelled[number], "label": number % CLASSES}]}
        await client.send("POST", "/labels", body)

    # Kernels compile, connections open.
    await asyncio.gather(at_rate(50, 3, get), at_rate(10, 3, lambda number: label(len(labelled) - 1 - number)))
    gets, posts = await asyncio.gather(at_rate(200, seconds, get), at_rate(50, seconds, label))
    batches = []
    for turn in range(10):
        began = perf_counter()
        await client.send("POST", "/sets", {"nodes": asked[turn : turn + 1000]})
        batches.append(1000 * (perf_counter() - began))
    explained = []
    for node in asked[:5]:
        began = perf_counter()
        await client.send("GET", f"/nodes/{node}")
        explained.append(1000 * (perf_counter() - began))
    return {
        "first_get_ms": first,
        "get_p50_ms": float(np.percentile(gets, 50)),
        "get_p99_ms": float(np.percentile(gets, 99)),
        "label_p50_ms": float(np.percentile(posts, 50)),
        "label_p99_ms": float(np.percentile(posts, 99)),
        "batch_of_1000_ms": float(np.median(batches)),
        "explained_ms": float(np.median(explained)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--method", action="append", help="As often as wanted; split, naps and auto by default.")
    parser.add_argument("--events", type=int, default=100_000, help="Labels that a start has to replay.")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/service.json"))
    options = parser.parse_args()
    results = []
    for method in options.method or ["split", "naps", "auto"]:
        with tempfile.TemporaryDirectory() as folder:
            results.append(measure(Path(folder), method, options))
        print(json.dumps(results[-1], indent=2), flush=True)
        options.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measure(folder: Path, method: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one method: starts, answers under load, and memory."""
    free = make_stores(folder, options.nodes, options.edges, options.labels, method, options.events)
    result: dict[str, Any] = {"method": method, "nodes": options.nodes, "edges": options.edges}
    result |= {"labels": options.labels, "seconds": options.seconds, "replayed": options.events}
    with serving(folder / "store") as (service, url, start):
        result["start_s"] = start
        result |= asyncio.run(load(url, free, options.seconds))
        status = Path(f"/proc/{service.pid}/status").read_text() if os.path.exists("/proc") else ""
        result["memory_mb"] = next((int(x.split()[1]) // 1024 for x in status.splitlines() if "VmHWM" in x), None)
    with serving(folder / "store") as (_, _, start):
        result["start_again_s"] = start
    with serving(folder / "behind") as (_, _, start):
        result["start_with_replay_s"] = start
    return result


@contextmanager
def serving(store: Path) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
    """Serve a store in a process of its own, and yield it, its address and how long it took to listen."""
    began = perf_counter()
    command = [sys.executable, "-m", "napsets", "serve", str(store), "--port", "0", "--json", "--quiet"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    url = json.loads(service.stdout.readline())["url"]
    try:
        yield service, url, perf_counter() - began
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(timeout=300)


if __name__ == "__main__":
    main()
