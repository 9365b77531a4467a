"""Full conformal prediction with the graph on every worker: the bits of one machine, however many pieces there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Full
from napsets.methods.table import make_method
from worlds import guess

from .cases import Case, assert_same_bits, random_case
from .test_graph_plan import by_id

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")]


def alike(ids: str, *, directed: bool = False) -> Case:
    """A case in which neighbours share labels that the model knows little of."""
    case = random_case(50, nodes=400, edges=2600, hubs=0, isolated=9, ids=ids, directed=directed)
    rng = np.random.default_rng(50)
    source, target = case.edge_index
    kept = (case.labels[source] == case.labels[target]) | (rng.random(source.size) < 0.1)
    p = guess(case.labels, 0.7, rng, 4)
    return replace(case, edge_index=case.edge_index[:, kept], probabilities=p, frames={})


@pytest.mark.usefixtures("in_tasks")
@pytest.mark.parametrize(
    ("name", "ids", "settings"),
    [
        ("informed", "string", {}),
        ("informed", "integer", {"score": "thr", "by": "class"}),
        ("informed", "string", {"by": "degree"}),
        ("auto", "string", {}),
        ("auto-small", "integer", {}),
    ],
)
def test_labels_held_out_are_evidence_there_too(
    spark: Any, tmp_path: Path, name: str, ids: str, settings: dict[str, Any]
) -> None:
    from napsets.spark.predict import Options, predict

    case = by_id(alike(ids))  # tables that are in pieces have no other order
    method = make_method(name, alpha=0.2, seed=3, **settings)
    calibrated = method.calibrate_rows(case.graph, case.probabilities, case.labels, case.calibration, case.ids)
    assert isinstance(calibrated.method.level, Full)
    expected = calibrated.predict(case.nodes, 0.2)
    silent = ns.Method(calibrated.method.score, seed=3, level=ns.Exact(), groups=calibrated.method.groups)
    alone = silent.calibrate_rows(case.graph, case.probabilities, case.labels, case.calibration, case.ids)
    assert not expected.same_as(alone.predict(case.nodes, 0.2))
    options = Options(0.2, plan="graph-on-every-worker", checkpoint_dir=str(tmp_path), batch_size=70)
    tables = {key: table.repartition(3) for key, table in case.tables(spark).items()}
    result = predict(spark, tables, method, options)
    assert len(result.files) == -(-case.nodes.size // 70)
    assert_same_bits(result.sets, case, expected, calibrated.score.probabilities[case.nodes])
