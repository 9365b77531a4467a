"""Pages from notebooks, generated during the build: text, code, and printed and drawn output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def page_of(path: Path) -> tuple[str, dict[str, str]]:
    """Return the page of a notebook in Markdown, and its pictures by file name."""
    pictures: dict[str, str] = {}
    parts = [
        part for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] for part in _parts(cell, path, pictures)
    ]
    # A link in HTML keeps pointing to the notebook itself; Markdown links are replaced by links to pages.
    note = f'*This page is a notebook: <a href="{path.name}" download>{path.name}</a> runs in Jupyter, in a clone.*'
    return "\n\n".join([parts[0], note, *parts[1:]]) + "\n", pictures


def _parts(cell: dict[str, Any], path: Path, pictures: dict[str, str]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        title, rest = _split_title(source)
        yield from (part for part in (title, rest) if part)
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _output(output, path, pictures)


def _split_title(source: str) -> tuple[str, str]:
    """Split the page title from the rest of a cell that begins with it."""
    if not source.startswith("# "):
        return "", source
    title, _, rest = source.partition("\n")
    return title, rest.strip()


def _output(output: dict[str, Any], path: Path, pictures: dict[str, str]) -> str:
    if output["output_type"] == "stream":
        return _printed("".join(output["text"]))
    data = {kind: "".join(text) for kind, text in output["data"].items()}
    if "image/svg+xml" in data:
        name = f"{path.stem}-{len(pictures) + 1}.svg"
        pictures[name] = data["image/svg+xml"]
        return f"![The chart that the code above draws]({name})"
    # Tables of sets are plain HTML, which Markdown leaves unchanged.
    return data["text/html"] if "text/html" in data else _printed(data["text/plain"])


def _printed(text: str) -> str:
    return f'```text title="Output"\n{text.rstrip()}\n```'
