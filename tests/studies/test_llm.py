"""The LLM study on a small file in the layout of ogbn-arxiv."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from studies.collections import load
from studies.llm import DESIGNS, KIND, _parts, llm_cells, rank_probabilities

CLASSES = 6


@pytest.fixture
def root(tmp_path):
    """3,000 papers with lists of three categories, of which the first is right for about two thirds."""
    rng, nodes = np.random.default_rng(0), 3000
    labels, years = rng.integers(CLASSES, size=nodes), np.sort(rng.integers(2012, 2021, size=nodes))
    others = np.argsort(rng.random((nodes, CLASSES)), axis=1)
    first = np.where(rng.random(nodes) < 0.65, labels, others[:, 0])
    listed = np.stack([first, (first + 1) % CLASSES, (first + 3) % CLASSES], axis=1)
    rows, ranks = np.repeat(np.arange(nodes), 3), np.tile(np.arange(3), nodes)
    x = sp.csr_array((np.ones(3 * nodes), (rows, ranks * CLASSES + listed.ravel())), shape=(nodes, 5 * CLASSES))
    same = [rng.permutation(np.flatnonzero(labels == label)) for label in range(CLASSES)]
    ends = np.concatenate([np.stack([part, np.roll(part, 1)]) for part in same], axis=1)
    links = sp.csr_array((np.ones(nodes), ends), shape=(nodes, nodes))
    links = links + links.T
    masks = {"train_mask": years <= 2017, "val_mask": years == 2018, "test_mask": years > 2018}
    np.savez(
        tmp_path / "ogbn_arxiv.npz", n=nodes, adj_indptr=links.indptr, adj_indices=links.indices, labels=labels,
        x_indptr=x.indptr, x_indices=x.indices, x_data=x.data, x_shape=x.shape, **masks,
        node_time=np.floor((years - 1970) * 365.2425).astype(np.int64), class_names=np.array([*"abcdef"]),
    )  # fmt: skip
    return tmp_path


def test_a_class_gets_the_share_of_training_papers_at_its_rank_and_the_rest_is_spread_evenly(root):
    data = load("ogbn-arxiv", root=root)
    lists = data.feature_rows(slice(None)).reshape(-1, 5, CLASSES)
    shares = [lists[data.train, rank, data.labels[data.train]].mean() for rank in range(5)]
    probabilities = rank_probabilities(data)
    for paper in (0, 1500, 2999):
        given = {int(lists[paper, rank].argmax()): shares[rank] for rank in range(3)}
        rest = (1 - sum(given.values())) / (CLASSES - 3)
        assert probabilities[paper] == pytest.approx([given.get(label, rest) for label in range(CLASSES)])


def test_no_predicted_paper_calibrates_or_is_evidence_and_fixed_designs_see_no_later_label(root):
    data = load("ogbn-arxiv", root=root)
    years = 1970 + np.round(data.times / 365.2425).astype(np.int64)
    cells = llm_cells(1)
    assert {cell["design"] for cell in cells} == set(DESIGNS)
    for cell in cells:
        calibration, evidence, rest, seen = _parts(cell | {"labels": min(cell["labels"], 100)}, data, years)
        used = calibration if evidence is None else np.union1d(calibration, evidence)
        assert np.intersect1d(used, rest).size == 0
        assert np.isin(used, seen).all()
        if cell["year"]:
            assert (years[rest] == cell["year"]).all()
            assert years[used].max() == (2014 if cell["design"] == "fixed" else cell["year"] - 1)


def test_the_command_writes_the_page_with_its_figure(studies, root, monkeypatch):
    monkeypatch.setattr("studies.llm._AUDITS", (100, 300))
    page = root / "tasks" / "llm.md"
    page.parent.mkdir()
    code, shown, notes = studies("llm", "--quick", "--root", root, "--results", root / "results", "--page", page)
    assert code == 0, notes
    assert "| audit and evidence | auto-small | 100 | " in shown
    for row in KIND.read(root / "results"):
        assert row["coverage"] > 0.7
        assert row["mean_size"] <= CLASSES
    assert "categories per paper" in page.read_text(encoding="utf-8")
    assert (root / "tasks" / "figures" / "llm.svg").exists()
