"""The files that the command's goldens start from: the worlds of `inputs` as tables, in several formats."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from golden.inputs import CLASSES, COLUMNS, World, world

#: Nodes that are asked for: isolated ones, hubs and others.
ASKED = 16

CONFIG = """
[predict]
edges = "edges.csv"
probabilities = "p.csv"
labels = "y.csv"
nodes = "ask.csv"
method = "naps-h"
alpha = 0.25
hops = 3
seed = 11
"""


def write_files(folder: Path) -> None:
    """Write all files that commands are run on."""
    _write_world(folder, world("plain"))
    _write_world(folder / "directed", world("directed lengths"))
    _write_world(folder / "named", world("lengths"), ids=world("lengths").ids, suffix=".parquet")
    _write_dialects(folder, world("plain"))
    (folder / "settings.toml").write_text(CONFIG, encoding="utf-8")
    (folder / "unknown.toml").write_text("[predict]\nhopps = 3\n", encoding="utf-8")


def _write_world(folder: Path, around: World, *, ids: Any = None, suffix: str = ".csv") -> None:
    folder.mkdir(exist_ok=True)
    ids = 3 * np.arange(around.size) + 100 if ids is None else ids
    names, known, rest = np.array(CLASSES)[around.labels], around.calibration, around.rest
    nodes = around.nodes[:: max(1, around.nodes.size // ASKED)][:ASKED]
    shares = {name: around.probabilities[:, y] for y, name in enumerate(CLASSES)}
    columns = {"lower": around.centre - around.spread, "upper": around.centre + around.spread}
    columns |= {"prediction": around.centre, "spread": around.spread}
    tables = {
        "edges": {"source": ids[around.ends[0]], "target": ids[around.ends[1]], "weight": around.lengths},
        "p": {"node": ids} | shares,
        "y": {"node": ids[known], "label": names[known]},
        "truth": {"node": ids[rest], "label": names[rest]},
        "ask": {"node": ids[nodes]},
        "groups": {"node": ids, "group": around.names},
        "features": {"node": ids} | {f"x{j}": around.features[:, j] for j in range(around.features.shape[1])},
        "targets": {"node": ids[known], "target": around.targets[known]},
        "true-targets": {"node": ids[rest], "target": around.targets[rest]},
    }
    tables |= {score: {"node": ids} | {name: columns[name] for name in COLUMNS[score]} for score in COLUMNS}
    for name, table in tables.items():
        _write(folder / f"{name}{suffix}", table)


def _write_dialects(folder: Path, around: World) -> None:
    """Write the plain world as other people might: class numbers, logits, other names and separators."""
    ids, known = 3 * np.arange(around.size) + 100, around.calibration
    _write(folder / "y-indices.csv", {"node": ids[known], "label": around.labels[known]})
    _write(folder / "truth-indices.csv", {"node": ids[around.rest], "label": around.labels[around.rest]})
    logits = {name: np.round(4 * around.probabilities[:, y], 2) for y, name in enumerate(CLASSES)}
    _write(folder / "logits.parquet", {"node": ids} | logits)
    names = np.array(CLASSES)[around.labels]
    odd = {
        "odd-edges": {"from": ids[around.ends[0]], "to": ids[around.ends[1]]},
        "odd-p": {"uid": ids} | {name: around.probabilities[:, y] for y, name in enumerate(CLASSES)},
        "odd-y": {"uid": ids[known], "class": names[known]},
    }
    for name, table in odd.items():
        _write(folder / f"{name}.csv", table, separator=";")
    _write(folder / "y-more.csv", {"node": [*ids[known], 9, 10], "label": [*names[known], "oak", "yew"]})
    _write(folder / "y-strange.csv", {"node": ids[known], "label": ["pine", *names[known][1:]]})
    _write(folder / "y-columns.csv", {"id": ids[known], "label": names[known]})


def _write(path: Path, columns: dict[str, Any], separator: str = ",") -> None:
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter=separator))


# -- reading what commands wrote ---------------------------------------------------------------------------------------


def contents(path: Path) -> Any:
    """Return all that stands in a file that a command wrote, as JSON has it."""
    if path.suffix == ".parquet":
        table = pa.parquet.read_table(path)
        metadata = {key.decode(): json.loads(value) for key, value in (table.schema.metadata or {}).items()}
        return {
            "schema": [[field.name, str(field.type), field.nullable] for field in table.schema],
            "metadata": metadata,
            "columns": {name: table[name].to_pylist() for name in table.column_names},
        }
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        return {"commands": [unescape(command) for command in re.findall(r"<pre[^>]*><code>(.*?)</code>", text)]}
    return text
