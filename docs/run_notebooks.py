"""Run the notebooks of the documentation and write their outputs into them, without Jupyter.

Run ``python docs/run_notebooks.py`` from the root of the repository, optionally with the names of notebooks. Each runs
in its own namespace and in its own folder, as a kernel would run it. A cell tagged ``trained`` depends on a trained
model, whose last digits differ between processors; for all other cells, tests compare the output word for word.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parent / "notebooks"
#: The formats in which a notebook shows a value, and the methods that return them.
SHOWN = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}

Notebook = dict[str, Any]
Output = dict[str, Any]


def main(names: list[str]) -> None:
    """Run the named notebooks, or all."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            notebook = read(path)
            for count, (cell, outputs) in enumerate(zip(code_cells(notebook), run(notebook, path), strict=True), 1):
                cell["execution_count"], cell["outputs"] = count, outputs
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> Notebook:
    """Return a notebook as it is stored."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """Return the cells that are code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def is_trained(cell: dict[str, Any]) -> bool:
    """Return whether the output of a cell depends on a trained model."""
    return "trained" in cell["metadata"].get("tags", [])


def run(notebook: Notebook, path: Path) -> list[list[Output]]:
    """Run the code of a notebook from the top, in an empty namespace, and return the outputs of each cell."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with _inside(path.parent):
        return [
            _run_cell("".join(cell["source"]), names, f"{path.name}, cell {number}")
            for number, cell in enumerate(code_cells(notebook), 1)
        ]


def _run_cell(source: str, names: dict[str, Any], where: str) -> list[Output]:
    tree, printed, value = ast.parse(source, where), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _shown(value)})
    return outputs


def _shown(value: Any) -> dict[str, list[str]]:
    """Return a value in each of the formats in which it can be shown."""
    bundle = getattr(value, "_repr_mimebundle_", None)
    if bundle is not None:
        return {kind: _lines(text) for kind, text in bundle().items() if kind in ("text/plain", *SHOWN)}
    ways = {kind: getattr(value, name)() for kind, name in SHOWN.items() if hasattr(value, name)}
    return {"text/plain": _lines(repr(value))} | {kind: _lines(text) for kind, text in ways.items()}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder; `contextlib.chdir` does the same from Python 3.11 on."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    main(sys.argv[1:])
